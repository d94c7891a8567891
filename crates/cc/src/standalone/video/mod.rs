//! `video`: one controller for every path.
//!
//! It has three modes, and a ceiling in all of them.
//!
//! - *Start*: the window doubles every round trip until the RTT rises, packets are lost, or three rounds deliver no
//!   more.
//! - *Alone*: once per round trip the window shrinks by the bytes that stood in the queue beyond a short target, or
//!   grows if fewer stood there. So random losses cost nothing; losses that a smaller window prevents do.
//! - *Crowded*: back-offs were unsuccessful, or a queue that this sender keeps short overflows, so others fill it. The
//!   window is CUBIC's, but only losses of packets that found a long queue count. From time to time it backs off again.
//! - *Ceiling*: a multiple of the video's rate for some seconds after the player has paused, while others share the
//!   path. So a player that holds enough leaves the path to others.
//!
//! If a connection has several paths, the growth of each is scaled by the square of RFC 6356's factor.
//!
//! Reports of the player and facts from the library can only lower the window, so false values gain nothing.
//!
//! docs/controllers/video.md has the equations, docs/controllers/video-design.md the tested alternatives.

mod model;
mod policy;

use std::sync::Arc;

use core::time::Duration;

use crate::component::Needs;
use crate::entry::Entry;
use crate::events::{AckFrame, Congestion, Sent};
use crate::parameter::{Arguments, Parameter};
use crate::state::{Core, float, floor_bytes};
use crate::timestamp::nanos;
use crate::{
    Bitrate, Bytes, CongestionController, Facts, Path, Probability, Snapshot, Timestamp, VideoKnowledge,
};

use model::{Demand, Model, bytes_in};
use policy::{Mode, Policy};

/// CUBIC's smallest window (RFC 9002 §7.2).
const LEAST_IN_A_CROWD: u64 = 2;
/// Packets per ACK frame requested from the peer. ACK frames for every second packet would queue at an uplink of less
/// than 3 % of the rate, and look like a queue of data.
const PACKETS_PER_ACK: u32 = 6;
/// Part of the window used in the first round after a pause: quinn's pacer sends 1.25 windows per RTT, and no
/// acknowledgements slow it down. A transport that paces by the controller's rate gets the whole window instead.
const AFTER_PAUSE: f64 = 0.8;

/// The controller. Sizes are bytes, times nanoseconds.
#[derive(Clone, Debug)]
struct Video {
    core: Core,
    path: Model,
    policy: Policy,
    demand: Demand,
    /// Window that the transport gets.
    published: u64,
    /// Departure of the first packet after a pause; reset when a later one is acknowledged.
    paused_until: Option<Timestamp>,
}

impl Video {
    fn new(path: &Path, arguments: &Arguments, known: Arc<VideoKnowledge>) -> Self {
        let needs = Needs {
            limited_time: true,
            coupled: true,
            knowledge: Facts::AVERAGE_RATE,
            ..Needs::default()
        };
        let core = Core::new(path, LEAST_IN_A_CROWD, needs, known);
        Self {
            published: core.window(),
            core,
            path: Model::new(nanos(arguments.time("queue"))),
            policy: Policy::new(arguments.number("loss")),
            demand: Demand::from_arguments(arguments),
            paused_until: None,
        }
    }

    /// Computes the published window.
    fn publish(&mut self, now: Timestamp) {
        let window = self.core.window();
        let rtt = self
            .core
            .rtt
            .smoothed_ns()
            .filter(|_| self.policy.is_contended(now));
        let ceiling = rtt.and_then(|rtt| {
            let rtt = rtt.saturating_add(self.path.ack_delay());
            self.demand.ceiling(&self.core, now, rtt)
        });
        let least = match self.policy.mode {
            Mode::Crowded => 0,
            Mode::Start | Mode::Alone => Policy::least(&self.core),
        };
        let useful = ceiling.unwrap_or(u64::MAX);
        self.core.capped = useful < window;
        let mut published = window.min(useful);
        if self.paused_until.is_some() && !self.core.paced {
            published = floor_bytes(AFTER_PAUSE * float(published));
        }
        self.published = self.core.bounded(published.max(least));
    }
}

impl CongestionController for Video {
    fn on_sent(&mut self, event: &Sent) {
        if self.core.in_flight == 0 {
            if let Some(quiet) = self.core.quiet_ns(event.now) {
                let smoothed = self.core.rtt.smoothed_ns().unwrap_or(0);
                self.demand.on_sent(event.now, quiet, smoothed);
            }
            if self.policy.mode != Mode::Start && self.paused_until.is_none() {
                self.paused_until = Some(event.now);
            }
            self.publish(event.now);
        }
        self.core.note_sent(event);
    }

