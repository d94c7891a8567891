//! CMSD, Common Media Server Data: what a server tells a player in a response (CTA-5006). `CMSD-Static` describes the
//! object, `CMSD-Dynamic` the path to this client.

use core::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use playrate_units::Bitrate;

use crate::cmcd::ObjectType;
use crate::structured::{member, split, write_integer};

/// Name of the header field of [`CmsdStatic`].
pub const STATIC: HeaderName = HeaderName::from_static("cmsd-static");
/// Name of the header field of [`CmsdDynamic`].
pub const DYNAMIC: HeaderName = HeaderName::from_static("cmsd-dynamic");

/// Name of this server in `CMSD-Dynamic`.
const SERVER: &str = "\"playrate\"";

/// Description of an object, the same for every client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CmsdStatic {
    /// `br`: encoded rate of the object.
    pub bitrate: Option<Bitrate>,
    /// `d`: playing time of the object.
    pub duration: Option<Duration>,
    /// `ot`: type of the object.
    pub object_type: Option<ObjectType>,
}

/// State of the path to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CmsdDynamic {
    /// `etp`: throughput that the server estimates.
    pub throughput: Option<Bitrate>,
    /// `rtt`: round-trip time to the client.
    pub rtt: Option<Duration>,
    /// `mb`: highest rate of the title that fits into the throughput.
    pub max_bitrate: Option<Bitrate>,
}

impl CmsdStatic {
    /// Sets the header field if any key has a value.
    pub fn write(&self, headers: &mut HeaderMap) {
        let duration = self.duration.map(millis);
        let numbers = numbers([("br", self.bitrate.map(kbps)), ("d", duration)]);
        let object = self.object_type.map(|object| format!("ot={}", object.token()));
        let members: Vec<_> = object.into_iter().chain(numbers).collect();
        if !members.is_empty() {
            insert(headers, STATIC, members.join(","));
        }
    }
}

impl CmsdDynamic {
    /// Sets the header field if any key has a value.
    pub fn write(&self, headers: &mut HeaderMap) {
        let rtt = self.rtt.map(|rtt| millis(rtt).max(1));
        let path = numbers([
            ("etp", self.throughput.map(kbps)),
            ("mb", self.max_bitrate.map(kbps)),
            ("rtt", rtt),
        ]);
        let parts: Vec<_> = core::iter::once(SERVER.to_owned()).chain(path).collect();
        if *self != Self::default() {
            insert(headers, DYNAMIC, parts.join(";"));
        }
    }

    /// Reads the entry of the nearest server, which is the last one (§5: each server appends its own). `None` if it has
    /// none of these keys.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get_all(DYNAMIC).iter().next_back()?.to_str().ok()?;
        let mut read = Self::default();
        let entry = split(text, ',').last()?;
        for (key, value) in split(entry, ';').skip(1).map(member) {
            match key {
                "etp" => read.throughput = value.rate(),
                "rtt" => read.rtt = value.integer().map(Duration::from_millis),
                "mb" => read.max_bitrate = value.rate(),
                _ => {}
            }
        }
        (read != Self::default()).then_some(read)
    }
}

/// The keys that have a number, as `key=number`.
fn numbers<const N: usize>(numbers: [(&str, Option<u64>); N]) -> impl Iterator<Item = String> {
    let numbers = numbers.into_iter();
    numbers.filter_map(|(key, number)| Some(format!("{key}={}", write_integer(number?)?)))
}

/// Rate in kbit/s; at least 1, as zero would mean that nothing gets through.
fn kbps(rate: Bitrate) -> u64 {
    (rate.as_bits_per_second() / 1_000).max(1)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: String) {
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(values: &[&str]) -> Option<CmsdDynamic> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(DYNAMIC, HeaderValue::try_from(*value).unwrap());
        }
        CmsdDynamic::read(&headers)
    }

    fn expected(etp: Option<u64>, rtt: Option<u64>, mb: Option<u64>) -> CmsdDynamic {
        CmsdDynamic {
            throughput: etp.map(Bitrate::from_kbps),
            rtt: rtt.map(Duration::from_millis),
            max_bitrate: mb.map(Bitrate::from_kbps),
        }
    }

    #[test]
    fn only_known_values_are_written() {
        let mut headers = HeaderMap::new();
        CmsdStatic::default().write(&mut headers);
        CmsdDynamic::default().write(&mut headers);
        assert!(headers.is_empty());
        let object = CmsdStatic {
            bitrate: Some(Bitrate::from_kbps(4_820)),
            duration: Some(Duration::from_secs(3)),
            object_type: Some(ObjectType::Video),
        };
        object.write(&mut headers);
        let path = CmsdDynamic {
            throughput: Some(Bitrate::from_bits_per_second(12_345_678)),
            rtt: Some(Duration::from_micros(40_400)),
            max_bitrate: None,
        };
        path.write(&mut headers);
        assert_eq!(headers[STATIC], "ot=v,br=4820,d=3000");
        assert_eq!(headers[DYNAMIC], "\"playrate\";etp=12345;rtt=40");
    }

    #[test]
    fn the_entry_of_the_nearest_server_counts() {
        let one = "\"playrate\";etp=17250;mb=4820;rtt=41";
        assert_eq!(read(&[one]), Some(expected(Some(17_250), Some(41), Some(4_820))));
        let two = "\"origin, \\\"a;b\\\"\";rtt=9, \"edge\" ; etp=100;x=1";
        assert_eq!(read(&[two]), Some(expected(Some(100), None, None)));
        assert_eq!(read(&[one, two]), Some(expected(Some(100), None, None)));
    }

    #[test]
    fn a_value_that_is_not_valid_counts_as_absent() {
        for text in [
            "",
            "\"a\"",
            "\"a\";etp=fast",
            "etp=100",
            "\"a;etp=100",
            "\"a\";etp=922337203685477",
            "\"a\";etp=99999999999999999999",
        ] {
            assert_eq!(read(&[text]), None, "{text}");
        }
        assert_eq!(read(&[]), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(etp: Option<u32>, rtt: Option<u32>, mb: Option<u32>, object in 0..4_usize) {
            let mut headers = HeaderMap::new();
            let known = |number: Option<u32>| number.map(|number| u64::from(number).max(1));
            let path = expected(known(etp), known(rtt), known(mb));
            path.write(&mut headers);
            prop_assert_eq!(CmsdDynamic::read(&headers).unwrap_or_default(), path);
            let object = CmsdStatic {
                bitrate: path.max_bitrate,
                duration: path.rtt,
                object_type: ["v", "a", "tt"].get(object).and_then(|token| ObjectType::from_token(token)),
            };
            object.write(&mut headers);
            let expected = [
                object.object_type.map(|it| format!("ot={}", it.token())),
                object.bitrate.map(|it| format!("br={}", it.as_bits_per_second() / 1_000)),
                object.duration.map(|it| format!("d={}", it.as_millis())),
            ];
            let expected: Vec<_> = expected.into_iter().flatten().collect();
            let written = headers.get(STATIC).map_or("", |value| value.to_str().unwrap());
            prop_assert_eq!(written, expected.join(","));
        }
    }
}
