//! Hands the port over to a newer process of the same server, so that a restart interrupts no session.
//!
//! A server with `--state DIR` listens on the Unix socket `DIR/handover`. A newer process with the same directory and
//! address finds it there and receives the older one's sockets (`SCM_RIGHTS`, unix(7)); from then on it serves all new
//! clients. It forwards the datagrams for connections of the older process over the same Unix connection
//! ([`DatagramRouter`](playrate_transport::DatagramRouter)). The older process answers them through its UDP sockets and
//! ends with its last connection. It has one UDP socket per worker, and the newer process uses all of them, because the
//! system goes on dividing datagrams among them. Connections over TCP stay where they were accepted.
//!
//! The order: the newer process connects, the older one sends a [`Greeting`] with its sockets, the newer one [takes
//! over](Link::take), the older one stops reading its sockets and confirms. Datagrams follow, and among them the
//! message that the newer one serves; only then may the older one end. If the newer process ends at any point, the
//! older one reads its sockets again and can be taken over again.

mod offer;
mod wire;

use std::io::{self, BufWriter, Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, mpsc as threads};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use parking_lot::Mutex;
use playrate_transport::{Datagram, Succession};
use tokio::sync::{mpsc, watch};
use video_server::serve::VideoServer;

use offer::{Offer, Stage};
use wire::{Greeting, Take};

use super::Failure;
use super::accepting::Accepting;
use super::listen::{Offered, Predecessor};

/// Name of the Unix socket in the directory of `--state`.
const SOCKET: &str = "handover";
/// Maximum time that the other process may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// The older process sends this line to confirm that the newer one owns the port.
const TAKEN: &str = "taken\n";
/// Maximum number of datagrams that wait between socket and endpoint.
const WAITING_DATAGRAMS: usize = 4_096;

/// Finds the process that offers its sockets in `directory` and whose connection IDs have the fingerprint `key`, if
/// there is one.
///
/// # Errors
/// [`Failure::Run`] if it does not answer, because it is ending or being taken over. Any other error means that its
/// user, key or version differs and this process cannot take over from it.
pub(super) fn find(directory: &Path, key: u64) -> Result<Option<Predecessor>, Failure> {
    let path = directory.join(SOCKET);
    let stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) => match error.kind() {
            // Nothing was offered, or the process that offered it is gone, or the path is too long for a Unix
            // socket. This process's own offer warns of the last case.
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::InvalidInput => {
                return Ok(None);
            }
            _ => {
                let error = anyhow::Error::new(error).context(format!("--state: {}", path.display()));
                return Err(Failure::Input(error));
            }
        },
    };
    let found = greeted(stream, key).with_context(|| {
        format!(
            "--state {}: cannot take over from the server that runs with this directory; stop it first",
            directory.display()
        )
    });
    found.map(Some).map_err(|error| {
        let is_of_system = |cause: &(dyn std::error::Error + 'static)| {
            let error = cause.downcast_ref::<io::Error>();
            error.is_some_and(|error| error.kind() != io::ErrorKind::PermissionDenied)
        };
        if error.chain().any(is_of_system) {
            Failure::Run(error)
        } else {
            Failure::Input(error)
        }
    })
}

fn greeted(stream: UnixStream, key: u64) -> anyhow::Result<Predecessor> {
    check_user(&stream)?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    stream.set_write_timeout(Some(ANSWER_LIMIT))?;
    let (greeting, sockets) = Greeting::receive(&stream)?;
    if greeting.key != key {
        return Err(anyhow!(
            "it has another key than the file endpoint-key, or another QUIC-LB configuration: one was replaced \
             since it started"
        ));
    }
    let mut sockets = sockets.into_iter();
    let udp: Vec<_> = sockets.by_ref().take(greeting.udp).map(UdpSocket::from).collect();
    if udp.is_empty() || udp.len() < greeting.udp {
        return Err(anyhow!("a UDP socket is missing"));
    }
    let mut next = |is_there: bool| {
        let socket = if is_there { sockets.next() } else { return Ok(None) };
        socket.map(Some).ok_or_else(|| anyhow!("a socket is missing"))
    };
    let tcp = next(greeting.has_tcp)?.map(TcpListener::from);
    let metrics = next(greeting.has_metrics)?.map(TcpListener::from);
    Ok(Predecessor {
        address: greeting.address,
        process_id: greeting.process_id,
        udp,
        tcp,
        metrics,
        link: Link { greeting, stream },
    })
}

/// Connection to a process that has greeted this one.
pub(super) struct Link {
    greeting: Greeting,
    stream: UnixStream,
}

impl Link {
    /// Takes over: the older process accepts no further clients, and can close its sockets for TCP and for metrics that
    /// are left in `unused`. Returns the succession for a server on its UDP sockets, and the process, which keeps its
    /// connections.
    ///
    /// # Errors
    /// The process does not confirm. It then goes on as before.
    pub(super) fn take(self, unused: [Option<TcpListener>; 2]) -> anyhow::Result<(Succession, Older)> {
        let Self { greeting, stream } = self;
        // Dropped here: the older process can close what this one does not use.
        let [takes_tcp, takes_metrics] = unused.map(|socket| socket.is_none());
        let take = Take {
            tcp: greeting.has_tcp && takes_tcp,
            metrics: greeting.has_metrics && takes_metrics,
        };
        take.send(&stream)?;
        let mut answer = String::new();
        (&stream).take(TAKEN.len() as u64).read_to_string(&mut answer)?;
        if answer != TAKEN {
            return Err(anyhow!("it ended meanwhile"));
        }
        let (older, datagrams) = mpsc::channel(WAITING_DATAGRAMS);
        let mut succession = Succession::default();
        succession.process = greeting.process.wrapping_add(1);
        succession.older = Some(older);
        Ok((succession, Older::start(stream, datagrams)?))
    }
}

