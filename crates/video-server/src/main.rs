//! The `video-server` command line.

fn main() {}
