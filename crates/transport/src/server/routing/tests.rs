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

fn ids(process: u8, worker: u8) -> MarkedConnectionIds {
    let keys = EndpointKeys::derive(&EndpointKey::new([1; EndpointKey::LENGTH]), None).unwrap();
    keys.connection_ids(Issuer { process, worker })
}

/// A packet with a short header for a connection with one of `ids`, filled up to `length` with `filling`.
fn short(mut ids: MarkedConnectionIds, length: usize, filling: u8) -> Vec<u8> {
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

/// A router of process 2 with a worker for each of `sockets`, given as their batches, and the datagrams that it
/// forwards to older processes.
fn router(sockets: &[&[(Vec<u8>, usize)]]) -> (DatagramRouter, mpsc::Receiver<Datagram>) {
    let sockets = (0..).zip(sockets).map(|(worker, &batches)| {
        let batches = batches.iter().cloned().collect();
        let socket: Arc<dyn AsyncUdpSocket> = Arc::new(Batches(Mutex::new(batches)));
        (socket, ids(2, worker))
    });
    let (older, forwarded) = mpsc::channel(10);
    let router = DatagramRouter::new(sockets.collect(), Some(&older), 1_472);
    (router, forwarded)
}

/// The bytes that one read of a worker leaves to its endpoint, by buffer; `None` if there is nothing to read.
fn read(router: &DatagramRouter, worker: usize) -> Option<Vec<Vec<u8>>> {
    let (mut first, mut second, mut metas) = ([0; BUFFER], [0; BUFFER], [RecvMeta::default(); 2]);
    let mut cx = Context::from_waker(Waker::noop());
    let mut buffers = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
    // With one worker, use one buffer, so that each read is a batch.
    let count = router.workers.len().min(2);
    let Poll::Ready(count) =
        router.workers[worker].poll_recv(&mut cx, &mut buffers[..count], &mut metas[..count])
    else {
        return None;
    };
    let filled = buffers.iter().zip(metas).take(count.unwrap());
    Some(filled.map(|(buffer, meta)| buffer[..meta.len].to_vec()).collect())
}

fn batch(datagrams: &[&[u8]]) -> (Vec<u8>, usize) {
    (datagrams.concat(), datagrams[0].len())
}

#[test]
fn a_batch_is_divided_by_the_processes_of_its_connections() {
    let own = [1, 2, 3].map(|filling| short(ids(2, 0), 100, filling));
    let others = [4, 5].map(|filling| short(ids(1, 0), 100, filling));
    let last = short(ids(2, 0), 60, 6);
    let (router, mut forwarded) = router(&[&[
        batch(&[&own[0], &others[0], &own[1], &own[2], &others[1], &last]),
        batch(&[&others[0], &others[1][..50]]),
    ]]);
    assert_eq!(read(&router, 0).unwrap(), [[own.concat(), last].concat()]);
    assert_eq!(read(&router, 0).unwrap(), [[0; 0]]);
    for contents in [&others[0][..], &others[1], &others[0], &others[1][..50]] {
        let expected = Datagram {
            peer: peer(),
            local: Some([127, 0, 0, 1].into()),
            ecn: EcnCodepoint::Ect0 as u8,
            contents: Bytes::copy_from_slice(contents),
        };
        assert_eq!(forwarded.try_recv(), Ok(expected));
    }
    assert!(forwarded.try_recv().is_err());
}

#[test]
fn only_connection_ids_that_another_process_issued_are_forwarded() {
    let issued = ids(1, 0).generate_cid();
    let mut chosen_by_a_client = issued.to_vec();
    chosen_by_a_client[15] ^= 1;
    let own = ids(2, 0).generate_cid();
    let stay = [
        long(&chosen_by_a_client),
        long(&issued[..8]),
        long(&own),
        long(&[1; 20]),
        vec![0x40, 1, 2],
        vec![0xC0; 5],
        vec![0x40],
    ];
    let forwarded_one = long(&issued);
    let datagrams = stay.iter().chain([&forwarded_one]);
    let batches: Vec<_> = datagrams.map(|one| batch(&[one])).collect();
    let (router, mut forwarded) = router(&[&batches]);
    for contents in &stay {
        assert_eq!(&read(&router, 0).unwrap()[0], contents);
    }
    assert!(forwarded.try_recv().is_err());
    assert_eq!(read(&router, 0).unwrap(), [[0; 0]]);
    assert_eq!(forwarded.try_recv().unwrap().contents, forwarded_one);
}

#[test]
fn once_the_older_process_is_gone_all_datagrams_are_its_own() {
    let other = short(ids(1, 0), 100, 0);
    let (router, forwarded) = router(&[&[batch(&[&other])]]);
    drop(forwarded);
    assert_eq!(read(&router, 0).unwrap(), [other]);
}

#[test]
fn a_datagram_for_another_worker_goes_to_its_endpoint_and_to_no_other() {
    let [own, other] = [0, 1].map(|worker| short(ids(2, worker), 100, worker));
    let initial = long(&[1; 16]);
    let (router, _forwarded) = router(&[
        &[batch(&[&own, &other, &own]), batch(&[&initial])],
        &[batch(&[&other])],
    ]);
    assert_eq!(read(&router, 0).unwrap(), [own.repeat(2)]);
    assert_eq!(read(&router, 0).unwrap(), [initial], "chosen by the client");
    assert_eq!(read(&router, 0), None);
    let from_both = "from the other worker and from the socket at once";
    assert_eq!(read(&router, 1).unwrap(), [&other[..], &other], "{from_both}");
    assert_eq!(read(&router, 1), None);
    let totals = router.totals();
    assert_eq!((totals.forwarded, totals.lost), (1, 0));
}

#[test]
fn ids_of_workers_that_are_not_there_stay_for_a_reset() {
    let other = short(ids(2, 2), 100, 0);
    let (router, _forwarded) = router(&[&[batch(&[&other])], &[]]);
    assert_eq!(read(&router, 0).unwrap(), [other]);
}

#[test]
fn datagrams_beyond_the_queue_of_a_worker_are_lost_and_counted() {
    let other = short(ids(2, 1), 100, 0);
    let batches = vec![batch(&[&other]); WAITING_DATAGRAMS + 3];
    let (router, _forwarded) = router(&[&batches, &[]]);
    while read(&router, 0).is_some() {}
    let totals = router.totals();
    assert_eq!((totals.forwarded, totals.lost), (WAITING_DATAGRAMS as u64, 3));
}

#[test]
fn a_process_that_was_succeeded_reads_its_sockets_again_only_when_its_successor_is_gone() {
    let [one, two] = [0, 1].map(|worker| short(ids(2, worker), 100, worker));
    let (older, too_long) = (short(ids(1, 0), 100, 1), vec![0x40; BUFFER + 1]);
    let (router, mut forwarded) = router(&[&[batch(&[&one])], &[batch(&[&two])]]);
    let (newer, receiver) = mpsc::channel(10);
    router.receive_from(receiver);
    assert_eq!([0, 1].map(|worker| read(&router, worker)), [None, None]);
    for contents in [&two, &older, &too_long, &one] {
        let meta = RecvMeta {
            addr: peer(),
            ..RecvMeta::default()
        };
        newer.try_send(Datagram::new(contents, &meta)).unwrap();
    }
    assert_eq!(read(&router, 0).unwrap(), [[0; 0], [0; 0]], "for others");
    assert_eq!(
        read(&router, 0).unwrap(),
        [&one[..]],
        "what is too long is left out"
    );
    assert_eq!(read(&router, 1).unwrap(), [&two[..]]);
    assert_eq!(forwarded.try_recv().unwrap().contents, older);
    assert_eq!([0, 1].map(|worker| read(&router, worker)), [None, None]);
    drop(newer);
    assert_eq!(read(&router, 0).unwrap(), [&one[..]]);
    assert_eq!(read(&router, 1).unwrap(), [&two[..]]);
}
