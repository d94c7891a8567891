//! Answers to requests: head and range of content, from a request and the properties of a resource.

use core::ops::{ControlFlow, Range};
use std::time::{Duration, SystemTime};

use http::header::{
    ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, HeaderName,
    HeaderValue, LAST_MODIFIED, RANGE, RETRY_AFTER, VARY,
};
use http::{HeaderMap, Method, Response, StatusCode};

use super::caching::CacheKind;
use super::path::{self, PathError, ResourceName};
use super::range::{self, RangeSelection};
use super::validator::{self, Precondition, Validators};

/// Properties of a resource, known before any of it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContentInfo {
    pub length: u64,
    pub content_type: &'static str,
    pub validators: Validators,
    pub cache_kind: CacheKind,
}

/// Sizes in bytes of texts that are worth compressing and do not occupy a processor for long.
const COMPRESSED_SIZES: Range<u64> = 512..(1 << 20) + 1;

impl ContentInfo {
    /// Returns true if its content is compressed for clients that accept that.
    fn is_compressible(&self) -> bool {
        let is_manifest =
            ["application/dash+xml", "application/vnd.apple.mpegurl"].contains(&self.content_type);
        (is_manifest || self.content_type.starts_with("text/")) && COMPRESSED_SIZES.contains(&self.length)
    }
}

/// Content of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerBody {
    /// A line of text with the reason of a refusal, or nothing.
    Text(String),
    /// A range of the resource.
    Bytes(Range<u64>),
}

/// Head and content of a response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub head: Response<()>,
    pub body: AnswerBody,
}

/// Supported methods, as in the `Allow` field.
const METHODS: &str = "GET, HEAD, OPTIONS";

/// Evaluates method and target of a request. Continues with the name of a resource for a `GET` or `HEAD`. Breaks with
/// an answer if there is nothing to look up: for `OPTIONS`, another method (405), a target that is not a path (400) or
/// one that cannot name a resource (404).
pub(crate) fn route(method: &Method, path: &str) -> ControlFlow<Answer, ResourceName> {
    if method == Method::OPTIONS {
        return ControlFlow::Break(Answer::no_content(METHODS));
    }
    if method != Method::GET && method != Method::HEAD {
        return ControlFlow::Break(Answer::not_allowed(method, METHODS));
    }
    let (status, error) = match path::resolve(path) {
        Ok(name) => return ControlFlow::Continue(name),
        Err(error @ PathError::Malformed) => (StatusCode::BAD_REQUEST, error),
        Err(error @ PathError::NotFound) => (StatusCode::NOT_FOUND, error),
    };
    ControlFlow::Break(Answer::refusal(status, error.to_string()))
}

/// Answers a `GET` or `HEAD` for an existing resource at the wall-clock time `now`.
pub(crate) fn represent(
    method: &Method,
    headers: &HeaderMap,
    what: &ContentInfo,
    now: Option<SystemTime>,
) -> Answer {
    match validator::evaluate(headers, &what.validators) {
        // §15.4.5: a cache needs nothing else.
        Precondition::NotModified => Answer::new(StatusCode::NOT_MODIFIED)
            .field(ETAG, &what.validators.etag.to_field())
            .cached(what),
        Precondition::Failed => Answer::refusal(
            StatusCode::PRECONDITION_FAILED,
            "the resource has changed since the requested version".into(),
        ),
        Precondition::Proceed => match selection(method, headers, what, now) {
            RangeSelection::Whole => described(StatusCode::OK, what, 0..what.length, now),
            RangeSelection::Bytes(part) => {
                let unit = format!("bytes {}-{}/{}", part.start, part.end - 1, what.length);
                described(StatusCode::PARTIAL_CONTENT, what, part, now).field(CONTENT_RANGE, &unit)
            }
            RangeSelection::Unsatisfiable => {
                let text = format!("the range starts past the end of {} bytes", what.length);
                Answer::refusal(StatusCode::RANGE_NOT_SATISFIABLE, text)
                    .field(CONTENT_RANGE, &format!("bytes */{}", what.length))
            }
        },
    }
}

