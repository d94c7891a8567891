//! [`Offer`]: the older process's side of a handover.

use std::fs;
use std::io::{self, BufReader, Read, Write as _};
use std::mem;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use playrate_transport::Datagram;
use rustix::net::sockopt::socket_peercred;
use tokio::sync::{mpsc, watch};

use super::super::tcp::{self, TcpService, TcpServices};
use super::sockets::Offered;
use super::wire::{self, Greeting, Message, Take};
use super::{ANSWER_LIMIT, FROZEN, LOST, SOCKET, TAKEN, WAITING_DATAGRAMS, check_user};

/// Relation of a process to newer ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No newer process has taken over.
    Offered,
    /// A newer one serves new clients.
    Taken,
    /// A newer process had taken over, or begun to, and has ended or frozen: this process owns the port again.
    TakenBack,
}

/// A service over TCP, and a second descriptor of its socket while that is offered.
struct OfferedService {
    service: Arc<TcpService>,
    address: SocketAddr,
    /// `None` while a newer process serves without using the socket, because no process would accept the connections
    /// waiting in it.
    socket: Option<TcpListener>,
}

impl OfferedService {
    fn new((service, socket): (Arc<TcpService>, TcpListener)) -> io::Result<Self> {
        Ok(Self {
            service,
            address: socket.local_addr()?,
            socket: Some(socket),
        })
    }

    /// Returns the socket for accepting again; reopens it if it was closed.
    fn reopen(&mut self) -> io::Result<TcpListener> {
        match &mut self.socket {
            Some(socket) => socket.try_clone(),
            none => none.insert(tcp::listen(self.address)?).try_clone(),
        }
    }
}

/// Offer to newer processes. Dropping it withdraws the offer.
pub(crate) struct Offer(Arc<Offering>);

impl Offer {
    /// Offers the sockets `offered` to processes that look in `directory`. A process that takes over accepts
    /// connections over TCP in place of `services`.
    ///
    /// # Errors
    /// The Unix socket cannot be created there.
    pub(super) fn start(
        directory: &Path,
        mut offered: Offered,
        services: TcpServices<Arc<TcpService>>,
    ) -> io::Result<Self> {
        let path = directory.join(SOCKET);
        let ([media, metrics], [for_media, for_metrics]) = (services, mem::take(&mut offered.tcp));
        let offer = |service: Option<_>, socket| service.zip(socket).map(OfferedService::new).transpose();
        let services = [offer(media, for_media)?, offer(metrics, for_metrics)?];
        let (listener, file) = listen(&path)?;
        let offering = Arc::new(Offering {
            path,
            offered,
            services: Mutex::new(services),
            bound: Mutex::new(Some(file)),
            stage: watch::Sender::new(Stage::Offered),
        });
        let shared = Arc::clone(&offering);
        let thread = std::thread::Builder::new().name("handover".to_owned());
        thread.spawn(move || shared.run(listener))?;
        Ok(Self(offering))
    }

    /// Withdraws the offer of the TCP socket, which closes it: a newer process opens its own.
    pub(crate) fn withdraw_tcp(&self) {
        if let [Some(media), _] = &mut *self.0.services.lock() {
            media.socket = None;
        }
    }

    /// The services over TCP.
    pub(super) fn services(&self) -> Vec<Arc<TcpService>> {
        let offered = self.0.services.lock();
        let services = offered.iter().flatten();
        services.map(|offered| Arc::clone(&offered.service)).collect()
    }

    /// Stops the services, because another process accepts connections.
    pub(super) fn stop(&self) {
        self.0.stop();
    }

    /// Relation to newer processes, now and as it changes.
    pub(super) fn stage(&self) -> watch::Receiver<Stage> {
        self.0.stage.subscribe()
    }

    /// Makes the services accept connections again where they stopped.
    pub(super) async fn resume(&self) {
        for (index, purpose) in [(1, "metrics"), (0, "media")] {
            let reopened = match &mut self.0.services.lock()[index] {
                Some(offered) if offered.service.is_stopped() => offered
                    .reopen()
                    .map(|listener| (Arc::clone(&offered.service), listener)),
                _ => continue,
            };
            let resumed = match reopened {
                Ok((service, listener)) => service.resume(listener).await,
                Err(error) => Err(error),
            };
            if let Err(error) = resumed {
                tracing::warn!(%error, "cannot accept TCP connections for {purpose} again");
            }
        }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        let Offering { path, bound, .. } = &*self.0;
        let bound = bound.lock().take();
        // Otherwise it belongs to the newer process.
        if bound.is_some() && file_id(path).ok() == bound {
            let _ = fs::remove_file(path);
        }
    }
}

/// Identity of a file, to tell it from another one at the same path: device and inode, and seconds and nanoseconds of
/// its last change, because inode numbers are reused.
type FileId = (u64, u64, i64, i64);

fn file_id(path: &Path) -> io::Result<FileId> {
    let file = fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino(), file.ctime(), file.ctime_nsec()))
}

/// Listens at `path`, replacing a process that is gone or has been taken over.
fn listen(path: &Path) -> io::Result<(UnixListener, FileId)> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok((UnixListener::bind(path)?, file_id(path)?)),
    }
}

/// State that an [`Offer`] shares with its thread.
struct Offering {
    path: PathBuf,
    offered: Offered,
    services: Mutex<TcpServices<OfferedService>>,
    /// The Unix socket's file, until a newer process replaces it.
    bound: Mutex<Option<FileId>>,
    stage: watch::Sender<Stage>,
}

