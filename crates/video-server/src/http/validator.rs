//! Entity tags and modification dates, and the conditions of a request that use them ([RFC 9110
//! §8.8](https://www.rfc-editor.org/rfc/rfc9110#section-8.8) and
//! [§13](https://www.rfc-editor.org/rfc/rfc9110#section-13)).

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE};

/// A strong entity tag (§8.8.3): two representations with the same one are the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntityTag(String);

impl EntityTag {
    /// The tag of a file with this length, modification time and file number (0 where there is none) when it was
    /// opened. Nanoseconds distinguish two writes in one second; the file number distinguishes a file from one renamed
    /// over it.
    pub(crate) fn of_file(length: u64, modified: SystemTime, number: u64) -> Self {
        let nanos = modified.duration_since(UNIX_EPOCH).map_or_else(
            |before| before.duration().as_nanos() | 1 << 127,
            |after| after.as_nanos(),
        );
        Self(format!("{length:x}-{nanos:x}-{number:x}"))
    }

    /// The tag of a resource with its own version identity. Characters that are not allowed in a tag are left out.
    pub(crate) fn of_identity(identity: &str) -> Self {
        Self(
            identity
                .chars()
                .filter(|c| c.is_ascii_graphic() && *c != '"')
                .collect(),
        )
    }

    /// The text for an `ETag` field, including the quotes.
    pub(crate) fn to_field(&self) -> String {
        format!("\"{}\"", self.0)
    }
}

/// Identity of a version of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Validators {
    /// Always known, always strong.
    pub etag: EntityTag,
    /// In whole seconds, as in HTTP; `None` for resources without a date.
    modified: Option<SystemTime>,
}

/// 9999-12-31T23:59:59Z, the last second that an HTTP-date can express.
const LAST_DATE: Duration = Duration::from_secs(253_402_300_799);

impl Validators {
    /// Validators of a representation. A date that HTTP cannot express (before 1970, after 9999) is dropped.
    pub(crate) fn new(etag: EntityTag, modified: Option<SystemTime>) -> Self {
        let modified = modified
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .filter(|since| *since <= LAST_DATE)
            .map(|since| UNIX_EPOCH + Duration::from_secs(since.as_secs()));
        Self { etag, modified }
    }

    /// `Last-Modified`, unless it is later than `now` (§8.8.2.1 forbids sending that).
    pub(crate) fn last_modified(&self, now: Option<SystemTime>) -> Option<String> {
        self.modified
            .filter(|&modified| now.is_none_or(|now| modified <= now))
            .map(httpdate::fmt_http_date)
    }
}

/// Result of evaluating a request's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precondition {
    /// The conditions hold, or there are none.
    Proceed,
    /// 304: the client has it.
    NotModified,
    /// 412: the client requires a version other than the current one.
    Failed,
}

/// Evaluates the conditions of a `GET` or `HEAD` request, in the order of §13.2.2.
pub(crate) fn evaluate(headers: &HeaderMap, current: &Validators) -> Precondition {
    if let Some(matches) = any_tag(headers, &IF_MATCH, |tag| tag.strongly_equals(&current.etag)) {
        if !matches {
            return Precondition::Failed;
        }
    } else if let (Some(date), Some(modified)) = (date(headers, &IF_UNMODIFIED_SINCE), current.modified)
        && modified > date
    {
        return Precondition::Failed;
    }
    if let Some(matches) = any_tag(headers, &IF_NONE_MATCH, |tag| tag.weakly_equals(&current.etag)) {
        if matches {
            return Precondition::NotModified;
        }
    } else if let (Some(date), Some(modified)) = (date(headers, &IF_MODIFIED_SINCE), current.modified)
        && modified <= date
    {
        return Precondition::NotModified;
    }
    Precondition::Proceed
}

/// Returns true if `If-Range` (§13.1.5) allows a `Range` field to be honoured, or is absent.
///
/// A date counts only if it equals the modification date and that is at least one second old, so that it names one
/// version (§8.8.2.2). Without a clock (`now` is `None`) no date counts.
pub(crate) fn if_range_holds(headers: &HeaderMap, current: &Validators, now: Option<SystemTime>) -> bool {
    let Some(field) = headers.get(IF_RANGE) else {
        return true;
    };
    if headers.get_all(IF_RANGE).iter().nth(1).is_some() {
        return false;
    }
    let bytes = field.as_bytes().trim_ascii();
    if let Some((tag, rest)) = Tag::read(bytes) {
        return rest.is_empty() && tag.strongly_equals(&current.etag);
    }
    let (Some(date), Some(modified), Some(now)) = (date(headers, &IF_RANGE), current.modified, now) else {
        return false;
    };
    date == modified && modified + Duration::from_secs(1) <= now
}

/// The HTTP-date of a field; `None` for several values or a malformed one.
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    httpdate::parse_http_date(value.to_str().ok()?.trim()).ok()
}

/// An entity tag as a client wrote it.
struct Tag<'a> {
    weak: bool,
    opaque: &'a [u8],
}

impl<'a> Tag<'a> {
    /// Reads one tag from the front.
    fn read(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (weak, quoted) = match text.strip_prefix(b"W/") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let opaque = quoted.strip_prefix(b"\"")?;
        let end = opaque.iter().position(|&byte| byte == b'"')?;
        let (opaque, rest) = opaque.split_at(end);
        // etagc = %x21 / %x23-7E / obs-text
        let allowed = opaque.iter().all(|&byte| byte > 0x20 && byte != 0x7f);
        allowed.then_some((Self { weak, opaque }, &rest[1..]))
    }

    fn strongly_equals(&self, tag: &EntityTag) -> bool {
        !self.weak && self.weakly_equals(tag)
    }

    fn weakly_equals(&self, tag: &EntityTag) -> bool {
        self.opaque == tag.0.as_bytes()
    }
}

/// Returns true if a tag in the list of field `name` satisfies `equals`, or if the list is `*`; `None` if the field is
/// absent. Elements after a malformed one are ignored.
fn any_tag(headers: &HeaderMap, name: &HeaderName, equals: impl Fn(&Tag<'_>) -> bool) -> Option<bool> {
    let mut present = None;
    for value in headers.get_all(name) {
        present = Some(false);
        let mut rest = value.as_bytes().trim_ascii();
        if rest == b"*" {
            return Some(true);
        }
        loop {
            rest = rest.trim_ascii_start();
            if let Some(after) = rest.strip_prefix(b",") {
                rest = after;
                continue;
            }
            let Some((tag, after)) = Tag::read(rest) else {
                break;
            };
            if equals(&tag) {
                return Some(true);
            }
            rest = after;
        }
    }
    present
}

#[cfg(test)]
#[path = "tests/validator.rs"]
mod tests;
