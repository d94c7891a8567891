//! [`trace`]: one controller on one fixed path; records the window once per round trip.

pub(crate) mod flight;
mod network;
mod sender;

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use super::MTU;
use crate::testing::Demand;
use crate::{Bitrate, Bytes, ControllerSpec, Path, Phase, Timestamp};

pub(crate) use network::{Conditions, Habit, Link, Network};
use sender::Sender;

/// The path of every golden trace: 20 Mbit/s, 100 ms, a queue of one bandwidth-delay product.
pub(crate) const LINK: Link = Link {
    rate: Bitrate::from_mbps(20),
    rtt: Duration::from_millis(100),
    queue: Bytes::new(250_000),
};
/// The video's average rate in Watanabe et al. 2014: 409 MB in 624 s.
const VIDEO_RATE: Bitrate = Bitrate::from_kbps(5_240);
/// The playout buffer there: 448 packets of 1464 B.
const PLAYOUT_BUFFER: Bytes = Bytes::new(655_872);
const LENGTH_NS: u64 = 30_000_000_000;
/// Interval of [`Demand::Segments`], and playing time of each segment.
const SEGMENT_NS: u64 = 4_000_000_000;

/// Time when a packet is lost although the queue has room for it, ns: arbitrary, but with data in flight.
const fn random_loss_ns(demand: Demand) -> u64 {
    match demand {
        Demand::Endless => 18_713_000_000,
        Demand::Segments => 20_713_000_000,
    }
}

/// A controller's state at the end of a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    /// End of the round trip.
    pub(crate) at: Timestamp,
    /// Phase that the controller was in.
    pub(crate) phase: Phase,
    /// Congestion window at its end.
    pub(crate) window: Bytes,
    /// The smallest and largest window of the round trip, as of each ACK frame.
    pub(crate) range: (Bytes, Bytes),
    /// Bytes that wait at the link.
    pub(crate) queued: Bytes,
    /// Bytes acknowledged since the connection began.
    pub(crate) delivered: Bytes,
    /// Packets declared lost since the connection began.
    pub(crate) lost: u64,
}

/// The course of a run, round trip by round trip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    /// All round trips of the run.
    pub(crate) rounds: Vec<Round>,
    /// Largest number of bytes that were in flight.
    pub(crate) largest_flight: u64,
    /// Largest simultaneous number of gaps at the receiver.
    pub(crate) most_gaps: usize,
}

/// Runs `spec` over [`LINK`] for thirty seconds with packets of 1200 B.
///
/// The sender paces like quinn and the receiver acknowledges every second packet. Rate and playout buffer of the video
/// are known, the player's buffered time is not. One packet is lost at random, 18.713 s (segments: 20.713 s) after the
/// start; the queue causes all other losses.
pub(crate) fn trace(spec: &ControllerSpec, demand: Demand) -> Trace {
    trace_losing(LINK, spec, demand, Some(random_loss_ns(demand)))
}

/// [`trace`] over another link, with the first packet after `lose_after` ns lost at random, or none.
///
/// # Panics
/// If the controller violates an invariant.
pub(crate) fn trace_losing(
    link: Link,
    spec: &ControllerSpec,
    demand: Demand,
    lose_after: Option<u64>,
) -> Trace {
    let network = Network::new(link, Habit::STANDARD, lose_after);
    run(network, spec, demand, None)
}

/// An endless transfer over `link` without random loss.
///
/// # Panics
/// If the controller violates an invariant.
pub(crate) fn lossless(link: Link, spec: &str) -> Trace {
    trace_losing(link, &super::spec(spec), Demand::Endless, None)
}

