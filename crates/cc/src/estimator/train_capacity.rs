//! Capacity of the narrowest link from how far it spreads the packets of a train.
//!
//! Packets that leave in one burst queue behind each other at the narrowest link and leave it spaced by its rate:
//! between the arrivals of two of them, the link carried the bytes of the later one and of all in between. Cross
//! traffic distorts the spacing by getting in between. If the sum of two packets' delays is minimal, neither was held
//! up, so their spacing is the link's own (Kapoor et al., *`CapProbe`*, SIGCOMM 2004). The plain minimum is fragile
//! under jitter, hence the median of eight.

use playrate_units::Bitrate;

use crate::Timestamp;
use crate::events::{AckFrame, Acked, Congestion, Signal};

use super::best_samples::{BEST, BestSamples, Sample};
use super::{NANOS_PER_SECOND, bytes_per_second};

/// Shortest spacing that exceeds the noise of timers and polling.
const MIN_SPACING_NS: u64 = 200_000;
/// A batch of fewer packets may have waited for the peer's ACK timer, regardless of the previous batches.
const LEAST_PROMPT: u32 = 2;

/// Capacity by packet trains.
///
/// A *train* is the packets with one send time. A batch of acknowledgements opens it. Each later batch that is entirely
/// of the same train gives a sample: the bytes acknowledged since then, divided by the time since then. Its rank is the
/// sum of both batches' delays, less the time that the sample's own bytes took to pass the link. Otherwise short
/// samples, which jitter distorts most, would always rank first. (`CapProbe`, whose pairs are all alike, need not
/// subtract it.) Samples live ten seconds, the best eight of each second are kept, and the estimate is the median of
/// the best eight of all.
///
/// This works with peers that acknowledge every packet, every other, or every tenth, because a batch is measured by the
/// packet that triggered the acknowledgement. Batches triggered by the peer's ACK timer must not count. So a batch
/// counts immediately only if it has as many packets as the train's previous batches. If it has fewer, or is a lone
/// packet, it counts once another batch of the same train follows: then it did not wait for packets that never came.
///
/// An estimate never expires into a worse one: a new one needs as many fresh samples as the old one had (up to eight).
///
/// After a loss, a train gives no more samples, and its earlier samples are removed. If one event reports several
/// trains, only the newest is known. (The link did not carry what its own queue dropped, so the others' samples hold.)
/// MTU probes travel alone and so form no train; one that leaves together with a train was carried with it and counts
/// as part of it.
#[derive(Clone, Debug, Default)]
pub(super) struct TrainCapacity {
    samples: BestSamples,
    /// Samples that have not expired, up to eight.
    fresh: u8,
    /// The key that a sample must undercut to be among the best eight; `None` while there are fewer.
    worst_key: Option<u32>,
    estimate: Option<u32>,
    /// Number of samples in `estimate`.
    basis: u8,
    /// Transmission time of a byte on the link, in 2⁻¹⁰ ns, by the estimate; zero without one.
    byte_time: u64,
    train: Option<Train>,
    /// Trains that left up to this time lost packets.
    lossy_until: Option<Timestamp>,
}

/// The train that is being acknowledged.
#[derive(Clone, Copy, Debug)]
struct Train {
    sent: Timestamp,
    /// Arrival of the batch that opened it.
    opened: Timestamp,
    /// Bytes acknowledged since it was opened.
    bytes: u64,
    /// Packets of the largest batch that contained packets of the train.
    largest_batch: u32,
    /// A sample that the peer's ACK timer may have distorted.
    held: Option<Sample>,
}

/// The trains of one ACK frame.
#[derive(Clone, Copy, Debug, Default)]
struct FrameTrain {
    newest_sent: Timestamp,
    /// Bytes of the packets sent at `newest_sent`.
    newest_bytes: u64,
    packets: u32,
    /// It acknowledges packets of several trains.
    mixed: bool,
    /// It acknowledges packets of the open train.
    of_open_train: bool,
}

impl FrameTrain {
    /// Adds up the runs of an ACK frame. The open train left at `open`.
    fn of(runs: &[Acked], open: Option<Timestamp>) -> Self {
        let mut frame = Self::default();
        for run in runs {
            let bytes = run.bytes.as_u64();
            if run.sent == frame.newest_sent || frame.packets == 0 {
                frame.newest_sent = run.sent;
                frame.newest_bytes = frame.newest_bytes.saturating_add(bytes);
            } else {
                frame.mixed = true;
                if run.sent > frame.newest_sent {
                    frame.newest_sent = run.sent;
                    frame.newest_bytes = bytes;
                }
            }
            frame.packets = frame.packets.saturating_add(run.packets);
            frame.of_open_train |= open == Some(run.sent);
        }
        frame
    }
}

