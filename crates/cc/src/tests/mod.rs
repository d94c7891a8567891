//! Tests of whole controllers, through the public API.

mod actions;
mod allocations;
mod ceiling;
mod conditions;
mod cubic;
mod docs;
mod earlier_tcp;
mod golden;
mod growth;
mod hystartpp;
mod idle;
mod idle_policies;
mod invariants;
mod properties;
mod registry;
mod reno;
mod slow_start;
mod spec;
pub(crate) mod trace;

use core::fmt::Debug;
use core::ops::RangeBounds;
use core::time::Duration;
use std::sync::Arc;

use crate::component::Needs;
use crate::events::{AckFrame, Acked, Congestion, Signal};
use crate::state::{Batch, Core};
use crate::testing::Connection;
use crate::{Bytes, ControllerSpec, Path, Phase, Reason, SpecError, Timestamp};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const MS_IN_NS: u64 = 1_000_000;
/// Bytes of a packet on the smallest path, [`Path::default`].
pub(crate) const MTU: u64 = 1_200;
/// The algorithms that grow their windows by acknowledged bytes.
pub(crate) const WINDOW_BASED: [&str; 7] = ["reno", "cubic", "compound", "lia", "olia", "vegas", "stream"];

pub(crate) fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// One packet that left at 1.9 s is declared lost at 2 s.
pub(crate) fn loss() -> Congestion {
    Congestion::new(at(2_000), at(1_900), Signal::loss(Bytes::new(MTU)))
}

/// An [`AckFrame`] that owns its runs.
#[derive(Clone, Debug)]
pub(crate) struct OwnedFrame {
    pub(crate) now: Timestamp,
    pub(crate) acked: Vec<Acked>,
    pub(crate) in_flight: Bytes,
    pub(crate) app_limited: bool,
    pub(crate) smoothed_rtt: Option<Duration>,
}

impl OwnedFrame {
    pub(crate) fn event(&self) -> AckFrame<'_> {
        AckFrame::new(self.now, &self.acked, self.in_flight)
            .with_app_limited(self.app_limited)
            .with_smoothed_rtt(self.smoothed_rtt)
    }
}

#[track_caller]
pub(crate) fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() < tolerance, "{a} is not {b}");
}

/// Fails with the value if it is not in `range`.
#[track_caller]
pub(crate) fn assert_in<T: Copy + PartialOrd + Debug>(value: T, range: impl RangeBounds<T> + Debug) {
    assert!(range.contains(&value), "{value:?} is not in {range:?}");
}

/// Fails unless `value` is `expected` within this many percent.
#[track_caller]
pub(crate) fn assert_about(value: u64, expected: u64, percent: u64) {
    let off = value.abs_diff(expected) * 100;
    assert!(
        off <= expected * percent,
        "{value} is not {expected} within {percent} %"
    );
}

pub(crate) fn spec(text: &str) -> ControllerSpec {
    text.parse().expect("a valid spec")
}

/// The message of an error.
#[track_caller]
pub(crate) fn error_of(spec: Result<ControllerSpec, SpecError>) -> String {
    spec.expect_err("must be refused").to_string()
}

#[track_caller]
pub(crate) fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{text:?} lacks {part:?}");
}

/// A connection with 1200-byte packets, 1 ms after its start.
pub(crate) fn connection(text: &str) -> Connection {
    with_mtu(text, 1_200)
}

pub(crate) fn with_mtu(text: &str, mtu: u64) -> Connection {
    let mut connection = Connection::on(&Path::new(Bytes::new(mtu)), &spec(text));
    connection.pass(MS);
    connection
}

/// Sends packets regardless of the window, and lets a round trip of 100 ms pass.
pub(crate) fn fly(c: &mut Connection, packets: usize) {
    c.send(packets);
    c.pass(MS * 100);
}

/// A flight that one ACK frame acknowledges.
pub(crate) fn flight(c: &mut Connection, packets: usize) {
    fly(c, packets);
    c.ack(packets);
}

