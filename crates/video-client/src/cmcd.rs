//! CMCD, what a player says of itself with a request
//! ([CTA-5004](https://cdn.cta.tech/cta/media/media/resources/standards/pdfs/cta-5004-final.pdf)).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use playrate_units::Bitrate;
use thiserror::Error;

/// Longest session and content identifiers (§3).
const IDENTIFIER: usize = 64;

/// Characters that stay as they are in the query parameter (RFC 3986 §2.3).
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// How a player says what it knows of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CmcdMode {
    /// It says nothing.
    #[default]
    Off,
    /// In the header fields `CMCD-Object`, `CMCD-Request`, `CMCD-Session` and `CMCD-Status`.
    Header,
    /// In the query parameter `CMCD`.
    Query,
}

impl fmt::Display for CmcdMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Off => "off",
            Self::Header => "header",
            Self::Query => "query",
        })
    }
}

/// A mode that there is not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no way to send CMCD: write header, query or off")]
pub struct CmcdModeError(String);

impl FromStr for CmcdMode {
    type Err = CmcdModeError;

    fn from_str(text: &str) -> Result<Self, CmcdModeError> {
        match text {
            "off" => Ok(Self::Off),
            "header" => Ok(Self::Header),
            "query" => Ok(Self::Query),
            _ => Err(CmcdModeError(text.to_owned())),
        }
    }
}

/// What a player is to say of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CmcdOptions {
    /// How, if at all.
    pub mode: CmcdMode,
    /// `sid`: names the viewing. A UUID, says CTA-5004; at most 64 characters. Empty: it is left out.
    pub session: String,
}

/// What is asked for (`ot`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectType {
    Manifest,
    Initialization,
    Video,
}

/// What one request says. What is not known is left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cmcd {
    /// `br`: rate of what is asked for.
    pub(crate) bitrate: Option<Bitrate>,
    /// `bl`: playing time in the buffer.
    pub(crate) buffer: Option<Duration>,
    /// `bs`: the buffer ran empty since the request before.
    pub(crate) starved: bool,
    /// `cid`: which title.
    pub(crate) content: Option<String>,
    /// `d`: playing time of what is asked for.
    pub(crate) duration: Option<Duration>,
    /// `dl`: how long until it is needed.
    pub(crate) deadline: Option<Duration>,
    /// `mtp`: what the player measures.
    pub(crate) throughput: Option<Bitrate>,
    /// `ot`.
    pub(crate) object: Option<ObjectType>,
    /// `rtp`: the most that would be of use.
    pub(crate) requested: Option<Bitrate>,
    /// `sf`: `d` DASH, `h` HLS, `o` another.
    pub(crate) format: Option<char>,
    /// `su`: nothing is being shown, what is asked for is urgent.
    pub(crate) startup: bool,
    /// `tb`: the highest rate there is.
    pub(crate) top: Option<Bitrate>,
}

/// The header fields, each for what changes as often (§2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Object,
    Request,
    Session,
    Status,
}

impl Field {
    const ALL: [Self; 4] = [Self::Object, Self::Request, Self::Session, Self::Status];

    fn name(self) -> HeaderName {
        HeaderName::from_static(match self {
            Self::Object => "cmcd-object",
            Self::Request => "cmcd-request",
            Self::Session => "cmcd-session",
            Self::Status => "cmcd-status",
        })
    }
}

impl Cmcd {
    /// Puts it where `options` want it; returns the path to ask for.
    pub(crate) fn apply(&self, options: &CmcdOptions, path: &str, headers: &mut HeaderMap) -> String {
        let pairs = self.pairs(&options.session);
        match options.mode {
            CmcdMode::Off => path.to_owned(),
            CmcdMode::Header => {
                for field in Field::ALL {
                    let text: Vec<_> = pairs
                        .iter()
                        .filter(|(its, _)| *its == field)
                        .map(|(_, pair)| &**pair)
                        .collect();
                    if !text.is_empty()
                        && let Ok(value) = HeaderValue::try_from(text.join(","))
                    {
                        headers.insert(field.name(), value);
                    }
                }
                path.to_owned()
            }
            CmcdMode::Query => {
                let text: Vec<_> = pairs.iter().map(|(_, pair)| &**pair).collect();
                let text = text.join(",");
                let encoded = utf8_percent_encode(&text, QUERY);
                format!(
                    "{path}{}CMCD={encoded}",
                    if path.contains('?') { '&' } else { '?' }
                )
            }
        }
    }

