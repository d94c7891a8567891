//! Logs: `tracing` on stderr.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogFormat {
    /// Human-readable lines of text
    Text,
    /// One JSON object per line
    Json,
}

/// Starts logging at the levels of `RUST_LOG`; without it, from INFO up.
pub(super) fn start(format: LogFormat) {
    let given = std::env::var("RUST_LOG").ok();
    let filter = given
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let logs = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Json => logs.with(lines.json().flatten_event(true)).init(),
        LogFormat::Text => logs.with(lines.with_ansi(std::io::stderr().is_terminal())).init(),
    }
}
