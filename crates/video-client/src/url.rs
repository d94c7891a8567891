//! [`TitleUrl`]: where a title is, from the `https://host:port/path` that users write.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use url::{Host, Url};

/// The address of a title: `https`, a host, a UDP port, a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleUrl {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// UDP port; 443 where the text names none.
    pub port: u16,
    /// Path and query, percent-encoded.
    pub path: String,
}

/// A text that does not say where a title is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlError {
    /// Another scheme than `https`.
    #[error("`{text}`: HTTP/3 runs only over TLS, so {scheme}:// cannot work; write https://{rest}")]
    Scheme {
        /// The text as given.
        text: String,
        /// The scheme in it.
        scheme: String,
        /// What follows the scheme.
        rest: String,
    },
    /// No scheme at all.
    #[error("`{text}` is not a URL; write https://{text}")]
    NoScheme {
        /// The text as given.
        text: String,
    },
    /// Not a URL for another reason.
    #[error("`{text}` is not a URL: {reason}; write it as https://HOST:PORT/TITLE.mp4")]
    Malformed {
        /// The text as given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A user name or password, which would be sent nowhere.
    #[error("`{text}`: there are no logins over HTTP/3 here; leave out what stands before the @")]
    Login {
        /// The text as given.
        text: String,
    },
    /// No title named.
    #[error("`{text}` names no title; add its path, such as https://{host}/TITLE.mp4")]
    NoPath {
        /// The text as given.
        text: String,
        /// Host and port in it.
        host: String,
    },
}

impl FromStr for TitleUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let owned = text.to_owned();
        let malformed = |reason: String| UrlError::Malformed {
            text: text.to_owned(),
            reason,
        };
        match text.split_once("://") {
            None => return Err(UrlError::NoScheme { text: owned }),
            Some((scheme, rest)) if !scheme.eq_ignore_ascii_case("https") => {
                return Err(UrlError::Scheme {
                    text: owned,
                    scheme: scheme.to_owned(),
                    rest: rest.to_owned(),
                });
            }
            Some(_) => {}
        }
        let url = Url::parse(text).map_err(|error| malformed(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::Login { text: owned });
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(malformed("it has no host".to_owned())),
        };
        let port = match url.port_or_known_default() {
            Some(0) | None => return Err(malformed("port 0 cannot be connected to".to_owned())),
            Some(port) => port,
        };
        if url.path() == "/" && url.query().is_none() {
            return Err(UrlError::NoPath {
                host: url.authority().to_owned(),
                text: owned,
            });
        }
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Ok(Self { host, port, path })
    }
}

impl TitleUrl {
    /// Whether it names the manifest of a title in segments: `.mpd` (DASH) or `.m3u8` (HLS).
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
    use rstest::rstest;

    #[rstest]
    #[case("https://localhost:4433/film.mp4", "localhost", 4433, "/film.mp4")]
    #[case("https://localhost/film.mp4", "localhost", 443, "/film.mp4")]
    #[case("HTTPS://Example.ORG/a%20b.mp4?t=1#x", "example.org", 443, "/a%20b.mp4?t=1")]
    #[case("https://[::1]:4433/a b.mp4", "::1", 4433, "/a%20b.mp4")]
    fn reads_urls(#[case] text: &str, #[case] host: &str, #[case] port: u16, #[case] path: &str) {
        let url: TitleUrl = text.parse().unwrap();
        assert_eq!(
            (url.host.as_str(), url.port, url.path.as_str()),
            (host, port, path)
        );
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
    #[case("film.mp4", "write https://film.mp4")]
    #[case("https://localhost:x/film.mp4", "invalid port number")]
    #[case("https://localhost:99999/film.mp4", "invalid port number")]
    #[case("https://localhost:0/film.mp4", "port 0")]
    #[case("https://:4433/film.mp4", "empty host")]
    #[case("https://me:secret@localhost/film.mp4", "before the @")]
    #[case("https://localhost:4433", "such as https://localhost:4433/TITLE.mp4")]
    #[case("https://localhost:4433/", "names no title")]
    #[case("", "is not a URL")]
    fn refuses_what_is_no_title_and_says_the_mend(#[case] text: &str, #[case] mend: &str) {
        let error = text.parse::<TitleUrl>().unwrap_err().to_string();
        assert!(
            error.contains(mend) && error.contains(&format!("`{text}`")),
            "{error}"
        );
    }
}
