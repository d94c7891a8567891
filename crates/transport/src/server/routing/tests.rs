use std::collections::VecDeque;
use std::pin::Pin;
use std::task::Waker;

use quinn::UdpPoller;
use quinn::udp::Transmit;
use quinn_proto::ConnectionIdGenerator as _;

use super::super::keys::{EndpointKey, EndpointKeys};
use super::*;

/// Size of the buffers for reading the socket, in bytes.
const BUFFER: usize = 4_000;

/// A socket with batches of datagrams: their contents, and the length of each datagram.
#[derive(Debug, Default)]
struct Batches(Mutex<VecDeque<(Vec<u8>, usize)>>);

impl AsyncUdpSocket for Batches {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        unreachable!("nothing is sent")
    }
    fn try_send(&self, _: &Transmit<'_>) -> io::Result<()> {
        Ok(())
    }
    fn poll_recv(
        &self,
        _: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let Some((contents, stride)) = self.0.lock().pop_front() else {
            return Poll::Pending;
        };
        buffers[0][..contents.len()].copy_from_slice(&contents);
        metas[0] = RecvMeta {
            addr: peer(),
            len: contents.len(),
            stride,
            ecn: Some(EcnCodepoint::Ect0),
            dst_ip: Some([127, 0, 0, 1].into()),
        };
        Poll::Ready(Ok(1))
    }
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(peer())
    }
}

fn peer() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1_000))
}

fn ids(process: u8) -> MarkedConnectionIds {
    ids_of(process, 0)
}

fn ids_of(process: u8, worker: u8) -> MarkedConnectionIds {
    let keys = EndpointKeys::derive(&EndpointKey::new([1; EndpointKey::LENGTH]), None).unwrap();
    keys.connection_ids(Issuer { process, worker })
}

/// A packet with a short header for a connection of `process`, filled up to `length` with `filling`.
fn short(process: u8, length: usize, filling: u8) -> Vec<u8> {
    short_of(ids(process), length, filling)
}

/// A packet with a short header for a connection with one of `ids`, filled up to `length` with `filling`.
fn short_of(mut ids: MarkedConnectionIds, length: usize, filling: u8) -> Vec<u8> {
    let mut packet = vec![0x40];
    packet.extend_from_slice(&ids.generate_cid());
    packet.resize(length, filling);
    packet
}

/// The beginning of a packet with a long header to `id`.
fn long(id: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xC0, 0, 0, 0, 1, u8::try_from(id.len()).unwrap()];
    packet.extend_from_slice(id);
    packet.extend_from_slice(&[0; 100]);
    packet
}

/// A router of process 2 on a socket with batches, and the datagrams that it forwards.
fn router(batches: &[(Vec<u8>, usize)]) -> (DatagramRouter, mpsc::Receiver<Datagram>) {
    let (older, forwarded) = mpsc::channel(10);
    (router_on(&[batches], Some(&older)), forwarded)
}

/// A router of process 2 with a worker for each of `sockets`, given as their batches.
fn router_on(sockets: &[&[(Vec<u8>, usize)]], older: Option<&mpsc::Sender<Datagram>>) -> DatagramRouter {
    let sockets = (0..).zip(sockets).map(|(worker, &batches)| {
        let batches = batches.iter().cloned().collect();
        let socket: Arc<dyn AsyncUdpSocket> = Arc::new(Batches(Mutex::new(batches)));
        (socket, ids_of(2, worker))
    });
    DatagramRouter::new(sockets.collect(), older, 1_472)
}

/// The bytes that one read of the first worker leaves to its endpoint; `None` if there is nothing to read.
fn read(router: &DatagramRouter) -> Option<Vec<u8>> {
    read_of(router, 0).map(|mut datagrams| datagrams.remove(0))
}

/// The bytes that one read of a worker leaves to its endpoint, by buffer; `None` if there is nothing to read.
fn read_of(router: &DatagramRouter, worker: usize) -> Option<Vec<Vec<u8>>> {
    let (mut first, mut second, mut metas) = ([0; BUFFER], [0; BUFFER], [RecvMeta::default(); 2]);
    let mut cx = Context::from_waker(Waker::noop());
    let mut buffers = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
    // With one worker, use one buffer, so that each read is a batch.
    let count = router.workers.len().min(2);
    match router.workers[worker].poll_recv(&mut cx, &mut buffers[..count], &mut metas[..count]) {
        Poll::Ready(count) => Some(
            (0..count.unwrap())
                .map(|n| buffers[n][..metas[n].len].to_vec())
                .collect(),
        ),
        Poll::Pending => None,
    }
}

fn batch(datagrams: &[&[u8]]) -> (Vec<u8>, usize) {
    (datagrams.concat(), datagrams[0].len())
}

#[test]
fn a_batch_is_divided_by_the_processes_of_its_connections() {
    let own: Vec<_> = (1..=3).map(|filling| short(2, 100, filling)).collect();
    let others: Vec<_> = (4..=5).map(|filling| short(1, 100, filling)).collect();
    let last = short(2, 60, 6);
    let (router, mut forwarded) = router(&[
        batch(&[&own[0], &others[0], &own[1], &own[2], &others[1], &last]),
        batch(&[&others[0], &others[1][..50]]),
    ]);
    assert_eq!(
        read(&router).unwrap(),
        [&own[0][..], &own[1], &own[2], &last].concat()
    );
    assert_eq!(read(&router).unwrap(), [0; 0]);
    for contents in [&others[0][..], &others[1], &others[0], &others[1][..50]] {
        let datagram = forwarded.try_recv().unwrap();
        assert_eq!(datagram.contents, contents);
        assert_eq!((datagram.peer, datagram.ecn), (peer(), EcnCodepoint::Ect0 as u8));
        assert_eq!(datagram.local, Some([127, 0, 0, 1].into()));
    }
    assert!(forwarded.try_recv().is_err());
}

