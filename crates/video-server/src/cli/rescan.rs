//! Rescans the media: on SIGHUP, when the directory has changed, or when a store is due for a listing.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use quinn::{Runtime, TokioRuntime};
use video_server::library::{FaultKind, Library, LibraryError};
use video_server::serve::VideoServer;

use super::watch::{Reason, Watch};

/// Time without a change before a rescan: a copy in progress keeps changing its file.
const QUIET: Duration = Duration::from_secs(1);
/// Longest time that ongoing changes can delay a rescan.
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// Time before a failed rescan is repeated.
const AGAIN: Duration = Duration::from_secs(30);
/// Minimum time between two rescans, as a multiple of the duration of the last one.
const REST: u32 = 10;

/// Starts the thread that rescans the media of `server` until the process ends; returns the sender for requests. If
/// `strict`, a rescan with a bad title, manifest or directory changes nothing. If `watched`, every change in the
/// directory causes a rescan. After `interval`, a store is listed again.
///
/// # Errors
/// The system cannot start another thread.
pub(super) fn start(
    server: VideoServer,
    strict: bool,
    (watched, interval): (bool, Option<Duration>),
) -> std::io::Result<Sender<Reason>> {
    let (sender, receiver) = mpsc::channel();
    let watch = watched.then(|| Watch::start(sender.clone())).transpose();
    let watch = watch.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot watch the media directory: it is read again on SIGHUP only");
        None
    });
    let mut rescanner = Rescanner {
        interval,
        strict,
        server,
        watch,
        rest_until: TokioRuntime.now(),
        next_look: None,
        error: None,
    };
    rescanner.next_look = rescanner.next_listing();
    let thread = std::thread::Builder::new().name("media-library".to_owned());
    thread.spawn(move || rescanner.run(&receiver))?;
    Ok(sender)
}

struct Rescanner {
    /// Time between two listings of a store.
    interval: Option<Duration>,
    strict: bool,
    server: VideoServer,
    watch: Option<Watch>,
    /// Earliest time of the next reading without a request.
    rest_until: Instant,
    /// Time of the next look at files that may have been incomplete at the last rescan.
    next_look: Option<Instant>,
    /// Error of the last reading, if it failed.
    error: Option<String>,
}

impl Rescanner {
    fn run(mut self, reasons: &Receiver<Reason>) {
        if self.watch.is_some() {
            // Watches every directory and finds what has changed since the start.
            self.read(Reason::Change);
        }
        while let Some(reason) = self.wait(reasons) {
            self.read(reason);
        }
    }

    /// Time of the next rescan if nothing else causes one.
    fn next_listing(&self) -> Option<Instant> {
        self.interval.map(|interval| TokioRuntime.now() + interval)
    }

    /// Waits for a reason to read the directory; `None` if there will be no other.
    fn wait(&self, reasons: &Receiver<Reason>) -> Option<Reason> {
        let first = match self.next_look {
            None => reasons.recv().ok()?,
            Some(due) => {
                let due = due.max(self.rest_until);
                match reasons.recv_timeout(due.saturating_duration_since(TokioRuntime.now())) {
                    Ok(first) => first,
                    Err(RecvTimeoutError::Timeout) => return Some(Reason::Change),
                    Err(RecvTimeoutError::Disconnected) => return None,
                }
            }
        };
        Some(self.settle(first, reasons))
    }

    /// Waits after a change until changes stop or the operator requests a rescan.
    fn settle(&self, first: Reason, reasons: &Receiver<Reason>) -> Reason {
        let began = TokioRuntime.now();
        // Files that are complete by then do not wait for copies in progress.
        let latest = self
            .next_look
            .map_or(began + LONGEST_DELAY, |next| next.min(began + LONGEST_DELAY));
        let latest = self.rest_until.max(latest);
        let earliest = self.rest_until.max(began + QUIET);
        let (mut reason, mut due) = (first, earliest.min(latest));
        while reason == Reason::Change {
            match reasons.recv_timeout(due.saturating_duration_since(TokioRuntime.now())) {
                Ok(Reason::Change) => due = latest.min(due.max(TokioRuntime.now() + QUIET)),
                Ok(Reason::Request) => reason = Reason::Request,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        reason
    }

    /// Reads the directory and makes the server use the result.
    fn read(&mut self, reason: Reason) {
        let began = TokioRuntime.now();
        let earlier = self.server.library();
        let found = earlier.rescan(began, &mut |directory: &Path| {
            if let Some(watch) = &mut self.watch {
                watch.add(directory);
            }
        });
        match found.and_then(|library| library.map(|library| self.check(library)).transpose()) {
            Ok(None) => {
                if reason == Reason::Request {
                    tracing::info!("the media was listed again: nothing has changed");
                }
                self.error = None;
                self.next_look = self.next_listing();
            }
            Ok(Some(library)) => {
                if let Some(watch) = &mut self.watch {
                    watch.forget_others();
                }
                report(&library, &earlier, reason);
                self.next_look = library.next_look().or(self.next_listing());
                self.server.set_library(library);
                self.error = None;
            }
            Err(error) => {
                let error = error.to_string();
                if reason == Reason::Request || self.error.as_ref() != Some(&error) {
                    tracing::error!(error, "the media was read again: the previous titles stay in use");
                }
                // The fault may go away without a change that the watch reports.
                self.next_look = Some(TokioRuntime.now() + AGAIN);
                self.error = Some(error);
            }
        }
        let ended = TokioRuntime.now();
        self.rest_until = ended + ended.saturating_duration_since(began) * REST;
    }

    fn check(&self, library: Library) -> Result<Library, LibraryError> {
        if self.strict {
            library.strictly()
        } else {
            Ok(library)
        }
    }
}

/// Logs the differences between two readings.
fn report(library: &Library, earlier: &Library, reason: Reason) {
    let changes = library.changes_since(earlier);
    changes.warn();
    if changes.is_empty() && reason == Reason::Change {
        return;
    }
    tracing::info!(
        titles = library.title_count(),
        added = changes.added,
        changed = changes.changed,
        removed = changes.removed,
        unplayable_titles = library.faults(FaultKind::Title).len(),
        unusable_manifests = library.faults(FaultKind::Manifest).len(),
        unreadable_directories = library.faults(FaultKind::Directory).len(),
        "the media was read again"
    );
}
