//! [`TcpService`]: a service on a TCP socket, which a process offers while it owns the port.

use std::io;
use std::net;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::JoinSet;

/// Services of a process over TCP, or their sockets: the site, and the operator's view.
pub(crate) type TcpServices<T> = [Option<T>; 2];

/// A service that can stop, and resume on another socket. Dropping it ends all connections.
pub(crate) struct TcpService {
    tasks: AsyncMutex<JoinSet<()>>,
    /// Once this is true, the present listener and its connections accept nothing more.
    stop: Mutex<watch::Sender<bool>>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "it resumes on Linux"))]
    accept: Box<AcceptFn>,
}

/// Accepts connections on a socket until the switch is true; the future ends with the last of them.
type AcceptFn =
    dyn Fn(TcpListener, watch::Receiver<bool>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;

impl TcpService {
    /// Starts to accept connections on `listener`. `accept` does so until its switch is true, and ends with the last
    /// connection.
    ///
    /// # Errors
    /// The system cannot wait for events of the socket.
    pub(crate) fn start<F>(
        listener: net::TcpListener,
        accept: impl Fn(TcpListener, watch::Receiver<bool>) -> F + Send + Sync + 'static,
    ) -> io::Result<Arc<Self>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(nonblocking(listener)?, stopped));
        Ok(Arc::new(Self {
            tasks: AsyncMutex::new(tasks),
            stop: Mutex::new(stop),
            accept: Box::new(move |listener, stopped| Box::pin(accept(listener, stopped))),
        }))
    }

    /// Stops accepting connections and further requests.
    pub(crate) fn stop(&self) {
        self.stop.lock().send_replace(true);
    }

    /// Returns true from [`stop`](Self::stop) until connections are accepted again.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_stopped(&self) -> bool {
        *self.stop.lock().borrow()
    }

    /// Accepts connections again, on `listener`. Earlier connections end as after [`stop`](Self::stop).
    ///
    /// # Errors
    /// The system cannot wait for events of the socket.
    #[cfg(target_os = "linux")]
    pub(crate) async fn resume(&self, listener: net::TcpListener) -> io::Result<()> {
        let mut tasks = self.tasks.lock().await;
        let (stop, stopped) = watch::channel(false);
        tasks.spawn((self.accept)(nonblocking(listener)?, stopped));
        *self.stop.lock() = stop;
        Ok(())
    }

    /// Waits until no connection is accepted any more and the last one has ended.
    pub(crate) async fn idle(&self) {
        let mut tasks = self.tasks.lock().await;
        while tasks.join_next().await.is_some() {}
    }

    /// Ends all connections at once, with the responses in progress.
    pub(crate) async fn abort(&self) {
        self.tasks.lock().await.abort_all();
    }
}

fn nonblocking(listener: net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}
