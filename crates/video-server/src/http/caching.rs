//! Time for which caches may use responses, and header fields that the operator adds.

use core::str::FromStr;

use glob::{MatchOptions, Pattern};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use thiserror::Error;

const EXPECTED: &str =
    "expected PATTERN: NAME: VALUE, such as `*.m4s: Cache-Control: max-age=31536000, immutable`";

/// Kind of a response, which determines how long caches may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheKind {
    /// A manifest that may grow, or whose present version was not read.
    GrowingManifest,
    /// A manifest of a recording, or an HLS main playlist.
    Manifest,
    /// A file that a recording's manifest names.
    Segment,
    /// A title in one file, in the version that was indexed.
    Title,
    /// A page for browsers.
    Page,
    /// Any other file. This includes the segments of live titles, because no manifest that was read names the newest.
    File,
    /// A name without a file (404).
    Absent,
    /// Any other error, of the client or the server.
    Failure,
}

impl CacheKind {
    pub(crate) fn of_refusal(status: StatusCode) -> Self {
        // A segment that players request too early will come.
        if status == StatusCode::NOT_FOUND {
            Self::Absent
        } else {
            Self::Failure
        }
    }

    /// Value of `Cache-Control` (RFC 9111 §5.2.2).
    ///
    /// The server cannot know whether an operator reuses names. So nothing is `immutable`, and the longest time is a
    /// day: a browser's cache cannot be purged, and old segments do not fit a new manifest. Entity tags make later
    /// validations cheap. Live encoders that restart reuse names within minutes. Without `public`, responses to
    /// requests with `Authorization` stay out of shared caches (§3.5).
    pub(crate) const fn cache_control(self) -> &'static str {
        match self {
            Self::GrowingManifest | Self::Absent => "max-age=1",
            Self::Manifest => "max-age=300",
            Self::Segment => "max-age=86400",
            Self::Title => "max-age=3600",
            Self::Page => "no-cache",
            Self::File => "max-age=60",
            Self::Failure => "no-store",
        }
    }
}

/// Fields that depend on the response or the connection, so that the server alone can set them. Those of CORS have the
/// option `--cors` instead.
const OWN: &str = "accept-ranges allow alt-svc cmsd-dynamic cmsd-static connection content-encoding content-length \
    content-range date etag keep-alive last-modified proxy-connection retry-after server-timing te \
    timing-allow-origin trailer transfer-encoding upgrade vary";

/// A header field for responses whose path matches a pattern. Its text form is `PATTERN: NAME: VALUE`.
///
/// A pattern without `/` matches the last segment of a path, any other the whole path from its slash on. `*` matches
/// within a segment, `**` any number of segments.
#[derive(Clone, Debug)]
pub struct HeaderRule {
    pattern: Pattern,
    name: HeaderName,
    value: HeaderValue,
}

/// Error of parsing a [`HeaderRule`].
#[derive(Debug, Error)]
#[error("{0}")]
pub struct HeaderRuleError(String);

impl FromStr for HeaderRule {
    type Err = HeaderRuleError;

    fn from_str(text: &str) -> Result<Self, HeaderRuleError> {
        let refused = |why: String| Err(HeaderRuleError(why));
        let parts: Vec<_> = text.splitn(3, ':').map(|part| part.trim_matches(' ')).collect();
        let &[pattern, name, value] = parts.as_slice() else {
            return refused(EXPECTED.to_owned());
        };
        if pattern.is_empty() || value.is_empty() {
            return refused(EXPECTED.to_owned());
        }
        let Ok(name) = name.parse::<HeaderName>() else {
            return refused(format!("`{name}` is not the name of a header field"));
        };
        if name.as_str().starts_with("access-control-") || OWN.split(' ').any(|own| name == own) {
            return refused(format!(
                "`{name}` cannot be set: the server determines it for each response"
            ));
        }
        let Ok(value) = HeaderValue::from_str(value) else {
            return refused(format!(
                "the value of `{name}` must have no line breaks and no other control characters"
            ));
        };
        match Pattern::new(pattern) {
            Ok(pattern) => Ok(Self { pattern, name, value }),
            Err(error) => refused(format!("`{pattern}` is not a pattern: {error}")),
        }
    }
}

impl HeaderRule {
    /// Sets the field of a response for `path` if it matches.
    pub(crate) fn apply(&self, path: &str, fields: &mut HeaderMap) {
        let options = MatchOptions {
            require_literal_separator: true,
            ..MatchOptions::new()
        };
        let is_path = self.pattern.as_str().contains('/');
        let subject = if is_path {
            path
        } else {
            path.rsplit('/').next().unwrap_or(path)
        };
        if self.pattern.matches_with(subject, options) {
            fields.insert(self.name.clone(), self.value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(CacheKind::GrowingManifest, "max-age=1")]
    #[case(CacheKind::Manifest, "max-age=300")]
    #[case(CacheKind::Segment, "max-age=86400")]
    #[case(CacheKind::Title, "max-age=3600")]
    #[case(CacheKind::Page, "no-cache")]
    #[case(CacheKind::File, "max-age=60")]
    #[case(CacheKind::Absent, "max-age=1")]
    #[case(CacheKind::Failure, "no-store")]
    fn each_kind_has_its_time(#[case] kind: CacheKind, #[case] expected: &str) {
        assert_eq!(kind.cache_control(), expected);
    }

    #[rstest]
    #[case("*.m3u8", "/film.m3u8", true)]
    #[case("*.m3u8", "/films/a/film.m3u8", true)]
    #[case("*.m3u8", "/film.mpd", false)]
    #[case("/*.m3u8", "/film.m3u8", true)]
    #[case("/*.m3u8", "/films/film.m3u8", false)]
    #[case("/films/**", "/films/a/b.m4s", true)]
    #[case("/films/**", "/films.mp4", false)]
    #[case("/films/*/b.m4s", "/films/a/b.m4s", true)]
    #[case("/**", "/a/b/c", true)]
    #[case("*", "/a/b/c", true)]
    fn patterns_match_file_names_or_paths(#[case] pattern: &str, #[case] path: &str, #[case] expected: bool) {
        let rule: HeaderRule = format!("{pattern}: X-A: b: c").parse().unwrap();
        let mut fields = HeaderMap::new();
        rule.apply(path, &mut fields);
        let value = fields.get("x-a").map(HeaderValue::as_bytes);
        assert_eq!(value, expected.then_some(&b"b: c"[..]));
    }

    #[rstest]
    #[case("*.mp4", "expected PATTERN: NAME: VALUE")]
    #[case("*.mp4: X-A", "expected PATTERN: NAME: VALUE")]
    #[case("*.mp4: X-A:", "expected PATTERN: NAME: VALUE")]
    #[case(": X-A: b", "expected PATTERN: NAME: VALUE")]
    #[case("a[: X-A: b", "`a[` is not a pattern")]
    #[case("*: X A: b", "`X A` is not the name")]
    #[case("*: X-A: b\r\nSet-Cookie: c", "the value of `x-a` must have no line breaks")]
    #[case("*: X-A\r\nB: c", "is not the name")]
    #[case("*: content-length: 1", "`content-length` cannot be set")]
    #[case("*: Transfer-Encoding: chunked", "`transfer-encoding` cannot be set")]
    #[case("*: Keep-Alive: 1", "`keep-alive` cannot be set")]
    #[case(
        "*: Access-Control-Allow-Origin: *",
        "`access-control-allow-origin` cannot be set"
    )]
    fn a_rule_that_cannot_work_is_refused(#[case] text: &str, #[case] expected: &str) {
        let error = text.parse::<HeaderRule>().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
