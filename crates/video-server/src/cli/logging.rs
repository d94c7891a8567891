//! Logs: `tracing` on stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::Once;
use std::time::Duration;
use std::{mem, thread};

use parking_lot::{Condvar, Mutex};
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
    let lines = tracing_subscriber::fmt::layer().with_writer(|| OneLine);
    let logs = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Json => logs.with(lines.json().flatten_event(true)).init(),
        LogFormat::Text => logs.with(lines.with_ansi(io::stderr().is_terminal())).init(),
    }
}

/// Writes each event as one line: a line break in a file name or a request must not forge another event.
struct OneLine;

impl Write for OneLine {
    /// Writes one event, which ends with a line break.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = event.strip_suffix(b"\n").unwrap_or(event);
        let line = text.split(|byte| b"\n\r".contains(byte)).collect::<Vec<_>>();
        push(&[&line.join(&b"\\n"[..]), &b"\n"[..]].concat());
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Maximum number of bytes of lines that wait for the reader of stderr. As many may be on their way to it.
const MAX_WAITING: usize = 1 << 20;
/// Time for the reader of stderr to receive the last lines before the process ends.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

static LOG: LogQueue = LogQueue::new();
static WRITER: Once = Once::new();

fn start_writer() {
    WRITER.call_once(|| {
        let writer = thread::Builder::new().name("log".to_owned());
        // Without a thread, lines are dropped and counted.
        let _ = writer.spawn(|| LOG.write_to(io::stderr()));
    });
}

/// Hands a line to the thread that writes to stderr.
fn push(line: &[u8]) {
    start_writer();
    LOG.push(line);
}

/// Number of lines that were dropped because stderr's reader was too slow.
pub(super) fn dropped_lines() -> u64 {
    LOG.state.lock().dropped
}

/// Writes a last line of text, if there is one, and waits until stderr's reader has all lines, or for a moment.
pub(super) fn finish(last: &str) {
    if !last.is_empty() {
        start_writer();
        // However many lines wait, this one must show.
        LOG.state.lock().lines.extend_from_slice(last.as_bytes());
        LOG.changed.notify_all();
    }
    LOG.flush(FLUSH_LIMIT);
}

/// Lines for a thread of their own: a full pipe, whose reader is slow or stuck, must not stop the server.
struct LogQueue {
    state: Mutex<LogState>,
    changed: Condvar,
}

struct LogState {
    lines: Vec<u8>,
    is_writing: bool,
    dropped: u64,
}

impl LogQueue {
    const fn new() -> Self {
        Self {
            state: Mutex::new(LogState {
                lines: Vec::new(),
                is_writing: false,
                dropped: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Adds a line, or drops it if too much is waiting.
    fn push(&self, line: &[u8]) {
        let mut state = self.state.lock();
        if state.lines.len().saturating_add(line.len()) > MAX_WAITING {
            state.dropped = state.dropped.saturating_add(1);
        } else {
            state.lines.extend_from_slice(line);
            self.changed.notify_all();
        }
    }

    /// Waits for lines and writes them, forever.
    fn write_to(&self, mut out: impl Write) -> ! {
        let mut reported = 0;
        loop {
            let mut state = self.state.lock();
            state.is_writing = false;
            self.changed.notify_all();
            self.changed
                .wait_while(&mut state, |state| state.lines.is_empty());
            state.is_writing = true;
            let lines = mem::take(&mut state.lines);
            let dropped = state.dropped;
            drop(state);
            if dropped > reported {
                // There is room now, and the gap is after `lines`.
                tracing::warn!(
                    lines = dropped.saturating_sub(reported),
                    "lines of this log were dropped because its reader is too slow"
                );
                reported = dropped;
            }
            // Nobody is left to report an error to.
            let _ = out.write_all(&lines);
        }
    }

    /// Waits until all lines are written, at most for `limit`.
    fn flush(&self, limit: Duration) {
        let is_busy = |state: &mut LogState| state.is_writing || !state.lines.is_empty();
        self.changed
            .wait_while_for(&mut self.state.lock(), is_busy, limit);
    }
}
