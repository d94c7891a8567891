//! [`Delivery`]: impairment computed from the arrival times of a title's bytes, without a modelled player.
//!
//! The players of the papers measure well but score badly. A catch-up clock that falls behind discards almost every
//! frame until it restarts, so that 15 % too little throughput impairs 77 % of the playback. Below the title's rate,
//! more throughput can even look worse. Two simpler players, for which only the arrival time counts, avoid this:
//!
//! - The *waiting* player waits for every frame, like a rebuffer clock that resumes at once. Its start-up delay and
//!   stalls add up to `D`, the largest of arrival less presentation time over all frames.
//! - The *skipping* player shows each frame at its presentation time plus a fixed latency, like a catch-up clock
//!   without tolerance, and skips frames that have not arrived by then. Its share of skipped frames is averaged over
//!   [`LATENCIES`], from live to video on demand, which makes it smooth.
//!
//! If every byte arrives at the same time or earlier, neither share grows: both are monotone in the arrival curve. They
//! are exact as long as the run's own player did not hold the sender back. A player pauses only when it is far ahead,
//! where neither share counts anything.

use std::time::Duration;

use playrate_media::{Frame, Title};
use playrate_units::Bytes;
use serde::{Deserialize, Serialize};
use video_client::playout::PlayoutConfig;

use crate::rounding::ratio;

/// Start-up delay not counted against the waiting player.
const STARTUP: Duration = Duration::from_secs(2);
/// Latencies of the skipping player in milliseconds since the request: 1 s to 32 s, each √2 times the previous one.
const LATENCIES: [u64; 11] = [
    1_000, 1_414, 2_000, 2_828, 4_000, 5_657, 8_000, 11_314, 16_000, 22_627, 32_000,
];

/// Shares of a title's playback impaired by late arrival of its bytes, as in a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryScore {
    /// Waiting time beyond 2 s, divided by its sum with the playing time of the media that arrived.
    pub waiting_share: f64,
    /// Share of frames that came too late or never, averaged over eleven latencies from 1 to 32 s.
    pub skipping_share: f64,
}

impl DeliveryScore {
    /// Mean of both shares.
    pub(crate) fn mean(self) -> f64 {
        f64::midpoint(self.waiting_share, self.skipping_share)
    }
}

/// Computes a [`DeliveryScore`] as bytes arrive, in bounded memory.
#[derive(Debug)]
pub(super) struct Delivery {
    frames: Vec<Frame>,
    duration: Duration,
    /// Number of frames up to the last one that arrived.
    arrived: usize,
    /// Number of frames that had arrived before the viewer's last jump.
    before: u64,
    /// Number of frames before the jump's target that arrive without being counted again.
    skipped: usize,
    part: Part,
    /// Time and bytes of the last report.
    last: (Duration, u64),
    /// Largest of arrival less presentation time so far.
    longest: Duration,
    /// Number of late frames for each of [`LATENCIES`].
    late: [u64; LATENCIES.len()],
}

/// A part of the title that is played from one request on: all of it, or everything after a jump.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// Time of the request, and bytes received by then.
    at: Duration,
    received: u64,
    /// The part's first frame.
    pts: Duration,
    offset: u64,
}

impl Delivery {
    /// A title at the playback speed of `player`, before anything has arrived.
    pub(super) fn new(title: &Title, player: &PlayoutConfig) -> Self {
        let frames = title.frames().iter().map(|frame| Frame {
            pts: player.viewing_time(frame.pts),
            ..*frame
        });
        Self::of_frames(frames.collect(), player.viewing_time(title.duration()))
    }

    /// Frames to be shown within `duration`.
    fn of_frames(mut frames: Vec<Frame>, duration: Duration) -> Self {
        // In the order of their arrival.
        frames.sort_by_key(Frame::end);
        Self {
            frames,
            duration,
            arrived: 0,
            before: 0,
            skipped: 0,
            part: Part::default(),
            last: (Duration::ZERO, 0),
            longest: Duration::ZERO,
            late: [0; LATENCIES.len()],
        }
    }

