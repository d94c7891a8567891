//! The relay's thread: it reads datagrams, offers them to the links and sends them when they are due.

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::report::Lateness;
use super::socket;
use super::{RelayConfig, RelayDirection, RelayError, RelayReport, RelaySnapshot};
use crate::{Link, LinkSeries, Packet, Path, Time, Verdict};

/// Larger than any UDP payload, so nothing is ever truncated.
const LARGEST_DATAGRAM: usize = 1 << 16;
/// Maximum number of datagrams read from one socket before due datagrams are sent.
const READS_AT_A_TIME: usize = 128;
/// Interval of wake-ups while there is traffic, so that a stall of the machine is detected even if no departure was due
/// during it.
const HEARTBEAT: Duration = Duration::from_millis(2);
/// Time after the last datagram until the relay counts as idle, and the wake-up interval while it is idle.
const REST: Duration = Duration::from_millis(100);
/// Silence after which a client may be replaced by another.
const SILENT: Duration = Duration::from_secs(60);

/// Maximum number of bytes inside the relay (queued or in transit). Beyond it, datagrams are dropped and the run is
/// invalid. A path with an unlimited rate and a long delay can hold many.
const MEMORY: u64 = 64 << 20;
/// Memory of a pending datagram in addition to its bytes.
const BOOKKEEPING: u64 = 96;

/// Direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Forward,
    Backward,
}

/// A client of one of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClientKey {
    /// Index of the listener where it arrived.
    listener: usize,
    address: SocketAddr,
}

/// A datagram inside the relay. The first two fields determine the order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PendingDatagram {
    at: Time,
    /// Unique in a run.
    order: u64,
    way: Direction,
    client: ClientKey,
    data: Vec<u8>,
}

/// Bytes that a pending datagram counts against the relay's memory limit.
fn cost(data: &[u8]) -> u64 {
    data.len() as u64 + BOOKKEEPING
}

#[derive(Debug)]
struct DirectionState {
    link: Link,
    counts: RelayDirection,
}

impl DirectionState {
    fn new(link: Link) -> Self {
        Self {
            link,
            counts: RelayDirection::default(),
        }
    }

    fn totals(&self) -> RelayDirection {
        RelayDirection {
            link: self.link.stats(),
            ..self.counts
        }
    }
}

/// Socket for the clients of one server.
#[derive(Debug)]
pub(super) struct ServerListener {
    socket: UdpSocket,
    pub(super) address: SocketAddr,
    server: SocketAddr,
}

impl ServerListener {
    pub(super) fn open(listen: SocketAddr, server: SocketAddr) -> io::Result<Self> {
        let socket = socket::bind(listen)?;
        Ok(Self {
            address: socket.local_addr()?,
            socket,
            server,
        })
    }
}

/// State of one client.
#[derive(Debug)]
struct RelayClient {
    upstream: UdpSocket,
    last_seen: Time,
}

#[derive(Debug)]
pub(super) struct Worker {
    started: Instant,
    max_clients: usize,

    listeners: Vec<ServerListener>,
    clients: BTreeMap<ClientKey, RelayClient>,
    stopped: UnixStream,

    forward: DirectionState,
    backward: DirectionState,
    inside: BinaryHeap<Reverse<PendingDatagram>>,
    inside_cost: u64,
    order: u64,

    lateness: Lateness,
    turned_away: u64,
    server_unreachable: u64,
    /// Drops on sockets that are already closed.
    kernel_drops: Option<u64>,
    last_traffic: Time,
    snapshot: Arc<Mutex<RelaySnapshot>>,
}

impl Worker {
    /// Creates the worker, and the stream that stops it when it is closed.
    pub(super) fn new(
        config: &RelayConfig,
        listeners: Vec<ServerListener>,
        path: Path,
    ) -> io::Result<(Self, UnixStream)> {
        let (stop, stopped) = UnixStream::pair()?;
        let worker = Self {
            started: Instant::now(),
            max_clients: config.max_clients,
            listeners,
            clients: BTreeMap::new(),
            stopped,
            lateness: Lateness::new(Lateness::limit_of(&config.path)),
            forward: DirectionState::new(path.forward),
            backward: DirectionState::new(path.backward),
            inside: BinaryHeap::new(),
            inside_cost: 0,
            order: 0,
            turned_away: 0,
            server_unreachable: 0,
            kernel_drops: Some(0),
            last_traffic: Time::ZERO,
            snapshot: Arc::default(),
        };
        Ok((worker, stop))
    }

