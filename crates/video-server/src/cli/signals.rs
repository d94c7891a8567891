//! Signals of the operating system to a server.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that a server acts on.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// Keeps signals that request a reload from ending the process while it reads its media.
pub(super) fn outlive_hang_ups() -> io::Result<()> {
    // The handler stays when its receiver is dropped.
    signal(SignalKind::hangup()).map(drop)
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal that terminates the server and returns its name. Calls `reload` at each signal that
    /// requests a reload of certificate and media.
    pub(super) async fn end(&mut self, reload: impl Fn()) -> &'static str {
        loop {
            tokio::select! {
                biased;
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.hang_up.recv() => reload(),
            }
        }
    }
}
