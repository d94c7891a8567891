//! Parts of the binary that read outside input, for tests and fuzzers. Behind the cargo feature `testing`.

use std::path::Path;

use crate::cli::{Config, parse_config};

/// Parses `text` as the config file `file`, as `video-server check` does, without opening the files that it names.
///
/// # Errors
/// The message that the binary would print before it exits: file, line, key and problem.
pub fn check_config(file: &str, text: &str) -> Result<(), String> {
    let file = Path::new(file);
    let parsed = Config::parse(file, text).and_then(|config| parse_config(file, &config));
    parsed.map(drop).map_err(|failure| failure.to_string())
}
