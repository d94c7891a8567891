use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use proptest::prelude::*;
use quinn::udp::RecvMeta;
use rstest::rstest;

use super::*;

/// Datagrams of one call, as the system would send them.
type Call = (SocketAddr, Vec<Vec<u8>>);

/// A socket that records calls, and takes none while it is full.
#[derive(Debug, Default)]
struct Recorder {
    calls: Mutex<Vec<Call>>,
    /// Number of calls until it is full; `None` if it never is.
    room: Mutex<Option<usize>>,
}

impl Recorder {
    fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// Number of datagrams in each call.
    fn counts(&self) -> Vec<usize> {
        self.calls()
            .iter()
            .map(|(_, datagrams)| datagrams.len())
            .collect()
    }

    fn give_room(&self, calls: Option<usize>) {
        *self.room.lock().unwrap() = calls;
    }
}

impl AsyncUdpSocket for Recorder {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Room(self))
    }
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        if *room == Some(0) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        *room = room.map(|room| room - 1);
        let size = transmit.segment_size.unwrap_or(transmit.contents.len());
        let datagrams: Vec<Vec<u8>> = transmit.contents.chunks(size).map(<[u8]>::to_vec).collect();
        assert!(transmit.contents.len() <= MOST_BYTES && datagrams.len() <= self.max_transmit_segments());
        self.calls.lock().unwrap().push((transmit.destination, datagrams));
        Ok(())
    }
    fn poll_recv(
        &self,
        _: &mut Context<'_>,
        _: &mut [IoSliceMut<'_>],
        _: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        Poll::Pending
    }
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(to(1))
    }
    fn max_transmit_segments(&self) -> usize {
        64
    }
}

#[derive(Debug)]
struct Room(Arc<Recorder>);

impl UdpPoller for Room {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if *self.0.room.lock().unwrap() == Some(0) {
            Poll::Pending
        } else {
            Poll::Ready(Ok(()))
        }
    }
}

