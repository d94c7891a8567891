//! Tests that need more than Rust: parts that nobody here wrote. Each skips loudly without what it needs; with `PLAYRATE_REQUIRE_TOOLS`
//! set a skip is a failure. CONTRIBUTING.md says what each needs.

mod browser;
mod ffmpeg;
mod interop;
mod support;
