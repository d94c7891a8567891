//! Reading the text of CMCD: `br=3200,bs,sid="6e2fb550"` (CTA-5004 §2; values as RFC 8941 writes them).

use core::ops::Range;
use core::time::Duration;

use playrate_units::Bitrate;

use super::{Cmcd, FASTEST, IDENTIFIER, LONGEST, LONGEST_TIME, ObjectType, PAIRS};

/// Takes the texts of one request one after the other.
#[derive(Debug, Default)]
pub(super) struct Reader {
    cmcd: Cmcd,
    pairs: usize,
}

/// A value as it stands there.
#[derive(Debug)]
enum Value<'a> {
    /// A key alone: true.
    Flag,
    /// Without quotes.
    Bare(&'a str),
    /// In quotes, unescaped.
    Text(String),
}

impl Reader {
    /// Takes one field's value, or the query parameter's.
    pub(super) fn read(&mut self, text: &str) {
        if text.len() > LONGEST {
            self.pairs += 1;
            self.cmcd.ignored += 1;
            return;
        }
        let mut rest = text;
        while !rest.trim_start().is_empty() {
            if self.pairs == PAIRS {
                self.cmcd.ignored += 1;
                return;
            }
            self.pairs += 1;
            let (pair, after) = next_pair(rest);
            rest = after;
            if pair.and_then(|(key, value)| self.take(key, value)).is_none() {
                self.cmcd.ignored += 1;
            }
        }
    }

    /// What was said, if anything was.
    pub(super) fn finish(self) -> Option<Cmcd> {
        (self.pairs > 0).then_some(self.cmcd)
    }

    /// Takes one pair; `None` if it means nothing.
    fn take(&mut self, key: &str, value: Value<'_>) -> Option<()> {
        let cmcd = &mut self.cmcd;
        match key {
            "br" => cmcd.bitrate = Some(rate(&value)?),
            "bl" => cmcd.buffer_length = Some(time(&value)?),
            "bs" => cmcd.starved = flag(&value)?,
            "cid" => cmcd.content = Some(identifier(value)?),
            "d" => cmcd.object_duration = Some(time(&value)?),
            "dl" => cmcd.deadline = Some(time(&value)?),
            "mtp" => cmcd.measured_throughput = Some(rate(&value)?),
            "nor" => cmcd.next_object = Some(text(value)?),
            "nrr" => cmcd.next_range = Some(range(&text(value)?)?),
            "ot" => cmcd.object_type = Some(object_type(bare(&value)?)?),
            "pr" => cmcd.playback_rate = Some(decimal(&value)?),
            "rtp" => cmcd.requested_throughput = Some(rate(&value)?),
            "sf" => cmcd.streaming_format = Some(letter(&value, "dhso")?),
            "sid" => cmcd.session = Some(identifier(value)?),
            "st" => cmcd.stream_type = Some(letter(&value, "vl")?),
            "su" => cmcd.startup = flag(&value)?,
            "tb" => cmcd.top_bitrate = Some(rate(&value)?),
            "v" => {
                bare(&value)?;
            }
            _ => return None,
        }
        Some(())
    }
}

/// The pair up to the next comma that is not in quotes, and what follows it. A pair that cannot be is `None`.
fn next_pair(text: &str) -> (Option<(&str, Value<'_>)>, &str) {
    let text = text.trim_start();
    let end = text.find([',', '=']).unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    let key = key.trim_end();
    let Some(value) = rest.strip_prefix('=') else {
        return (
            (!key.is_empty()).then_some((key, Value::Flag)),
            rest.strip_prefix(',').unwrap_or(rest),
        );
    };
    if let Some(quoted) = value.strip_prefix('"') {
        return match unquote(quoted) {
            Some((text, after)) => match after.trim_start() {
                "" => (Some((key, Value::Text(text))), ""),
                after => match after.strip_prefix(',') {
                    Some(after) => (Some((key, Value::Text(text))), after),
                    None => (None, after.split_once(',').map_or("", |(_, after)| after)),
                },
            },
            // A quote without an end: nothing after it can be told apart.
            None => (None, ""),
        };
    }
    let (value, after) = value.split_once(',').unwrap_or((value, ""));
    (Some((key, Value::Bare(value.trim()))), after)
}

/// The text up to the closing quote, and what follows it.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text, quoted.get(at + 1..)?)),
            '\\' => text.push(characters.next()?.1),
            other => text.push(other),
        }
    }
    None
}

fn bare<'a>(value: &Value<'a>) -> Option<&'a str> {
    match value {
        Value::Bare(text) => Some(text),
        _ => None,
    }
}

fn integer(value: &Value<'_>) -> Option<u64> {
    bare(value)?.parse().ok()
}

/// Kilobits a second.
fn rate(value: &Value<'_>) -> Option<Bitrate> {
    let kilobits = integer(value)?.checked_mul(1_000)?;
    Some(Bitrate::from_bits_per_second(kilobits)).filter(|&rate| rate <= FASTEST)
}

/// Milliseconds.
fn time(value: &Value<'_>) -> Option<Duration> {
    // Some players write fractions, or a buffer that is a little below nothing.
    let milliseconds = if let Some(whole) = integer(value) {
        Duration::from_millis(whole)
    } else {
        let fraction: f64 = bare(value)?.parse().ok()?;
        // `max` would take what is not a number for zero.
        Duration::try_from_secs_f64(if fraction < 0.0 { 0.0 } else { fraction / 1e3 }).ok()?
    };
    (milliseconds <= LONGEST_TIME).then_some(milliseconds)
}

fn flag(value: &Value<'_>) -> Option<bool> {
    match value {
        Value::Flag | Value::Bare("true" | "?1") => Some(true),
        Value::Bare("false" | "?0") => Some(false),
        _ => None,
    }
}

/// A string; a value without quotes is taken for one, as players write that too.
fn text(value: Value<'_>) -> Option<String> {
    match value {
        Value::Text(text) => Some(text),
        Value::Bare(text) => Some(text.to_owned()),
        Value::Flag => None,
    }
}

fn identifier(value: Value<'_>) -> Option<String> {
    text(value)
        .filter(|text| !text.is_empty() && text.len() <= IDENTIFIER && !text.chars().any(char::is_control))
}

fn decimal(value: &Value<'_>) -> Option<f64> {
    let number: f64 = bare(value)?.parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(number)
}

fn letter(value: &Value<'_>, allowed: &str) -> Option<char> {
    let mut letters = bare(value)?.chars();
    let letter = letters.next().filter(|&letter| allowed.contains(letter))?;
    letters.next().is_none().then_some(letter)
}

fn object_type(text: &str) -> Option<ObjectType> {
    Some(match text {
        "m" => ObjectType::Manifest,
        "a" => ObjectType::Audio,
        "v" => ObjectType::Video,
        "av" => ObjectType::Muxed,
        "i" => ObjectType::Initialization,
        "c" => ObjectType::Caption,
        "tt" => ObjectType::TimedText,
        "k" => ObjectType::Key,
        "o" => ObjectType::Other,
        _ => return None,
    })
}

/// `FIRST-LAST`, both inclusive; an open end is allowed (§3).
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
