//! Admission at times that the tests choose.

use std::time::{Duration, Instant};

use super::*;

const MS: Duration = Duration::from_millis(1);

fn start() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "only differences of times matter")]
    Instant::now()
}

fn limits(set: impl FnOnce(&mut Limits)) -> Arc<Admission> {
    let mut limits = Limits::default();
    set(&mut limits);
    Admission::new(limits)
}

/// Admits `wanted` sessions, or as many as possible.
fn crowd(admission: &Arc<Admission>, wanted: usize, at: Instant) -> Vec<Ticket> {
    (0..wanted)
        .map_while(|_| admission.admit(None, at).ok())
        .collect()
}

/// A server whose ticks come every [`TICK`], each late by a given time, and that uses a given share of its processors.
struct Ticking {
    admission: Arc<Admission>,
    now: Instant,
    used: Duration,
}

impl Ticking {
    fn new(admission: &Arc<Admission>) -> Self {
        Self {
            admission: Arc::clone(admission),
            now: start(),
            used: Duration::ZERO,
        }
    }

    /// A server that has been punctual for two seconds.
    fn punctual(admission: &Arc<Admission>) -> Self {
        let mut server = Self::new(admission);
        server.go(Duration::from_secs(2), MS, 0.0);
        server
    }

    /// Reason why it refuses another session now.
    fn refusal(&self) -> Option<Refusal> {
        self.admission.admit(None, self.now).err()
    }

    fn go(&mut self, time: Duration, late: Duration, cpu: f64) {
        let end = self.now + time;
        while self.now < end {
            let due = self.now + TICK;
            let fired = due + late;
            self.used += (fired - self.now).mul_f64(cpu);
            self.now = fired;
            self.admission.observe(due, fired, Some(self.used));
        }
    }
}

#[test]
fn without_limits_every_session_is_admitted_and_nothing_is_measured() {
    let admission = limits(|_| ());
    assert!(!admission.limits.depend_on_load());
    let all = crowd(&admission, 5_000, start());
    assert_eq!((all.len(), admission.load().sessions), (5_000, 5_000));
}

#[test]
fn a_session_that_ends_makes_room_for_another() {
    let admission = limits(|limits| limits.sessions = Some(2));
    let now = start();
    let mut two = crowd(&admission, 3, now);
    assert_eq!(two.len(), 2);
    assert_eq!(admission.admit(None, now).unwrap_err(), Refusal::Sessions);
    two.pop();
    assert_eq!(crowd(&admission, 3, now).len(), 1);
    // The third of the first three, the one after them, and the second of the last two.
    assert_eq!(admission.load().refused, 3);
}

#[test]
fn rates_are_added_up_as_they_change_and_given_back() {
    let admission = limits(|limits| limits.capacity = Some(Bitrate::from_mbps(12)));
    let (now, rate) = (start(), Some(Bitrate::from_mbps(5)));
    let mut first = admission.admit(rate, now).unwrap();
    let second = admission.admit(rate, now).unwrap();
    assert_eq!(admission.admit(rate, now).unwrap_err(), Refusal::Capacity);
    first.set_rate(Bitrate::from_mbps(2));
    let third = admission.admit(rate, now).unwrap();
    assert_eq!(admission.load().rate, Bitrate::from_mbps(12));
    drop((first, second, third));
    let expected = Load {
        refused: 1,
        ..Load::default()
    };
    assert_eq!(admission.load(), expected);
}

#[test]
fn timers_that_fire_late_keep_new_sessions_out_until_they_are_punctual_again() {
    let admission = limits(|limits| limits.lag = Some(10 * MS));
    let mut server = Ticking::punctual(&admission);
    let there = admission.admit(None, server.now).unwrap();
    server.go(Duration::from_secs(1), 30 * MS, 0.0);
    assert_eq!(server.refusal(), Some(Refusal::Lag));
    assert_eq!(admission.load().lag, Some(30 * MS));
    server.go(Duration::from_secs(2), MS, 0.0);
    assert_eq!(server.refusal(), None);
    drop(there);
}

#[test]
fn one_late_timer_is_no_overload_and_a_standstill_is() {
    let admission = limits(|limits| limits.lag = Some(10 * MS));
    let mut server = Ticking::punctual(&admission);
    server.go(MS, 50 * MS, 0.0);
    assert_eq!(server.refusal(), None);
    // One tick, but as late as the twenty that should have come meanwhile.
    server.go(MS, 400 * MS, 0.0);
    assert_eq!(server.refusal(), Some(Refusal::Lag));
}