/// [`lossless`] against traffic that keeps the queue half full from `from` to `to` (seconds).
///
/// # Panics
/// If the controller violates an invariant.
pub(crate) fn trace_beside_filler(link: Link, spec: &ControllerSpec, (from, to): (u64, u64)) -> Trace {
    let filler = Filler {
        from: from * 1_000_000_000,
        to: to * 1_000_000_000,
        level: link.queue.as_u64() / 2,
    };
    let network = Network::new(link, Habit::STANDARD, None);
    run(network, spec, Demand::Endless, Some(filler))
}

/// An endless transfer of the given seconds over `link`, without random loss, under additional conditions, to a
/// receiver that acknowledges as the controller requests.
///
/// # Panics
/// If the controller violates an invariant.
pub(crate) fn trace_under(link: Link, conditions: Conditions, spec: &ControllerSpec, seconds: u64) -> Trace {
    let asked = spec.build(&Path::default(), Arc::default()).packets_per_ack();
    let mut network = Network::new(link, asked.map_or(Habit::STANDARD, Habit::asked), None);
    network.conditions = conditions;
    network.end = seconds * 1_000_000_000;
    run(network, spec, Demand::Endless, None)
}

/// [`trace`] to a receiver that acknowledges as browsers do.
///
/// # Panics
/// If the controller violates an invariant.
pub(crate) fn trace_to_browser(spec: &ControllerSpec, demand: Demand) -> Trace {
    let network = Network::new(LINK, Habit::BROWSER, Some(random_loss_ns(demand)));
    run(network, spec, demand, None)
}

/// Traffic that keeps the queue at `level` bytes from `from` to `to` (ns).
#[derive(Clone, Copy, Debug)]
struct Filler {
    from: u64,
    to: u64,
    level: u64,
}

impl Filler {
    /// Time when it fills the queue again, if that is after `now`.
    fn next(&self, now: u64) -> Option<u64> {
        let next = (now + 1_000_000).max(self.from);
        (next < self.to).then_some(next)
    }
}

fn run(network: Network, spec: &ControllerSpec, demand: Demand, filler: Option<Filler>) -> Trace {
    let end = network.end;
    let mut sender = Sender::new(spec, network);
    if !sender.network.conditions.uninformed {
        sender.connection.known.set_average_rate(Some(VIDEO_RATE));
        sender.connection.known.set_playout_buffer(Some(PLAYOUT_BUFFER));
    }
    let mut next_segment = match demand {
        Demand::Endless => None,
        Demand::Segments => {
            sender.wanted = Some(0);
            Some(0)
        }
    };
    let segment = (VIDEO_RATE * Duration::from_nanos(SEGMENT_NS)).as_u64();
    let mut rounds = Vec::new();
    let mut round_start = Timestamp::ZERO;
    let mut range = None;
    let mut now = 0;
    while now < end {
        if next_segment.is_some_and(|at| at <= now) {
            let packets = segment.div_ceil(sender.connection.mtu());
            sender.wanted = sender.wanted.map(|wanted| wanted + packets);
            next_segment = Some(now + SEGMENT_NS);
        }
        if let Some(filler) = filler
            && (filler.from..filler.to).contains(&now)
        {
            sender.network.fill(now, filler.level);
        }
        let newest = sender.advance(now);
        if newest.is_some_and(|sent| sent >= round_start) {
            round_start = sender.connection.now();
            let snapshot = sender.connection.snapshot();
            rounds.push(Round {
                at: round_start,
                phase: snapshot.phase,
                window: snapshot.window,
                range: range.take().unwrap_or((snapshot.window, snapshot.window)),
                queued: Bytes::new(sender.network.queued(now)),
                delivered: Bytes::new(sender.delivered),
                lost: sender.lost,
            });
        }
        if newest.is_some() {
            let window = sender.connection.controller().window();
            let (least, most) = range.unwrap_or((window, window));
            range = Some((window.min(least), window.max(most)));
        }
        let next = sender.next_event().into_iter().chain(next_segment);
        let next = next.chain(filler.and_then(|filler| filler.next(now))).min();
        now = next.unwrap_or(end).max(now);
    }
    Trace {
        rounds,
        largest_flight: sender.largest_flight,
        most_gaps: sender.network.most_gaps,
    }
}