    /// State of the relay, updated at every wake-up.
    pub(super) fn snapshot(&self) -> Arc<Mutex<RelaySnapshot>> {
        Arc::clone(&self.snapshot)
    }

    fn now(&self) -> Time {
        Time::from(self.started.elapsed())
    }

    pub(super) fn run(mut self) -> Result<RelayReport, RelayError> {
        ask_for_fine_timers();
        let mut buffer = vec![0; LARGEST_DATAGRAM];
        loop {
            let Some(ready) = self.wait().map_err(RelayError::Wait)? else {
                return Ok(self.report());
            };
            for source in ready {
                self.release();
                self.read(source, &mut buffer);
            }
            self.release();
            let totals = self.totals();
            *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = totals;
        }
    }

    /// Sleeps until a socket is ready, a datagram is due or the next heartbeat. Returns the sources that became
    /// readable, or `None` when the relay stops.
    fn wait(&mut self) -> io::Result<Option<Vec<Source>>> {
        let before = self.now();
        let busy = !self.inside.is_empty() || before.since(self.last_traffic) < REST;
        let beat = before + if busy { HEARTBEAT } else { REST };
        let due = self.inside.peek().map_or(beat, |Reverse(next)| next.at.min(beat));
        let timeout = Timespec::try_from(due.since(before)).map_err(io::Error::other)?;
        let listeners = self.listeners.iter().enumerate();
        let listeners = listeners.map(|(number, listener)| (Source::Clients(number), &listener.socket));
        let upstreams = self.clients.iter();
        let upstreams = upstreams.map(|(client, state)| (Source::Server(*client), &state.upstream));
        let sources: Vec<_> = listeners.chain(upstreams).collect();
        let mut fds = vec![PollFd::new(&self.stopped, PollFlags::IN)];
        fds.extend(
            sources
                .iter()
                .map(|(_, socket)| PollFd::new(*socket, PollFlags::IN)),
        );
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let stopped = fds.first().is_some_and(happened);
        let readable = sources
            .iter()
            .zip(fds.iter().skip(1))
            .filter(|(_, fd)| happened(fd));
        let readable = readable.map(|((source, _), _)| *source).collect();
        if busy {
            self.lateness.woke(self.now().since(due.max(before)));
        }
        Ok((!stopped).then_some(readable))
    }