impl TrainCapacity {
    pub(super) fn on_ack_frame(&mut self, event: &AckFrame<'_>) {
        let frame = FrameTrain::of(event.acked, self.train.map(|train| train.sent));
        if self.samples.advance(event.now) {
            self.rank();
        }
        if frame.packets == 0 {
            return;
        }
        let Some(train) = self.train else {
            self.open(event.now, &frame);
            return;
        };
        if frame.of_open_train
            && let Some(held) = train.held
        {
            self.add(held, train.sent);
        }
        if frame.newest_sent == train.sent {
            self.extend(train, event.now, &frame);
        } else if frame.newest_sent > train.sent {
            self.open(event.now, &frame);
        }
        // Otherwise these are stragglers of an older train: later packets overtook them, so their spacing is not the
        // link's.
    }

    pub(super) fn on_congestion(&mut self, event: &Congestion) {
        if let Signal::Loss { .. } = event.signal {
            let lost = event.newest_sent;
            self.lossy_until = self.lossy_until.max(Some(lost));
            if self.train.is_some_and(|train| train.sent <= lost) {
                self.train = None;
            }
            if self.samples.remove(tag(lost)) {
                self.rank();
            }
        }
    }

    /// The estimate, if it is from at least this many samples.
    pub(super) fn estimate(&self, least_samples: u8) -> Option<Bitrate> {
        let rate = self.estimate.filter(|_| self.basis >= least_samples)?;
        Some(Bitrate::from_bytes_per_second(rate.into()))
    }

    /// Returns true if the estimate consists of eight samples of the last ten seconds. False if it was kept from
    /// earlier or has fewer samples.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh >= BEST
    }

    fn open(&mut self, now: Timestamp, frame: &FrameTrain) {
        let lossless = self.lossy_until.is_none_or(|until| frame.newest_sent > until);
        self.train = lossless.then_some(Train {
            sent: frame.newest_sent,
            opened: now,
            bytes: 0,
            largest_batch: frame.packets,
            held: None,
        });
    }

    fn extend(&mut self, mut train: Train, now: Timestamp, frame: &FrameTrain) {
        train.bytes = train.bytes.saturating_add(frame.newest_bytes);
        train.held = None;
        let spacing = now.nanos_since(train.opened);
        if !frame.mixed && spacing >= MIN_SPACING_NS {
            let key = self.key(&train, now);
            if self.samples.wants(key)
                && let Some(rate) = bytes_per_second(train.bytes, spacing)
            {
                let sample = Sample { key, rate };
                if frame.packets >= train.largest_batch.max(LEAST_PROMPT) {
                    self.add(sample, train.sent);
                } else {
                    train.held = Some(sample);
                }
            }
        }
        train.largest_batch = train.largest_batch.max(frame.packets);
        self.train = Some(train);
    }

    /// Rank of a sample that ends now, in units of 1024 ns: both batches' delays, less the delay that the train itself
    /// causes.
    fn key(&self, train: &Train, now: Timestamp) -> u32 {
        let delays = train
            .opened
            .nanos_since(train.sent)
            .saturating_add(now.nanos_since(train.sent));
        let own = train.bytes.saturating_mul(self.byte_time) >> 10;
        u32::try_from(delays.saturating_sub(own) >> 10).unwrap_or(u32::MAX)
    }

    fn add(&mut self, sample: Sample, sent: Timestamp) {
        let is_best = self.worst_key.is_none_or(|worst| sample.key < worst);
        if self.samples.insert(sample, tag(sent)) && is_best {
            self.rank();
        }
    }

    /// Makes a new estimate, unless too few samples remain to improve on the old one.
    fn rank(&mut self) {
        let best = self.samples.best();
        self.fresh = best.count;
        self.worst_key = best.worst_key();
        if best.count >= self.basis
            && let Some(rate) = best.median()
        {
            self.estimate = Some(rate);
            self.basis = best.count;
            self.byte_time = (NANOS_PER_SECOND << 10).checked_div(u64::from(rate)).unwrap_or(0);
        }
    }
}

/// Names a train by its send time, in µs (of 1024 ns) that wrap after 73 min; a tag lives two seconds.
#[expect(clippy::cast_possible_truncation, reason = "only the low bits are needed")]
const fn tag(sent: Timestamp) -> u32 {
    (sent.as_nanos() >> 10) as u32
}
