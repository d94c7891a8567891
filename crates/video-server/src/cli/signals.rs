//! Signals of the operating system to a server.

/// The signals that a server acts on.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hang_up: tokio::signal::unix::Signal,
}

/// Keeps signals that request a reload from ending the process while it reads its media.
pub(super) fn outlive_hang_ups() -> std::io::Result<()> {
    // The handler stays when its receiver is dropped.
    #[cfg(unix)]
    drop(tokio::signal::unix::signal(
        tokio::signal::unix::SignalKind::hangup(),
    )?);
    Ok(())
}

impl Signals {
    #[cfg(unix)]
    pub(super) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    #[cfg(not(unix))]
    #[expect(clippy::unnecessary_wraps, reason = "it can fail on Unix")]
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next signal that terminates the server and returns its name. Calls `reload` at each signal that
    /// requests a reload of certificate and media.
    #[cfg(unix)]
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

    /// Waits for the next signal that terminates the server and returns its name.
    #[cfg(not(unix))]
    pub(super) async fn end(&mut self, _: impl Fn()) -> &'static str {
        // Without a handler, the signal just terminates the process.
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            Err(_) => std::future::pending().await,
        }
    }
}
