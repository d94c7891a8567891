//! Hosts, routes, links and the packets between them.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::Waker;

use serde::Serialize;
use slab::Slab;

use super::events::{Event, EventQueue};
use super::host::HostConfig;
use crate::{Link, Packet, Time, Verdict};

/// Bytes that a host's socket buffers before it drops; the relay and the server request the same from the kernel.
const SOCKET_BUFFER: usize = 4 << 20;
/// Emptied buffers kept for reuse.
const SPARE_BUFFERS: usize = 4_096;
/// The first port for sockets that request none (RFC 6335 §6).
const FIRST_EPHEMERAL_PORT: u16 = 49_152;

/// Codepoint of a packet that has experienced congestion (RFC 3168 §5).
const CONGESTION_EXPERIENCED: u8 = 0b11;

/// Datagrams that a socket sends together, independent of a QUIC stack.
pub(super) struct Outgoing<'a> {
    pub(super) to: SocketAddr,
    /// Local address to send from; `None` selects that of the socket.
    pub(super) from: Option<IpAddr>,
    /// Bits of the ECN codepoint.
    pub(super) ecn: u8,
    pub(super) contents: &'a [u8],
    /// Size of each datagram but the last; `None` if there is only one.
    pub(super) segment_size: Option<usize>,
}

/// The links of a packet in order, and the delays between its hosts and them.
#[derive(Debug)]
struct Route {
    links: Vec<usize>,
    first_wait: Duration,
    last_wait: Duration,
}

#[derive(Debug)]
pub(super) struct InFlight {
    data: Vec<u8>,
    from: SocketAddr,
    to: SocketAddr,
    ecn: u8,
    route: Arc<Route>,
    /// Number of the next link on its route; `None` for the socket of its receiver.
    next: Option<usize>,
}

/// A datagram that has arrived.
#[derive(Debug)]
pub(super) struct Datagram {
    pub(super) data: Vec<u8>,
    pub(super) from: SocketAddr,
    /// Local address to which it was sent; `None` is the socket's own.
    pub(super) to: Option<IpAddr>,
    pub(super) ecn: u8,
}

#[derive(Debug)]
pub(super) struct SocketState {
    /// Address of the socket as others see it.
    pub(super) address: SocketAddr,
    /// Host to which it belongs.
    host: IpAddr,
    pub(super) received: VecDeque<Datagram>,
    pub(super) waker: Option<Waker>,
    /// Datagrams that have arrived, held back by the host until its next interrupt.
    held: Vec<Datagram>,
    /// Time for which its host holds datagrams back.
    interrupt_interval: Duration,
    /// The last route used; most sockets communicate with one host.
    last_route: Option<((IpAddr, IpAddr), Arc<Route>)>,
    buffered: usize,
    open: bool,
    /// True after its host has crashed: it neither sends nor receives until it is closed.
    is_dead: bool,
}

#[derive(Debug)]
pub(super) struct HostState {
    config: HostConfig,
    next_port: u16,
}

/// Counters of datagrams outside the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NetworkStats {
    /// Datagrams delivered to sockets.
    pub delivered: u64,
    /// Sent to a host without a route.
    pub unroutable: u64,
    /// Arrived at a port without a socket.
    pub unclaimed: u64,
    /// Arrived at a socket whose buffer was full.
    pub overflowed: u64,
}

/// All state of a simulation except its tasks.
#[derive(Debug, Default)]
pub(super) struct Network {
    pub(super) now: Time,
    pub(super) events: EventQueue,
    pub(super) links: Vec<Link>,
    pub(super) sockets: Vec<SocketState>,
    pub(super) stats: NetworkStats,
    pub(super) hosts: BTreeMap<IpAddr, HostState>,
    /// Additional addresses of hosts, and the first address of each.
    aliases: BTreeMap<IpAddr, IpAddr>,
    routes: BTreeMap<(IpAddr, IpAddr), Arc<Route>>,
    bound: BTreeMap<SocketAddr, u32>,
    /// Sockets of the last lookups.
    recent: [u32; 2],
    packets: Slab<InFlight>,
    spare: Vec<Vec<u8>>,
    digest: u64,
}

