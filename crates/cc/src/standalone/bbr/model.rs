//! [`Model`]: BBR's estimates of the path (draft §5.5).

use crate::Timestamp;
use crate::estimator::SlotMax;

use super::sample::Sample;

/// `BBR.Beta`, percent: least share of a bound after a round trip with losses.
const BETA: u64 = 70;
/// `BBR.LossThresh`, percent of the flight.
const LOSS_THRESHOLD: u64 = 2;
/// `BBR.Headroom`, percent of `inflight_longterm` reserved for other flows.
const HEADROOM: u64 = 15;
/// Time until `min_rtt` expires: `BBR.MinRTTFilterLen`.
const MIN_RTT_FILTER_NS: u64 = 10_000_000_000;
/// Age of the smallest RTT when it is probed: `BBR.ProbeRTTInterval`.
const PROBE_RTT_INTERVAL_NS: u64 = 5_000_000_000;
/// An RTT that exceeds the smallest by less than `kGranularity` (RFC 9002 §6.1.2) confirms it: clocks and timers are no
/// more precise. So a sender whose queue is sometimes empty avoids `ProbeRTT`, as §5.3.4.2 intends.
const GRANULARITY_NS: u64 = 1_000_000;
/// `BBR.MaxBwFilterLen`, in cycles of `ProbeBW`.
const MAX_BW_FILTER: usize = 2;
/// `BBR.ExtraAckedFilterLen`, in round trips.
const EXTRA_ACKED_FILTER: usize = 10;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Model of the path. Rates are bytes per second, volumes bytes, times nanoseconds; names are the draft's.
/// A bound that is `None` has the draft's value "Infinity".
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    max_bw_filter: SlotMax<u32, MAX_BW_FILTER>,
    pub(super) bw_shortterm: Option<u64>,
    pub(super) inflight_shortterm: Option<u64>,
    pub(super) inflight_longterm: Option<u64>,
    bw_latest: u64,
    inflight_latest: u64,
    /// Loss or a CE mark was reported in the current loss round.
    congestion_in_round: bool,
    min_rtt: Option<(u64, Timestamp)>,
    /// Smallest RTT of the last `ProbeRTTInterval`, and the time of its measurement.
    probe_rtt_min: Option<(u64, Timestamp)>,
    /// `BBR.probe_rtt_expired`: `ProbeRTT` is due.
    pub(super) probe_rtt_expired: bool,
    extra_acked_filter: SlotMax<u32, EXTRA_ACKED_FILTER>,
    extra_acked_interval_start: Timestamp,
    extra_acked_delivered: u64,
}

/// `percent` of a rate or volume.
pub(super) const fn percent_of(percent: u64, value: u64) -> u64 {
    value.saturating_mul(percent) / 100
}

