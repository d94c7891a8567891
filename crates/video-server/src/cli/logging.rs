//! Logs: `tracing` on stderr, and queues of lines for threads that write them.

use std::fmt::{self, Debug};
use std::io::{self, IsTerminal, Write};
use std::sync::Once;
use std::time::Duration;
use std::{mem, thread};

use parking_lot::{Condvar, Mutex, MutexGuard};
use playrate_transport::LogLimit;
use quinn::{Runtime, TokioRuntime};
use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{Writer, debug_fn};
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
        LogFormat::Text => {
            let fields = debug_fn(write_field).delimited(" ");
            let lines = lines.with_ansi(io::stderr().is_terminal()).fmt_fields(fields);
            logs.with(lines).init();
        }
    }
}

/// Writes a field of an event as `name=value`, or the message alone. Values that would be ambiguous are quoted.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    let name = field.name();
    if name == "message" {
        return write!(out, "{value:?}");
    }
    let text = format!("{value:?}");
    let is_ambiguous = |c: char| c.is_whitespace() || c.is_control() || "\"=".contains(c);
    // Strings come in quotes already.
    let is_quoted = text.len() > 1 && text.starts_with('"') && text[1..].find('"') == Some(text.len() - 2);
    if is_quoted || !text.contains(is_ambiguous) {
        write!(out, "{name}={text}")
    } else {
        write!(out, "{name}={text:?}")
    }
}

/// Writes each event as one line: a line break in a file name or a request must not forge another event.
struct OneLine;

impl Write for OneLine {
    /// Writes one event, which ends with a line break.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = event.strip_suffix(b"\n").unwrap_or(event);
        let line = text.split(|byte| b"\n\r".contains(byte)).collect::<Vec<_>>();
        log().push(&[&line.join(&b"\\n"[..]), &b"\n"[..]].concat());
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Maximum number of bytes of lines that wait for the reader of a log. As many may be on their way to it.
const MAX_WAITING: usize = 1 << 20;
/// Time for which lines of the access log are collected before they are written. Waking the writer for each of them
/// would cost more than the line.
const COLLECTING: Duration = Duration::from_millis(5);
/// Time for the reader of a log to receive the last lines before the process ends.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

static LOG: LineQueue = LineQueue::new("program");
/// Lines of the access log.
pub(super) static ACCESS: LineQueue = LineQueue::new("access");

/// The queue of the program's log, with the thread that writes it to stderr.
fn log() -> &'static LineQueue {
    static WRITER: Once = Once::new();
    // Without a thread, lines are dropped and counted.
    WRITER.call_once(|| drop(LOG.start(|| Ok(Box::new(io::stderr())))));
    &LOG
}

/// Number of lines that were dropped because stderr's reader was too slow, or could not be written.
pub(super) fn dropped_lines() -> u64 {
    LOG.lost()
}

/// Writes text to stderr, after the lines that wait for its reader. However many wait, it is not dropped.
pub(super) fn print(text: &str) {
    log().state.lock().lines.extend_from_slice(text.as_bytes());
    LOG.changed.notify_all();
}

/// Writes a last line of text, if there is one, and waits until the readers have all lines, or for a moment.
pub(super) fn finish(last: &str) {
    if !last.is_empty() {
        print(last);
    }
    ACCESS.flush(FLUSH_LIMIT);
    LOG.flush(FLUSH_LIMIT);
}