fn to(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// One call of quinn's: `length` bytes in datagrams of `size`.
#[derive(Clone, Debug)]
struct OneSend {
    destination: SocketAddr,
    contents: Vec<u8>,
    size: usize,
}

fn send(port: u16, length: usize, size: usize) -> OneSend {
    let contents = (0..length)
        .map(|at| u8::try_from(at / 7 % 251).expect("below 251"))
        .collect();
    OneSend {
        destination: to(port),
        contents,
        size,
    }
}

/// A connection that, like quinn, sends the queued datagrams of each turn: those that a full socket rejects are sent in
/// a later turn.
struct Connection {
    socket: Arc<MergingSocket>,
    turns: VecDeque<Vec<OneSend>>,
}

impl Future for Connection {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let socket = Arc::clone(&self.socket);
        let mut turn = VecDeque::from(self.turns.pop_front().unwrap_or_default());
        while let Some(send) = turn.front() {
            let several = send.contents.len() > send.size;
            let sent = socket.try_send(&Transmit {
                destination: send.destination,
                ecn: None,
                contents: &send.contents,
                segment_size: several.then_some(send.size),
                src_ip: None,
            });
            if sent.is_err() {
                self.turns.push_front(turn.into());
                return Poll::Pending;
            }
            turn.pop_front();
        }
        if self.turns.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// The merged task of a connection that sends `turns`, and the socket below.
fn connection(turns: Vec<Vec<OneSend>>) -> (MergingTask, Arc<Recorder>) {
    let below = Arc::<Recorder>::default();
    let socket = MergingSocket::new(Arc::clone(&below) as Arc<dyn AsyncUdpSocket>);
    let task = Connection {
        socket: Arc::clone(&socket),
        turns: turns.into(),
    };
    (MergingTask::new(Box::pin(task), &socket), below)
}

fn poll(task: &mut MergingTask) -> Poll<()> {
    Pin::new(task).poll(&mut Context::from_waker(Waker::noop()))
}

/// A turn of a connection that has much to send.
fn full() -> Vec<OneSend> {
    vec![send(9, 12_000, 1_200), send(9, 12_000, 1_200)]
}

#[test]
fn a_connection_that_sent_twice_in_its_last_turn_sends_all_of_the_next_in_one_call() {
    let (mut task, below) = connection(vec![full(), full()]);
    assert!(poll(&mut task).is_pending());
    assert_eq!(below.counts(), [10, 10], "nothing was known of it yet");
    assert!(poll(&mut task).is_ready());
    assert_eq!(below.counts(), [10, 10, 20]);
    let both = send(9, 12_000, 1_200).contents.repeat(2);
    assert_eq!(below.calls()[2].1.concat(), both);
}

#[test]
fn a_connection_that_sends_once_in_a_turn_is_not_held_up() {
    let once = vec![send(9, 12_000, 1_200)];
    let (mut task, below) = connection(vec![once.clone(), once.clone(), once]);
    for _ in 0..3 {
        let _ = poll(&mut task);
    }
    assert_eq!(below.counts(), [10, 10, 10]);
    assert_eq!(task.blocked.contents.capacity(), 0);
}

#[test]
fn datagrams_of_another_destination_or_size_or_after_a_shorter_one_go_out_in_calls_of_their_own() {
    let mixed = vec![
        send(9, 2_400, 1_200),
        send(9, 1_300, 1_200), // ends with a short one
        send(9, 1_200, 1_200),
        send(8, 1_200, 1_200), // to another destination
        send(8, 1_400, 1_400), // longer
    ];
    let (mut task, below) = connection(vec![full(), mixed]);
    let _ = (poll(&mut task), poll(&mut task));
    assert_eq!(below.counts(), [10, 10, 4, 1, 1, 1]);
}

#[rstest]
#[case::while_the_connection_waits(3, &[10, 10, 20, 20])]
#[case::after_the_last_words_of_the_connection(2, &[10, 10, 20])]
fn what_a_full_socket_does_not_take_is_sent_first_when_it_has_room(
    #[case] turns: usize,
    #[case] counts: &[usize],
) {
    let (mut task, below) = connection(vec![full(); turns]);
    assert!(poll(&mut task).is_pending());
    below.give_room(Some(0));
    assert!(poll(&mut task).is_pending());
    assert!(poll(&mut task).is_pending());
    assert_eq!(
        below.counts(),
        [10, 10],
        "the second turn is kept, a third has not begun"
    );
    below.give_room(None);
    assert!(poll(&mut task).is_ready());
    assert_eq!(below.counts(), counts);
}

fn sends() -> impl Strategy<Value = Vec<Vec<OneSend>>> {
    let size = prop_oneof![Just(1_200_usize), Just(1_452), 40_usize..1_500];
    let one = (8_u16..10, size, 1_usize..12, 0_usize..1_200).prop_map(|(port, size, count, short)| {
        send(port, (size * count).saturating_sub(short.min(size - 1)), size)
    });
    prop::collection::vec(prop::collection::vec(one, 0..9), 1..6)
}

proptest! {
    #[test]
    fn every_datagram_arrives_once_whole_and_in_order(
        turns in sends(),
        rooms in prop::collection::vec(0_usize..4, 0..12),
    ) {
        let sent: Vec<(SocketAddr, Vec<u8>)> = turns
            .iter()
            .flatten()
            .flat_map(|send| send.contents.chunks(send.size).map(|one| (send.destination, one.to_vec())))
            .collect();
        let (mut task, below) = connection(turns);
        for room in rooms {
            below.give_room(Some(room));
            if poll(&mut task).is_ready() {
                break;
            }
        }
        below.give_room(None);
        for _ in 0..8 {
            if task.task.is_some() || !task.blocked.is_empty() {
                let _ = poll(&mut task);
            }
        }
        let calls = below.calls();
        let arrived: Vec<_> = calls
            .into_iter()
            .flat_map(|(destination, datagrams)| datagrams.into_iter().map(move |one| (destination, one)))
            .collect();
        prop_assert_eq!(arrived, sent);
    }
}
