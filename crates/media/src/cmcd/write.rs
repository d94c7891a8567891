//! Writing CMCD, rounded as CTA-5004 §3 requires.

use core::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use playrate_units::Bitrate;
use sfv::{Decimal, TokenRef};

use super::{Cmcd, FIELDS, MAX_IDENTIFIER, OBJECT, ObjectType, REQUEST, SESSION, STATUS};
use crate::structured::{write, write_integer, write_text};

/// Characters that the query parameter encodes: all but the unreserved ones (RFC 3986 §2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A member of the dictionary: the header field it belongs to, its key and its written value (`None`: true).
type Member = (HeaderName, &'static str, Option<String>);

impl Cmcd {
    /// Sets the header fields that have at least one key.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        let members = self.members();
        for field in FIELDS {
            let own = members.iter().filter(|(its, ..)| *its == field);
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

    /// The members with a value, in alphabetical order of their keys (§2.3).
    fn members(&self) -> Vec<Member> {
        let number = |value: Option<u64>| value.and_then(write_integer);
        let throughput = |rate: Option<Bitrate>| number(rate.map(hundreds_of_kbps));
        let token = |text: &str| TokenRef::from_str(text).ok().map(write);
        let letter = |letter: Option<char>| token(letter?.encode_utf8(&mut [0; 4]));
        // A text without any writable character is left out, because an identifier must not be empty.
        let string = |text: Option<&str>| text.map(write_text).filter(|written| written != "\"\"");
        let identifier = |text: &Option<String>| string(text.as_deref().map(last_characters));
        let object = self.object_type.map(ObjectType::token);
        let range = self.next_range.as_ref().map(|range| match range.end {
            u64::MAX => format!("{}-", range.start),
            end => format!("{}-{}", range.start, end.saturating_sub(1)),
        });
        let speed = self.playback_rate.and_then(|speed| Decimal::try_from(speed).ok());
        let valued = [
            (REQUEST, "bl", number(self.buffer_length.map(hundreds_of_ms))),
            (OBJECT, "br", number(self.bitrate.map(kbps))),
            (SESSION, "cid", identifier(&self.content)),
            (OBJECT, "d", number(self.object_duration.map(millis))),
            (REQUEST, "dl", number(self.deadline.map(hundreds_of_ms))),
            (REQUEST, "mtp", throughput(self.measured_throughput)),
            (REQUEST, "nor", string(self.next_object.as_deref())),
            (REQUEST, "nrr", string(range.as_deref())),
            (OBJECT, "ot", object.and_then(token)),
            (SESSION, "pr", speed.map(write)),
            (STATUS, "rtp", throughput(self.requested_throughput)),
            (SESSION, "sf", letter(self.streaming_format)),
            (SESSION, "sid", identifier(&self.session)),
            (SESSION, "st", letter(self.stream_type)),
            (OBJECT, "tb", number(self.top_bitrate.map(kbps))),
        ];
        let flags = [(STATUS, "bs", self.underflow), (REQUEST, "su", self.startup)];
        let valued = valued.into_iter().filter(|(.., value)| value.is_some());
        let flags = flags.into_iter().filter(|(.., set)| *set);
        let mut members: Vec<Member> = valued
            .chain(flags.map(|(field, key, _)| (field, key, None)))
            .collect();
        members.sort_by_key(|(_, key, _)| *key);
        members
    }
}

fn join<'a>(members: impl Iterator<Item = &'a Member>) -> String {
    let texts = members.map(|(_, key, value)| match value {
        Some(value) => format!("{key}={value}"),
        None => (*key).to_owned(),
    });
    texts.collect::<Vec<_>>().join(",")
}

/// The end of an identifier, at most [`MAX_IDENTIFIER`] characters that are allowed in a string.
fn last_characters(text: &str) -> &str {
    let mut fitting = text
        .char_indices()
        .rev()
        .filter(|(_, character)| (' '..='~').contains(character));
    let first = fitting.nth(MAX_IDENTIFIER - 1).map_or(0, |(at, _)| at);
    text.get(first..).unwrap_or_default()
}

fn millis(time: Duration) -> u64 {
    u64::try_from((time.as_micros() + 500) / 1_000).unwrap_or(u64::MAX)
}

/// Milliseconds, to the nearest 100.
fn hundreds_of_ms(time: Duration) -> u64 {
    millis(time).saturating_add(50) / 100 * 100
}

/// Rate in kbit/s, rounded to nearest.
fn kbps(rate: Bitrate) -> u64 {
    rate.as_bits_per_second().saturating_add(500) / 1_000
}

/// Rate in kbit/s, to the nearest 100; at least 100, because zero would mean that nothing gets through.
fn hundreds_of_kbps(rate: Bitrate) -> u64 {
    let bits = rate.as_bits_per_second();
    (bits.saturating_add(50_000) / 100_000 * 100).max(100)
}