#[test]
fn busy_processors_keep_new_sessions_out() {
    let admission = limits(|limits| limits.cpu = Some(Probability::from_parts_per_billion(800_000_000)));
    let mut server = Ticking::new(&admission);
    server.go(Duration::from_secs(3), MS, 0.5);
    let one = admission.admit(None, server.now).unwrap();
    server.go(Duration::from_secs(6), MS, 0.9);
    assert_eq!(server.refusal(), Some(Refusal::Cpu));
    let cpu = admission.load().cpu.unwrap();
    assert!((0.88..0.91).contains(&cpu), "{cpu}");
    drop(one);
}

#[test]
fn new_sessions_count_with_the_cost_of_the_others() {
    let admission = limits(|limits| limits.cpu = Some(Probability::from_parts_per_billion(800_000_000)));
    let mut server = Ticking::new(&admission);
    let mut there = Vec::new();
    for _ in 0..10 {
        there.extend(crowd(&admission, 1_000, server.now));
        server.go(Duration::from_secs(1), MS, 0.1);
    }
    assert!(there.len() > 160, "they come slowly: {}", there.len());
    there.truncate(100);
    server.go(Duration::from_secs(12), MS, 0.7);
    // 100 sessions cost 0.7, so that 0.8 is reached by 114.
    let more = crowd(&admission, 1_000, server.now);
    assert!((13..=15).contains(&more.len()), "{}", more.len());
    assert_eq!(server.refusal(), Some(Refusal::Cpu));
}

#[test]
fn a_rush_ends_at_the_share_although_it_is_measured_late() {
    let admission = limits(|limits| limits.cpu = Some(Probability::from_parts_per_billion(650_000_000)));
    let mut server = Ticking::new(&admission);
    let mut there = Vec::new();
    // More clients than the server has room for keep asking, and each session costs a thousandth.
    for _ in 0..1_500 {
        there.extend(crowd(&admission, 2_000, server.now));
        server.go(TICK, MS, there.len() as f64 / 1_000.0);
    }
    assert!((640..=660).contains(&there.len()), "{}", there.len());
}

#[test]
fn a_rush_is_admitted_gradually_where_load_decides() {
    let admission = limits(|limits| limits.lag = Some(10 * MS));
    let mut server = Ticking::punctual(&admission);
    let mut there = crowd(&admission, 1_000, server.now);
    assert_eq!(there.len(), 16);
    assert_eq!(server.refusal(), Some(Refusal::Ramp));
    for _ in 0..20 {
        server.go(Duration::from_millis(1_100), MS, 0.0);
        there.extend(crowd(&admission, 1_000, server.now));
    }
    assert!(there.len() > 700, "{}", there.len());
}

#[test]
fn clients_refused_together_come_again_at_different_times() {
    let admission = limits(|limits| limits.sessions = Some(0));
    let now = start();
    let retry_times: Vec<u64> = (0..12)
        .map(|_| {
            assert_eq!(admission.admit(None, now).unwrap_err(), Refusal::Sessions);
            admission.retry_after().as_secs()
        })
        .collect();
    assert_eq!(retry_times, [10, 11, 12, 13, 14, 15, 10, 11, 12, 13, 14, 15]);
}

#[test]
fn sessions_of_all_threads_count_together() {
    let one = limits(|limits| limits.sessions = Some(3));
    let other = one.of_another_thread();
    let now = start();
    let two = crowd(&one, 2, now);
    let third = crowd(&other, 3, now);
    assert_eq!((two.len(), third.len()), (2, 1));
    assert_eq!((one.load(), other.load().sessions), (other.load(), 3));
    drop(two);
    assert_eq!(crowd(&other, 3, now).len(), 2);
}

#[test]
fn a_late_thread_refuses_sessions_and_a_punctual_one_beside_it_admits_them() {
    let late = limits(|limits| limits.lag = Some(10 * MS));
    let punctual = late.of_another_thread();
    let now = start();
    for tick in 1..=50 {
        let due = now + TICK * tick;
        late.observe(due, due + 30 * MS, None);
        // The whole process's time, counted by the first thread alone.
        punctual.observe(due, due + MS, Some(TICK * tick));
    }
    assert_eq!(late.admit(None, now).unwrap_err(), Refusal::Lag);
    let _admitted = punctual.admit(None, now).unwrap();
    assert_eq!(punctual.load().lag, Some(30 * MS), "the worst is reported");
    assert_eq!(punctual.load().cpu, None);
}
