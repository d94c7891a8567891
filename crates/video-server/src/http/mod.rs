//! HTTP semantics of a file server (RFC 9110), as pure functions from a request and a resource to the head of
//! the response and the range of its content. No sockets, no files, no clock.
//!
//! - `path`: resource names from request targets, and their media types;
//! - `range`: ranges of bytes;
//! - `validator`: entity tags, modification dates and conditions;
//! - [`cors`]: access by pages of other origins;
//! - [`caching`]: lifetimes in caches, and header fields of the operator;
//! - `answer`: all of it combined.

pub(crate) mod answer;
pub mod caching;
pub mod cors;
pub(crate) mod path;
pub(crate) mod range;
pub(crate) mod validator;

/// Header fields for tests.
#[cfg(test)]
pub(crate) fn headers(fields: &[(&'static str, &str)]) -> http::HeaderMap {
    let field =
        |&(name, value): &(&'static str, &str)| (http::HeaderName::from_static(name), value.parse().unwrap());
    fields.iter().map(field).collect()
}
