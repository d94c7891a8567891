//! Reading CMCD: `br=3200,bs,sid="6e2fb550"` (CTA-5004 §2), `br=(3200)` since its version 2 (CTA-5004-B).

use core::ops::Range;
use core::time::Duration;

use http::{HeaderMap, Uri};
use percent_encoding::percent_decode_str;
use playrate_units::Bitrate;

use super::{Cmcd, FIELDS, MAX_FIELD, MAX_IDENTIFIER, MAX_MEMBERS, MAX_RATE, MAX_TIME, ObjectType};
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
}

/// The value of the query parameter `CMCD`, still encoded.
fn parameter(query: &str) -> Option<&str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find_map(|(name, value)| (name == "CMCD").then_some(value))
}

/// Keys of requests in version 2 that are accepted and not used (CTA-5004-B).
const UNUSED: [&str; 23] = [
    "ab", "bg", "bsa", "bsd", "bsda", "cdn", "cs", "dfa", "ec", "lab", "lb", "ltc", "msd", "nr", "pb", "pt",
    "sn", "sta", "tab", "tbl", "tpb", "ts", "v",
];

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
        let cmcd = &mut self.cmcd;
        match key {
            "br" => cmcd.bitrate = Some(rate(value)?),
            "bl" => cmcd.buffer_length = Some(time(value)?),
            "bs" => cmcd.underflow = value.flag()?,
            "cid" => cmcd.content = Some(identifier(value)?),
            "d" => cmcd.object_duration = Some(time(value)?),
            "dl" => cmcd.deadline = Some(time(value)?),
            "mtp" => cmcd.measured_throughput = Some(rate(value)?),
            "nor" => cmcd.next_object = Some(value.text()?.to_owned()),
            "nrr" => cmcd.next_range = Some(range(value.text()?)?),
            "ot" => cmcd.object_type = Some(ObjectType::from_token(value.token()?)?),
            "pr" => cmcd.playback_rate = Some(speed(value)?),
            "rtp" => cmcd.requested_throughput = Some(rate(value)?),
            "sf" => cmcd.streaming_format = Some(letter(value, "dhso")?),
            "sid" => cmcd.session = Some(identifier(value)?),
            "st" => cmcd.stream_type = Some(letter(value, "vl")?),
            "su" => cmcd.startup = value.flag()?,
            "tb" => cmcd.top_bitrate = Some(rate(value)?),
            _ => return UNUSED.contains(&key).then_some(()),
        }
        Some(())
    }
}

/// A rate in kbit/s.
fn rate(value: &FieldValue<'_>) -> Option<Bitrate> {
    value.rate().filter(|&rate| rate <= MAX_RATE)
}

/// A time in milliseconds. Some players write fractions, or a buffer length slightly below zero.
fn time(value: &FieldValue<'_>) -> Option<Duration> {
    let milliseconds = value.number()?.max(0.0);
    let time = Duration::try_from_secs_f64(milliseconds / 1e3).ok()?;
    (time <= MAX_TIME).then_some(time)
}

fn identifier(value: &FieldValue<'_>) -> Option<String> {
    let text = value.text()?;
    (text.len() <= MAX_IDENTIFIER && !text.is_empty() && !text.chars().any(char::is_control))
        .then(|| text.to_owned())
}

fn speed(value: &FieldValue<'_>) -> Option<f64> {
    value.number().filter(|speed| (0.0..=100.0).contains(speed))
}

fn letter(value: &FieldValue<'_>, allowed: &str) -> Option<char> {
    let mut letters = value.token()?.chars();
    let letter = letters.next().filter(|&letter| allowed.contains(letter))?;
    letters.next().is_none().then_some(letter)
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