impl Offering {
    fn run(&self, listener: UnixListener) {
        let mut listener = Some(listener);
        while let Some(listening) = listener.take() {
            let accepted = listening.accept().and_then(|(stream, _)| self.give(stream));
            match accepted {
                Ok(Some((stream, take, datagrams))) => {
                    // A process that looks now finds nothing until the newer one offers, and then looks again.
                    drop(listening);
                    self.receive(&stream, take, &datagrams);
                    listener = self.take_back(&stream, datagrams);
                }
                Ok(None) => listener = Some(listening),
                Err(error) => {
                    tracing::warn!(%error, "cannot hand over to a process that wanted to take over");
                    listener = Some(listening);
                }
            }
        }
    }

    fn stop(&self) {
        let services = self.services.lock();
        services
            .iter()
            .flatten()
            .for_each(|offered| offered.service.stop());
    }

    /// Gives the sockets to the process at the other end of `stream`. If that process takes over, returns the stream,
    /// its answer, and the sender for datagrams from the stream.
    fn give(&self, stream: UnixStream) -> io::Result<Option<(UnixStream, Take, mpsc::Sender<Datagram>)>> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        check_user(&stream)?;
        let take = match self.greet(&stream) {
            Ok(Some(take)) => take,
            // The process only looked: it cannot or need not take over.
            Ok(None) => return Ok(None),
            Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset) => {
                tracing::debug!(%error, "a process looked, and left without an answer");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let (sender, datagrams) = mpsc::channel(WAITING_DATAGRAMS);
        self.offered.router.receive_from(datagrams);
        stream.set_read_timeout(Some(FROZEN / 2))?;
        // If this fails, the sender is dropped, and the router reads the socket again.
        (&stream).write_all(TAKEN.as_bytes())?;
        self.stop();
        Ok(Some((stream, take, sender)))
    }

    /// Sends the greeting with the sockets. Returns the answer, if the process takes over.
    fn greet(&self, stream: &UnixStream) -> io::Result<Option<Take>> {
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        {
            let services = self.services.lock();
            let [tcp, metrics] = services
                .each_ref()
                .map(|service| service.as_ref()?.socket.as_ref());
            let greeting = Greeting::new(&self.offered, tcp.is_some(), metrics.is_some());
            let mut sockets: Vec<_> = self.offered.udp.iter().map(UdpSocket::as_fd).collect();
            sockets.extend([tcp, metrics].into_iter().flatten().map(TcpListener::as_fd));
            greeting.send(stream, &sockets)?;
        }
        Take::receive(stream)
    }

    /// Passes on the datagrams that the newer process forwards, until it ends or freezes.
    fn receive(&self, stream: &UnixStream, take: Take, datagrams: &mpsc::Sender<Datagram>) {
        let mut reader = BufReader::with_capacity(1 << 16, NewerStream(stream, self));
        loop {
            match wire::read(&mut reader) {
                // Lost if there is no room, as with a full socket buffer.
                Ok(Message::Datagram(datagram)) => drop(datagrams.try_send(datagram)),
                Ok(Message::Alive) => {}
                Ok(Message::Serving) => self.hand_over(take),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tracing::warn!("the process that took over has not responded for {FROZEN:?}");
                    // Before this process reads the sockets, so that the other one ends as soon as it resumes.
                    let _ = stream
                        .set_nonblocking(true)
                        .and_then(|()| (&*stream).write_all(LOST));
                    return;
                }
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
        for (service, is_used) in self.services.lock().iter_mut().zip([take.tcp, take.metrics]) {
            if let Some(service) = service.as_mut().filter(|_| !is_used) {
                service.socket = None;
            }
        }
        tracing::info!("another process has taken over the port: this one ends with its last connection");
        self.stage.send_replace(Stage::Taken);
    }

    /// Returns true if a further process than `newer` has the port. A frozen process still listens at the path.
    fn has_further(&self, newer: &UnixStream) -> bool {
        let process = |stream: &UnixStream| Some(socket_peercred(stream).ok()?.pid);
        UnixStream::connect(&self.path).is_ok_and(|further| process(&further) != process(newer))
    }

    /// Reads the sockets again and renews the offer, unless a further process has them. `newer` leads to their
    /// previous owner, which has ended or is frozen.
    fn take_back(&self, newer: &UnixStream, datagrams: mpsc::Sender<Datagram>) -> Option<UnixListener> {
        if self.has_further(newer) {
            tracing::warn!("a further process has the port: this one's connections receive nothing more");
            // Dropping it would make the router read the socket.
            mem::forget(datagrams);
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

/// Stream from the process that took over. A read fails with `WouldBlock` if that process is frozen and has the port.
struct NewerStream<'a>(&'a UnixStream, &'a Offering);

impl Read for NewerStream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.0;
        let mut is_reported = false;
        loop {
            // Twice, because a pause of the whole machine may use up one of the timeouts.
            match stream.read(bytes).or_else(|_| stream.read(bytes)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.1.has_further(stream) => {
                    if !mem::replace(&mut is_reported, true) {
                        tracing::warn!(
                            "the process that passes on datagrams has not responded for {FROZEN:?}; a further one has \
                             the port, so this one waits"
                        );
                    }
                }
                read => return read,
            }
        }
    }
}
