//! The `video-client` command line.

fn main() {}
