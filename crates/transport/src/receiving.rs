//! [`ReceivingRuntime`]: makes a server with many connections read its socket often enough.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime};
use tokio::task::unconstrained;

use crate::merging::{MergingSocket, MergingTask};
use crate::self_waking::{Polled, SelfWaking};

/// Longest time for which the endpoint reads before the connections are polled.
const LONGEST_READ: Duration = Duration::from_millis(10);

/// A runtime for one endpoint that continues reading until the socket is empty or [`LONGEST_READ`] has passed.
///
/// quinn 0.11 reads for 50 µs (`RECV_TIME_BOUND`) and then yields, so the endpoint's task is polled again only after
/// every connection that has something to send. With a thousand of those this takes a fifth of a second. In that time,
/// more datagrams arrive than are read: the kernel's buffer overflows, and acknowledgements and requests are lost. A
/// reading thread would be worse on one processor: acknowledgements would arrive one by one, and each would cause a
/// small burst.
///
/// This relies on two facts of quinn 0.11, which a test of this module checks: an endpoint spawns its driver before any
/// other task, and the driver yields by waking itself.
#[derive(Debug)]
pub(crate) struct ReceivingRuntime {
    inner: Arc<dyn Runtime>,
    /// True once quinn's endpoint has spawned its driver; later tasks are connections.
    has_endpoint: AtomicBool,
    /// The endpoint's socket; connections merge their datagrams on it.
    socket: Arc<MergingSocket>,
}

impl ReceivingRuntime {
    pub(crate) fn wrap(inner: Arc<dyn Runtime>, socket: Arc<MergingSocket>) -> Arc<dyn Runtime> {
        Arc::new(Self {
            inner,
            has_endpoint: AtomicBool::new(false),
            socket,
        })
    }
}

impl Runtime for ReceivingRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        self.inner.new_timer(at)
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        if self.has_endpoint.swap(true, Ordering::Relaxed) {
            return self.inner.spawn(Box::pin(MergingTask::new(task, &self.socket)));
        }
        self.inner.spawn(Box::pin(LongTurnTask {
            // When a task has used up its budget, tokio makes it wake itself and yield, which would end the turn here.
            task: SelfWaking::new(Box::pin(unconstrained(task))),
            clock: Arc::clone(&self.inner),
        }));
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        self.inner.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }
}

/// A task that is polled again immediately when it wakes itself, for up to [`LONGEST_READ`].
struct LongTurnTask {
    task: SelfWaking,
    clock: Arc<dyn Runtime>,
}