/// Bytes that `rate` carries in a time.
pub(super) fn volume(rate: u64, time_ns: u64) -> u64 {
    let bytes = u128::from(rate).saturating_mul(time_ns.into()) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Bytes per second, from bytes in a time.
pub(super) fn rate(bytes: u64, time_ns: u64) -> u64 {
    let scaled = bytes.saturating_mul(NANOS_PER_SECOND);
    scaled.checked_div(time_ns).unwrap_or(u64::MAX)
}

impl Model {
    /// Largest delivery rate of two cycles, bytes per second: `BBR.max_bw`.
    pub(super) fn max_bw(&self) -> u64 {
        self.max_bw_filter.max().into()
    }

    /// Rate that the path is assumed to carry now: `BBR.bw`.
    pub(super) fn bw(&self) -> u64 {
        let bw = self.max_bw();
        self.bw_shortterm.map_or(bw, |bound| bw.min(bound))
    }

    /// `BBR.min_rtt`; `None` before the first sample.
    pub(super) fn min_rtt(&self) -> Option<u64> {
        self.min_rtt.map(|(rtt, _)| rtt)
    }

    /// `BDPMultiple()` for any rate; `None` before the first RTT.
    pub(super) fn bdp_multiple(&self, rate: u64, gain_percent: u64) -> Option<u64> {
        Some(percent_of(gain_percent, volume(rate, self.min_rtt()?)))
    }

    /// Bytes that aggregation acknowledges ahead of the rate: `BBR.extra_acked`.
    pub(super) fn extra_acked(&self, full_bw_reached: bool) -> u64 {
        let extra = if full_bw_reached {
            self.extra_acked_filter.max()
        } else {
            self.extra_acked_filter.recent_max()
        };
        extra.into()
    }

    /// `InflightWithHeadroom()`, for segments of `mtu` bytes.
    pub(super) fn inflight_with_headroom(&self, mtu: u64) -> Option<u64> {
        let inflight = self.inflight_longterm?;
        Some(inflight.saturating_sub(percent_of(HEADROOM, inflight).max(mtu)))
    }

    /// Records a rate sample: `UpdateLatestDeliverySignals()` and `UpdateMaxBw()`.
    pub(super) fn on_sample(&mut self, sample: &Sample) {
        self.bw_latest = self.bw_latest.max(sample.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if !sample.app_limited || sample.delivery_rate >= self.max_bw() {
            let rate = u32::try_from(sample.delivery_rate).unwrap_or(u32::MAX);
            self.max_bw_filter.insert(rate);
        }
    }

    /// `AdvanceMaxBwFilter()`, at the end of a cycle of `ProbeBW`.
    pub(super) fn advance_max_bw_filter(&mut self) {
        self.max_bw_filter.advance();
    }

    /// Advances the filter of `extra_acked` at the end of a round trip.
    pub(super) fn on_round(&mut self) {
        self.extra_acked_filter.advance();
    }

    /// `UpdateACKAggregation()`, for a frame that acknowledges `acked` bytes. The excess is at most `cwnd`.
    pub(super) fn on_acked(&mut self, now: Timestamp, acked: u64, cwnd: u64) {
        let interval = now.nanos_since(self.extra_acked_interval_start);
        let mut expected = volume(self.bw(), interval);
        if self.extra_acked_delivered <= expected {
            self.restart_aggregation(now);
            expected = 0;
        }
        self.extra_acked_delivered = self.extra_acked_delivered.saturating_add(acked);
        let extra = self.extra_acked_delivered.saturating_sub(expected).min(cwnd);
        self.extra_acked_filter
            .insert(u32::try_from(extra).unwrap_or(u32::MAX));
    }

    /// Begins a new interval for the estimate of aggregation.
    pub(super) const fn restart_aggregation(&mut self, now: Timestamp) {
        self.extra_acked_delivered = 0;
        self.extra_acked_interval_start = now;
    }

    /// Records an RTT sample: `UpdateMinRTT()` of the draft.
    pub(super) fn on_rtt(&mut self, now: Timestamp, rtt_ns: Option<u64>) {
        self.probe_rtt_expired = self
            .probe_rtt_min
            .is_some_and(|(_, measured)| now.nanos_since(measured) > PROBE_RTT_INTERVAL_NS);
        if let Some(rtt) = rtt_ns {
            self.probe_rtt_min = match self.probe_rtt_min {
                Some((min, _)) if !self.probe_rtt_expired && rtt < min.saturating_add(GRANULARITY_NS) => {
                    Some((min.min(rtt), now))
                }
                Some(known) if !self.probe_rtt_expired => Some(known),
                _ => Some((rtt, now)),
            };
        }
        let Some((recent, _)) = self.probe_rtt_min else {
            return;
        };
        if self
            .min_rtt
            .is_none_or(|(min, measured)| recent < min || now.nanos_since(measured) > MIN_RTT_FILTER_NS)
        {
            self.min_rtt = self.probe_rtt_min;
        }
    }

    /// Schedules the next `ProbeRTT` an interval from now.
    pub(super) fn schedule_probe_rtt(&mut self, now: Timestamp) {
        if let Some((_, measured)) = &mut self.probe_rtt_min {
            *measured = now;
        }
    }

    /// `NoteLoss()`: returns true if it is the first congestion signal in this loss round.
    pub(super) const fn note_congestion(&mut self) -> bool {
        !core::mem::replace(&mut self.congestion_in_round, true)
    }

    /// `AdaptLowerBoundsFromCongestion()` at the end of a loss round. Returns true if the bounds were reduced; that of
    /// the flight starts from `cwnd` if there was none.
    pub(super) fn end_loss_round(&mut self, probing: bool, cwnd: u64) -> bool {
        let congested = core::mem::take(&mut self.congestion_in_round) && !probing;
        if congested {
            let inflight = self.inflight_shortterm.unwrap_or(cwnd);
            self.bw_shortterm = Some(percent_of(BETA, self.bw()).max(self.bw_latest));
            self.inflight_shortterm = Some(percent_of(BETA, inflight).max(self.inflight_latest));
        }
        congested
    }

    /// `AdvanceLatestDeliverySignals()` after a loss round, with the newest sample.
    pub(super) const fn restart_latest(&mut self, sample: &Sample) {
        self.bw_latest = sample.delivery_rate;
        self.inflight_latest = sample.delivered;
    }

    /// Forgets losses and deliveries of this loss round: `ResetCongestionSignals()`.
    pub(super) const fn reset_congestion_signals(&mut self) {
        self.congestion_in_round = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    /// Lifts both short-term bounds: `ResetShortTermModel()` of the draft.
    pub(super) const fn reset_short_term(&mut self) {
        self.bw_shortterm = None;
        self.inflight_shortterm = None;
    }

    /// Bounds the flight after loss ended Startup: the path is known to carry the last round trip's delivery, or one
    /// BDP.
    pub(super) fn bound_by_startup_loss(&mut self) {
        let bdp = self.bdp_multiple(self.bw(), 100).unwrap_or(0);
        self.inflight_longterm = Some(bdp.max(self.inflight_latest));
    }

    /// The first half of `HandleInflightTooHigh()`; `target` is `TargetInflight()`.
    pub(super) fn bound_by_probe(&mut self, inflight: u64, target: u64) {
        self.inflight_longterm = Some(percent_of(BETA, target).max(inflight));
    }
}

impl Sample {
    /// `IsInflightTooHigh()`: more than the tolerated share of the flight was lost.
    pub(super) const fn is_inflight_too_high(&self) -> bool {
        self.lost.saturating_mul(100) > self.tx_in_flight.saturating_mul(LOSS_THRESHOLD)
    }

    /// `InflightAtLoss()`: the flight when losses exceeded the tolerated share, within the `size` bytes that were
    /// declared lost at once.
    pub(super) fn inflight_at_loss(&self, size: u64) -> u64 {
        let inflight_before = self.tx_in_flight.saturating_sub(size);
        let lost_before = self.lost.saturating_sub(size);
        let tolerated = percent_of(LOSS_THRESHOLD, inflight_before);
        let lost_prefix = tolerated.saturating_sub(lost_before).saturating_mul(100) / (100 - LOSS_THRESHOLD);
        inflight_before.saturating_add(lost_prefix)
    }
}
