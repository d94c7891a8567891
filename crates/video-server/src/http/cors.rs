//! CORS: lets pages of other origins read responses ([Fetch §3.2](https://fetch.spec.whatwg.org/#http-cors-protocol)),
//! and [Resource Timing §4.5](https://www.w3.org/TR/resource-timing/#sec-timing-allow-origin), without which a player
//! cannot see how long its requests took. Credentials are never allowed: nothing here depends on them.

use core::str::FromStr;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW, HeaderName,
    HeaderValue, ORIGIN, VARY,
};
use http::{HeaderMap, Method};
use thiserror::Error;
use url::Url;

/// The origins whose pages may read responses. Its text form is `*`, or origins separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cors {
    /// Pages of every origin.
    Any,
    /// These origins, as browsers write them: `https://player.example`, with a port unless it is the scheme's own.
    Only(Vec<String>),
}

/// A text that names no origins.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not an origin; expected scheme, host and optional port, such as https://player.example or \
     http://localhost:8080; several origins separated by commas; or * for every origin"
)]
pub struct CorsError {
    /// The text that is not an origin.
    text: String,
}

const TIMING_ALLOW_ORIGIN: HeaderName = HeaderName::from_static("timing-allow-origin");

/// Response fields that a page may read, in addition to those that are always readable.
const EXPOSED: &str = "CMSD-Dynamic, CMSD-Static, Content-Length, Content-Range, ETag, Date, Server-Timing";

/// Fields that players set: the four of CMCD (CTA-5004 §2), the type of its event reports, ranges and conditions, the
/// priority of RFC 9218, bearer tokens.
const REQUEST_FIELDS: &str = "CMCD-Object, CMCD-Request, CMCD-Session, CMCD-Status, Content-Type, Range, If-Match, \
    If-Modified-Since, If-None-Match, If-Range, If-Unmodified-Since, Priority, Cache-Control, Authorization";

/// Validity of a preflight's answer in seconds. Chromium caps it at this value.
const PREFLIGHT_AGE: &str = "7200";

impl Cors {
    /// Adds the CORS fields to the head of a response to this request.
    pub fn apply(&self, method: &Method, request: &HeaderMap, response: &mut HeaderMap) {
        let origin = request.get(ORIGIN);
        let allowed = match self {
            Self::Any => HeaderValue::from_static("*"),
            Self::Only(origins) => {
                // A cache must not reuse one origin's permission for another.
                response.append(VARY, HeaderValue::from_static("Origin"));
                let known =
                    |origin: &&HeaderValue| origins.iter().any(|known| known.as_bytes() == origin.as_bytes());
                let Some(origin) = origin.filter(known) else {
                    return;
                };
                origin.clone()
            }
        };
        response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed.clone());
        if method == Method::OPTIONS
            && origin.is_some()
            && request.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        {
            if let Some(methods) = response.get(ALLOW).cloned() {
                response.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
            }
            response.insert(
                ACCESS_CONTROL_ALLOW_HEADERS,
                HeaderValue::from_static(REQUEST_FIELDS),
            );
            response.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_AGE));
        } else {
            response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
            response.insert(TIMING_ALLOW_ORIGIN, allowed);
        }
    }
}

impl FromStr for Cors {
    type Err = CorsError;

    fn from_str(text: &str) -> Result<Self, CorsError> {
        if text.trim() == "*" {
            return Ok(Self::Any);
        }
        text.split(',')
            .map(origin)
            .collect::<Result<_, _>>()
            .map(Self::Only)
    }
}