    fn on_ack_frame(&mut self, event: &AckFrame<'_>) -> Bytes {
        let Some(batch) = self.core.note_acked(event) else {
            self.path.lose_track();
            return self.window();
        };
        let frame = self.path.on_frame(batch, event.smoothed_rtt.map(nanos));
        self.demand.on_acked(batch.acked);
        if self.paused_until.is_some_and(|sent| batch.newest_sent > sent) {
            self.paused_until = None;
        }
        self.policy.on_frame(&mut self.core, &mut self.path, &frame);
        self.publish(batch.now);
        self.window()
    }

    fn on_congestion(&mut self, event: &Congestion) {
        if event.is_persistent() {
            self.policy.collapse(&mut self.core, &mut self.path);
            self.paused_until = None;
        } else if !self.core.in_recovery(event.newest_sent) {
            // The last reduction has already answered losses of packets that left before it.
            self.path.on_lost(event.lost());
            self.policy.on_congestion(&mut self.core, &mut self.path, event);
        }
        self.core.note_congestion(event);
        self.publish(event.now);
    }

    fn on_mtu_change(&mut self, mtu: Bytes) {
        self.core.set_mtu(mtu);
        self.publish(self.core.last_acked.unwrap_or(Timestamp::ZERO));
    }

    /// On one of several paths, the ceiling is this share of the video's rate.
    fn on_path_share(&mut self, share: Probability) {
        self.demand.share = share.as_f64();
    }

    fn window(&self) -> Bytes {
        Bytes::new(self.published)
    }

    fn initial_window(&self) -> Bytes {
        Bytes::new(self.core.initial_window())
    }

    /// One window per smoothed RTT under the ceiling and in the first round after a pause. Otherwise 1.25 windows, so
    /// that the pacer is not the limit (RFC 9002 §7.7).
    fn pacing_rate(&self) -> Option<Bitrate> {
        let smoothed = Duration::from_nanos(self.core.rtt.smoothed_ns()?);
        let is_exact = self.core.capped || self.paused_until.is_some();
        let surplus = if is_exact { 0 } else { self.published / 4 };
        Bytes::new(self.published.saturating_add(surplus)).per(smoothed)
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.core.snapshot(self.published);
        let rate = self.path.queue.largest_rate();
        let latest = self.path.queue.latest();
        snapshot.algorithm_window = Some(Bytes::new(self.core.window()));
        snapshot.min_rtt = self.path.queue.min_rtt().map(Duration::from_nanos);
        snapshot.capacity = (rate > 0.0).then(|| Bitrate::from_bytes_per_second(floor_bytes(rate)));
        snapshot.backlog = (rate > 0.0).then(|| Bytes::new(bytes_in(rate, latest)));
        snapshot
    }

    fn packets_per_ack(&self) -> Option<u32> {
        Some(PACKETS_PER_ACK)
    }

    fn requires_every_burst(&self) -> bool {
        false
    }

    fn clone_box(&self) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}

const PARAMETERS: &[Parameter] = &[
    Parameter::number("pace", 2.0, 1.0..=1_000.0).about("times the video's rate after a pause of the player"),
    Parameter::millis("patience", 3_000, 0..=100_000)
        .about("time without a pause after which the player may have all that the path gives"),
    Parameter::millis("queue", 4, 0..=1_000)
        .about("target queueing delay on a fast path; on a slow one, the transmission time of two packets"),
    Parameter::number("loss", 0.02, 0.0..=0.5).about("share of packets whose loss costs nothing"),
    Parameter::switch("rate", true)
        .about("use the rate of the video; off: no ceiling, as for any other data"),
    Parameter::switch("ladder", true)
        .about("use the highest rate that the player may choose; off: the rate it watches"),
    Parameter::switch("player", true).about("believe a player that says it starts up or has run empty"),
];

pub(crate) fn entry() -> Entry {
    Entry::custom("video", |path, arguments, known| {
        Box::new(Video::new(path, arguments, known))
    })
    .about(
        "fast while the player's buffer is low, no faster than it needs; random losses cost nothing, the queue \
         stays short and others get their share",
    )
    .defined_in("docs/controllers/video.md")
    .with_parameters(PARAMETERS)
    .absolute()
}

#[cfg(test)]
mod tests;