impl Network {
    /// Adds a host; returns its address.
    pub(super) fn add_host(&mut self, config: HostConfig) -> IpAddr {
        let [.., top, middle, low] = (self.hosts.len() + 1).to_be_bytes();
        let ip = Ipv4Addr::new(10, top, middle, low).into();
        let host = HostState {
            config,
            next_port: FIRST_EPHEMERAL_PORT,
        };
        self.hosts.insert(ip, host);
        ip
    }

    /// Adds another address to a host; returns it.
    pub(super) fn add_address(&mut self, host: IpAddr) -> IpAddr {
        let config = self.hosts.get(&host).map(|host| host.config);
        let alias = self.add_host(config.unwrap_or_default());
        self.aliases.insert(alias, host);
        alias
    }

    /// Routes packets from one host to another through these links.
    pub(super) fn add_route(&mut self, from: IpAddr, to: IpAddr, links: &[usize]) {
        let access = |ip| {
            self.hosts
                .get(&ip)
                .map_or(Duration::ZERO, |host| host.config.access_delay)
        };
        let route = Route {
            links: links.to_vec(),
            first_wait: access(from),
            last_wait: access(to),
        };
        self.routes.insert((from, to), Arc::new(route));
        for socket in &mut self.sockets {
            socket.last_route = None;
        }
    }

    /// Binds a socket to this port of this host; 0 selects a free one. Returns its number and address; `None` if the
    /// host is unknown or the port is taken.
    pub(super) fn bind(&mut self, ip: IpAddr, port: u16) -> Option<(u32, SocketAddr)> {
        let address = self.free_address(ip, port)?;
        let host = self.hosts.get(&ip)?;
        let socket = SocketState {
            address,
            host: self.aliases.get(&ip).copied().unwrap_or(ip),
            received: VecDeque::new(),
            waker: None,
            held: Vec::new(),
            interrupt_interval: host.config.interrupt_interval,
            last_route: None,
            buffered: 0,
            open: true,
            is_dead: false,
        };
        let free = self
            .sockets
            .iter()
            .position(|socket| !socket.open && socket.held.is_empty());
        let index = free.unwrap_or(self.sockets.len());
        if let Some(place) = self.sockets.get_mut(index) {
            *place = socket;
        } else {
            self.sockets.push(socket);
        }
        let index = u32::try_from(index).ok()?;
        self.bound.insert(address, index);
        Some((index, address))
    }

    /// The address of this port of this host; 0 selects a free one. `None` if the host is unknown or the port is taken.
    fn free_address(&mut self, ip: IpAddr, port: u16) -> Option<SocketAddr> {
        let host = self.hosts.get_mut(&ip)?;
        let mut address = SocketAddr::new(ip, port);
        if port == 0 {
            for _ in FIRST_EPHEMERAL_PORT..=u16::MAX {
                address.set_port(host.next_port);
                host.next_port = host.next_port.checked_add(1).unwrap_or(FIRST_EPHEMERAL_PORT);
                if !self.bound.contains_key(&address) {
                    break;
                }
            }
        }
        (!self.bound.contains_key(&address)).then_some(address)
    }

    pub(super) fn close(&mut self, socket: u32) -> Option<Waker> {
        let closed = self.sockets.get_mut(socket as usize)?;
        closed.open = false;
        closed.received.clear();
        if self.bound.get(&closed.address) == Some(&socket) {
            self.bound.remove(&closed.address);
        }
        closed.waker.take()
    }

    /// Gives a socket another address: a free port of `ip`. Datagrams to its previous address are unclaimed from now
    /// on. `None` if the host is unknown or has no free port.
    pub(super) fn rebind(&mut self, socket: u32, ip: IpAddr) -> Option<SocketAddr> {
        let address = self.free_address(ip, 0)?;
        let state = self.sockets.get_mut(socket as usize)?;
        // Another socket may already have the address of a closed one.
        if !state.open || state.is_dead {
            return Some(state.address);
        }
        self.bound.remove(&state.address);
        state.address = address;
        state.last_route = None;
        self.bound.insert(address, socket);
        Some(address)
    }

