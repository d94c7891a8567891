//! Reports of a relay: counters, lateness and validity of a run.

use core::fmt;
use core::time::Duration;

use serde::Serialize;

use crate::{LinkSeries, LinkStats, PathConfig};

/// Divisor of the path's own delay, its propagation RTT plus its full queue, for [`Lateness::limit`]. A tenth resembles
/// the jitter of a usual path.
const LIMIT_PART: u32 = 10;

/// Smallest [`Lateness::limit`]: the resolution of a scheduler; no measurement of a path can be finer.
const LEAST_LIMIT: Duration = Duration::from_millis(1);

/// Divisor of [`Lateness::limit`] for the largest valid mean: one hundredth of the path's own delay.
const MEAN_PART: u32 = 10;

/// At most one datagram in this many may exceed the limit.
const LATE_ONE_IN: u64 = 100;

/// Delay of the relay's actions after their due times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lateness {
    /// Maximum, over datagrams and over wake-ups while there was traffic.
    pub max: Duration,
    /// The mean over all datagrams sent.
    pub mean: Duration,
    /// Lateness of a datagram that can change its receiver's behaviour: a tenth of the path's own delay, which is its
    /// propagation RTT plus the delay of its full queue.
    pub limit: Duration,
    /// Datagrams sent, late or not.
    pub datagrams: u64,
    /// Datagrams that left more than `limit` late.
    pub beyond_limit: u64,
    /// Sum over all datagrams, from which the mean is computed.
    #[serde(skip)]
    sum: Duration,
}

impl Lateness {
    /// Returns true if the lateness may have changed the result: its mean exceeds a hundredth of the path's own delay,
    /// or more than one datagram in a hundred left beyond the limit. Smaller lateness resembles jitter of the path.
    pub fn matters(&self) -> bool {
        self.mean > self.limit / MEAN_PART || self.beyond_limit.saturating_mul(LATE_ONE_IN) > self.datagrams
    }

    /// No datagrams yet; `limit` is [`Lateness::limit_of`].
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Counts a datagram that left this late.
    pub(super) fn datagram(&mut self, by: Duration) {
        self.woke(by);
        self.datagrams += 1;
        self.sum = self.sum.saturating_add(by);
        self.mean = self.sum / u32::try_from(self.datagrams).unwrap_or(u32::MAX);
        self.beyond_limit += u64::from(by > self.limit);
    }

    /// Notes a wake-up that came this late.
    pub(super) fn woke(&mut self, by: Duration) {
        self.max = self.max.max(by);
    }

    /// The limit of this path.
    pub(super) fn limit_of(path: &PathConfig) -> Duration {
        let round_trip = path.round_trip();
        let queueing = path.forward.rate.mean().zip(path.forward.queue_limit(round_trip));
        let queueing = queueing.and_then(|(rate, queue)| rate.time_for(queue));
        let delay = round_trip.saturating_add(queueing.unwrap_or_default());
        (delay / LIMIT_PART).max(LEAST_LIMIT)
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        write!(
            f,
            "{} of {} datagrams more than {:.1} ms late, {:.2} ms on average, {:.1} ms at most",
            self.beyond_limit,
            self.datagrams,
            ms(self.limit),
            ms(self.mean),
            ms(self.max)
        )
    }
}

/// Counters of one direction of the relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RelayDirection {
    /// Counters of the link. Its `delivered` have left the queue; they may still be in transit.
    pub link: LinkStats,
    /// Datagrams handed to the kernel for their receiver.
    pub forwarded: u64,
    /// Datagrams that the kernel refused, or whose receiver's socket is gone.
    pub failed: u64,
    /// Datagrams inside the relay, waiting to be sent.
    pub inside: u64,
    /// Datagrams dropped for lack of memory.
    pub overflowed: u64,
}

/// State of a relay at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RelaySnapshot {
    /// Since the relay started.
    pub elapsed: Duration,
    /// From the server to its clients.
    pub forward: RelayDirection,
    /// From the clients to the server.
    pub backward: RelayDirection,
    /// Lateness of the relay.
    pub lateness: Lateness,
    /// Current number of clients.
    pub clients: usize,
    /// Datagrams dropped because `max_clients` was reached or no socket could be opened.
    pub turned_away: u64,
    /// Number of times that the kernel reported the server's port as closed.
    pub server_unreachable: u64,
}

/// Reason why a run is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RelayFlaw {
    /// The relay was so late that the result may have changed ([`Lateness::matters`]): the machine was too busy.
    Late(Lateness),
    /// The kernel dropped this many datagrams before the relay could read them: losses outside the model.
    KernelDrops(u64),
    /// The relay reached its memory limit: losses outside the model.
    Overflow(u64),
}

impl fmt::Display for RelayFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(lateness) => write!(f, "{lateness}"),
            Self::KernelDrops(n) => write!(
                f,
                "{n} datagrams lost in the kernel's socket buffers, outside the model"
            ),
            Self::Overflow(n) => write!(f, "{n} datagrams beyond the relay's memory limit"),
        }
    }
}

