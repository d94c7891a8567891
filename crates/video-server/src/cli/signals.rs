//! Signals of the operating system to a server.

/// A signal that a server acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    /// Terminate; the name of the signal.
    End(&'static str),
    /// Reload the certificate and the media directory.
    Reload,
}

/// The signals that a server acts on.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hang_up: tokio::signal::unix::Signal,
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

    /// Waits for the next signal.
    #[cfg(unix)]
    async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Signal::End("SIGINT"),
            _ = self.terminate.recv() => Signal::End("SIGTERM"),
            _ = self.hang_up.recv() => Signal::Reload,
        }
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> Signal {
        // Without a handler, the signal just terminates the process.
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::End("Ctrl-C"),
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits for the next signal that terminates the server and returns its name. Calls `reload` at each signal that
    /// requests a reload of certificate and media.
    pub(super) async fn end(&mut self, reload: impl Fn()) -> &'static str {
        loop {
            match self.next().await {
                Signal::End(name) => return name,
                Signal::Reload => reload(),
            }
        }
    }
}