#[test]
fn only_connection_ids_that_another_process_issued_are_forwarded() {
    let issued = ids(1).generate_cid();
    let mut chosen_by_a_client = issued.to_vec();
    chosen_by_a_client[15] ^= 1;
    let own = ids(2).generate_cid();
    let stay = [
        long(&chosen_by_a_client),
        long(&issued[..8]),
        long(&own),
        long(&[1; 20]),
        vec![0x40, 1, 2],
        vec![0xC0; 5],
        vec![0x40],
    ];
    let batches: Vec<_> = stay
        .iter()
        .chain([&long(&issued)])
        .map(|one| batch(&[one]))
        .collect();
    let (router, mut forwarded) = router(&batches);
    for contents in &stay {
        assert_eq!(&read(&router).unwrap(), contents);
    }
    assert!(forwarded.try_recv().is_err());
    assert!(read(&router).unwrap().is_empty());
    assert_eq!(forwarded.try_recv().unwrap().contents, long(&issued));
}

#[test]
fn once_the_older_process_is_gone_all_datagrams_are_its_own() {
    let other = short(1, 100, 0);
    let (router, forwarded) = router(&[batch(&[&other])]);
    drop(forwarded);
    assert_eq!(read(&router).unwrap(), other);
}

#[test]
fn a_process_that_was_succeeded_reads_the_socket_again_only_when_its_successor_is_gone() {
    let (own, older) = (short(2, 100, 1), short(1, 100, 1));
    let (router, mut forwarded) = router(&[batch(&[&own])]);
    let (newer, receiver) = mpsc::channel(10);
    router.receive_from(receiver);
    assert_eq!(read(&router), None);
    for contents in [&older, &vec![0x40; BUFFER + 1], &short(2, 50, 9)] {
        let datagram = Datagram {
            peer: peer(),
            local: None,
            ecn: 0,
            contents: contents.clone().into(),
        };
        newer.try_send(datagram).unwrap();
    }
    assert!(read(&router).unwrap().is_empty(), "for a still older process");
    assert_eq!(forwarded.try_recv().unwrap().contents, older);
    assert_eq!(
        read(&router).unwrap().last(),
        Some(&9),
        "what is too long is left out"
    );
    assert_eq!(read(&router), None);
    drop(newer);
    assert_eq!(read(&router).unwrap(), own);
}

#[test]
fn a_datagram_for_another_worker_goes_to_its_endpoint_and_to_no_other() {
    let [own, other] = [0, 1].map(|worker| short_of(ids_of(2, worker), 100, worker));
    let initial = long(&[1; 16]);
    let router = router_on(
        &[
            &[batch(&[&own, &other, &own]), batch(&[&initial])],
            &[batch(&[&other])],
        ],
        None,
    );
    assert_eq!(read_of(&router, 0).unwrap(), [[&own[..], &own].concat()]);
    assert_eq!(read_of(&router, 0).unwrap(), [initial], "chosen by the client");
    assert_eq!(read_of(&router, 0), None);
    assert_eq!(
        read_of(&router, 1).unwrap(),
        [&other[..], &other],
        "from the other worker and from the socket at once"
    );
    assert_eq!(read_of(&router, 1), None);
    let totals = router.totals();
    assert_eq!((totals.forwarded, totals.lost), (1, 0));
}

#[test]
fn ids_of_workers_that_are_not_there_stay_for_a_reset() {
    let other = short_of(ids_of(2, 2), 100, 0);
    let router = router_on(&[&[batch(&[&other])], &[]], None);
    assert_eq!(read_of(&router, 0).unwrap(), [other]);
}

#[test]
fn datagrams_beyond_the_queue_of_a_worker_are_lost_and_counted() {
    let other = short_of(ids_of(2, 1), 100, 0);
    let batches = vec![batch(&[&other]); WAITING_DATAGRAMS + 3];
    let router = router_on(&[&batches, &[]], None);
    while read_of(&router, 0).is_some() {}
    let totals = router.totals();
    assert_eq!((totals.forwarded, totals.lost), (WAITING_DATAGRAMS as u64, 3));
}

#[test]
fn no_worker_reads_its_socket_while_another_process_does() {
    let [one, two] = [0, 1].map(|worker| short_of(ids_of(2, worker), 100, worker));
    let older = short(1, 100, 1);
    let (forward, mut forwarded) = mpsc::channel(10);
    let router = router_on(&[&[batch(&[&one])], &[batch(&[&two])]], Some(&forward));
    let (newer, receiver) = mpsc::channel(10);
    router.receive_from(receiver);
    assert_eq!([0, 1].map(|worker| read_of(&router, worker)), [None, None]);
    for contents in [&two, &older, &one] {
        let meta = RecvMeta {
            addr: peer(),
            ..RecvMeta::default()
        };
        newer.try_send(Datagram::new(contents, &meta)).unwrap();
    }
    assert_eq!(read_of(&router, 0).unwrap(), [[0; 0], [0; 0]], "for others");
    assert_eq!(read_of(&router, 0).unwrap(), [&one[..]]);
    assert_eq!(read_of(&router, 1).unwrap(), [&two[..]]);
    assert_eq!(forwarded.try_recv().unwrap().contents, older);
    assert_eq!([0, 1].map(|worker| read_of(&router, worker)), [None, None]);
    drop(newer);
    assert_eq!(read_of(&router, 0).unwrap(), [&one[..]]);
    assert_eq!(read_of(&router, 1).unwrap(), [&two[..]]);
}
