use std::pin::Pin;

use futures_util::FutureExt;
use playrate_netsim::{Seed, Simulation};

use super::*;

const LIMIT: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_nanos(1);

/// Virtual time for activities.
pub(in crate::server) struct TestClock(Simulation);

impl TestClock {
    pub(in crate::server) fn new() -> Self {
        Self(Simulation::new(Seed::new(1)))
    }

    /// Activity of a session that begins now.
    pub(in crate::server) fn activity(&self) -> Activity {
        Activity::new(self.0.runtime())
    }

    pub(in crate::server) fn advance(&self, time: Duration) {
        let sleeping = self.0.runtime().sleep(time);
        self.0.run(LIMIT * 100, sleeping).unwrap();
    }
}

fn activity() -> (TestClock, Activity) {
    let clock = TestClock::new();
    let activity = clock.activity();
    (clock, activity)
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
    assert_eq!((idle.since, idle.is_used), (since + MOMENT, true));
}
