//! [`Offer`]: the side of the process that a newer one takes over from.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use playrate_transport::{Datagram, DatagramRouter};
use tokio::sync::{mpsc, watch};

use super::wire::{self, Greeting};
use super::{ANSWER_LIMIT, SOCKET, TAKE, TAKEN, WAITING_DATAGRAMS};

/// Sockets of a process, and their use by it.
#[derive(Debug)]
pub(in crate::cli) struct Offered {
    /// First byte of its connection IDs.
    pub(in crate::cli) process: u8,
    /// Address of the UDP socket.
    pub(in crate::cli) address: SocketAddr,
    pub(in crate::cli) udp: UdpSocket,
    pub(in crate::cli) tcp: Option<TcpListener>,
    pub(in crate::cli) metrics: Option<TcpListener>,
    pub(in crate::cli) router: Arc<DatagramRouter>,
}

/// The TCP socket, as long as it is offered.
type SharedListener = Arc<Mutex<Option<TcpListener>>>;

/// Offer to newer processes, for as long as this is not dropped.
#[derive(Debug)]
pub(in crate::cli) struct Offer {
    path: PathBuf,
    tcp: SharedListener,
    taken: watch::Receiver<bool>,
}

impl Offer {
    /// Offers what is `offered` to processes that look in `directory`. `stop_accepting` ends the accepting of
    /// connections over TCP.
    ///
    /// # Errors
    /// The Unix socket cannot be made there.
    pub(in crate::cli) fn start(
        directory: &Path,
        mut offered: Offered,
        stop_accepting: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let path = directory.join(SOCKET);
        let tcp = SharedListener::new(Mutex::new(offered.tcp.take()));
        let listener = listen(&path)?;
        let (taking, taken) = watch::channel(false);
        let offering = Offering {
            path: path.clone(),
            offered,
            tcp: Arc::clone(&tcp),
            stop_accepting: Box::new(stop_accepting),
            taking,
        };
        let thread = std::thread::Builder::new().name("handover".to_owned());
        thread.spawn(move || offering.run(listener))?;
        Ok(Self { path, tcp, taken })
    }

    /// Offers the TCP socket no longer, which closes it: a newer process opens its own.
    pub(in crate::cli) fn withdraw_tcp(&self) {
        drop(lock(&self.tcp).take());
    }

    /// Waits until a newer process has taken over.
    pub(in crate::cli) async fn taken(&mut self) {
        if self.taken.wait_for(|&taken| taken).await.is_err() {
            // The thread has ended, which it logged: no process takes over.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        // Otherwise it is the newer process's.
        if !*self.taken.borrow() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens at `path` in place of a process that is gone or has been taken over.
fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => UnixListener::bind(path),
    }
}

fn lock(listener: &SharedListener) -> MutexGuard<'_, Option<TcpListener>> {
    listener.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's side of an [`Offer`].
struct Offering {
    path: PathBuf,
    offered: Offered,
    tcp: SharedListener,
    stop_accepting: Box<dyn Fn() + Send>,
    taking: watch::Sender<bool>,
}

impl Offering {
    fn run(self, listener: UnixListener) {
        let mut listener = Some(listener);
        while let Some(listening) = listener.take() {
            let accepted = listening.accept().and_then(|(stream, _)| self.give(stream));
            match accepted {
                Ok(Some((stream, datagrams))) => {
                    // Whoever looks now waits for the newer process, or replaces its socket.
                    drop(listening);
                    receive(stream, &datagrams);
                    listener = self.take_back(datagrams);
                }
                Ok(None) => listener = Some(listening),
                Err(error) => {
                    tracing::warn!(%error, "cannot hand over to a process that wanted to take over");
                    listener = Some(listening);
                }
            }
        }
    }

    /// Gives the sockets to the process at the other end of `stream`. Returns the stream and the sender of the
    /// datagrams that come over it, if that process takes over.
    fn give(&self, stream: UnixStream) -> io::Result<Option<(UnixStream, mpsc::Sender<Datagram>)>> {
        let user = rustix::net::sockopt::socket_peercred(&stream)?.uid;
        if user != rustix::process::getuid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        let offered = &self.offered;
        {
            let tcp = lock(&self.tcp);
            let greeting = Greeting {
                process_id: std::process::id(),
                process: offered.process,
                address: offered.address,
                has_tcp: tcp.is_some(),
                has_metrics: offered.metrics.is_some(),
            };
            let listeners = [tcp.as_ref(), offered.metrics.as_ref()];
            let mut sockets = vec![offered.udp.as_fd()];
            sockets.extend(listeners.into_iter().flatten().map(TcpListener::as_fd));
            greeting.send(&stream, &sockets)?;
        }
        let mut answer = String::new();
        BufReader::new((&stream).take(TAKE.len() as u64)).read_line(&mut answer)?;
        if answer != TAKE {
            // It has looked, and cannot or need not take over.
            return Ok(None);
        }
        let (sender, datagrams) = mpsc::channel(WAITING_DATAGRAMS);
        offered.router.receive_from(datagrams);
        (self.stop_accepting)();
        stream.set_read_timeout(None)?;
        (&stream).write_all(TAKEN.as_bytes())?;
        self.taking.send_replace(true);
        Ok(Some((stream, sender)))
    }

    /// Reads the UDP socket again and offers it anew, unless a further process has it.
    fn take_back(&self, datagrams: mpsc::Sender<Datagram>) -> Option<UnixListener> {
        if UnixStream::connect(&self.path).is_ok() {
            tracing::warn!("a further process has the port: this one's connections receive nothing more");
            // Dropped, it would have the router read the socket.
            std::mem::forget(datagrams);
            return None;
        }
        match listen(&self.path) {
            Ok(listener) => Some(listener),
            Err(error) => {
                tracing::warn!(%error, "cannot offer the port to a further process");
                None
            }
        }
    }
}

/// Passes on the datagrams that the newer process forwards, until it ends.
fn receive(stream: UnixStream, datagrams: &mpsc::Sender<Datagram>) {
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    loop {
        match wire::read(&mut reader) {
            // Lost if there is no room, as in a full buffer of a socket.
            Ok(datagram) => drop(datagrams.try_send(datagram)),
            Err(error) => {
                tracing::warn!(%error, "the process that took over has ended");
                return;
            }
        }
    }
}