/// `Range` is defined for `GET` only (§14.2), may occur once, and is ignored if `If-Range` fails.
fn selection(
    method: &Method,
    headers: &HeaderMap,
    what: &ContentInfo,
    now: Option<SystemTime>,
) -> RangeSelection {
    let mut fields = headers.get_all(RANGE).iter();
    match (fields.next().and_then(|field| field.to_str().ok()), fields.next()) {
        (Some(field), None)
            if method == Method::GET && validator::if_range_holds(headers, &what.validators, now) =>
        {
            range::select(field, what.length)
        }
        _ => RangeSelection::Whole,
    }
}

fn described(status: StatusCode, what: &ContentInfo, part: Range<u64>, now: Option<SystemTime>) -> Answer {
    let mut answer = Answer::new(status)
        .field(CONTENT_TYPE, what.content_type)
        .field(CONTENT_LENGTH, &(part.end - part.start).to_string())
        .field(ACCEPT_RANGES, "bytes")
        .field(ETAG, &what.validators.etag.to_field())
        .cached(what);
    if let Some(date) = what.validators.last_modified(now) {
        answer = answer.field(LAST_MODIFIED, &date);
    }
    answer.body = AnswerBody::Bytes(part);
    answer
}

impl Answer {
    fn new(status: StatusCode) -> Self {
        let mut head = Response::new(());
        *head.status_mut() = status;
        Self {
            head,
            body: AnswerBody::Text(String::new()),
        }
    }

    /// 204 of a target with these methods.
    pub(crate) fn no_content(methods: &str) -> Self {
        Self::new(StatusCode::NO_CONTENT).field(ALLOW, methods)
    }

    /// Creates an answer with a line of text: the reason of the refusal.
    pub(crate) fn refusal(status: StatusCode, why: String) -> Self {
        let text = why + "\n";
        let mut answer = Self::new(status)
            .field(CONTENT_TYPE, "text/plain; charset=utf-8")
            .field(CACHE_CONTROL, CacheKind::of_refusal(status).cache_control())
            .field(CONTENT_LENGTH, &text.len().to_string());
        answer.body = AnswerBody::Text(text);
        answer
    }

    /// 405 for a `method` other than these.
    pub(crate) fn not_allowed(method: &Method, methods: &str) -> Self {
        let text = format!("method {method} is not supported; expected one of: {methods}");
        Self::refusal(StatusCode::METHOD_NOT_ALLOWED, text).field(ALLOW, methods)
    }

    /// 404 for a name without a file.
    pub(crate) fn not_found() -> Self {
        Self::refusal(StatusCode::NOT_FOUND, PathError::NotFound.to_string())
    }

    /// 503 with `Retry-After` in whole seconds, at least one.
    pub(crate) fn unavailable(again: Duration) -> Self {
        let text = "the server cannot serve this now; please try again later".to_owned();
        let seconds = again.as_secs().max(1).to_string();
        Self::refusal(StatusCode::SERVICE_UNAVAILABLE, text).field(RETRY_AFTER, &seconds)
    }

    /// Removes the content of an answer to `HEAD` (§9.3.2).
    #[must_use]
    pub(crate) fn for_method(mut self, method: &Method) -> Self {
        if method == Method::HEAD {
            self.body = AnswerBody::Text(String::new());
        }
        self
    }

    /// Adds the fields by which caches handle this resource.
    fn cached(self, what: &ContentInfo) -> Self {
        let answer = self.field(CACHE_CONTROL, what.cache_kind.cache_control());
        if what.is_compressible() {
            answer.field(VARY, "accept-encoding")
        } else {
            answer
        }
    }

    /// Adds a `Date` field (§6.6.1: required of a server with a clock, forbidden without).
    #[must_use]
    pub(crate) fn dated(self, now: Option<SystemTime>) -> Self {
        match now {
            Some(now) => self.field(DATE, &httpdate::fmt_http_date(now)),
            None => self,
        }
    }

    /// Adds a field. All values here are visible ASCII; any other value would be omitted.
    pub(crate) fn field(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.head.headers_mut().insert(name, value);
        }
        self
    }
}

#[cfg(test)]
#[path = "tests/answer.rs"]
mod tests;
