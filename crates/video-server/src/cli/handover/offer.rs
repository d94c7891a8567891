//! [`Offer`]: the older process's side of a handover.

use std::fs;
use std::io::{self, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use parking_lot::Mutex;
use playrate_transport::Datagram;
use tokio::sync::{mpsc, watch};

use super::super::accepting::Accepting;
use super::super::listen::{Offered, second_descriptor};
use super::super::tcp;
use super::wire::{self, Greeting, Message, Take};
use super::{ANSWER_LIMIT, SOCKET, TAKEN, WAITING_DATAGRAMS, check_user};

/// Relation of a process to newer ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No newer process has taken over.
    Offered,
    /// A newer one serves new clients.
    Taken,
    /// A newer process had taken over, or begun to, and has ended: this process owns the port again.
    TakenBack,
}

/// Sockets for TCP while they are offered.
#[derive(Debug)]
struct Listeners {
    tcp: Option<Listener>,
    metrics: Option<Listener>,
}

/// A second descriptor of a socket for TCP.
#[derive(Debug)]
struct Listener {
    address: SocketAddr,
    /// `None` while a newer process serves that does not use the socket: no process would accept the connections
    /// waiting in it.
    socket: Option<TcpListener>,
}

impl Listener {
    fn new(socket: TcpListener) -> io::Result<Self> {
        Ok(Self {
            address: socket.local_addr()?,
            socket: Some(socket),
        })
    }

    /// Returns the socket for accepting again; reopens it if it was closed.
    fn reopen(&mut self) -> anyhow::Result<tokio::net::TcpListener> {
        if let Some(socket) = &self.socket {
            return Ok(tokio::net::TcpListener::from_std(socket.try_clone()?)?);
        }
        let mut opened = Some(tcp::listen(self.address)?);
        self.socket = second_descriptor(&mut opened)?;
        opened.context("the socket is gone")
    }
}

type SharedListeners = Arc<Mutex<Listeners>>;

/// Offer to newer processes. Dropping it withdraws the offer.
#[derive(Debug)]
pub(super) struct Offer {
    path: PathBuf,
    listeners: SharedListeners,
    bound: SharedFile,
    stage: watch::Receiver<Stage>,
}

impl Offer {
    /// Offers the sockets `offered` to processes that look in `directory`. A process that takes over accepts
    /// connections over TCP in place of `accepting`.
    ///
    /// # Errors
    /// The Unix socket cannot be created there.
    pub(super) fn start(directory: &Path, mut offered: Offered, accepting: Accepting) -> io::Result<Self> {
        let path = directory.join(SOCKET);
        let listeners = SharedListeners::new(Mutex::new(Listeners {
            tcp: offered.tcp.take().map(Listener::new).transpose()?,
            metrics: offered.metrics.take().map(Listener::new).transpose()?,
        }));
        let (listener, file) = listen(&path)?;
        let bound = SharedFile::new(Mutex::new(Some(file)));
        let (sender, stage) = watch::channel(Stage::Offered);
        let offering = Offering {
            path: path.clone(),
            offered,
            listeners: Arc::clone(&listeners),
            bound: Arc::clone(&bound),
            accepting,
            stage: sender,
        };
        let thread = std::thread::Builder::new().name("handover".to_owned());
        thread.spawn(move || offering.run(listener))?;
        Ok(Self {
            path,
            listeners,
            bound,
            stage,
        })
    }

    /// Withdraws the offer of the TCP socket, which closes it: a newer process opens its own.
    pub(super) fn withdraw_tcp(&self) {
        drop(self.listeners.lock().tcp.take());
    }

    /// Present relation to newer processes.
    pub(super) fn stage(&mut self) -> Stage {
        *self.stage.borrow_and_update()
    }

    /// Waits until the stage differs from the one that [`stage`](Self::stage) returned last.
    pub(super) async fn changed(&mut self) {
        if self.stage.changed().await.is_err() {
            // The thread has ended and has logged that: this stage is the last one.
            std::future::pending::<()>().await;
        }
    }

