use std::collections::VecDeque;
use std::task::Waker;

use super::super::keys::{EndpointKey, EndpointKeys};
use super::*;

/// Bytes of the buffers that the socket is read with.
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
        let Some((contents, stride)) = self.0.lock().unwrap().pop_front() else {
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
    let keys = EndpointKeys::derive(&EndpointKey::new([1; EndpointKey::LENGTH])).unwrap();
    keys.connection_ids(process)
}

/// A packet with a short header for a connection of `process`, filled up to `length` with `filling`.
fn short(process: u8, length: usize, filling: u8) -> Vec<u8> {
    let mut packet = vec![0x40];
    packet.extend_from_slice(&ids(process).generate_cid());
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

/// A router of process 2 on a socket with batches, and what it forwards.
fn router(batches: &[(Vec<u8>, usize)]) -> (Arc<DatagramRouter>, mpsc::Receiver<Datagram>) {
    let batches = batches.iter().cloned().collect();
    let (older, forwarded) = mpsc::channel(10);
    let socket = Arc::new(Batches(Mutex::new(batches)));
    (DatagramRouter::new(socket, ids(2), Some(older)), forwarded)
}

/// The bytes that one read of `router` leaves to its endpoint; `None` if there is nothing to read.
fn read(router: &DatagramRouter) -> Option<Vec<u8>> {
    let (mut buffer, mut metas) = ([0; BUFFER], [RecvMeta::default()]);
    let mut cx = Context::from_waker(Waker::noop());
    match router.poll_recv(&mut cx, &mut [IoSliceMut::new(&mut buffer)], &mut metas) {
        Poll::Ready(count) => {
            assert_eq!(count.unwrap(), 1);
            Some(buffer[..metas[0].len].to_vec())
        }
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
