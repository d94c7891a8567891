//! A load balancer for UDP that understands QUIC-LB. It sends each packet to the server that the connection ID names.
//! If the ID names none, as in a client's first packet, it chooses a server itself.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use playrate_transport::QuicLbConfig;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// First bit of a packet with a long header, and type and version bits of a Retry (RFC 9000 §17.2.5).
const LONG_HEADER: u8 = 0x80;
const RETRY: u8 = 0xF0;

/// The balancer, which runs until it is dropped.
pub(crate) struct Balancer {
    pub(crate) address: SocketAddr,
    table: Arc<Mutex<Table>>,
    _tasks: JoinSet<()>,
}

struct Table {
    config: QuicLbConfig,
    /// Addresses of the present servers, by number.
    servers: BTreeMap<u64, SocketAddr>,
    /// Number of the server for packets without a number.
    fallback: u64,
    /// Servers that leave once they have sent a Retry, and their successors for packets.
    leaving: BTreeMap<SocketAddr, u64>,
    counts: Counts,
}

/// Numbers of packets and clients so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Packets by the number in their connection ID.
    pub(crate) named: BTreeMap<u64, usize>,
    /// Packets sent to a server of the balancer's choice.
    pub(crate) chosen: usize,
    /// Client addresses seen so far.
    pub(crate) clients: usize,
    pub(crate) retries: usize,
}

impl Table {
    /// Address of the server for a packet (§4.2 of the draft).
    fn route(&mut self, packet: &[u8]) -> Option<SocketAddr> {
        let is_long = packet.first()? & LONG_HEADER != 0;
        let id = if is_long {
            let length = usize::from(*packet.get(5)?);
            packet.get(6..6 + length)?
        } else {
            packet.get(1..)?
        };
        let number = self.config.server_id(id);
        let number = number.and_then(|number| u64::try_from(number).ok());
        if let Some((number, address)) = number.and_then(|number| Some((number, *self.servers.get(&number)?)))
        {
            *self.counts.named.entry(number).or_default() += 1;
            return Some(address);
        }
        if !is_long {
            return None;
        }
        self.counts.chosen += 1;
        self.servers.get(&self.fallback).copied()
    }

    fn answered(&mut self, server: SocketAddr, packet: &[u8]) {
        if packet.first().is_some_and(|first| first & RETRY == RETRY) {
            self.counts.retries += 1;
            if let Some(heir) = self.leaving.remove(&server) {
                self.servers.retain(|_, address| *address != server);
                self.fallback = heir;
            }
        }
    }
}

impl Balancer {
    /// Starts in front of `servers`; packets that name no server go to the first one.
    pub(crate) async fn start(config: QuicLbConfig, servers: &[(u64, SocketAddr)]) -> Self {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let address = socket.local_addr().unwrap();
        let table = Arc::new(Mutex::new(Table {
            config,
            servers: servers.iter().copied().collect(),
            fallback: servers[0].0,
            leaving: BTreeMap::new(),
            counts: Counts::default(),
        }));
        let mut tasks = JoinSet::new();
        tasks.spawn(balance(socket, Arc::clone(&table)));
        Self {
            address,
            table,
            _tasks: tasks,
        }
    }

    /// Sends packets that name no server to `number` from now on.
    pub(crate) fn choose(&self, number: u64) {
        self.table.lock().unwrap().fallback = number;
    }

    /// Sends packets that name `number` to `address` from now on.
    pub(crate) fn route(&self, number: u64, address: SocketAddr) {
        self.table.lock().unwrap().servers.insert(number, address);
    }

    /// Removes the server at `address` once it has sent a Retry; packets that name it then go to `heir`.
    pub(crate) fn leave_after_retry(&self, address: SocketAddr, heir: u64) {
        self.table.lock().unwrap().leaving.insert(address, heir);
    }

    pub(crate) fn counts(&self) -> Counts {
        self.table.lock().unwrap().counts.clone()
    }
}

/// Balances what `front` receives. Each client has its own socket towards the servers, as behind a NAT.
async fn balance(front: Arc<UdpSocket>, table: Arc<Mutex<Table>>) {
    let mut clients: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
    let mut answers = JoinSet::new();
    let mut packet = vec![0; 1 << 16];
    loop {
        // An error belongs to an earlier packet whose receiver was gone.
        let Ok((length, client)) = front.recv_from(&mut packet).await else {
            continue;
        };
        let packet = &packet[..length];
        let Some(server) = table.lock().unwrap().route(packet) else {
            continue;
        };
        if let Entry::Vacant(place) = clients.entry(client) {
            let back = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
            place.insert(Arc::clone(&back));
            table.lock().unwrap().counts.clients += 1;
            let (front, table) = (Arc::clone(&front), Arc::clone(&table));
            answers.spawn(async move {
                let mut packet = vec![0; 1 << 16];
                loop {
                    let Ok((length, server)) = back.recv_from(&mut packet).await else {
                        continue;
                    };
                    table.lock().unwrap().answered(server, &packet[..length]);
                    let _ = front.send_to(&packet[..length], client).await;
                }
            });
        }
        let _ = clients[&client].send_to(packet, server).await;
    }
}
