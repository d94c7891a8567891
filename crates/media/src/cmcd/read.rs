//! Reading CMCD: `br=3200,bs,sid="6e2fb550"` (CTA-5004 §2), `br=(3200)` since its version 2 (CTA-5004-B).

use core::ops::Range;
use core::time::Duration;

use http::{HeaderMap, Uri};
use percent_encoding::percent_decode_str;

use super::keys::{Slot, UNUSED};
use super::{Cmcd, FIELDS, MAX_FIELD, MAX_IDENTIFIER, MAX_MEMBERS, MAX_RATE, ObjectType};
use crate::structured::{FieldValue, member_of, split};

impl Cmcd {
    /// Reads the CMCD of a request; `None` if there is none. If a header field and the query both have a key, the field
    /// wins.
    pub fn read(headers: &HeaderMap, uri: &Uri) -> Option<Self> {
        let mut reader = CmcdReader::default();
        if let Some(value) = uri.query().and_then(parameter) {
            // `+` is a plus: the parameter is percent-encoded, not form-encoded (§2.2).
            let decoded = percent_decode_str(value).decode_utf8().unwrap_or_default();
            reader.read(&decoded);
        }
        for name in FIELDS {
            for value in headers.get_all(name) {
                reader.read(value.to_str().unwrap_or_default());
            }
        }
        (reader.members > 0).then_some(reader.cmcd)
    }

    /// Reads a report of events (`application/cmcd`, CTA-5004-B): one event for each line that is not empty. An event
    /// without a token of [`EVENTS`](super::EVENTS) has the [`event`](Self::event) `None`.
    pub fn read_events(report: &str) -> impl Iterator<Item = Self> {
        let lines = report.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| {
            let mut reader = CmcdReader::default();
            reader.read(line);
            reader.cmcd
        })
    }
}

/// The value of the query parameter `CMCD`, still encoded.
fn parameter(query: &str) -> Option<&str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find_map(|(name, value)| (name == "CMCD").then_some(value))
}

/// Reads all CMCD texts of one request.
#[derive(Debug, Default)]
struct CmcdReader {
    cmcd: Cmcd,
    members: usize,
    /// Token of the object's type, if it has been read: it selects the item of a list with values of several types.
    object_type: &'static str,
}

impl CmcdReader {
    /// Reads one field's value, or the query parameter's.
    fn read(&mut self, text: &str) {
        if text.len() > MAX_FIELD {
            self.members += 1;
            self.cmcd.ignored += 1;
            return;
        }
        let object_type = split(text, ',').find_map(|text| ObjectType::from_token(text.strip_prefix("ot=")?));
        self.object_type = object_type.map_or(self.object_type, ObjectType::token);
        for text in split(text, ',').filter(|text| !text.is_empty()) {
            if self.members == MAX_MEMBERS {
                self.cmcd.ignored += 1;
                return;
            }
            self.members += 1;
            let (key, value) = member_of(text, self.object_type);
            if self.set(key, &value).is_none() {
                self.cmcd.ignored += 1;
            }
        }
    }

    /// Sets one key; `None` if the key is unknown or its value is not valid.
    fn set(&mut self, key: &str, value: &FieldValue<'_>) -> Option<()> {
        let slot = self.cmcd.slots().into_iter().find(|(name, ..)| *name == key);
        let Some((_, _, slot)) = slot else {
            return UNUSED.contains(&key).then_some(());
        };
        match slot {
            Slot::Rate(rate, _) => *rate = Some(value.rate().filter(|&rate| rate <= MAX_RATE)?),
            Slot::Time(time, _, limit) => *time = Some(read_time(value).filter(|&time| time <= limit)?),
            Slot::Flag(flag) => *flag = value.flag()?,
            Slot::Identifier(text) => *text = Some(identifier(value)?),
            Slot::Path(path) => {
                *path = Some(value.text()?.to_owned());
                // The place of `nrr` in version 2.
                if let Some(bytes) = value.parameter("r") {
                    self.cmcd.next_range = Some(range(bytes.text()?)?);
                }
            }
            Slot::Range(bytes) => *bytes = Some(range(value.text()?)?),
            Slot::Object(object) => *object = Some(ObjectType::from_token(value.token()?)?),
            Slot::Speed(speed) => {
                *speed = Some(value.number().filter(|speed| (0.0..=100.0).contains(speed))?);
            }
            Slot::Token(token, allowed) => {
                let read = value.token()?;
                *token = Some(allowed.iter().find(|allowed| **allowed == read)?);
            }
            Slot::Version(is_2) => *is_2 = value.integer()? == 2,
        }
        Some(())
    }
}

/// A time in milliseconds. Some players write fractions, or a buffer length slightly below zero.
fn read_time(value: &FieldValue<'_>) -> Option<Duration> {
    if let Some(whole) = value.integer() {
        return Some(Duration::from_millis(whole));
    }
    Duration::try_from_secs_f64(value.number()?.max(0.0) / 1e3).ok()
}

fn identifier(value: &FieldValue<'_>) -> Option<String> {
    let text = value.text()?;
    (text.len() <= MAX_IDENTIFIER && !text.is_empty() && !text.chars().any(char::is_control))
        .then(|| text.to_owned())
}

/// `FIRST-LAST`, both inclusive; either may be absent (§3).
fn range(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.split_once('-')?;
    let first = if first.is_empty() { 0 } else { first.parse().ok()? };
    let end = if last.is_empty() {
        u64::MAX
    } else {
        last.parse::<u64>().ok()?.saturating_add(1)
    };
    (first < end).then_some(first..end)
}