    /// Records that, by `now` since the request, `received` bytes have arrived, evenly since the last call.
    pub(super) fn see(&mut self, now: Duration, received: Bytes) {
        let (before, from) = self.last;
        let received = received.as_u64();
        let (grown, passed) = (received.saturating_sub(from), now.saturating_sub(before));
        while let Some(frame) = self.frames.get(self.arrived)
            && let end = frame
                .end()
                .saturating_sub(self.part.offset)
                .saturating_add(self.part.received)
            && end <= received
        {
            let part = u128::from(end.saturating_sub(from)) * passed.as_nanos();
            let part = part.checked_div(grown.into()).unwrap_or(0);
            let at = before.saturating_add(Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX)));
            let due = self.due(frame);
            self.arrived += 1;
            self.count(at.saturating_sub(due), 1);
        }
        self.last = (now, received.max(from));
    }

    /// Presentation time of a frame in this part, as if the viewer saw the part's first frame when it was requested.
    fn due(&self, frame: &Frame) -> Duration {
        frame
            .pts
            .saturating_sub(self.part.pts)
            .saturating_add(self.part.at)
    }

    /// Records a jump of the viewer at `at` to the frame with this `pts`. Data that arrived by then was in the last
    /// call of [`Self::see`]; the rest does not count as missing.
    pub(super) fn seek(&mut self, at: Duration, pts: Duration) {
        self.before += (self.arrived - self.skipped) as u64;
        let first = self
            .frames
            .iter()
            .position(|frame| frame.pts == pts)
            .unwrap_or(self.frames.len());
        (self.skipped, self.arrived) = (first, first);
        self.part = Part {
            at,
            received: self.last.1,
            pts,
            offset: self.frames.get(first).map_or(0, |frame| frame.offset),
        };
    }

    /// Counts `frames` frames that arrived `delay` after their presentation time, or had not arrived by then.
    fn count(&mut self, delay: Duration, frames: u64) {
        self.longest = self.longest.max(delay);
        for (late, latency) in self.late.iter_mut().zip(LATENCIES) {
            if delay > Duration::from_millis(latency) {
                *late += frames;
            }
        }
    }

    /// The score of a session that ended `ended` after its request; `None` for a title without frames.
    pub(super) fn finish(mut self, ended: Duration) -> Option<DeliveryScore> {
        let arrived = self.before + (self.arrived - self.skipped) as u64;
        let missing = (self.frames.len() - self.arrived) as u64;
        if let Some(next) = self.frames.get(self.arrived) {
            self.longest = self.longest.max(ended.saturating_sub(self.due(next)));
        }
        let count = arrived + missing;
        let count = (count > 0).then_some(count as f64)?;
        let waited = self.longest.saturating_sub(STARTUP).as_secs_f64();
        let played = self.duration.as_secs_f64() * arrived as f64 / self.frames.len() as f64;
        let late: u64 = self.late.iter().map(|late| late + missing).sum();
        Some(DeliveryScore {
            waiting_share: if arrived == 0 {
                1.0
            } else {
                ratio(waited / (waited + played))
            },
            skipping_share: ratio(late as f64 / count / LATENCIES.len() as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Setup, Viewer, run};
    use crate::tests::title;
    use playrate_netsim::{Loss, PathConfig, QueueLimit, Seed};
    use playrate_units::Bitrate;
    use proptest::prelude::*;

    /// Frames of 1,000 bytes, 25 a second.
    fn frames(count: u64) -> Vec<Frame> {
        let frame = |n: u64| Frame {
            offset: n * 1_000,
            size: Bytes::new(1_000),
            dts: Duration::from_millis(40 * n),
            pts: Duration::from_millis(40 * n),
            key: n.is_multiple_of(25),
        };
        (0..count).map(frame).collect()
    }

    /// Score of one minute of media whose bytes arrive at `part` of the title's rate from `from_ms` on, for up to 90 s.
    fn at_rate(part: f64, from_ms: u64) -> DeliveryScore {
        let mut delivery = Delivery::of_frames(frames(1_500), Duration::from_secs(60));
        for tick in 0..1_800_u64 {
            let now = Duration::from_millis(tick * 50);
            let ahead = now.saturating_sub(Duration::from_millis(from_ms)).as_secs_f64();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a positive number of bytes"
            )]
            let bytes = (ahead * 25_000.0 * part) as u64;
            delivery.see(now, Bytes::new(bytes.min(1_500_000)));
        }
        delivery.finish(Duration::from_secs(90)).unwrap()
    }

    #[test]
    fn a_title_that_arrives_faster_than_it_plays_is_not_impaired() {
        let score = at_rate(1.2, 200);
        assert_eq!((score.waiting_share, score.skipping_share), (0.0, 0.0));
    }

    #[test]
    fn fifteen_percent_too_little_throughput_waits_fifteen_percent() {
        let score = at_rate(0.85, 0);
        // 60 s take 70.6 s, and 2 s of the excess are allowed.
        assert!((score.waiting_share - 8.6 / 68.6).abs() < 0.002, "{score:?}");
        assert!(score.skipping_share < 0.6, "{score:?}");
        let nearly = at_rate(0.99, 0);
        assert!(nearly.mean() < 0.01, "{nearly:?}");
    }

    #[test]
    fn a_jump_begins_a_new_part_whose_frames_are_counted_from_its_request() {
        let mut delivery = Delivery::of_frames(frames(1_500), Duration::from_secs(60));
        // 20 s of media arrive in 10 s. Then the viewer jumps to 50 s, and the first frame from there comes 3 s later.
        delivery.see(Duration::from_secs(10), Bytes::new(500_000));
        delivery.seek(Duration::from_secs(10), Duration::from_secs(50));
        delivery.see(Duration::from_secs(13), Bytes::new(500_000));
        delivery.see(Duration::from_secs(13), Bytes::new(750_000));
        let score = delivery.finish(Duration::from_secs(13)).unwrap();
        // A second more than allowed, over 30 s of playback.
        assert!((score.waiting_share - 1.0 / 31.0).abs() < 0.001, "{score:?}");
        // Of the 250 frames after the jump, 50 miss a latency of 1 s, 40 miss 1.4 s, 25 miss 2 s and 5 miss 2.8 s.
        let skipping = score.skipping_share;
        assert!((skipping - 120.0 / 750.0 / 11.0).abs() < 1e-6, "{score:?}");
    }

    #[test]
    fn nothing_received_is_all_impaired() {
        let delivery = Delivery::of_frames(frames(100), Duration::from_secs(4));
        let score = delivery.finish(Duration::from_secs(90)).unwrap();
        assert_eq!((score.waiting_share, score.skipping_share), (1.0, 1.0));
        let nothing = Delivery::of_frames(frames(0), Duration::ZERO);
        assert_eq!(nothing.finish(Duration::ZERO), None);
    }

    #[test]
    fn the_score_falls_steadily_with_the_rate() {
        let scores: Vec<f64> = (1..=60)
            .map(|n| at_rate(f64::from(n) * 0.02, 300).mean())
            .collect();
        for pair in scores.windows(2) {
            assert!(pair[1] <= pair[0] + 1e-9, "{scores:?}");
            // 2 % more throughput must not cause a leap.
            assert!(pair[0] - pair[1] < 0.07, "{scores:?}");
        }
        assert!(scores[0] > 0.9 && scores[59] < 1e-9, "{scores:?}");
    }

    /// Score of `cubic` playing 20 s of a 1 Mbit/s title over a link of this many kbit/s.
    fn of_a_session(kbps: u64) -> f64 {
        let (rate, rtt) = (Bitrate::from_kbps(kbps), Duration::from_millis(50));
        let queue = QueueLimit::Bytes(Bytes::from_kb(50));
        let path = PathConfig::bottleneck(rate, rtt, queue, Loss::None);
        let mut viewer = Viewer::new("cubic".parse().unwrap(), title(20));
        viewer.leaves_after = Some(Duration::from_secs(30));
        let setup = Setup::new(path, Seed::new(1)).with_viewer(viewer).without_taps();
        run(&setup).unwrap().viewers[0].delivery.unwrap().mean()
    }

    #[test]
    fn the_score_never_gets_worse_with_the_rate_of_the_link() {
        let rates = [
            300, 500, 700, 800, 850, 900, 950, 1_000, 1_050, 1_100, 1_200, 1_500, 2_000,
        ];
        let scores = rates.map(of_a_session);
        for pair in scores.windows(2) {
            assert!(pair[1] <= pair[0] + 0.001, "{scores:?}");
        }
        assert!(scores[0] > 0.5 && scores[12] < 0.001, "{scores:?}");
    }

    proptest! {
        #[test]
        fn no_byte_that_arrives_earlier_makes_the_score_worse(
            gaps in prop::collection::vec(0_u64..3_000, 60),
            earlier in prop::collection::vec(0_u64..2_000, 60),
        ) {
            // A second of the title arrives at each of these times.
            let mut at = 0;
            let late: Vec<u64> = gaps.iter().map(|gap| { at += gap; at }).collect();
            let mut early: Vec<u64> = late.iter().zip(&earlier).map(|(at, by)| at.saturating_sub(*by)).collect();
            for index in 1..early.len() {
                early[index] = early[index].max(early[index - 1]);
            }
            let score = |times: &[u64]| {
                let mut delivery = Delivery::of_frames(frames(1_500), Duration::from_secs(60));
                for (second, at) in (1_u64..).zip(times) {
                    let at = Duration::from_millis(*at);
                    // The bytes come at once, not evenly since the previous time.
                    delivery.see(at, Bytes::new((second - 1) * 25_000));
                    delivery.see(at, Bytes::new(second * 25_000));
                }
                delivery.finish(Duration::from_secs(200)).unwrap()
            };
            let (early, late) = (score(&early), score(&late));
            prop_assert!(early.waiting_share <= late.waiting_share);
            prop_assert!(early.skipping_share <= late.skipping_share);
        }
    }
}