    /// Disconnects all sockets of a host at once; their ports are free again.
    pub(super) fn disconnect(&mut self, ip: IpAddr) {
        for socket in &mut self.sockets {
            if socket.host == ip && socket.open && !socket.is_dead {
                socket.is_dead = true;
                socket.received.clear();
                socket.buffered = 0;
                self.bound.remove(&socket.address);
            }
        }
    }

    pub(super) fn spare_buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    pub(super) fn give_back(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Sends the datagrams of `transmit` from this socket.
    pub(super) fn send(&mut self, socket: u32, outgoing: &Outgoing<'_>) {
        let size = outgoing.segment_size.unwrap_or(outgoing.contents.len()).max(1);
        for segment in outgoing.contents.chunks(size) {
            self.send_datagram(socket, outgoing, segment);
        }
    }

    fn send_datagram(&mut self, socket: u32, outgoing: &Outgoing<'_>, data: &[u8]) {
        let Some(sender) = self.sockets.get_mut(socket as usize).filter(|it| !it.is_dead) else {
            return;
        };
        let (mut from, to, ecn) = (sender.address, outgoing.to, outgoing.ecn);
        if let Some(ip) = outgoing.from
            && self.aliases.get(&ip) == Some(&sender.host)
        {
            from.set_ip(ip);
        }
        let ends = (from.ip(), to.ip());
        let route = match &sender.last_route {
            Some((known, route)) if *known == ends => Arc::clone(route),
            _ => {
                let Some(route) = self.routes.get(&ends) else {
                    self.stats.unroutable += 1;
                    tracing::debug!("no route from {} to {}", from.ip(), to.ip());
                    return;
                };
                sender.last_route = Some((ends, Arc::clone(route)));
                Arc::clone(route)
            }
        };
        let mut copy = self.spare_buffer();
        copy.extend_from_slice(data);
        let wait = route.first_wait;
        let packet = InFlight {
            data: copy,
            from,
            to,
            ecn,
            route,
            next: Some(0),
        };
        if wait.is_zero() {
            self.forward(packet, 0);
        } else {
            self.schedule(None, self.now + wait, packet);
        }
    }

    /// Offers a packet to the link with this number on its route, or passes it to its host if there is none.
    fn forward(&mut self, mut packet: InFlight, number: usize) {
        let route = &packet.route;
        let (mut at, mut copy_at) = (self.now, None);
        let index = route.links.get(number).copied();
        if let Some(link) = index.and_then(|link| self.links.get_mut(link)) {
            let offered = Packet::new(packet.data.len()).markable(packet.ecn != 0);
            let verdict = link.offer(at, offered);
            let Verdict::Deliver {
                at: arrival,
                marked,
                damage,
                copy_at: copy_arrival,
            } = verdict
            else {
                self.give_back(packet.data);
                return;
            };
            if marked {
                packet.ecn = CONGESTION_EXPERIENCED;
            }
            if let Some(damage) = damage {
                damage.apply(&mut packet.data);
            }
            (at, copy_at) = (arrival, copy_arrival);
        }
        let wait = if number + 1 < route.links.len() {
            packet.next = Some(number + 1);
            Duration::ZERO
        } else {
            packet.next = None;
            route.last_wait
        };
        if let Some(copy_at) = copy_at {
            let mut data = self.spare_buffer();
            data.extend_from_slice(&packet.data);
            let copy = InFlight {
                data,
                route: Arc::clone(&packet.route),
                ..packet
            };
            self.schedule(index, copy_at + wait, copy);
        }
        self.schedule(index, at + wait, packet);
    }

    /// Schedules a packet from the link with this index, or from none.
    fn schedule(&mut self, link: Option<usize>, at: Time, packet: InFlight) {
        let slot = u32::try_from(self.packets.insert(packet)).unwrap_or(u32::MAX);
        match link {
            Some(link) => self.events.push_in_lane(link, at, Event::Packet { slot }),
            None => self.events.push(at, Event::Packet { slot }),
        }
    }

    /// Processes the next event; returns the task that it wakes.
    pub(super) fn process(&mut self, at: Time, event: Event) -> Option<Waker> {
        self.now = at;
        match event {
            Event::Timer { slot, entry } => self.events.timer_due(slot, entry, at),
            Event::Interrupt { socket } => self.interrupt(socket),
            Event::Packet { slot } => {
                let packet = self.packets.try_remove(slot as usize)?;
                match packet.next {
                    None => self.arrive(packet),
                    Some(number) => {
                        self.forward(packet, number);
                        None
                    }
                }
            }
        }
    }

    /// The socket bound to `address`. Most packets are for one of two.
    fn socket_at(&mut self, address: SocketAddr) -> Option<u32> {
        let is_there = |index: &u32| {
            let socket = self.sockets.get(*index as usize);
            socket.is_some_and(|socket| socket.address == address && socket.open && !socket.is_dead)
        };
        let found = self.recent.iter().copied().find(is_there);
        found.or_else(|| {
            let index = self.bound.get(&address).copied()?;
            self.recent = [index, self.recent[0]];
            Some(index)
        })
    }

    fn arrive(&mut self, packet: InFlight) -> Option<Waker> {
        for word in [
            self.now.as_nanos(),
            packet.data.len() as u64,
            u64::from(packet.to.port()),
        ] {
            self.digest = crate::link::mix(self.digest, word);
        }
        let (mut to, mut alias) = (packet.to, None);
        if let Some(host) = self.aliases.get(&to.ip()).copied()
            && !self.bound.contains_key(&to)
        {
            alias = Some(to.ip());
            to.set_ip(host);
        }
        let socket = self.socket_at(to);
        let Some((index, socket)) =
            socket.and_then(|index| Some((index, self.sockets.get_mut(index as usize)?)))
        else {
            self.stats.unclaimed += 1;
            self.give_back(packet.data);
            return None;
        };
        if socket.buffered + packet.data.len() > SOCKET_BUFFER {
            self.stats.overflowed += 1;
            self.give_back(packet.data);
            return None;
        }
        self.stats.delivered += 1;
        socket.buffered += packet.data.len();
        let datagram = Datagram {
            data: packet.data,
            from: packet.from,
            to: alias,
            ecn: packet.ecn,
        };
        let hold = socket.interrupt_interval;
        if hold.is_zero() {
            socket.received.push_back(datagram);
            return socket.waker.take();
        }
        if socket.held.is_empty() {
            self.events
                .push(self.now + hold, Event::Interrupt { socket: index });
        }
        socket.held.push(datagram);
        None
    }

    fn interrupt(&mut self, socket: u32) -> Option<Waker> {
        let socket = self.sockets.get_mut(socket as usize)?;
        if !socket.open || socket.is_dead {
            socket.held.clear();
            return None;
        }
        socket.received.extend(socket.held.drain(..));
        socket.waker.take()
    }

    /// The oldest datagram of a socket.
    pub(super) fn receive(&mut self, socket: u32) -> Option<Datagram> {
        let socket = self.sockets.get_mut(socket as usize)?;
        let datagram = socket.received.pop_front()?;
        socket.buffered -= datagram.data.len();
        Some(datagram)
    }

    /// Contents of the packets in transit.
    #[cfg(test)]
    pub(super) fn contents(&self) -> impl Iterator<Item = &[u8]> {
        self.packets.iter().map(|(_, packet)| &*packet.data)
    }

    /// A hash of every packet's time, size and fate on every link and at every socket.
    pub(super) fn digest(&self) -> u64 {
        self.links.iter().fold(self.digest, |digest, link| {
            crate::link::mix(digest, link.digest())
        })
    }
}
