//! [`PlaybackReport`]: the viewer's numbers of one session.

use std::time::Duration;

use playrate_units::{Bitrate, seconds};
use serde::{Deserialize, Deserializer, Serialize};

/// The viewer's numbers of one session, up to the time of the report.
///
/// This is the only type for them: the client's report, its JSON and the result rows of experiments contain it. In
/// files the fields keep the names of the released formats, times are decimal seconds and rates are bit/s. Reading
/// fails if a field is missing, even one whose value may be `null`.
///
/// ```
/// use std::time::Duration;
/// use playrate_playout::PlaybackReport;
///
/// let mut report = PlaybackReport::default();
/// (report.frames, report.frames_shown, report.frames_discarded) = (100, 75, 25);
/// report.stalled_time = Duration::from_millis(500);
/// // A title of 4 s: the discarded frames cost 1 s, more than the stall, which fell into the same second.
/// assert_eq!(report.impaired_time(Duration::from_secs(4)), Duration::from_secs(1));
/// assert_eq!(report.impaired_share(Duration::from_secs(4)), 0.25);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlaybackReport {
    /// Time from the beginning of the session to the first frame; `None` if playback never started.
    #[serde(rename = "startup_delay_s", with = "seconds::optional")]
    pub startup_delay: Option<Duration>,
    /// Time when the last frame had been shown for its duration; `None` if playback did not reach it.
    #[serde(rename = "ended_s", with = "seconds::optional")]
    pub ended: Option<Duration>,
    /// Frames known; those of the whole title once it has been parsed.
    pub frames: u64,
    /// Frames the viewer saw.
    pub frames_shown: u64,
    /// Frames that were complete too late to be shown (catch-up clock only).
    pub frames_discarded: u64,
    /// Frames whose data had not arrived when the stream ended.
    pub frames_missing: u64,
    /// Underflow events: times the modelled buffer ran empty. With the rebuffer clock each is a stall.
    pub underflow_events: u64,
    /// Total duration of stalls after playback had started.
    #[serde(rename = "frozen_s", with = "seconds")]
    pub stalled_time: Duration,
    /// Times that the catch-up clock stopped and refilled its buffer.
    pub rebases: u64,
    /// Stalled time ÷ (stalled time + playing time of the frames shown); `None` with the catch-up clock.
    #[serde(rename = "rebuffer_ratio", deserialize_with = "required")]
    pub rebuffering_ratio: Option<f64>,
    /// Media bytes of the frames shown over their playing time.
    #[serde(rename = "mean_bitrate_bps", deserialize_with = "required")]
    pub mean_bitrate: Option<Bitrate>,
}

impl PlaybackReport {
    /// Frames still to come: neither shown nor discarded nor missing.
    pub fn frames_remaining(&self) -> u64 {
        self.frames
            .saturating_sub(self.frames_shown)
            .saturating_sub(self.frames_discarded)
            .saturating_sub(self.frames_missing)
    }

    /// Impaired time: the larger of stalled time and the display time of the frames that were discarded or missing.
    ///
    /// The two are not added, because they mostly coincide: while playback waits for a late frame, it stalls.
    /// `title_duration` is the playing time of all [`frames`](Self::frames).
    pub fn impaired_time(&self, title_duration: Duration) -> Duration {
        let lost = self.frames_discarded.saturating_add(self.frames_missing);
        self.stalled_time.max(self.display_time(lost, title_duration))
    }

    /// Impaired share, 0 to 1: impaired time ÷ (impaired time + display time of the frames shown).
    ///
    /// For a player that discards, the denominator is the title's duration; for one that waits for every frame, the
    /// share is the rebuffering ratio. A viewer who saw no frame has a share of 1.
    pub fn impaired_share(&self, title_duration: Duration) -> f64 {
        let shown = self.display_time(self.frames_shown, title_duration);
        if shown.is_zero() {
            return 1.0;
        }
        let impaired = self.impaired_time(title_duration);
        impaired.as_secs_f64() / impaired.saturating_add(shown).as_secs_f64()
    }

    /// The report with times cut to whole microseconds, for files with many rows: the values read back then equal those
    /// written, and numbers stay short.
    #[must_use]
    pub fn in_whole_microseconds(mut self) -> Self {
        let cut = |time: Duration| Duration::new(time.as_secs(), time.subsec_micros() * 1_000);
        self.startup_delay = self.startup_delay.map(cut);
        self.ended = self.ended.map(cut);
        self.stalled_time = cut(self.stalled_time);
        self
    }

    fn display_time(&self, frames: u64, title_duration: Duration) -> Duration {
        let count = |frames: u64| u32::try_from(frames).unwrap_or(u32::MAX);
        (title_duration / count(self.frames).max(1)).saturating_mul(count(frames))
    }
}

/// An `Option` that must be written, if only as `null`. Plain serde treats a missing field as `None`.
fn required<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}