/// Returns an error unless the process at the other end of `stream` belongs to the same user.
fn check_user(stream: &UnixStream) -> io::Result<()> {
    let other = rustix::net::sockopt::socket_peercred(stream)?.uid;
    let own = rustix::process::getuid();
    if other == own {
        return Ok(());
    }
    let (other, own) = (other.as_raw(), own.as_raw());
    let reason =
        format!("it is of the user {other}, and this process of the user {own}; expected the same user");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// An older process, which keeps its connections.
#[derive(Debug)]
pub(super) struct Older {
    ended: watch::Receiver<bool>,
    /// Triggers the message that this process serves.
    serving: threads::Sender<()>,
}

impl Older {
    /// Forwards `datagrams` to the process, until it ends.
    fn start(stream: UnixStream, mut datagrams: mpsc::Receiver<Datagram>) -> io::Result<Self> {
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
        let reading = stream.try_clone()?;
        let writer = Arc::new(Mutex::new(BufWriter::new(stream)));
        let shared = Arc::clone(&writer);
        let thread = std::thread::Builder::new().name("handover-send".to_owned());
        thread.spawn(move || {
            while let Some(datagram) = datagrams.blocking_recv() {
                let mut writer = shared.lock();
                let writer = &mut *writer;
                let mut written = wire::write(writer, &datagram);
                while let (Ok(()), Ok(more)) = (&written, datagrams.try_recv()) {
                    written = wire::write(writer, &more);
                }
                if written.and_then(|()| writer.flush()).is_err() {
                    // The process has ended. Its connections are lost, and this one's endpoint resets them.
                    return;
                }
            }
        })?;
        let (ending, ended) = watch::channel(false);
        let (serving, served) = threads::channel();
        let thread = std::thread::Builder::new().name("handover-end".to_owned());
        thread.spawn(move || {
            if served.recv().is_ok() {
                let mut writer = writer.lock();
                // An error means that the process has ended, which the read below shows.
                let _ = wire::write_serving(&mut *writer).and_then(|()| writer.flush());
            }
            // It sends nothing more, so this returns once it has ended.
            let _ = (&reading).read(&mut [0]);
            tracing::info!("the process that served before has ended");
            ending.send_replace(true);
        })?;
        Ok(Self { ended, serving })
    }

    /// Tells the process that this one serves, so that it may end.
    fn serving(&self) {
        // An error means that the thread is gone, with the process.
        let _ = self.serving.send(());
    }

    /// Waits until the process has ended.
    pub(super) async fn ended(&mut self) {
        // An error means that the thread is gone, with the process.
        let _ = self.ended.wait_for(|&ended| ended).await;
    }
}

/// Position of this process between an older and a newer one.
#[derive(Debug)]
pub(super) struct Handover {
    older: Option<Older>,
    offer: Option<Offer>,
}

impl Handover {
    /// The position after `older`, before any newer process exists.
    pub(super) fn new(older: Option<Older>) -> Self {
        Self { older, offer: None }
    }

    /// Offers the sockets `offered` to processes that look in `directory`. A process that takes over accepts
    /// connections over TCP in place of `accepting`.
    pub(super) fn offer(&mut self, directory: &Path, offered: Offered, accepting: Accepting) {
        match Offer::start(directory, offered, accepting) {
            Ok(offer) => self.offer = Some(offer),
            Err(error) => tracing::warn!(
                directory = %directory.display(),
                %error,
                "no other process can take over the port: a restart will interrupt sessions"
            ),
        }
    }

    /// Closes this object's second descriptor of the TCP socket.
    pub(super) fn close_tcp(&self) {
        if let Some(offer) = &self.offer {
            offer.withdraw_tcp();
        }
    }

    /// Tells the older process, if there is one, that this one serves new clients.
    pub(super) fn serving(&mut self) {
        if let Some(older) = &self.older {
            older.serving();
        }
    }

    /// Waits until a newer process has taken over and this one's last connection has ended. Until the older process has
    /// ended as well, its datagrams pass through this one. If the newer process ends first, this one accepts
    /// connections over TCP again.
    pub(super) async fn over(&mut self, server: &VideoServer, accepting: &Accepting) {
        let Self { older, offer } = self;
        let Some(offer) = offer else {
            return std::future::pending().await;
        };
        loop {
            match offer.stage() {
                Stage::Offered => offer.changed().await,
                Stage::TakenBack => {
                    offer.resume(accepting).await;
                    offer.changed().await;
                }
                Stage::Taken => {
                    // A newer process may have taken over again before this one resumed.
                    accepting.stop();
                    let idle = async {
                        server.transport().idle().await;
                        accepting.idle().await;
                        if let Some(older) = older.as_mut() {
                            older.ended().await;
                        }
                    };
                    tokio::select! {
                        biased;
                        () = offer.changed() => {}
                        () = idle => return,
                    }
                }
            }
        }
    }
}