/// A flight limited by the application, which grows nothing. Windows up to twice its size may grow from then on.
pub(crate) fn limited_flight(c: &mut Connection, packets: usize) {
    c.set_app_limited(true);
    flight(c, packets);
    c.set_app_limited(false);
}

/// A round trip with up to `packets` packets, as the window allows; a frame acknowledges two.
pub(crate) fn round(c: &mut Connection, packets: usize) {
    c.offer(packets);
    c.pass(MS * 100);
    ack_in_twos(c);
}

/// Round trips limited by the window: the application has more to send.
pub(crate) fn busy(c: &mut Connection, rounds: usize) {
    c.set_smoothed_rtt(Some(MS * 100));
    for _ in 0..rounds {
        round(c, 4_000);
    }
}

/// Round trips limited by the application, which sends only `packets` packets in each.
pub(crate) fn limited(c: &mut Connection, packets: usize, rounds: usize) {
    c.set_smoothed_rtt(Some(MS * 100));
    for _ in 0..rounds {
        c.send(packets);
        c.set_app_limited(true);
        c.pass(MS * 100);
        ack_in_twos(c);
    }
}

/// A round trip whose packets, up to `packets`, arrive at 20 Mbit/s.
pub(crate) fn train(c: &mut Connection, packets: usize) {
    c.offer(packets);
    c.pass(MS * 100);
    ack_at_20_mbps(c);
}

/// Acknowledges everything in flight, two packets per frame, which arrive at 20 Mbit/s.
pub(crate) fn ack_at_20_mbps(c: &mut Connection) {
    while c.packets_in_flight() > 0 {
        c.pass(Duration::from_micros(960));
        c.ack(2);
    }
}

/// Acknowledges everything in flight, two packets per frame.
pub(crate) fn ack_in_twos(c: &mut Connection) {
    while c.packets_in_flight() > 0 {
        c.ack(2);
    }
}

/// Acknowledges everything in flight, one packet per frame.
pub(crate) fn ack_one_by_one(c: &mut Connection) {
    while c.packets_in_flight() > 0 {
        c.ack(1);
    }
}

/// Phase of the controller and cause of its last change.
pub(crate) fn state(c: &Connection) -> (Phase, Reason) {
    let snapshot = c.snapshot();
    (snapshot.phase, snapshot.reason)
}

/// Slow start threshold, bytes; the largest number while it is infinite.
pub(crate) fn ssthresh(c: &Connection) -> u64 {
    c.snapshot().ssthresh.map_or(u64::MAX, Bytes::as_u64)
}

impl Batch {
    /// A frame that acknowledges one packet of 1200 B after this RTT.
    pub(crate) fn sample(now_ms: u64, rtt_ms: u64, new_round: bool) -> Self {
        Self {
            acked: MTU,
            newest_sent: at(now_ms.saturating_sub(rtt_ms)),
            allowance: MTU,
            now: at(now_ms),
            in_flight: 24_000,
            rtt_ns: Some(rtt_ms * MS_IN_NS),
            packets: 1,
            limited: false,
            new_round,
            after_recovery: false,
        }
    }

    /// The same frame with another allowance.
    pub(crate) const fn with_allowance(self, allowance: u64) -> Self {
        Self { allowance, ..self }
    }

    /// The same frame while something other than the window limits the sender.
    pub(crate) fn limited(now_ms: u64, rtt_ms: u64, new_round: bool) -> Self {
        Self {
            allowance: 0,
            limited: true,
            ..Self::sample(now_ms, rtt_ms, new_round)
        }
    }
}

impl Core {
    /// A core for tests of one component: `window` and these RTTs (the smallest, then the latest) on a path
    /// of 1200 B packets.
    pub(crate) fn sample(window: u64, base_ms: u64, rtt_ms: u64) -> Self {
        let mut core = Self::new(&Path::default(), 2, Needs::default(), Arc::default());
        core.set_window(window);
        core.rtt.on_batch(at(base_ms), at(0), 2);
        let smoothed = Duration::from_millis(rtt_ms);
        core.rtt.set_transport_smoothed(Some(smoothed));
        core.rtt.on_batch(at(1_000 + rtt_ms), at(1_000), 2);
        core
    }
}
