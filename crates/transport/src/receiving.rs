//! [`ReceivingRuntime`]: makes a server with many connections read its socket often enough.

use std::future::Future;
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
    use std::io::IoSliceMut;
    use std::net::SocketAddr;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;
    use std::task::{Wake, Waker};

    use quinn::UdpPoller;
    use quinn::udp::{RecvMeta, Transmit};

    use super::*;

    /// A clock that advances by a millisecond whenever it is read, and a list of spawned tasks.
    #[derive(Debug)]
    struct Host {
        began: Instant,
        read: AtomicU32,
        spawned: Mutex<Vec<SpawnedTask>>,
    }

    struct SpawnedTask(Pin<Box<dyn Future<Output = ()> + Send>>);

    impl std::fmt::Debug for SpawnedTask {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("SpawnedTask")
        }
    }

    impl Host {
        #[expect(
            clippy::disallowed_methods,
            reason = "only differences between instants matter here"
        )]
        fn new() -> Arc<Self> {
            Arc::new(Self {
                began: Instant::now(),
                read: AtomicU32::new(0),
                spawned: Mutex::default(),
            })
        }
    }

    impl Runtime for Host {
        fn new_timer(&self, _: Instant) -> Pin<Box<dyn AsyncTimer>> {
            unreachable!("nothing here waits")
        }
        fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
            self.spawned.lock().unwrap().push(SpawnedTask(task));
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

    /// Wakes itself `left` times when it is polled. Publishes its number of polls and its waker.
    struct Restless {
        left: u32,
        polled: Arc<AtomicU32>,
        waker: Arc<Mutex<Option<Waker>>>,
    }

    impl Future for Restless {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            self.polled.fetch_add(1, Ordering::Relaxed);
            *self.waker.lock().unwrap() = Some(context.waker().clone());
            if self.left > 0 {
                self.left -= 1;
                context.waker().wake_by_ref();
            }
            Poll::Pending
        }
    }

    /// A self-waking task on a runtime of its own.
    struct Fixture {
        task: SpawnedTask,
        polled: Arc<AtomicU32>,
        inner: Arc<Mutex<Option<Waker>>>,
        outer: Arc<Woken>,
    }

    impl Fixture {
        fn spawn(more: u32, endpoint: bool) -> Self {
            let host = Host::new();
            let runtime =
                ReceivingRuntime::wrap(host.clone(), MergingSocket::new(Arc::<BusySocket>::default()));
            if !endpoint {
                runtime.spawn(Box::pin(async {}));
            }
            let (polled, inner) = (Arc::default(), Arc::default());
            runtime.spawn(Box::pin(Restless {
                left: more,
                polled: Arc::clone(&polled),
                waker: Arc::clone(&inner),
            }));
            let task = host.spawned.lock().unwrap().pop().unwrap();
            Self {
                task,
                polled,
                inner,
                outer: Arc::default(),
            }
        }

        fn poll(&mut self) -> u32 {
            let before = self.polled.load(Ordering::Relaxed);
            let waker = Waker::from(Arc::clone(&self.outer));
            let polled = self.task.0.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            self.polled.load(Ordering::Relaxed) - before
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
        reader.inner.lock().unwrap().take().unwrap().wake();
        assert_eq!(reader.outer.times(), 1);
        assert_eq!(reader.poll(), 1);
    }

    #[tokio::test]
    async fn a_used_up_tokio_budget_does_not_end_the_turn() {
        let host = Host::new();
        ReceivingRuntime::wrap(host.clone(), MergingSocket::new(Arc::<BusySocket>::default())).spawn(
            Box::pin(async {
                for _ in 0..1_000 {
                    tokio::task::consume_budget().await;
                }
            }),
        );
        let mut task = host.spawned.lock().unwrap().pop().unwrap();
        let waker = Waker::from(Arc::<Woken>::default());
        assert!(task.0.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
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
        let (host, socket) = (Host::new(), Arc::<BusySocket>::default());
        let config = quinn::EndpointConfig::default();
        let endpoint =
            quinn::Endpoint::new_with_abstract_socket(config, None, socket.clone(), host.clone()).unwrap();
        let mut driver = host.spawned.lock().unwrap().pop().unwrap();
        assert!(host.spawned.lock().unwrap().is_empty(), "only the driver");
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(Arc::clone(&woken));
        let polled = driver.0.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending() && socket.reads.load(Ordering::Relaxed) > 0);
        assert!(woken.times() > 0, "it yields by waking itself");
        drop(endpoint);
    }
}
