//! [`Viewing`]: the reports of one flow's client; [`LiveStatus`]: the same during the session.

use std::sync::Arc;
use std::time::Duration;

use playrate_units::Bytes;
use tokio::sync::watch;
use video_client::observer::{Observer, Progress};
use video_client::playout::{PlayoutEvent, PlayoutEventKind};

use super::RunHandle;
use super::delivery::{Delivery, DeliveryScore};
use super::recording::Recording;
use super::windows::Marks;

/// Keeps stalls and discarded frames of a session, and forwards its progress.
#[derive(Debug)]
pub(super) struct Viewing {
    /// Mean display time of a frame.
    frame_time: Duration,
    recording: Arc<Recording>,
    handle: Option<Arc<RunHandle>>,
    /// Set at every progress report.
    pub(super) status: Option<StatusCell>,
    /// Bytes already added to `handle`.
    reported: Bytes,
    /// Time of the request, since the run began.
    joined: Duration,
    received: Marks,
    last_shown: Option<Duration>,
    underflows: u64,
    spans: ViewerSpans,
    delivery: Option<Delivery>,
}

/// The impaired times of a session, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewerSpans {
    /// Stalls: a frame was shown for longer than its display time.
    pub stalls: Vec<Span>,
    /// Times of discarded frames; consecutive ones are joined, up to the display time of the last.
    pub discards: Vec<Span>,
    /// Time of every discarded frame.
    pub discard_times: Vec<Duration>,
}

/// A stretch of time since the viewer's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Beginning of the stretch.
    pub from: Duration,
    /// End of the stretch.
    pub to: Duration,
}

/// State of a viewer's playback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewerState {
    /// Playback has not begun.
    #[default]
    Waiting,
    /// Frames are shown on time.
    Playing,
    /// No new frame is shown, although playback has begun.
    Stalled,
    /// Playback has reached its end.
    Ended,
}

impl ViewerState {
    /// The state in one word; a stall in capitals.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Playing => "playing",
            Self::Stalled => "STALLED",
            Self::Ended => "done",
        }
    }
}

/// One session at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveStatus {
    /// Time since the request.
    pub at: Duration,
    /// State of the viewer's playback.
    pub state: ViewerState,
    /// Playing time that has arrived completely but has not been shown.
    pub ahead: Duration,
    /// Bytes of the title received.
    pub received: Bytes,
    /// Congestion window; `None` before the first sample.
    pub window: Option<Bytes>,
    /// Underflow events so far.
    pub underflows: u64,
}

/// The latest [`LiveStatus`] of a session. Clones share it.
pub type StatusCell = watch::Sender<LiveStatus>;

impl Viewing {
    /// A viewer of a title with a display time of `frame_time` per frame. `delivery` is for a title in one file.
    pub(super) fn new(frame_time: Duration, recording: Arc<Recording>, delivery: Option<Delivery>) -> Self {
        Self {
            frame_time,
            received: Marks::new(recording.windows()),
            recording,
            handle: None,
            status: None,
            reported: Bytes::ZERO,
            joined: Duration::ZERO,
            last_shown: None,
            underflows: 0,
            spans: ViewerSpans::default(),
            delivery,
        }
    }

    /// The score of a delivery that ended `ended` after the request.
    pub(super) fn delivery(&mut self, ended: Duration) -> Option<DeliveryScore> {
        self.delivery.take()?.finish(ended)
    }

    /// Begins the session, `joined` after the beginning of the run; `handle` counts the bytes received.
    pub(super) fn begin(&mut self, joined: Duration, handle: Arc<RunHandle>) {
        self.handle = Some(handle);
        self.joined = joined;
        self.received.see(joined, 0);
    }

    /// Bytes of the title received, at the edges of the setup's windows.
    pub(super) fn received(&self) -> &Marks {
        &self.received
    }

    /// Records that the last of `received` bytes arrived at `at`.
    pub(super) fn see(&mut self, at: Duration, received: Bytes) {
        if let Some(delivery) = &mut self.delivery {
            delivery.see(at, received);
        }
        let at = self.joined.saturating_add(at);
        self.received.see(at, received.as_u64());
    }

    /// Ends the session and returns stalls and discards. The last frame may have been frozen until `end`.
    pub(super) fn finish(&mut self, end: Duration) -> ViewerSpans {
        self.shown(end);
        std::mem::take(&mut self.spans)
    }

    /// Records a frame shown at `at`: any excess over the previous frame's display time was a stall.
    fn shown(&mut self, at: Duration) {
        if let Some(last) = self.last_shown {
            let from = last.saturating_add(self.frame_time);
            // Up to half a display time is rounding of presentation times.
            if at > from.saturating_add(self.frame_time / 2) {
                self.spans.stalls.push(Span { from, to: at });
            }
        }
        self.last_shown = Some(at);
    }

