//! Titles through the public interface: real files compared with ffprobe; truncated, damaged and hostile files; and the
//! bytes that servers read.
#![expect(
    clippy::cast_possible_truncation,
    reason = "sizes and times of a few seconds of video fit"
)]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "byte string literals are references: `b\"moov\"`"
)]

mod against_ffprobe;
mod chunking;
mod common;
mod corpus;
#[cfg(feature = "embedded-title")]
mod embedded;
mod hostile;
mod kinds;
mod ladders;
mod sources;
mod traces;
