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
//! over](Link::take), the older one stops reading its sockets and confirms. Datagrams follow, together with a message
//! that the newer one now serves clients; only then may the older one end. If the newer process ends at any point, or
//! sends nothing for [`FROZEN`], the older one reads its sockets again and can be taken over again. A process that was
//! frozen learns that it has lost the port when it resumes, and ends, because two processes must not read the sockets.

mod offer;
mod sockets;
mod wire;

use std::io::{self, Read as _};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use playrate_transport::{Datagram, Succession};
use quinn::{Runtime as _, TokioRuntime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use video_server::serve::VideoServer;

pub(super) use offer::Offer;
use offer::Stage;
pub(super) use sockets::{Offered, Predecessor};
use wire::{Greeting, Message, Take};

use super::tcp::{TcpService, TcpServices};
use super::{Failure, logging};

/// Name of the Unix socket in the directory of `--state`.
const SOCKET: &str = "handover";
/// Maximum time that the other process may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Interval of the newer process's messages that show that it runs.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// The newer process counts as frozen after this time without a message.
const FROZEN: Duration = Duration::from_secs(5);
/// The older process sends this byte when it takes the port back from a frozen one.
const LOST: &[u8] = b"!";
/// The older process sends this line to confirm that the newer one owns the port.
const TAKEN: &str = "taken\n";
/// Collected datagrams are written once they have this many bytes.
const BATCH: usize = 64 << 10;
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
            "its key is not that of the file endpoint-key, or its QUIC-LB configuration differs: one was replaced \
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
    let tcp = [next(greeting.has_tcp)?, next(greeting.has_metrics)?];
    Ok(Predecessor {
        address: greeting.address,
        process_id: greeting.process_id,
        udp,
        tcp: tcp.map(|socket| socket.map(TcpListener::from)),
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
    pub(super) fn take(self, unused: TcpServices<TcpListener>) -> anyhow::Result<(Succession, Older)> {
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
    let reason = format!("it belongs to user {other} and this process to user {own}; expected the same user");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// An older process, which keeps its connections.
pub(super) struct Older {
    /// Triggers the message that this process serves. Closed once the older process has ended.
    serving: mpsc::Sender<()>,
}

impl Older {
    /// Forwards `datagrams` to the process, until it ends.
    fn start(stream: UnixStream, datagrams: mpsc::Receiver<Datagram>) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (mut reader, writer) = tokio::net::UnixStream::from_std(stream)?.into_split();
        let (serving, served) = mpsc::channel(1);
        let forwarding = forward(writer, datagrams, served);
        TokioRuntime.spawn(Box::pin(async move {
            let mut lost = [0];
            tokio::select! {
                biased;
                // It sends nothing unless this process was frozen, so this returns once it has ended.
                read = reader.read(&mut lost) => end_if_lost(&read),
                // Its connections are lost, and this process's endpoint resets them.
                _ = forwarding => end_if_lost(&reader.read(&mut lost).await),
            }
            tracing::info!("the process that served before has ended");
        }));
        Ok(Self { serving })
    }

    /// Tells the process that this one serves, so that it may end.
    pub(super) fn serving(&self) {
        // An error means that the process has ended.
        let _ = self.serving.try_send(());
    }

    /// Waits until the process has ended.
    async fn ended(&self) {
        self.serving.closed().await;
    }
}

/// Ends this process if the older one has sent [`LOST`].
#[expect(
    clippy::exit,
    reason = "this process reads the older one's sockets until it has ended, whatever its other tasks do"
)]
fn end_if_lost(read: &io::Result<usize>) {
    if let Ok(1..) = read {
        tracing::error!(
            "the older process has taken the port back, because this one did not respond for {FROZEN:?}"
        );
        logging::finish("");
        std::process::exit(1);
    }
}

/// Writes `datagrams`, a [`HEARTBEAT`], and once it has been `served`, the message that says so.
async fn forward(
    mut writer: OwnedWriteHalf,
    mut datagrams: mpsc::Receiver<Datagram>,
    mut served: mpsc::Receiver<()>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "other processes have no virtual time, and a sleep would begin anew with each datagram"
    )]
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    loop {
        tokio::select! {
            biased;
            Some(()) = served.recv() => wire::write(&mut bytes, &Message::Serving)?,
            _ = heartbeat.tick() => wire::write(&mut bytes, &Message::Alive)?,
            Some(datagram) = datagrams.recv() => wire::write(&mut bytes, &Message::Datagram(datagram))?,
        }
        while bytes.len() < BATCH
            && let Ok(more) = datagrams.try_recv()
        {
            wire::write(&mut bytes, &Message::Datagram(more))?;
        }
        writer.write_all(&bytes).await?;
        bytes.clear();
    }
}

/// Offers the sockets `offered` to processes that look in `directory`. A process that takes over accepts connections
/// over TCP in place of `services`. Logs the reason if that is impossible.
pub(super) fn offer(
    directory: &Path,
    offered: Offered,
    services: TcpServices<Arc<TcpService>>,
) -> Option<Offer> {
    let failed = |error: &io::Error| {
        tracing::warn!(
            directory = %directory.display(),
            %error,
            "no other process can take over the port: a restart will interrupt sessions"
        );
    };
    Offer::start(directory, offered, services)
        .inspect_err(failed)
        .ok()
}

/// Waits until a newer process has taken over and this one's last connection has ended. Until the older process has
/// ended as well, its datagrams pass through this one. If the newer process ends first, this one accepts
/// connections over TCP again.
pub(super) async fn over(offer: Option<&Offer>, older: Option<&Older>, server: &VideoServer) {
    let Some(offer) = offer else {
        return std::future::pending().await;
    };
    let mut stage = offer.stage();
    loop {
        let present = *stage.borrow_and_update();
        if present == Stage::TakenBack {
            offer.resume().await;
        }
        let idle = async {
            if present != Stage::Taken {
                std::future::pending::<()>().await;
            }
            // A newer process may have taken over again before this one resumed.
            offer.stop();
            server.transport().idle().await;
            for service in offer.services() {
                service.idle().await;
            }
            if let Some(older) = older {
                older.ended().await;
            }
        };
        tokio::select! {
            biased;
            // This cannot fail: the offer holds the sender.
            _ = stage.changed() => {}
            () = idle => return,
        }
    }
}