    /// Makes `accepting` accept connections again where it stopped.
    pub(super) async fn resume(&self, accepting: &Accepting) {
        let reopen = |listener: Option<&mut Listener>, purpose: &str| {
            let reopened = listener?.reopen();
            let failed =
                |error: &_| tracing::warn!(%error, "cannot accept TCP connections for {purpose} again");
            reopened.inspect_err(failed).ok()
        };
        if let Some(dashboard) = &accepting.dashboard
            && dashboard.is_stopped()
            && let Some(listener) = reopen(self.listeners.lock().metrics.as_mut(), "metrics")
        {
            dashboard.resume(listener);
        }
        let Some(tcp) = accepting.tcp.as_ref().filter(|tcp| tcp.is_stopped()) else {
            return;
        };
        let listener = reopen(self.listeners.lock().tcp.as_mut(), "media");
        if let Some(listener) = listener {
            tcp.resume(listener).await;
        }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        let bound = self.bound.lock().take();
        // Otherwise it belongs to the newer process.
        if bound.is_some() && FileId::of(&self.path).ok() == bound {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Identity of a file, to tell it from another one at the same path.
#[derive(Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
    /// Seconds and nanoseconds of its last change, because inode numbers are reused.
    changed: (i64, i64),
}

impl FileId {
    fn of(path: &Path) -> io::Result<Self> {
        let file = fs::symlink_metadata(path)?;
        Ok(Self {
            device: file.dev(),
            inode: file.ino(),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }
}

/// The Unix socket's file, until a newer process replaces it.
type SharedFile = Arc<Mutex<Option<FileId>>>;

/// Listens at `path`, replacing a process that is gone or has been taken over.
fn listen(path: &Path) -> io::Result<(UnixListener, FileId)> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok((UnixListener::bind(path)?, FileId::of(path)?)),
    }
}

/// The thread's side of an [`Offer`].
struct Offering {
    path: PathBuf,
    offered: Offered,
    listeners: SharedListeners,
    bound: SharedFile,
    accepting: Accepting,
    stage: watch::Sender<Stage>,
}

impl Offering {
    fn run(self, listener: UnixListener) {
        let mut listener = Some(listener);
        while let Some(listening) = listener.take() {
            let accepted = listening.accept().and_then(|(stream, _)| self.give(stream));
            match accepted {
                Ok(Some((stream, take, datagrams))) => {
                    // A process that looks now finds nothing until the newer one offers, and then looks again.
                    drop(listening);
                    self.receive(stream, take, &datagrams);
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

    /// Gives the sockets to the process at the other end of `stream`. If that process takes over, returns the stream,
    /// what it takes, and the sender of the datagrams that come over the stream.
    fn give(&self, stream: UnixStream) -> io::Result<Option<(UnixStream, Take, mpsc::Sender<Datagram>)>> {
        check_user(&stream)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        let offered = &self.offered;
        {
            let listeners = self.listeners.lock();
            let [tcp, metrics] = [&listeners.tcp, &listeners.metrics]
                .map(|listener| listener.as_ref().and_then(|listener| listener.socket.as_ref()));
            let greeting = Greeting::new(offered, tcp.is_some(), metrics.is_some());
            let mut sockets: Vec<_> = offered.udp.iter().map(UdpSocket::as_fd).collect();
            sockets.extend([tcp, metrics].into_iter().flatten().map(TcpListener::as_fd));
            greeting.send(&stream, &sockets)?;
        }
        let Some(take) = Take::receive(&stream)? else {
            // The process has looked, and cannot or need not take over.
            return Ok(None);
        };
        let (sender, datagrams) = mpsc::channel(WAITING_DATAGRAMS);
        offered.router.receive_from(datagrams);
        stream.set_read_timeout(None)?;
        // If this fails, the sender is dropped, and the router reads the socket again.
        (&stream).write_all(TAKEN.as_bytes())?;
        self.accepting.stop();
        Ok(Some((stream, take, sender)))
    }

    /// Passes on the datagrams that the newer process forwards, until it ends.
    fn receive(&self, stream: UnixStream, take: Take, datagrams: &mpsc::Sender<Datagram>) {
        let mut reader = BufReader::with_capacity(1 << 16, stream);
        loop {
            match wire::read(&mut reader) {
                // Lost if there is no room, as with a full socket buffer.
                Ok(Message::Datagram(datagram)) => drop(datagrams.try_send(datagram)),
                Ok(Message::Serving) => self.hand_over(take),
                Err(error) => {
                    tracing::warn!(%error, "the process that took over has ended");
                    return;
                }
            }
        }
    }

    /// Leaves new clients to the newer process, which uses the sockets that it took.
    fn hand_over(&self, take: Take) {
        self.bound.lock().take();
        let mut listeners = self.listeners.lock();
        let Listeners { tcp, metrics } = &mut *listeners;
        for (listener, is_used) in [(tcp, take.tcp), (metrics, take.metrics)] {
            if let Some(listener) = listener.as_mut().filter(|_| !is_used) {
                listener.socket = None;
            }
        }
        tracing::info!("another process has taken over the port: this one ends with its last connection");
        self.stage.send_replace(Stage::Taken);
    }

    /// Reads the sockets again and renews the offer, unless a further process has them.
    fn take_back(&self, datagrams: mpsc::Sender<Datagram>) -> Option<UnixListener> {
        if UnixStream::connect(&self.path).is_ok() {
            tracing::warn!("a further process has the port: this one's connections receive nothing more");
            // Dropping it would make the router read the socket.
            std::mem::forget(datagrams);
            return None;
        }
        let listening = listen(&self.path);
        tracing::info!("this process has the port again");
        self.stage.send_replace(Stage::TakenBack);
        match listening {
            Ok((listener, file)) => {
                *self.bound.lock() = Some(file);
                Some(listener)
            }
            Err(error) => {
                tracing::warn!(%error, "cannot offer the port to a further process");
                None
            }
        }
    }
}
