//! Writing CMCD, rounded as CTA-5004 §3 requires.

use core::ops::Range;
use core::time::Duration;

use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use playrate_units::Bitrate;
use sfv::Decimal;

use super::keys::{LISTS, NEW, Slot};
use super::{Cmcd, FIELDS};
use crate::structured::{write, write_integer, write_text};

/// Characters that the query parameter encodes: all but the unreserved ones (RFC 3986 §2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Maximum number of characters written of an identifier (CTA-5004 §3).
const MAX_WRITTEN: usize = 64;

impl Cmcd {
    /// Sets the header fields that have at least one key.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        let members = self.members();
        for (index, field) in FIELDS.into_iter().enumerate() {
            let own = members.iter().filter(|(its, _)| *its == index);
            let text = join(own);
            if !text.is_empty()
                && let Ok(value) = HeaderValue::try_from(text)
            {
                headers.insert(field, value);
            }
        }
    }

    /// `path` with the query parameter `CMCD` added.
    pub fn append_to(&self, path: &str) -> String {
        let text = join(self.members().iter());
        let separator = if path.contains('?') { '&' } else { '?' };
        format!("{path}{separator}CMCD={}", utf8_percent_encode(&text, ENCODED))
    }

    /// Texts of the members with a value, in alphabetical order of their keys (§2.3), with the field of each.
    fn members(&self) -> Vec<(usize, String)> {
        let mut copy = self.clone();
        let slots = copy.slots().into_iter();
        let slots = slots.filter(|(key, ..)| self.version_2 || !NEW.contains(key));
        let member = |(key, field, slot): (&str, usize, Slot<'_>)| {
            let text = match self.value(slot)? {
                value if value.is_empty() => key.to_owned(),
                value if self.version_2 && key == "nor" => {
                    let bytes = self
                        .next_range
                        .as_ref()
                        .map(|bytes| format!(";r={}", range(bytes)));
                    format!("{key}=({value}{})", bytes.unwrap_or_default())
                }
                value if self.version_2 && LISTS.contains(&key) => {
                    let object = self.object_type.filter(|_| key != "mtp");
                    let object = object.map(|object| format!(";{}", object.token()));
                    format!("{key}=({value}{})", object.unwrap_or_default())
                }
                value => format!("{key}={value}"),
            };
            Some((field, text))
        };
        slots.filter_map(member).collect()
    }

    /// Written form of a value; empty for a flag, `None` if the key is left out.
    fn value(&self, slot: Slot<'_>) -> Option<String> {
        // A text without any writable character is left out, because an identifier must not be empty.
        let string = |text: &str| Some(write_text(text)).filter(|written| written != "\"\"");
        match slot {
            Slot::Rate(rate, step) => write_integer(kbps((*rate)?, step)),
            Slot::Time(time, step, _) => write_integer(millis(time.as_ref()?, step)),
            Slot::Flag(flag) => flag.then(String::new),
            Slot::Identifier(text) => string(last_characters(text.as_ref()?)),
            Slot::Path(path) => string(path.as_ref()?),
            // A parameter of `nor` in version 2.
            Slot::Range(bytes) => bytes.as_ref().filter(|_| !self.version_2).map(range),
            Slot::Object(object) => object.map(|object| object.token().to_owned()),
            Slot::Speed(speed) => Decimal::try_from((*speed)?).ok().map(write),
            Slot::Token(token, _) => token.map(str::to_owned),
            Slot::Version(is_2) => is_2.then(|| "2".to_owned()),
        }
    }
}

fn range(bytes: &Range<u64>) -> String {
    write_text(&match bytes.end {
        u64::MAX => format!("{}-", bytes.start),
        end => format!("{}-{}", bytes.start, end.saturating_sub(1)),
    })
}

fn join<'a>(members: impl Iterator<Item = &'a (usize, String)>) -> String {
    let texts = members.map(|(_, text)| text.as_str());
    texts.collect::<Vec<_>>().join(",")
}

/// The end of an identifier, at most [`MAX_WRITTEN`] characters that are allowed in a string.
fn last_characters(text: &str) -> &str {
    let mut fitting = text
        .char_indices()
        .rev()
        .filter(|(_, character)| (' '..='~').contains(character));
    let first = fitting.nth(MAX_WRITTEN - 1).map_or(0, |(at, _)| at);
    text.get(first..).unwrap_or_default()
}

/// Milliseconds, to the nearest multiple of `step`.
fn millis(time: &Duration, step: u64) -> u64 {
    let millis = u64::try_from((time.as_micros() + 500) / 1_000).unwrap_or(u64::MAX);
    millis.saturating_add(step / 2) / step * step
}

/// Rate in kbit/s, to the nearest multiple of `step`. Throughputs (`step` 100) are at least `step`: a small throughput
/// must not be written as zero.
fn kbps(rate: Bitrate, step: u64) -> u64 {
    let unit = step.saturating_mul(1_000);
    let rounded = rate.as_bits_per_second().saturating_add(unit / 2) / unit * step;
    rounded.max(if step > 1 { step } else { 0 })
}
