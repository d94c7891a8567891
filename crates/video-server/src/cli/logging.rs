//! Logs: `tracing` on stderr.

use std::io::{self, IsTerminal, Write};

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
    let lines = tracing_subscriber::fmt::layer().with_writer(|| OneLine(io::stderr()));
    let logs = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Json => logs.with(lines.json().flatten_event(true)).init(),
        LogFormat::Text => logs.with(lines.with_ansi(io::stderr().is_terminal())).init(),
    }
}

/// Writes each event as one line: a line break in a file name or a request must not forge another event.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    /// Writes one event, which ends with a line break.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = event.strip_suffix(b"\n").unwrap_or(event);
        let line = text.split(|byte| b"\n\r".contains(byte)).collect::<Vec<_>>();
        self.0
            .write_all(&[&line.join(&b"\\n"[..]), &b"\n"[..]].concat())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