/// Writes all `bytes`, or as many as possible until an error. Returns their number.
fn write(out: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut rest = bytes;
    while !rest.is_empty() {
        match out.write(rest) {
            Ok(0) => return (bytes.len() - rest.len(), Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (bytes.len() - rest.len(), Err(error)),
        }
    }
    (bytes.len(), Ok(()))
}

/// A destination of lines.
pub(super) type Output = Box<dyn Write + Send>;

/// Lines for a thread of their own: a full pipe, whose reader is slow or stuck, must not stop the server.
pub(super) struct LineQueue {
    name: &'static str,
    state: Mutex<QueueState>,
    changed: Condvar,
}

struct QueueState {
    lines: Vec<u8>,
    is_writing: bool,
    /// True if the output is to be opened again after `lines`.
    reopens: bool,
    /// Number of lines that were dropped or could not be written.
    lost: u64,
}

impl LineQueue {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            state: Mutex::new(QueueState {
                lines: Vec::new(),
                is_writing: false,
                reopens: false,
                lost: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Starts the thread that writes to what `open` returns, now and after [`reopen`](Self::reopen).
    pub(super) fn start(
        &'static self,
        open: impl Fn() -> io::Result<Output> + Send + 'static,
    ) -> io::Result<()> {
        let out = open()?;
        let writer = thread::Builder::new().name(format!("{}-log", self.name));
        writer.spawn(move || self.write_to(out, open)).map(drop)
    }

    /// Adds a line, or drops it if too much is waiting.
    pub(super) fn push(&self, line: &[u8]) {
        let mut state = self.state.lock();
        if state.lines.len().saturating_add(line.len()) > MAX_WAITING {
            state.lost = state.lost.saturating_add(1);
            return;
        }
        let is_first = state.lines.is_empty();
        state.lines.extend_from_slice(line);
        drop(state);
        if is_first {
            self.changed.notify_all();
        }
    }

    /// Opens the output again after the lines so far, as programs that rotate files request.
    pub(super) fn reopen(&self) {
        self.state.lock().reopens = true;
        self.changed.notify_all();
    }

    /// Number of lines that were dropped because the reader was too slow, or could not be written.
    pub(super) fn lost(&self) -> u64 {
        self.state.lock().lost
    }

    /// Waits for lines and writes them, forever.
    fn write_to(&self, mut out: Output, open: impl Fn() -> io::Result<Output>) -> ! {
        let (mut reported, mut failed, mut limit) = (0, 0, LogLimit::default());
        let mut is_cut = false;
        loop {
            let mut state = self.state.lock();
            state.is_writing = false;
            self.changed.notify_all();
            self.changed
                .wait_while(&mut state, |state| state.lines.is_empty() && !state.reopens);
            state.is_writing = true;
            if self.name == ACCESS.name {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "a thread of the program, which waits in real time"
                )]
                MutexGuard::unlocked(&mut state, || thread::sleep(COLLECTING));
            }
            let (mut lines, reopens) = (mem::take(&mut state.lines), mem::take(&mut state.reopens));
            let lost = state.lost;
            drop(state);
            if lost > reported {
                // There is room now, and the gap is after `lines`.
                tracing::warn!(
                    log = self.name,
                    lines = lost.saturating_sub(reported),
                    "lines of a log were dropped because its reader is too slow"
                );
                reported = lost;
            }
            if is_cut {
                lines.insert(0, b'\n');
            }
            let (written, result) = write(&mut out, &lines);
            if let Some(last) = lines[..written].last() {
                is_cut = *last != b'\n';
            }
            if let Err(error) = result {
                let lost = lines[written..].split(|&byte| byte == b'\n');
                let count = lost.filter(|line| !line.is_empty()).count() as u64;
                self.state.lock().lost += count;
                (reported, failed) = (reported + count, failed + count);
                // An error of stderr cannot be reported.
                if self.name != LOG.name && limit.count(TokioRuntime.now()).is_some() {
                    let lines = mem::take(&mut failed);
                    tracing::error!(log = self.name, %error, lines, "cannot write lines of a log");
                }
            }
            match reopens.then(&open) {
                None => {}
                Some(Ok(opened)) => {
                    (out, is_cut) = (opened, false);
                    tracing::info!(log = self.name, "opened a log again");
                }
                Some(Err(error)) => {
                    tracing::error!(log = self.name, %error, "cannot open a log again: the open file stays in use");
                }
            }
        }
    }

    /// Waits until all lines are written, at most for `limit`.
    fn flush(&self, limit: Duration) {
        let is_busy = |state: &mut QueueState| state.is_writing || !state.lines.is_empty();
        self.changed
            .wait_while_for(&mut self.state.lock(), is_busy, limit);
    }
}
