//! The HTTP semantics of a file server (RFC 9110), as pure functions: what was asked and what there is go in, the
//! head of the response and the bytes to send come out. No sockets, no files, no clock.
//!
//! - [`path`]: from a request target to a name below the media directory, or a refusal.
//! - [`range`]: which bytes of a representation were asked for.
//! - [`validator`]: entity tags, modification dates and the conditions that name them.
//! - [`content_type`]: the media type of a file name.
//! - [`cors`]: which pages of other origins may read it.
//! - [`answer`]: all of it put together.

pub mod answer;
pub mod content_type;
pub mod cors;
pub mod path;
pub mod range;
pub mod validator;
