//! Values of command-line options. Benchmarks include this file by its path.

use std::error::Error;
use std::str::FromStr;

use anyhow::Context as _;

/// The value after `flag` on the command line, if the flag is there.
///
/// # Errors
/// The flag has no value, or one that cannot be parsed.
pub(crate) fn value<T: FromStr<Err: Error + Send + Sync + 'static>>(flag: &str) -> anyhow::Result<Option<T>> {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(at) = arguments.iter().position(|argument| argument == flag) else {
        return Ok(None);
    };
    let value = arguments.get(at + 1).filter(|value| !value.starts_with("--"));
    let value = value.with_context(|| format!("{flag} needs a value"))?;
    Ok(Some(value.parse().with_context(|| format!("{flag} {value}"))?))
}