    /// What there is to say, by key (§2.3 wants them in alphabetical order).
    fn pairs(&self, session: &str) -> Vec<(Field, String)> {
        let number =
            |field, key: &str, value: Option<u64>| value.map(|value| (field, format!("{key}={value}")));
        let flag = |field, key: &str, value: bool| value.then(|| (field, key.to_owned()));
        let text = |key: &str, value: Option<&str>| {
            let value = value.filter(|value| !value.is_empty())?;
            Some((Field::Session, format!("{key}=\"{}\"", escaped(value))))
        };
        let object = self.object.map(|object| match object {
            ObjectType::Manifest => 'm',
            ObjectType::Initialization => 'i',
            ObjectType::Video => 'v',
        });
        [
            number(Field::Request, "bl", self.buffer.map(hundreds_of_ms)),
            number(Field::Object, "br", self.bitrate.map(kbps)),
            flag(Field::Status, "bs", self.starved),
            text("cid", self.content.as_deref()),
            number(Field::Object, "d", self.duration.map(millis)),
            number(Field::Request, "dl", self.deadline.map(hundreds_of_ms)),
            number(Field::Request, "mtp", self.throughput.map(hundreds_of_kbps)),
            object.map(|letter| (Field::Object, format!("ot={letter}"))),
            number(Field::Status, "rtp", self.requested.map(hundreds_of_kbps)),
            self.format.map(|letter| (Field::Session, format!("sf={letter}"))),
            text("sid", Some(session)),
            // Everything this client plays is on demand.
            Some((Field::Session, "st=v".to_owned())),
            flag(Field::Request, "su", self.startup),
            number(Field::Object, "tb", self.top.map(kbps)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// The last characters of an identifier that fit, without what a string cannot hold (RFC 8941 §3.3.3).
fn escaped(text: &str) -> String {
    let fits: Vec<char> = text.chars().filter(|it| (' '..='~').contains(it)).collect();
    let from = fits.len().saturating_sub(IDENTIFIER);
    let mut escaped = String::new();
    for &character in fits.iter().skip(from) {
        if matches!(character, '"' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

fn millis(time: Duration) -> u64 {
    u64::try_from((time.as_micros() + 500) / 1_000).unwrap_or(u64::MAX)
}

/// Milliseconds, to the nearest 100.
fn hundreds_of_ms(time: Duration) -> u64 {
    nearest_hundred(millis(time))
}

/// Kilobits a second, to the nearest.
fn kbps(rate: Bitrate) -> u64 {
    rate.as_bits_per_second().saturating_add(500) / 1_000
}

/// Kilobits a second, to the nearest 100; below that 100, as zero would say that nothing gets through.
fn hundreds_of_kbps(rate: Bitrate) -> u64 {
    let bits = rate.as_bits_per_second();
    (bits.saturating_add(50_000) / 100_000 * 100).max(100)
}

fn nearest_hundred(value: u64) -> u64 {
    value.saturating_add(50) / 100 * 100
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> Cmcd {
        Cmcd {
            bitrate: Some(Bitrate::from_bits_per_second(3_200_499)),
            buffer: Some(Duration::from_millis(21_349)),
            starved: true,
            content: Some("/films/a \"b\".mpd".into()),
            duration: Some(Duration::from_micros(4_004_400)),
            deadline: Some(Duration::from_millis(18_450)),
            throughput: Some(Bitrate::from_kbps(48_149)),
            object: Some(ObjectType::Video),
            requested: Some(Bitrate::from_kbps(15_050)),
            format: Some('d'),
            startup: true,
            top: Some(Bitrate::from_kbps(6_000)),
        }
    }

    fn options(mode: CmcdMode) -> CmcdOptions {
        CmcdOptions {
            mode,
            session: "6e2fb550-c457-11e9-bb97-0800200c9a66".into(),
        }
    }

    #[test]
    fn each_key_stands_in_its_field_rounded_as_the_specification_wants_it() {
        let mut headers = HeaderMap::new();
        let path = everything().apply(&options(CmcdMode::Header), "/v/1.m4s?t=1", &mut headers);
        assert_eq!(path, "/v/1.m4s?t=1");
        assert_eq!(headers["cmcd-object"], "br=3200,d=4004,ot=v,tb=6000");
        assert_eq!(headers["cmcd-request"], "bl=21300,dl=18500,mtp=48100,su");
        assert_eq!(headers["cmcd-status"], "bs,rtp=15100");
        assert_eq!(
            headers["cmcd-session"],
            "cid=\"/films/a \\\"b\\\".mpd\",sf=d,sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",st=v"
        );
    }

    #[test]
    fn the_query_says_the_same_in_alphabetical_order() {
        let mut headers = HeaderMap::new();
        let said = Cmcd {
            content: None,
            ..everything()
        };
        let path = said.apply(&options(CmcdMode::Query), "/v/1.m4s", &mut headers);
        assert!(headers.is_empty());
        let expected = "/v/1.m4s?CMCD=bl%3D21300%2Cbr%3D3200%2Cbs%2Cd%3D4004%2Cdl%3D18500%2Cmtp%3D48100%2Cot%3Dv%2C\
            rtp%3D15100%2Csf%3Dd%2Csid%3D%226e2fb550-c457-11e9-bb97-0800200c9a66%22%2Cst%3Dv%2Csu%2Ctb%3D6000";
        assert_eq!(path, expected);
        let path = said.apply(&options(CmcdMode::Query), "/v/1.m4s?t=1", &mut headers);
        assert!(path.starts_with("/v/1.m4s?t=1&CMCD="), "{path}");
    }

    #[test]
    fn nothing_is_said_when_it_is_off_and_flags_that_are_false_are_not_sent() {
        let mut headers = HeaderMap::new();
        let path = everything().apply(&CmcdOptions::default(), "/v", &mut headers);
        assert_eq!((path.as_str(), headers.len()), ("/v", 0));
        Cmcd::default().apply(&options(CmcdMode::Header), "/v", &mut headers);
        assert_eq!(headers.len(), 1, "{headers:?}");
    }

    #[test]
    fn identifiers_are_cut_to_64_characters_and_slow_is_not_nothing() {
        let long = format!("{}é/end.mpd", "x".repeat(100));
        assert_eq!(escaped(&long), format!("{}/end.mpd", "x".repeat(56)));
        assert_eq!(hundreds_of_kbps(Bitrate::from_kbps(3)), 100);
        assert_eq!(hundreds_of_ms(Duration::from_millis(49)), 0);
    }
}