    /// Records a frame discarded at `at`.
    fn discarded(&mut self, at: Duration) {
        self.spans.discard_times.push(at);
        let to = at.saturating_add(self.frame_time);
        match self.spans.discards.last_mut() {
            Some(last) if at <= last.to.saturating_add(self.frame_time / 2) => last.to = to,
            _ => self.spans.discards.push(Span { from: at, to }),
        }
    }
}

impl Observer for Viewing {
    fn event(&mut self, event: &PlayoutEvent) {
        match event.kind {
            PlayoutEventKind::Shown { .. } => self.shown(event.at),
            PlayoutEventKind::Discarded { .. } => self.discarded(event.at),
            PlayoutEventKind::Seek { pts } => {
                if let Some(delivery) = &mut self.delivery {
                    delivery.seek(event.at, pts);
                }
            }
            PlayoutEventKind::UnderflowBegan => self.underflows += 1,
            PlayoutEventKind::Ended => {
                if let Some(status) = &self.status {
                    status.send_modify(|status| {
                        *status = LiveStatus {
                            at: status.at,
                            state: ViewerState::Ended,
                            underflows: self.underflows,
                            ..LiveStatus::default()
                        }
                    });
                }
            }
            _ => {}
        }
    }

    fn progress(&mut self, now: &Progress) {
        self.see(now.at, now.received);
        if let Some(handle) = &self.handle {
            handle.add_received((now.received - self.reported).as_u64());
            self.reported = now.received;
        }
        let Some(status) = &self.status else {
            return;
        };
        let still = self.last_shown.map(|last| now.at.saturating_sub(last));
        let state = match still {
            None => ViewerState::Waiting,
            Some(still) if still > self.frame_time.saturating_mul(3) => ViewerState::Stalled,
            Some(_) => ViewerState::Playing,
        };
        status.send_replace(LiveStatus {
            at: now.at,
            state,
            ahead: now.held_time,
            received: now.received,
            window: self.recording.latest_window(),
            underflows: now.playback.underflow_events,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::sim::{Access, Setup};
    use playrate_netsim::{Loss, PathConfig, QueueLimit, Seed};
    use playrate_units::Bitrate;
    use quinn::TokioRuntime;

    const SHOWN: PlayoutEventKind = PlayoutEventKind::Shown {
        pts: Duration::ZERO,
        late: Duration::ZERO,
    };
    const DISCARDED: PlayoutEventKind = PlayoutEventKind::Discarded {
        pts: Duration::ZERO,
        late: Duration::from_millis(300),
    };

    const fn span(from: u64, to: u64) -> Span {
        Span {
            from: Duration::from_millis(from),
            to: Duration::from_millis(to),
        }
    }

    /// Stalls and discards of a session with frames of 40 ms and these events at times in milliseconds.
    fn spans(events: &[(u64, PlayoutEventKind)], end: u64) -> ViewerSpans {
        let rtt = Duration::from_millis(10);
        let path = PathConfig::bottleneck(Bitrate::from_mbps(1), rtt, QueueLimit::ONE_BDP, Loss::None);
        let setup = Setup::new(path, Seed::new(1));
        let start = Instant::now();
        let recording = Recording::new(&setup, Access::default(), start, Arc::new(TokioRuntime));
        let mut viewing = Viewing::new(Duration::from_millis(40), Arc::new(recording), None);
        for &(millis, kind) in events {
            viewing.event(&PlayoutEvent {
                at: Duration::from_millis(millis),
                kind,
            });
        }
        viewing.finish(Duration::from_millis(end))
    }

    #[test]
    fn a_frame_that_stays_longer_than_its_display_time_is_a_stall() {
        let events = [100, 140, 600, 620].map(|at| (at, SHOWN));
        assert_eq!(spans(&events, 660).stalls, [span(180, 600)]);
    }

    #[test]
    fn rounding_of_presentation_times_is_no_stall() {
        let events = [0, 41, 80].map(|at| (at, SHOWN));
        assert_eq!(spans(&events, 120), ViewerSpans::default());
    }

    #[test]
    fn a_frame_that_stands_still_to_the_end_is_a_stall_too() {
        assert_eq!(spans(&[(0, SHOWN)], 2_000).stalls, [span(40, 2_000)]);
    }

    #[test]
    fn consecutive_discarded_frames_are_one_span() {
        let events = [7, 7, 47, 300].map(|at| (at, DISCARDED));
        assert_eq!(spans(&events, 400).discards, [span(7, 87), span(300, 340)]);
    }
}
