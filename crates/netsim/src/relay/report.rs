//! Reports of a relay: counters, lateness and validity of a run.

use core::fmt;
use core::time::Duration;

use playrate_units::{Bytes, duration};

use crate::{LinkSeries, LinkStats};

/// Lateness of a datagram beyond which a run is invalid.
pub const MAX_LATENESS: Duration = Duration::from_millis(5);

/// Delay of the relay's actions after the times at which they were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Lateness {
    /// Maximum, over datagrams and over wake-ups while there was traffic.
    pub max: Duration,
    /// The mean over all datagrams sent.
    pub mean: Duration,
    /// Datagrams that left more than [`MAX_LATENESS`] late.
    pub beyond_limit: u64,
}

/// Counters of one direction of the relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RelayDirection {
    /// Counters of the link. Its `delivered` have left the queue; they may still be travelling.
    pub link: LinkStats,
    /// Datagrams handed to the kernel for their receiver.
    pub forwarded: u64,
    /// Datagrams the kernel would not take, or whose receiver's socket is gone.
    pub failed: u64,
    /// Datagrams inside the relay, waiting for their time.
    pub inside: u64,
    /// Datagrams the relay had no memory for.
    pub overflowed: u64,
}

impl RelayDirection {
    /// Returns true if every datagram read in this direction was forwarded, dropped by the link, refused by
    /// the kernel or is still inside.
    pub fn is_accounted_for(&self) -> bool {
        self.link.is_conserved()
            && self.link.offered.packets
                == self.link.dropped.total().packets + self.forwarded + self.failed + self.inside
    }
}

/// State of a relay at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
    /// Number of clients at the moment.
    pub clients: usize,
    /// Datagrams dropped because `max_clients` was reached or no socket could be opened.
    pub turned_away: u64,
    /// Number of times that the kernel reported the server's port as closed.
    pub server_unreachable: u64,
}

/// Reason for which a run is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum RelayFlaw {
    /// The relay acted later than [`MAX_LATENESS`]: the machine was too busy.
    Late(Duration),
    /// The kernel dropped so many datagrams before the relay could read them: losses outside the model.
    KernelDrops(u64),
    /// The relay ran out of the memory it may use: losses outside the model.
    Overflow(u64),
}

impl fmt::Display for RelayFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(by) => {
                let (limit, by) = (duration::display(MAX_LATENESS), by.as_secs_f64() * 1e3);
                write!(f, "{by:.1} ms late, more than {limit}: the machine was too busy")
            }
            Self::KernelDrops(n) => write!(
                f,
                "{n} datagrams lost in the kernel's socket buffers, outside the model"
            ),
            Self::Overflow(n) => write!(f, "{n} datagrams beyond the relay's memory limit"),
        }
    }
}

/// Result of a relay's run, from start to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RelayReport {
    /// All counters at the end.
    pub totals: RelaySnapshot,
    /// From the server to its clients, over time.
    pub forward_series: LinkSeries,
    /// From the clients to the server, over time.
    pub backward_series: LinkSeries,
    /// Datagrams the kernel dropped because the relay did not read in time; `None` where the system does not
    /// say.
    pub kernel_drops: Option<u64>,
    /// The smallest socket buffer the kernel granted. Below 4 MiB bursts may be lost; then `kernel_drops`
    /// says so.
    pub socket_buffer: Bytes,
}

impl RelayReport {
    /// Reasons for which this run is invalid.
    pub fn flaws(&self) -> Vec<RelayFlaw> {
        let late = self.totals.lateness.max;
        let drops = self.kernel_drops.unwrap_or(0);
        let overflow = self.totals.forward.overflowed + self.totals.backward.overflowed;
        let flaws = [
            (late > MAX_LATENESS).then_some(RelayFlaw::Late(late)),
            (drops > 0).then_some(RelayFlaw::KernelDrops(drops)),
            (overflow > 0).then_some(RelayFlaw::Overflow(overflow)),
        ];
        flaws.into_iter().flatten().collect()
    }

    /// Returns true if the path behaved as configured all the time.
    pub fn is_valid(&self) -> bool {
        self.flaws().is_empty()
    }
}

impl fmt::Display for RelayReport {
    /// Writes a few lines: datagrams passed and dropped, lateness, and reasons for which the run is invalid.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = &self.totals;
        for (name, way) in [
            ("server to clients", &totals.forward),
            ("clients to server", &totals.backward),
        ] {
            let (link, dropped) = (&way.link, &way.link.dropped);
            writeln!(
                f,
                "{name}: {} of {} datagrams, {:.2} Mbit/s; dropped {} by the queue, {} at random, {} too big; \
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
        let late = &totals.lateness;
        let (mean, max) = (late.mean.as_micros(), late.max.as_micros());
        write!(
            f,
            "late by {mean} us on average, {max} us at most; {} datagrams by more than ",
            late.beyond_limit
        )?;
        write!(f, "{}", duration::display(MAX_LATENESS))?;
        for flaw in self.flaws() {
            write!(f, "\nnot valid: {flaw}")?;
        }
        Ok(())
    }
}

/// Accumulates the lateness of datagrams and wake-ups.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatenessSum {
    max: Duration,
    sum: Duration,
    count: u32,
    beyond_limit: u64,
}

impl LatenessSum {
    /// A datagram left this late.
    pub(super) fn datagram(&mut self, by: Duration) {
        self.woke(by);
        self.sum = self.sum.saturating_add(by);
        self.count = self.count.saturating_add(1);
        self.beyond_limit += u64::from(by > MAX_LATENESS);
    }

    /// A wake-up came this late.
    pub(super) fn woke(&mut self, by: Duration) {
        self.max = self.max.max(by);
    }

    pub(super) fn result(&self) -> Lateness {
        Lateness {
            max: self.max,
            mean: self.sum.checked_div(self.count).unwrap_or_default(),
            beyond_limit: self.beyond_limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_invalid_when_it_was_late_or_lost_packets_outside_the_model() {
        let mut lateness = LatenessSum::default();
        lateness.datagram(Duration::from_millis(1));
        lateness.datagram(Duration::from_millis(5));
        let series = LinkSeries::new(Duration::from_millis(10), 2);
        let mut report = RelayReport {
            totals: RelaySnapshot {
                lateness: lateness.result(),
                ..RelaySnapshot::default()
            },
            forward_series: series.clone(),
            backward_series: series,
            kernel_drops: None,
            socket_buffer: Bytes::from_mib(4),
        };
        assert!(report.is_valid(), "{report}");
        assert_eq!(report.totals.lateness.mean, Duration::from_millis(3));

        lateness.datagram(Duration::from_micros(5_001));
        report.totals.lateness = lateness.result();
        report.kernel_drops = Some(3);
        report.totals.backward.overflowed = 2;
        let late = RelayFlaw::Late(Duration::from_micros(5_001));
        assert_eq!(
            report.flaws(),
            [late, RelayFlaw::KernelDrops(3), RelayFlaw::Overflow(2)]
        );
        assert_eq!(report.totals.lateness.beyond_limit, 1);
        assert!(
            report
                .to_string()
                .contains("not valid: 5.0 ms late, more than 5ms"),
            "{report}"
        );
    }
}