/// An origin as browsers write it (RFC 6454 §6.1).
fn origin(text: &str) -> Result<String, CorsError> {
    let text = text.trim();
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"));
    // The URL parser skips or decodes some of these.
    let is_foreign = |c: char| c.is_ascii_whitespace() || c.is_ascii_control() || "/?#@\\%".contains(c);
    match (url, text.split_once("://")) {
        (Some(url), Some((_, authority))) if !authority.contains(is_foreign) => {
            Ok(url.origin().ascii_serialization())
        }
        _ => Err(CorsError {
            text: text.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::headers;
    use playrate_test_support::assert_contains;
    use rstest::rstest;

    fn applied(cors: &str, method: &Method, request: &[(&'static str, &str)]) -> HeaderMap {
        let mut response = headers(&[("allow", "GET, HEAD, OPTIONS")]);
        cors.parse::<Cors>()
            .unwrap()
            .apply(method, &headers(request), &mut response);
        response
    }

    fn text<'a>(response: &'a HeaderMap, name: &str) -> &'a str {
        response.get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[test]
    fn every_page_may_read_times_sizes_and_what_the_server_says_of_itself() {
        let response = applied("*", &Method::GET, &[]);
        assert_eq!(text(&response, "access-control-allow-origin"), "*");
        assert_eq!(text(&response, "timing-allow-origin"), "*");
        let exposed = text(&response, "access-control-expose-headers");
        let fields = [
            "CMSD-Dynamic",
            "CMSD-Static",
            "Content-Range",
            "ETag",
            "Server-Timing",
        ];
        assert_contains(exposed, &fields);
        assert!(!response.contains_key("vary"));
    }

    #[test]
    fn a_preflight_allows_what_players_send() {
        let origin = ("origin", "https://a.example");
        let preflight = [origin, ("access-control-request-method", "GET")];
        let response = applied("*", &Method::OPTIONS, &preflight);
        let allowed = text(&response, "access-control-allow-headers");
        let fields = [
            "CMCD-Object",
            "CMCD-Request",
            "CMCD-Session",
            "CMCD-Status",
            "Content-Type",
            "Range",
        ];
        assert_contains(allowed, &fields);
        assert!(text(&response, "access-control-allow-methods").contains("GET"));
        assert_eq!(text(&response, "access-control-max-age"), "7200");
    }

    #[test]
    fn only_listed_origins_may_read_and_responses_vary_by_origin() {
        let cors = "https://a.example,http://localhost:8080";
        for origin in ["https://a.example", "http://localhost:8080"] {
            let response = applied(cors, &Method::GET, &[("origin", origin)]);
            assert_eq!(text(&response, "access-control-allow-origin"), origin);
            assert_eq!(text(&response, "timing-allow-origin"), origin);
            assert_eq!(text(&response, "vary"), "Origin");
        }
        for origin in [
            "https://b.example",
            "http://a.example",
            "null",
            "https://a.example:444",
        ] {
            let response = applied(cors, &Method::GET, &[("origin", origin)]);
            assert!(!response.contains_key("access-control-allow-origin"), "{origin}");
            assert_eq!(text(&response, "vary"), "Origin");
        }
    }

    #[rstest]
    #[case("*", "*")]
    #[case(" * ", "*")]
    #[case("https://Player.Example", "https://player.example")]
    #[case(
        "https://a.example:443, http://b.example:80",
        "https://a.example,http://b.example"
    )]
    #[case("http://[::1]:8080", "http://[::1]:8080")]
    fn origins_are_written_as_browsers_write_them(#[case] text: &str, #[case] canonical: &str) {
        let origins = match text.parse().unwrap() {
            Cors::Any => "*".to_owned(),
            Cors::Only(origins) => origins.join(","),
        };
        assert_eq!(origins, canonical);
    }

    #[rstest]
    #[case("")]
    #[case("player.example")]
    #[case("https://")]
    #[case("https://a.example/")]
    #[case("https://a.example/path")]
    #[case("https://user@a.example")]
    #[case("ftp://a.example")]
    #[case("https://a.example,*")]
    #[case("https://a\n.example")]
    #[case("https://a%2Eexample")]
    #[case("null")]
    fn an_invalid_origin_is_quoted_with_a_correction(#[case] wrong: &str) {
        let error = wrong.parse::<Cors>().unwrap_err().to_string();
        assert_contains(&error, &["is not an origin", "https://player.example"]);
    }
}
