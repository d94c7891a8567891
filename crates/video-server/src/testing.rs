//! Parts of the binary that read outside input, for tests and fuzzers. Behind the cargo feature `testing`.

use std::path::Path;

use crate::cli::{Config, parse_config};

/// Reads `text` as the config file `file`, as `video-server check` does before it looks at what the file names.
///
/// # Errors
/// The message with which the binary would end: file, line, key and problem.
pub fn check_config(file: &str, text: &str) -> Result<(), String> {
    let file = Path::new(file);
    let parsed = Config::parse(file, text).and_then(|config| parse_config(file, &config));
    parsed.map(drop).map_err(|failure| failure.to_string())
}
