//! What the operating system tells a server.

/// A signal that a server acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// To end; the signal's name.
    End(&'static str),
    /// To read its certificate again.
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
    #[expect(
        clippy::unnecessary_wraps,
        reason = "it can fail where there are more signals"
    )]
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {})
    }

    /// The next one.
    #[cfg(unix)]
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Signal::End("SIGINT"),
            _ = self.terminate.recv() => Signal::End("SIGTERM"),
            _ = self.hang_up.recv() => Signal::Reload,
        }
    }

    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) -> Signal {
        // Without a handler there is nothing to wait for but the end of the process.
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::End("Ctrl-C"),
            Err(_) => std::future::pending().await,
        }
    }

    /// The name of the next one that ends a server.
    pub(super) async fn end(&mut self) -> &'static str {
        loop {
            if let Signal::End(name) = self.next().await {
                return name;
            }
        }
    }
}
