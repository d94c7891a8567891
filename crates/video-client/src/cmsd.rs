//! CMSD, what a server says with a response of the way to this client (CTA-5006, `CMSD-Dynamic`).

use std::time::Duration;

use http::HeaderMap;
use playrate_units::Bitrate;

/// Answers kept at most.
const MOST: usize = 100_000;

/// What a server said with one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Told {
    /// When the response began. Since the session began.
    pub at: Duration,
    /// `etp`: the throughput that it expects.
    pub throughput: Option<Bitrate>,
    /// `rtt`: its round-trip time to this client.
    pub rtt: Option<Duration>,
    /// `mb`: the highest rate of the title's that it thinks fits.
    pub most: Option<Bitrate>,
}

impl Told {
    /// What the last hop says: each server appends itself, so the nearest stands last (§5). `None` if it says none of it.
    fn of(headers: &HeaderMap, at: Duration) -> Option<Self> {
        let text = headers
            .get_all("cmsd-dynamic")
            .iter()
            .next_back()?
            .to_str()
            .ok()?;
        let member = split(text, ',').pop()?;
        let mut told = Self {
            at,
            throughput: None,
            rtt: None,
            most: None,
        };
        for parameter in split(member, ';').iter().skip(1) {
            let Some((key, value)) = parameter.split_once('=') else {
                continue;
            };
            let Ok(number) = value.trim().parse::<u64>() else {
                continue;
            };
            let rate = number.checked_mul(1_000).map(Bitrate::from_bits_per_second);
            match key.trim() {
                "etp" => told.throughput = rate,
                "rtt" => told.rtt = Some(Duration::from_millis(number)),
                "mb" => told.most = rate,
                _ => {}
            }
        }
        (told.throughput.is_some() || told.rtt.is_some() || told.most.is_some()).then_some(told)
    }
}

/// Splits at `separator`, not inside quotes (RFC 8941 §3.3.3).
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut quoted = false;
    let mut escaped = false;
    text.split(move |character| {
        let ends = character == separator && !quoted;
        if character == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = character == '\\' && !escaped;
        ends
    })
    .map(str::trim)
    .collect()
}

/// What the server said in the course of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CmsdReport {
    /// Response by response; the first 100,000.
    pub answers: Vec<Told>,
}

impl CmsdReport {
    /// A response came at `at`.
    pub(crate) fn read(&mut self, headers: &HeaderMap, at: Duration) {
        if self.answers.len() < MOST {
            self.answers.extend(Told::of(headers, at));
        }
    }

    /// The round-trip times.
    pub fn rtts(&self) -> impl Iterator<Item = Duration> {
        self.answers.iter().filter_map(|told| told.rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn told(values: &[&'static str]) -> Option<Told> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("cmsd-dynamic", HeaderValue::from_static(value));
        }
        Told::of(&headers, Duration::from_secs(1))
    }

    fn expected(etp: Option<u64>, rtt: Option<u64>, mb: Option<u64>) -> Told {
        Told {
            at: Duration::from_secs(1),
            throughput: etp.map(Bitrate::from_kbps),
            rtt: rtt.map(Duration::from_millis),
            most: mb.map(Bitrate::from_kbps),
        }
    }

    #[test]
    fn the_nearest_server_is_believed() {
        let one = "\"playrate\";etp=17250;mb=4820;rtt=41";
        assert_eq!(told(&[one]), Some(expected(Some(17_250), Some(41), Some(4_820))));
        let two = "\"origin, \\\"a;b\\\"\";rtt=9, \"edge\" ; etp=100;x=1";
        assert_eq!(told(&[two]), Some(expected(Some(100), None, None)));
        assert_eq!(told(&[one, two]), Some(expected(Some(100), None, None)));
    }

    #[test]
    fn what_is_not_understood_says_nothing() {
        for text in [
            "",
            "\"a\"",
            "\"a\";etp=fast",
            "etp=100",
            "\"a;etp=100",
            "\"a\";etp=99999999999999999999",
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("cmsd-dynamic", HeaderValue::try_from(text).unwrap());
            assert_eq!(Told::of(&headers, Duration::ZERO), None, "{text}");
        }
        assert_eq!(told(&[]), None);
    }
}
