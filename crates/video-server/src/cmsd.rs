//! CMSD, what a server says of itself with a response (CTA-5006): `CMSD-Static` of the object, `CMSD-Dynamic` of the way to
//! this client. Values as RFC 8941 writes them. Pure.

use core::fmt::Write as _;
use core::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use playrate_units::Bitrate;

/// The field that says what goes for the object, whoever asks for it.
pub const STATIC: HeaderName = HeaderName::from_static("cmsd-static");
/// The field that says what goes for this client, now.
pub const DYNAMIC: HeaderName = HeaderName::from_static("cmsd-dynamic");

/// Who says so, in `CMSD-Dynamic`.
const SERVER: &str = "playrate";

/// What goes for an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Static {
    /// `br`: its encoded rate.
    pub bitrate: Option<Bitrate>,
    /// `d`: how long it plays.
    pub duration: Option<Duration>,
    /// `ot`: `v` or `a`.
    pub object_type: Option<char>,
}

/// What goes for a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// `etp`: the throughput that is to be expected.
    pub throughput: Option<Bitrate>,
    /// `rtt`: round-trip time.
    pub rtt: Option<Duration>,
    /// `mb`: the highest rate of the title's that fits into the throughput.
    pub most: Option<Bitrate>,
}

impl Static {
    /// Sets the field, if there is anything to say.
    pub fn apply(&self, headers: &mut HeaderMap) {
        let mut members = Vec::new();
        members.extend(self.object_type.map(|letter| format!("ot={letter}")));
        members.extend(self.bitrate.map(|rate| format!("br={}", kbps(rate))));
        members.extend(self.duration.map(|time| format!("d={}", time.as_millis())));
        insert(headers, STATIC, &members.join(","), !members.is_empty());
    }
}

impl Dynamic {
    /// Sets the field, if there is anything to say.
    pub fn apply(&self, headers: &mut HeaderMap) {
        let mut text = format!("\"{SERVER}\"");
        let known = [
            ("etp", self.throughput.map(kbps)),
            ("mb", self.most.map(kbps)),
            (
                "rtt",
                self.rtt
                    .map(|rtt| u64::try_from(rtt.as_millis()).unwrap_or(u64::MAX).max(1)),
            ),
        ];
        for (key, value) in known {
            if let Some(value) = value {
                // Writing to a String cannot fail.
                let _ = write!(text, ";{key}={value}");
            }
        }
        insert(
            headers,
            DYNAMIC,
            &text,
            known.iter().any(|(_, value)| value.is_some()),
        );
    }
}

/// Kilobits a second; a rate below one is one, as zero says that nothing gets through.
fn kbps(rate: Bitrate) -> u64 {
    (rate.as_bits_per_second() / 1_000).max(1)
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str, anything: bool) {
    if anything && let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_said_and_nothing_else() {
        let mut headers = HeaderMap::new();
        Static::default().apply(&mut headers);
        Dynamic::default().apply(&mut headers);
        assert!(headers.is_empty());
        let object = Static {
            bitrate: Some(Bitrate::from_kbps(4_820)),
            duration: Some(Duration::from_secs(3)),
            object_type: Some('v'),
        };
        object.apply(&mut headers);
        let way = Dynamic {
            throughput: Some(Bitrate::from_bits_per_second(12_345_678)),
            rtt: Some(Duration::from_micros(40_400)),
            most: None,
        };
        way.apply(&mut headers);
        assert_eq!(headers[STATIC], "ot=v,br=4820,d=3000");
        assert_eq!(headers[DYNAMIC], "\"playrate\";etp=12345;rtt=40");
    }
}