/// Result of a relay's run, from start to stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RelayReport {
    /// All counters at the end.
    pub totals: RelaySnapshot,
    /// From the server to its clients, over time.
    pub forward_series: LinkSeries,
    /// Datagrams that the kernel dropped because the relay did not read in time; `None` if the system does not report
    /// them.
    pub kernel_drops: Option<u64>,
}

impl RelayReport {
    /// Reasons why this run is invalid; none if the path behaved as configured all the time.
    pub fn flaws(&self) -> Vec<RelayFlaw> {
        let late = self.totals.lateness;
        let drops = self.kernel_drops.unwrap_or(0);
        let overflow = self.totals.forward.overflowed + self.totals.backward.overflowed;
        let flaws = [
            late.matters().then_some(RelayFlaw::Late(late)),
            (drops > 0).then_some(RelayFlaw::KernelDrops(drops)),
            (overflow > 0).then_some(RelayFlaw::Overflow(overflow)),
        ];
        flaws.into_iter().flatten().collect()
    }
}

impl fmt::Display for RelayReport {
    /// Writes a few lines: datagrams passed and dropped, lateness, and reasons why the run is invalid.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = &self.totals;
        for (name, way) in [
            ("server to clients", &totals.forward),
            ("clients to server", &totals.backward),
        ] {
            let (link, dropped) = (&way.link, &way.link.dropped);
            writeln!(
                f,
                "{name}: {} of {} datagrams, {:.2} Mbit/s\n  dropped {} by the queue, {} at random, {} too big; \
                 longest queue {} ({} ms)",
                way.forwarded,
                link.offered.packets,
                link.delivered_rate(totals.elapsed).as_mbps(),
                dropped.queue_full.packets,
                dropped.loss.packets,
                dropped.too_big.packets,
                link.max_queue,
                link.max_queue_delay.as_millis(),
            )?;
        }
        write!(f, "{}", totals.lateness)?;
        for flaw in self.flaws() {
            write!(f, "\nnot valid: {flaw}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use playrate_units::{Bitrate, Bytes};

    use crate::{LinkConfig, QueueLimit, Rate};

    /// Lateness with the limit of this many ms, after this many datagrams that were this many ms late.
    fn lateness(limit: u64, datagrams: &[(u64, u64)]) -> Lateness {
        let mut sum = Lateness::new(Duration::from_millis(limit));
        for &(number, late) in datagrams {
            for _ in 0..number {
                sum.datagram(Duration::from_millis(late));
            }
        }
        sum
    }

    #[test]
    fn lateness_matters_by_its_share_and_its_size_against_the_path() {
        for (limit, datagrams, matters) in [
            (22, &[(9_999, 0), (1, 300)][..], false),
            (22, &[(9_900, 0), (100, 23)], false),
            (22, &[(9_899, 0), (101, 23)], true),
            (22, &[(1_000, 2)], false),
            (22, &[(1_000, 3)], true),
            (1, &[(1_000, 1)], true),
            (22, &[], false),
        ] {
            assert_eq!(lateness(limit, datagrams).matters(), matters, "{datagrams:?}");
        }
    }

    #[test]
    fn the_limit_is_a_tenth_of_the_round_trip_with_a_full_queue() {
        let (rate, rtt) = (Bitrate::from_mbps(8), Duration::from_millis(100));
        let queue = QueueLimit::Bytes(Bytes::from_kb(100));
        let path = PathConfig::bottleneck(rate, rtt, queue, playrate_units::Probability::ZERO);
        assert_eq!(Lateness::limit_of(&path), Duration::from_millis(20));
        let quick = || LinkConfig::new(Rate::Unlimited, Duration::from_millis(2));
        assert_eq!(
            Lateness::limit_of(&PathConfig::new(quick(), quick())),
            LEAST_LIMIT
        );
    }

    #[test]
    fn a_run_is_invalid_when_it_was_late_or_lost_packets_outside_the_model() {
        let mut report = RelayReport {
            totals: RelaySnapshot {
                lateness: lateness(20, &[(99, 1), (1, 25)]),
                ..RelaySnapshot::default()
            },
            forward_series: LinkSeries::new(Duration::from_millis(10), 2),
            kernel_drops: None,
        };
        assert!(report.flaws().is_empty(), "{report}");

        let late = lateness(20, &[(98, 1), (2, 25)]);
        report.totals.lateness = late;
        report.kernel_drops = Some(3);
        report.totals.backward.overflowed = 2;
        assert_eq!(
            report.flaws(),
            [
                RelayFlaw::Late(late),
                RelayFlaw::KernelDrops(3),
                RelayFlaw::Overflow(2)
            ]
        );
        let said =
            "not valid: 2 of 100 datagrams more than 20.0 ms late, 1.48 ms on average, 25.0 ms at most";
        assert!(report.to_string().contains(said), "{report}");
    }
}
