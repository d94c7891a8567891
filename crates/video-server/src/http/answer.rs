//! From a request and a representation to the head of the response and the bytes that follow it.

use core::ops::Range;
use std::time::{Duration, SystemTime};

use http::header::{
    ACCEPT_RANGES, ALLOW, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, HeaderName, HeaderValue,
    LAST_MODIFIED, RANGE, RETRY_AFTER,
};
use http::{HeaderMap, Method, Response, StatusCode, Uri};

use super::path::{self, PathError, ResourceName};
use super::range::{self, Selection};
use super::validator::{self, Validators, Verdict};

/// What is known of the bytes behind a name, before any is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Representation {
    /// Bytes in all.
    pub length: u64,
    /// Its media type.
    pub content_type: &'static str,
    /// What tells this version from others.
    pub validators: Validators,
}

/// What follows the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing.
    Empty,
    /// A line that says why.
    Text(String),
    /// These bytes of the representation (the end is exclusive).
    Bytes(Range<u64>),
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    /// Status and fields.
    pub head: Response<()>,
    /// What follows.
    pub body: Body,
}

/// The methods that are understood, as `Allow` lists them.
pub(super) const METHODS: &str = "GET, HEAD, OPTIONS";

/// What a request wants done.
#[derive(Debug)]
pub enum Route {
    /// A `GET` or `HEAD` of what has this name.
    LookUp(ResourceName),
    /// There is nothing to look up: `OPTIONS`, another method (405), a target that is not a path (400) or that can
    /// name nothing (404).
    Answer(Answer),
}

/// Reads method and target of a request.
pub fn route(method: &Method, uri: &Uri) -> Route {
    if method == Method::OPTIONS {
        return Route::Answer(Answer::new(StatusCode::NO_CONTENT).field(ALLOW, METHODS));
    }
    if method != Method::GET && method != Method::HEAD {
        let text = format!("{method} is not supported here: use {METHODS}");
        let answer = Answer::refusal(StatusCode::METHOD_NOT_ALLOWED, text).field(ALLOW, METHODS);
        return Route::Answer(answer);
    }
    let (status, error) = match path::resolve(uri.path()) {
        Ok(name) => return Route::LookUp(name),
        Err(error @ PathError::Malformed) => (StatusCode::BAD_REQUEST, error),
        Err(error @ PathError::NotFound) => (StatusCode::NOT_FOUND, error),
    };
    Route::Answer(Answer::refusal(status, error.to_string()).for_method(method))
}

/// The answer to a `GET` or `HEAD` for what exists. `now` is the wall-clock time, where there is one.
pub fn represent(
    method: &Method,
    headers: &HeaderMap,
    what: &Representation,
    now: Option<SystemTime>,
) -> Answer {
    match validator::evaluate(headers, &what.validators) {
        // §15.4.5: the tag is all that a cache needs.
        Verdict::NotModified => {
            Answer::new(StatusCode::NOT_MODIFIED).field(ETAG, &what.validators.etag.to_field())
        }
        Verdict::PreconditionFailed => Answer::refusal(
            StatusCode::PRECONDITION_FAILED,
            "the resource has changed since the version that was asked for".into(),
        ),
        Verdict::Proceed => match selection(method, headers, what, now) {
            Selection::Whole => whole(what, now),
            Selection::Part(part) => {
                let unit = format!("bytes {}-{}/{}", part.start, part.end - 1, what.length);
                described(StatusCode::PARTIAL_CONTENT, what, part, now).field(CONTENT_RANGE, &unit)
            }
            Selection::Unsatisfiable => {
                let text = format!("the range starts past the end: there are {} bytes", what.length);
                Answer::refusal(StatusCode::RANGE_NOT_SATISFIABLE, text)
                    .field(CONTENT_RANGE, &format!("bytes */{}", what.length))
            }
        },
    }
    .for_method(method)
}

/// `Range` is defined for `GET` only (§14.2), may stand once, and yields to a failed `If-Range`.
fn selection(
    method: &Method,
    headers: &HeaderMap,
    what: &Representation,
    now: Option<SystemTime>,
) -> Selection {
    let mut fields = headers.get_all(RANGE).iter();
    match (fields.next().and_then(|field| field.to_str().ok()), fields.next()) {
        (Some(field), None)
            if method == Method::GET && validator::if_range_holds(headers, &what.validators, now) =>
        {
            range::select(field, what.length)
        }
        _ => Selection::Whole,
    }
}

fn whole(what: &Representation, now: Option<SystemTime>) -> Answer {
    described(StatusCode::OK, what, 0..what.length, now)
}

fn described(status: StatusCode, what: &Representation, part: Range<u64>, now: Option<SystemTime>) -> Answer {
    let mut answer = Answer::new(status)
        .field(CONTENT_TYPE, what.content_type)
        .field(CONTENT_LENGTH, &(part.end - part.start).to_string())
        .field(ACCEPT_RANGES, "bytes")
        .field(ETAG, &what.validators.etag.to_field());
    if let Some(date) = what.validators.last_modified(now) {
        answer = answer.field(LAST_MODIFIED, &date);
    }
    answer.body = Body::Bytes(part);
    answer
}

impl Answer {
    fn new(status: StatusCode) -> Self {
        let mut head = Response::new(());
        *head.status_mut() = status;
        Self {
            head,
            body: Body::Empty,
        }
    }

    /// An answer that says in a line of text why there is nothing else.
    pub fn refusal(status: StatusCode, why: String) -> Self {
        let text = why + "\n";
        let mut answer = Self::new(status)
            .field(CONTENT_TYPE, "text/plain; charset=utf-8")
            .field(CONTENT_LENGTH, &text.len().to_string());
        answer.body = Body::Text(text);
        answer
    }

    /// 404 for a name that no file has.
    pub fn not_found(method: &Method) -> Self {
        Self::refusal(StatusCode::NOT_FOUND, PathError::NotFound.to_string()).for_method(method)
    }

    /// 503 for want of room, with how long to wait before asking again, in whole seconds and at least one.
    pub fn unavailable(again: Duration) -> Self {
        let text = "the server has as many viewers as it can carry; please come again".to_owned();
        let seconds = again.as_secs().max(1).to_string();
        Self::refusal(StatusCode::SERVICE_UNAVAILABLE, text).field(RETRY_AFTER, &seconds)
    }

    /// The same answer as its method wants it: `HEAD` gets the fields and no content (§9.3.2).
    #[must_use]
    pub fn for_method(mut self, method: &Method) -> Self {
        if method == Method::HEAD {
            self.body = Body::Empty;
        }
        self
    }

    /// The same answer with a `Date` (§6.6.1: a server with a clock sends one; one without must not).
    #[must_use]
    pub fn dated(self, now: Option<SystemTime>) -> Self {
        match now {
            Some(now) => self.field(DATE, &httpdate::fmt_http_date(now)),
            None => self,
        }
    }

    /// Bytes of content that follow the head.
    pub fn content_length(&self) -> u64 {
        match &self.body {
            Body::Empty => 0,
            Body::Text(text) => text.len() as u64,
            Body::Bytes(part) => part.end - part.start,
        }
    }

    /// Every value here is made of visible ASCII; one that were not would be left out rather than panic.
    fn field(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.head.headers_mut().insert(name, value);
        }
        self
    }
}

#[cfg(test)]
#[path = "tests/answer.rs"]
mod tests;
