//! [`TitleUrl`]: the `https://host:port/path` of a title, in the form that users write.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use url::{Host, Url};

/// The address of a title: `https`, a host, a UDP port, a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleUrl {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// UDP port; 443 if the text does not name one.
    pub port: u16,
    /// Path and query, percent-encoded.
    pub path: String,
}

/// A text that is not the URL of a title. The message quotes it and says what is expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}`{problem}")]
pub struct UrlError {
    text: String,
    problem: String,
}

/// Reads `text` as the part after `https://`. A single word without a port is a file name rather than a host.
fn with_host(text: &str) -> String {
    let is_host = text.contains(['/', ':']) || !text.contains('.');
    if is_host && !text.starts_with(['/', '.']) {
        text.to_owned()
    } else {
        format!("localhost:4433/{}", text.trim_start_matches(['/', '.']))
    }
}

impl FromStr for TitleUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let wrong = |problem: String| UrlError {
            text: text.to_owned(),
            problem,
        };
        let malformed = |reason: &str| {
            wrong(format!(
                " is not a URL: {reason}; write it as https://HOST:PORT/TITLE.mp4"
            ))
        };
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| wrong(format!(" is not a URL; write https://{}", with_host(text))))?;
        if !scheme.eq_ignore_ascii_case("https") {
            return Err(wrong(format!(
                ": HTTP/3 runs only over TLS, so {scheme}:// cannot work; write https://{rest}"
            )));
        }
        let url = Url::parse(text).map_err(|error| malformed(&error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            let problem = ": user names and passwords are not supported; leave out what is before the @";
            return Err(wrong(problem.to_owned()));
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(malformed("it has no host")),
        };
        let port = match url.port_or_known_default() {
            Some(0) | None => return Err(malformed("port 0 cannot be connected to")),
            Some(port) => port,
        };
        if url.path() == "/" && url.query().is_none() {
            return Err(wrong(format!(
                " names no title; add its path, such as https://{}/TITLE.mp4",
                url.authority()
            )));
        }
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Ok(Self { host, port, path })
    }
}

impl TitleUrl {
    /// Returns true if the path names a manifest: `.mpd` (DASH) or `.m3u8` (HLS).
    pub fn is_manifest(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        playrate_media::manifest::Manifest::is_named(std::path::Path::new(path))
    }
}

impl fmt::Display for TitleUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "https://[{}]:{}{}", self.host, self.port, self.path)
        } else {
            write!(f, "https://{}:{}{}", self.host, self.port, self.path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_test_support::assert_contains;
    use rstest::rstest;

    #[rstest]
    #[case("https://localhost:4433/film.mp4", "localhost", 4433, "/film.mp4")]
    #[case("https://localhost/film.mp4", "localhost", 443, "/film.mp4")]
    #[case("HTTPS://Example.ORG/a%20b.mp4?t=1#x", "example.org", 443, "/a%20b.mp4?t=1")]
    #[case("https://[::1]:4433/a b.mp4", "::1", 4433, "/a%20b.mp4")]
    fn reads_urls(#[case] text: &str, #[case] host: &str, #[case] port: u16, #[case] path: &str) {
        let url: TitleUrl = text.parse().unwrap();
        assert_eq!((&*url.host, url.port, &*url.path), (host, port, path));
        assert_eq!(url.to_string().parse(), Ok(url));
    }

    #[rstest]
    #[case("https://h/a/b.mpd", true)]
    #[case("https://h/B.M3U8?t=a.mp4", true)]
    #[case("https://h/a.mp4?t=b.mpd", false)]
    #[case("https://h/mpd", false)]
    fn manifests_are_known_by_their_names(#[case] text: &str, #[case] manifest: bool) {
        assert_eq!(text.parse::<TitleUrl>().unwrap().is_manifest(), manifest);
    }

    #[rstest]
    #[case("http://localhost:80/film.mp4", "write https://localhost:80/film.mp4")]
    #[case("localhost:4433/film.mp4", "write https://localhost:4433/film.mp4")]
    #[case("film.mp4", "write https://localhost:4433/film.mp4")]
    #[case("./film.mp4", "write https://localhost:4433/film.mp4")]
    #[case("localhost", "write https://localhost")]
    #[case("films.example/film.mp4", "write https://films.example/film.mp4")]
    #[case("https://localhost:x/film.mp4", "invalid port number")]
    #[case("https://localhost:99999/film.mp4", "invalid port number")]
    #[case("https://localhost:0/film.mp4", "port 0")]
    #[case("https://:4433/film.mp4", "empty host")]
    #[case("https://me:secret@localhost/film.mp4", "before the @")]
    #[case("https://localhost:4433", "such as https://localhost:4433/TITLE.mp4")]
    #[case("https://localhost:4433/", "names no title")]
    #[case("", "is not a URL")]
    fn refuses_what_is_no_title_and_names_the_fix(#[case] text: &str, #[case] fix: &str) {
        let error = text.parse::<TitleUrl>().unwrap_err().to_string();
        assert_contains(&error, &[fix, &format!("`{text}`")]);
    }
}
