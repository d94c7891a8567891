//! Logs: `tracing` on stderr.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// How a log line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Starts logging. `RUST_LOG` says what is logged; without it, everything from INFO up.
pub(super) fn start(format: Format) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        Format::Json => builder.json().flatten_event(true).init(),
        Format::Text => builder.with_ansi(std::io::stderr().is_terminal()).init(),
    }
}