    fn read(&mut self, source: Source, buffer: &mut [u8]) {
        for _ in 0..READS_AT_A_TIME {
            let socket = match source {
                Source::Clients(listener) => self.listeners.get(listener).map(|listener| &listener.socket),
                Source::Server(client) => self.clients.get(&client).map(|client| &client.upstream),
            };
            let Some(socket) = socket else { return };
            let (length, address) = match socket.recv_from(buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Reading clears the error from the socket; then reading continues.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.server_unreachable += 1;
                    continue;
                }
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        tracing::debug!("reading from {source:?}: {error}");
                    }
                    return;
                }
            };
            let data = buffer.get(..length).unwrap_or_default();
            match source {
                Source::Server(client) => self.take(Direction::Forward, client, data),
                Source::Clients(listener) => {
                    let client = ClientKey { listener, address };
                    if self.admit(client) {
                        self.take(Direction::Backward, client, data);
                    } else {
                        self.turned_away += 1;
                    }
                }
            }
        }
    }

    /// Returns true if `client` may use the relay; adds it if there is room.
    fn admit(&mut self, client: ClientKey) -> bool {
        let now = self.now();
        if let Some(known) = self.clients.get_mut(&client) {
            known.last_seen = now;
            return true;
        }
        if self.clients.len() >= self.max_clients && !self.evict(now) {
            return false;
        }
        let Some(server) = self
            .listeners
            .get(client.listener)
            .map(|listener| listener.server)
        else {
            return false;
        };
        match socket::connect(server) {
            Ok(upstream) => {
                let state = RelayClient {
                    upstream,
                    last_seen: now,
                };
                self.clients.insert(client, state);
                true
            }
            Err(error) => {
                tracing::warn!(
                    "cannot open a socket towards {server} for client {}: {error}",
                    client.address
                );
                false
            }
        }
    }

    /// Removes the client that was silent for the longest time, if that is at least [`SILENT`].
    fn evict(&mut self, now: Time) -> bool {
        let oldest = self.clients.iter().min_by_key(|(_, client)| client.last_seen);
        let Some(address) = oldest
            .filter(|(_, client)| now.since(client.last_seen) >= SILENT)
            .map(|(address, _)| *address)
        else {
            return false;
        };
        if let Some(client) = self.clients.remove(&address) {
            self.count_kernel_drops(&client.upstream);
        }
        true
    }

    fn take(&mut self, way: Direction, client: ClientKey, data: &[u8]) {
        let now = self.now();
        self.last_traffic = now;
        let full = self.inside_cost + cost(data) > MEMORY;
        let direction = self.direction(way);
        if full {
            direction.counts.overflowed += 1;
            return;
        }
        let verdict = direction.link.offer(now, Packet::new(data.len()));
        let Verdict::Deliver {
            at, damage, copy_at, ..
        } = verdict
        else {
            return;
        };
        for at in [Some(at), copy_at].into_iter().flatten() {
            let mut datagram = data.to_vec();
            if let Some(damage) = damage {
                damage.apply(&mut datagram);
            }
            let waiting = PendingDatagram {
                at,
                order: self.order,
                way,
                client,
                data: datagram,
            };
            self.direction(way).counts.inside += 1;
            self.order += 1;
            self.inside_cost += cost(&waiting.data);
            self.inside.push(Reverse(waiting));
        }
    }

    fn direction(&mut self, way: Direction) -> &mut DirectionState {
        match way {
            Direction::Forward => &mut self.forward,
            Direction::Backward => &mut self.backward,
        }
    }

    /// Sends everything that is due.
    fn release(&mut self) {
        while let Some(Reverse(next)) = self.inside.peek()
            && next.at <= self.now()
        {
            let Some(Reverse(waiting)) = self.inside.pop() else {
                return;
            };
            self.inside_cost -= cost(&waiting.data);
            let sent = self.send(&waiting);
            let late = self.now().since(waiting.at);
            let counts = &mut self.direction(waiting.way).counts;
            counts.inside -= 1;
            if sent {
                counts.forwarded += 1;
                self.lateness.datagram(late);
            } else {
                counts.failed += 1;
            }
        }
    }

    fn send(&mut self, waiting: &PendingDatagram) -> bool {
        // A refusal reported here may belong to an earlier datagram; then this one has not been sent yet.
        for _ in 0..2 {
            let result = match (waiting.way, self.clients.get(&waiting.client)) {
                (_, None) => return false,
                (Direction::Forward, _) => match self.listeners.get(waiting.client.listener) {
                    Some(listener) => listener.socket.send_to(&waiting.data, waiting.client.address),
                    None => return false,
                },
                (Direction::Backward, Some(client)) => client.upstream.send(&waiting.data),
            };
            match result {
                Ok(_) => return true,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.server_unreachable += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::debug!("sending for client {}: {error}", waiting.client.address);
                    return false;
                }
            }
        }
        false
    }

    fn totals(&mut self) -> RelaySnapshot {
        let now = self.now();
        self.forward.link.settle(now);
        self.backward.link.settle(now);
        RelaySnapshot {
            elapsed: now.elapsed(),
            forward: self.forward.totals(),
            backward: self.backward.totals(),
            lateness: self.lateness,
            clients: self.clients.len(),
            turned_away: self.turned_away,
            server_unreachable: self.server_unreachable,
        }
    }

    fn count_kernel_drops(&mut self, socket: &UdpSocket) {
        self.kernel_drops = self
            .kernel_drops
            .zip(socket::kernel_drops(socket))
            .map(|(sum, more)| sum + more);
    }

    fn report(mut self) -> RelayReport {
        let totals = self.totals();
        let sockets = self
            .clients
            .values()
            .map(|client| &client.upstream)
            .chain(self.listeners.iter().map(|listener| &listener.socket));
        let open = sockets.map(socket::kernel_drops).sum::<Option<u64>>();
        let series = self.forward.link.series().cloned();
        RelayReport {
            totals,
            forward_series: series.unwrap_or_else(|| LinkSeries::new(REST, 2)),
            kernel_drops: self.kernel_drops.zip(open).map(|(closed, open)| closed + open),
        }
    }
}

/// Sender of datagrams that a socket receives.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The clients of the listener with this index.
    Clients(usize),
    /// The server of this client.
    Server(ClientKey),
}

/// Requests exact timers: by default, a thread's timers may fire 50 µs late to save power.
fn ask_for_fine_timers() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1)) {
        tracing::debug!("cannot set the timer slack: {error}");
    }
}
