use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use quinn::{AsyncTimer, AsyncUdpSocket, TokioRuntime};

use super::*;

const LIMIT: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_nanos(1);

/// Clock that a test advances by hand, together with all timers on it.
#[derive(Clone, Debug)]
struct TestClock(Arc<Mutex<Instant>>);

impl TestClock {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(TokioRuntime.now())))
    }

    fn advance(&self, time: Duration) {
        *self.0.lock().unwrap() += time;
    }
}

#[derive(Debug)]
struct TestTimer {
    clock: TestClock,
    due: Instant,
}

impl AsyncTimer for TestTimer {
    fn reset(mut self: Pin<&mut Self>, due: Instant) {
        self.due = due;
    }

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.clock.now() >= self.due {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Runtime for TestClock {
    fn new_timer(&self, due: Instant) -> Pin<Box<dyn AsyncTimer>> {
        let clock = self.clone();
        Box::pin(TestTimer { clock, due })
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        *self.0.lock().unwrap()
    }
}

fn activity() -> (TestClock, Activity) {
    let clock = TestClock::new();
    (clock.clone(), Activity::new(Arc::new(clock)))
}

/// Checks that `expired` ends once the limit has passed from now on, and not earlier.
fn assert_expires_after_the_limit(clock: &TestClock, mut expired: Pin<Box<impl Future<Output = ()>>>) {
    clock.advance(LIMIT.saturating_sub(MOMENT));
    assert!(expired.as_mut().now_or_never().is_none());
    clock.advance(MOMENT);
    assert!(expired.as_mut().now_or_never().is_some());
}

#[test]
fn a_session_without_exchanges_expires_after_the_limit() {
    let (clock, activity) = activity();
    let mut expired = Box::pin(activity.expired(Some(LIMIT)));
    assert!(expired.as_mut().now_or_never().is_none());
    assert_expires_after_the_limit(&clock, expired);
}

#[test]
fn the_limit_counts_from_the_end_of_the_last_exchange() {
    let (clock, activity) = activity();
    let mut expired = Box::pin(activity.expired(Some(LIMIT)));
    assert!(expired.as_mut().now_or_never().is_none());
    let [first, second] = [(); 2].map(|()| activity.begin().unwrap());
    clock.advance(LIMIT * 2);
    assert!(expired.as_mut().now_or_never().is_none());
    drop(first);
    clock.advance(LIMIT * 2);
    assert!(expired.as_mut().now_or_never().is_none());
    drop(second);
    assert!(expired.as_mut().now_or_never().is_none());
    assert_expires_after_the_limit(&clock, expired);
}

#[test]
fn an_evicted_session_expires_at_once_and_begins_no_exchange() {
    let (_, activity) = activity();
    assert!(activity.expired(None).now_or_never().is_none());
    assert!(activity.evict(activity.idleness().unwrap().since));
    assert!(activity.expired(None).now_or_never().is_some());
    assert!(activity.begin().is_none());
    assert!(activity.without_exchanges().now_or_never().is_some());
}

#[test]
fn a_session_that_became_busy_meanwhile_is_not_evicted() {
    let (clock, activity) = activity();
    let since = activity.idleness().unwrap().since;
    let exchange = activity.begin();
    assert!(!activity.evict(since), "an exchange is in progress");
    clock.advance(MOMENT);
    drop(exchange);
    assert!(!activity.evict(since), "an exchange has just ended");
    assert!(activity.begin().is_some());
}

#[test]
fn a_request_that_is_still_arriving_protects_nothing() {
    let (clock, activity) = activity();
    let idle = activity.idleness().unwrap();
    let mut arriving = activity.begin_arrival().unwrap();
    clock.advance(MOMENT);
    drop(activity.begin_arrival());
    assert_eq!(activity.idleness(), Some(idle), "no request has arrived");
    assert!(activity.without_exchanges().now_or_never().is_none());
    assert!(activity.evict(idle.since));
    assert!(!arriving.requested(), "the session has made room");
    assert!(activity.without_exchanges().now_or_never().is_some());
}

#[test]
fn a_request_that_has_arrived_makes_the_session_used() {
    let (clock, activity) = activity();
    let since = activity.idleness().unwrap().since;
    let mut arriving = activity.begin_arrival().unwrap();
    assert!(arriving.requested() && arriving.requested());
    assert_eq!(activity.idleness(), None);
    assert!(!activity.evict(since), "an exchange is in progress");
    clock.advance(MOMENT);
    drop(arriving);
    let idle = activity.idleness().unwrap();
    assert_eq!((idle.since, idle.is_unused), (since + MOMENT, false));
}