impl Trace {
    /// Rate at which bytes arrived from `from` to `to` (seconds).
    pub(crate) fn rate(&self, from: u64, to: u64) -> Bitrate {
        let within: Vec<&Round> = self.within(from, to).collect();
        let (Some(first), Some(last)) = (within.first(), within.last()) else {
            return Bitrate::ZERO;
        };
        let bytes = last.delivered.as_u64() - first.delivered.as_u64();
        let time = last.at.nanos_since(first.at).max(1);
        Bitrate::from_bits_per_second(bytes * 8 * 1_000_000 / (time / 1_000).max(1))
    }

    /// [`rate`](Self::rate) as a share of [`LINK`]'s, percent.
    pub(crate) fn percent_of_link(&self, from: u64, to: u64) -> u64 {
        self.percent_of(LINK, from, to)
    }

    pub(crate) fn percent_of(&self, link: Link, from: u64, to: u64) -> u64 {
        self.rate(from, to).as_bits_per_second() * 100 / link.rate.as_bits_per_second()
    }

    /// Packets declared lost between `from` and `to` (seconds).
    pub(crate) fn lost(&self, from: u64, to: u64) -> u64 {
        self.grown(from, to, |round| round.lost)
    }

    /// [`lost`](Self::lost) as a share of the packets sent, percent.
    pub(crate) fn lost_percent(&self, from: u64, to: u64) -> f64 {
        let lost = self.lost(from, to);
        let delivered = self.grown(from, to, |round| round.delivered.as_u64()) / MTU;
        lost as f64 * 100.0 / (lost + delivered).max(1) as f64
    }

    /// Growth of a count between `from` and `to` (seconds).
    fn grown(&self, from: u64, to: u64, of: impl Fn(&Round) -> u64) -> u64 {
        let mut values = self.within(from, to).map(of);
        let first = values.next().expect("there are rounds");
        values.last().unwrap_or(first) - first
    }

    /// Mean over the round trips that ended between `from` and `to` (seconds).
    pub(crate) fn mean(&self, from: u64, to: u64, of: impl Fn(&Round) -> u64) -> u64 {
        let values: Vec<u64> = self.within(from, to).map(of).collect();
        values.iter().sum::<u64>() / values.len() as u64
    }

    pub(crate) fn mean_window(&self, from: u64, to: u64) -> u64 {
        self.mean(from, to, |round| round.window.as_u64())
    }

    pub(crate) fn mean_queue(&self, from: u64, to: u64) -> u64 {
        self.mean(from, to, |round| round.queued.as_u64())
    }

    /// The round trips that ended between `from` and `to` (seconds).
    pub(crate) fn within(&self, from: u64, to: u64) -> impl Iterator<Item = &Round> {
        let range = Timestamp::from_millis(from * 1_000)..Timestamp::from_millis(to * 1_000);
        self.rounds.iter().filter(move |round| range.contains(&round.at))
    }
}

/// Windows in bytes, one for each round trip, at most ten in a line; a line begins with the time of its first
/// (ms) and the phase.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut in_line = 0;
        let mut phase = None;
        for round in &self.rounds {
            if in_line == 10 || phase != Some(round.phase) {
                let ms = round.at.as_nanos() / 1_000_000;
                let end = if phase.is_some() { "\n" } else { "" };
                write!(f, "{end}{ms:>6} {}:", round.phase)?;
                in_line = 0;
                phase = Some(round.phase);
            }
            write!(f, " {}", round.window.as_u64())?;
            in_line += 1;
        }
        let (delivered, lost) = self
            .rounds
            .last()
            .map_or((0, 0), |round| (round.delivered.as_u64(), round.lost));
        write!(f, "\n{delivered} B delivered, {lost} packets lost")
    }
}
