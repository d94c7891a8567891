//! Tests that need programs of other projects. Each prints a message and is skipped if its programs are
//! missing; with `PLAYRATE_REQUIRE_TOOLS` set a skip is a failure. CONTRIBUTING.md lists the programs.

mod browser;
mod ffmpeg;
mod interop;
mod page;
mod support;
