//! [`Receiving`]: reading from the socket as a server with many connections must.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime};
use tokio::task::unconstrained;

/// How long the endpoint may read before the connections get their turn.
const TURN: Duration = Duration::from_millis(10);

/// A runtime for one endpoint, whose reading goes on until the socket is empty or [`TURN`] is over.
///
/// quinn reads for 50 µs and then stands in line behind every connection that has something to send. With a thousand of those the line takes
/// a fifth of a second, in which many more datagrams arrive than are read: the kernel's buffer overflows, and what is lost are
/// acknowledgements and requests. A thread of its own for the reading would be worse on one processor: acknowledgements would come one by one, each
/// answered with a small burst.
#[derive(Debug)]
pub(crate) struct Receiving {
    inner: Arc<dyn Runtime>,
    /// quinn's endpoint spawns what drives it first of all; what comes later are connections.
    has_endpoint: AtomicBool,
}

impl Receiving {
    pub(crate) fn on(inner: Arc<dyn Runtime>) -> Arc<dyn Runtime> {
        Arc::new(Self {
            inner,
            has_endpoint: AtomicBool::new(false),
        })
    }
}

impl Runtime for Receiving {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        self.inner.new_timer(at)
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        if self.has_endpoint.swap(true, Ordering::Relaxed) {
            return self.inner.spawn(task);
        }
        self.inner.spawn(Box::pin(Turns {
            // tokio has a task that has done much wake itself and go; here it would come back at once and find that it is to go.
            task: Box::pin(unconstrained(task)),
            signal: None,
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

/// A task that is polled again at once when it wakes itself, until its turn is over.
struct Turns {
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
    signal: Option<Arc<Signal>>,
    clock: Arc<dyn Runtime>,
}

impl Future for Turns {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        // quinn keeps the first waker that it gets; a task of ours is never moved to another.
        let signal = this
            .signal
            .get_or_insert_with(|| Arc::new(Signal::new(context.waker().clone())));
        let waker = Waker::from(Arc::clone(signal));
        let began = this.clock.now();
        loop {
            signal.state.store(POLLED, Ordering::SeqCst);
            if this
                .task
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_ready()
            {
                return Poll::Ready(());
            }
            if signal.state.swap(AT_REST, Ordering::SeqCst) != WOKEN {
                return Poll::Pending;
            }
            if this.clock.now().saturating_duration_since(began) >= TURN {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

const AT_REST: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

/// Wakes the task, or if that is being polled tells it so.
struct Signal {
    outer: Waker,
    state: AtomicU8,
}

impl Signal {
    fn new(outer: Waker) -> Self {
        Self {
            outer,
            state: AtomicU8::new(AT_REST),
        }
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let seen = self
            .state
            .compare_exchange(POLLED, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        if seen == Err(AT_REST) {
            self.outer.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// A clock that goes on by a millisecond whenever it is read, and a list of what was spawned.
    #[derive(Debug)]
    struct Host {
        began: Instant,
        read: AtomicU32,
        spawned: Mutex<Vec<Task>>,
    }

    struct Task(Pin<Box<dyn Future<Output = ()> + Send>>);

    impl std::fmt::Debug for Task {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Task")
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
            self.spawned.lock().unwrap().push(Task(task));
        }
        fn wrap_udp_socket(&self, _: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn now(&self) -> Instant {
            self.began + Duration::from_millis(1) * self.read.fetch_add(1, Ordering::Relaxed)
        }
    }

    /// Counts how often it is woken.
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

    /// Wakes itself when it is polled, so many times; shows how often it was polled, and its waker.
    struct Reader {
        left: u32,
        polled: Arc<AtomicU32>,
        waker: Arc<Mutex<Option<Waker>>>,
    }

    impl Future for Reader {
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

    /// What a reader that goes on `more` times does in a place of its own.
    struct Fixture {
        task: Task,
        polled: Arc<AtomicU32>,
        inner: Arc<Mutex<Option<Waker>>>,
        outer: Arc<Woken>,
    }

    impl Fixture {
        fn spawn(more: u32, endpoint: bool) -> Self {
            let host = Host::new();
            let runtime = Receiving::on(host.clone());
            if !endpoint {
                runtime.spawn(Box::pin(async {}));
            }
            let (polled, inner) = (Arc::default(), Arc::default());
            runtime.spawn(Box::pin(Reader {
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
    fn reading_goes_on_in_one_turn_until_nothing_is_left() {
        let mut reader = Fixture::spawn(4, true);
        assert_eq!(reader.poll(), 5);
        assert_eq!(reader.outer.times(), 0, "there is nothing to come back for");
    }

    #[test]
    fn a_turn_ends_in_time_and_another_one_is_asked_for() {
        let mut reader = Fixture::spawn(1_000, true);
        assert_eq!(reader.poll(), 10, "a millisecond each");
        assert_eq!(reader.outer.times(), 1);
        assert_eq!(reader.poll(), 10);
    }

    #[test]
    fn what_arrives_between_turns_wakes_the_task() {
        let mut reader = Fixture::spawn(0, true);
        reader.poll();
        reader.inner.lock().unwrap().take().unwrap().wake();
        assert_eq!(reader.outer.times(), 1);
        assert_eq!(reader.poll(), 1);
    }

    #[tokio::test]
    async fn reading_much_is_no_reason_to_stand_in_line() {
        let host = Host::new();
        Receiving::on(host.clone()).spawn(Box::pin(async {
            for _ in 0..1_000 {
                tokio::task::consume_budget().await;
            }
        }));
        let mut task = host.spawned.lock().unwrap().pop().unwrap();
        let waker = Waker::from(Arc::<Woken>::default());
        assert!(task.0.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    }

    #[test]
    fn connections_stand_in_line_as_ever() {
        let mut connection = Fixture::spawn(4, false);
        assert_eq!(connection.poll(), 1);
        assert_eq!(connection.outer.times(), 1);
    }
}