impl Future for LongTurnTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let began = self.clock.now();
        loop {
            match self.task.poll(context) {
                Polled::Ended => return Poll::Ready(()),
                Polled::Waits => return Poll::Pending,
                Polled::WokeItself => {}
            }
            if self.clock.now().saturating_duration_since(began) >= LONGEST_READ {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::IoSliceMut;
    use std::net::SocketAddr;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;
    use std::task::{Wake, Waker};

    use quinn::UdpPoller;
    use quinn::udp::{RecvMeta, Transmit};
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;

    type BoxedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

    /// A clock that advances by a millisecond whenever it is read, and a queue for spawned tasks.
    #[derive(Debug)]
    struct Host {
        began: Instant,
        read: AtomicU32,
        spawned: UnboundedSender<BoxedTask>,
    }

    impl Host {
        #[expect(
            clippy::disallowed_methods,
            reason = "only differences between instants matter here"
        )]
        fn new() -> (Arc<Self>, UnboundedReceiver<BoxedTask>) {
            let (spawned, tasks) = unbounded_channel();
            let host = Self {
                began: Instant::now(),
                read: AtomicU32::new(0),
                spawned,
            };
            (Arc::new(host), tasks)
        }
    }

    impl Runtime for Host {
        fn new_timer(&self, _: Instant) -> Pin<Box<dyn AsyncTimer>> {
            unreachable!("nothing here waits")
        }
        fn spawn(&self, task: BoxedTask) {
            self.spawned.send(task).unwrap();
        }
        fn wrap_udp_socket(&self, _: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn now(&self) -> Instant {
            self.began + Duration::from_millis(1) * self.read.fetch_add(1, Ordering::Relaxed)
        }
    }

    /// A waker that counts its wake-ups.
    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Woken {
        fn times(&self) -> u32 {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Wakers of a task's polls so far.
    type Wakers = Arc<Mutex<Vec<Waker>>>;

    /// A task that wakes itself, on a runtime of its own.
    struct Fixture {
        task: BoxedTask,
        wakers: Wakers,
        outer: Arc<Woken>,
    }

    impl Fixture {
        /// Spawns a task that wakes itself `times` times, as the endpoint's or as a connection's.
        fn spawn(times: usize, endpoint: bool) -> Self {
            let (host, mut tasks) = Host::new();
            let runtime = ReceivingRuntime::wrap(host, MergingSocket::new(Arc::<BusySocket>::default()));
            if !endpoint {
                runtime.spawn(Box::pin(async {}));
                drop(tasks.try_recv().unwrap());
            }
            let wakers = Wakers::default();
            let published = Arc::clone(&wakers);
            runtime.spawn(Box::pin(poll_fn(move |cx| {
                let mut wakers = published.lock().unwrap();
                wakers.push(cx.waker().clone());
                if wakers.len() <= times {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            })));
            Self {
                task: tasks.try_recv().unwrap(),
                wakers,
                outer: Arc::default(),
            }
        }

        /// Polls the spawned task; returns how often it was polled in this turn.
        fn poll(&mut self) -> usize {
            let polls = || self.wakers.lock().unwrap().len();
            let before = polls();
            let waker = Waker::from(Arc::clone(&self.outer));
            assert!(
                self.task
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            polls() - before
        }
    }

    #[test]
    fn a_task_that_wakes_itself_is_polled_again_in_the_same_turn() {
        let mut reader = Fixture::spawn(4, true);
        assert_eq!(reader.poll(), 5);
        assert_eq!(reader.outer.times(), 0, "nothing is left to read");
    }

    #[test]
    fn a_turn_ends_in_time_and_requests_another_one() {
        let mut reader = Fixture::spawn(1_000, true);
        assert_eq!(reader.poll(), 10, "a millisecond each");
        assert_eq!(reader.outer.times(), 1);
        assert_eq!(reader.poll(), 10);
    }

    #[test]
    fn a_wake_up_between_turns_wakes_the_task() {
        let mut reader = Fixture::spawn(0, true);
        reader.poll();
        reader.wakers.lock().unwrap()[0].wake_by_ref();
        assert_eq!(reader.outer.times(), 1);
        assert_eq!(reader.poll(), 1);
    }

    #[tokio::test]
    async fn a_used_up_tokio_budget_does_not_end_the_turn() {
        let (host, mut tasks) = Host::new();
        let runtime = ReceivingRuntime::wrap(host, MergingSocket::new(Arc::<BusySocket>::default()));
        runtime.spawn(Box::pin(async {
            for _ in 0..1_000 {
                tokio::task::consume_budget().await;
            }
        }));
        let waker = Waker::from(Arc::<Woken>::default());
        let mut task = tasks.try_recv().unwrap();
        assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    }

    #[test]
    fn connections_are_polled_once_per_turn() {
        let mut connection = Fixture::spawn(4, false);
        assert_eq!(connection.poll(), 1);
        assert_eq!(connection.outer.times(), 1);
    }

    /// A socket from which a datagram can always be read.
    #[derive(Debug, Default)]
    struct BusySocket {
        reads: AtomicU32,
    }

    impl AsyncUdpSocket for BusySocket {
        fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
            unreachable!("there is no connection")
        }
        fn try_send(&self, _: &Transmit<'_>) -> io::Result<()> {
            Ok(())
        }
        fn poll_recv(
            &self,
            _: &mut Context<'_>,
            _: &mut [IoSliceMut<'_>],
            metas: &mut [RecvMeta],
        ) -> Poll<io::Result<usize>> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            metas[0].len = 1;
            metas[0].stride = 1;
            Poll::Ready(Ok(1))
        }
        fn local_addr(&self) -> io::Result<SocketAddr> {
            Ok(SocketAddr::from(([127, 0, 0, 1], 1)))
        }
    }

    /// Fails if quinn changes the behaviour that [`ReceivingRuntime`] relies on.
    #[test]
    fn quinn_spawns_the_driver_first_and_the_driver_wakes_itself_while_there_is_more_to_read() {
        let ((host, mut tasks), socket) = (Host::new(), Arc::<BusySocket>::default());
        let config = quinn::EndpointConfig::default();
        let endpoint = quinn::Endpoint::new_with_abstract_socket(config, None, socket.clone(), host).unwrap();
        let mut driver = tasks.try_recv().unwrap();
        assert!(tasks.is_empty(), "only the driver");
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(Arc::clone(&woken));
        let polled = driver.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending() && socket.reads.load(Ordering::Relaxed) > 0);
        assert!(woken.times() > 0, "it yields by waking itself");
        drop(endpoint);
    }
}
