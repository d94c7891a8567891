//! Ears at both ends: what the server's connection and the player tell while they run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use playrate_transport::telemetry::{Sample, Sink, TimeSeries, Totals};
use video_client::observer::{Observer as Watcher, Progress};
use video_client::playout::{Event, Happening};
use video_server::serve::{ConnectionInfo, Observer, SessionSummary};

use super::progress::{Moment, Sight, Watch};
use crate::record::Span;

/// Samples kept of a connection: every 20 ms for 80 s, thinned out beyond that.
const SAMPLES: usize = 4_096;

/// Keeps what the server's connection tells. A session has one connection; should the client connect again, the last
/// counts.
#[derive(Debug, Default)]
pub(super) struct Recording(Mutex<Heard>);

#[derive(Debug, Default)]
struct Heard {
    series: Option<(Instant, Arc<TimeSeries>)>,
    totals: Option<Totals>,
}

impl Recording {
    fn heard<T>(&self, look: impl FnOnce(&mut Heard) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The connection's samples, on a clock that began at `began`.
    pub(super) fn samples(&self, began: Instant) -> Vec<(Duration, Sample)> {
        let Some((connected, series)) = self.heard(|heard| heard.series.clone()) else {
            return Vec::new();
        };
        let offset = connected.saturating_duration_since(began);
        let samples = series.samples();
        samples
            .into_iter()
            .map(|sample| (sample.at + offset, sample))
            .collect()
    }

    /// What the transport counted, once the connection is over.
    pub(super) fn totals(&self) -> Option<Totals> {
        self.heard(|heard| heard.totals)
    }

    fn latest(&self) -> Option<Sample> {
        self.heard(|heard| heard.series.clone())?.1.samples().pop()
    }
}

impl Observer for Recording {
    fn connecting(&self, _: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
        let series = Arc::new(TimeSeries::new(SAMPLES));
        self.heard(|heard| heard.series = Some((Instant::now(), Arc::clone(&series))));
        vec![series]
    }

    fn finished(&self, session: &SessionSummary) {
        self.heard(|heard| heard.totals = Some(session.totals));
    }
}

/// Notes when the picture stood still and when pictures were discarded, and passes on how things stand.
#[derive(Debug)]
pub(super) struct Viewing {
    /// How long a picture is shown when nothing goes wrong.
    picture: Duration,
    watch: Watch,
    recording: Arc<Recording>,
    last_shown: Option<Duration>,
    underflows: u64,
    freezes: Vec<Span>,
    discards: Vec<Duration>,
}

impl Viewing {
    pub(super) fn new(picture: Duration, watch: Watch, recording: Arc<Recording>) -> Self {
        Self {
            picture,
            watch,
            recording,
            last_shown: None,
            underflows: 0,
            freezes: Vec::new(),
            discards: Vec::new(),
        }
    }

    /// When the picture stood still, and when pictures were discarded, in a session that ended at `end`.
    pub(super) fn into_parts(mut self, end: Duration) -> (Vec<Span>, Vec<Duration>) {
        self.shown(end);
        (self.freezes, self.discards)
    }

    /// A picture came up at `at`: whatever went beyond the time of the one before was a freeze.
    fn shown(&mut self, at: Duration) {
        if let Some(last) = self.last_shown {
            let from = last.saturating_add(self.picture);
            // Half a picture is rounding of presentation times.
            if at > from.saturating_add(self.picture / 2) {
                self.freezes.push(Span { from, to: at });
            }
        }
        self.last_shown = Some(at);
    }
}

impl Watcher for Viewing {
    fn event(&mut self, event: &Event) {
        match event.what {
            Happening::Shown { .. } => self.shown(event.at),
            Happening::Discarded { .. } => self.discards.push(event.at),
            Happening::UnderflowBegan => self.underflows += 1,
            Happening::Ended => self.watch.set(Moment {
                at: self.watch.get().at,
                sight: Sight::Ended,
                freezes: self.underflows,
                discarded: self.discards.len() as u64,
                ..Moment::default()
            }),
            _ => {}
        }
    }

    fn progress(&mut self, now: &Progress) {
        let still = self.last_shown.map(|last| now.at.saturating_sub(last));
        let sight = match still {
            None => Sight::Waiting,
            Some(still) if still > self.picture * 3 => Sight::Frozen,
            Some(_) => Sight::Playing,
        };
        self.watch.set(Moment {
            at: now.at,
            sight,
            ahead: now.held_time,
            delivered: now.received,
            window: self.recording.latest().map(|sample| sample.snapshot.window),
            freezes: now.seen.underflows,
            discarded: now.seen.discarded,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(millis: u64, what: Happening) -> Event {
        Event {
            at: Duration::from_millis(millis),
            what,
        }
    }

    fn viewing(events: &[Event]) -> Viewing {
        let mut viewing = Viewing::new(Duration::from_millis(40), Watch::default(), Arc::default());
        for event in events {
            viewing.event(event);
        }
        viewing
    }

    #[test]
    fn a_picture_that_stays_longer_than_its_time_is_a_freeze() {
        let shown = Happening::Shown {
            pts: Duration::ZERO,
            late: Duration::ZERO,
        };
        let viewing = viewing(&[
            event(100, shown),
            event(140, shown),
            event(600, shown),
            event(620, shown),
        ]);
        let (freezes, _) = viewing.into_parts(Duration::from_millis(660));
        assert_eq!(
            freezes,
            [Span {
                from: Duration::from_millis(180),
                to: Duration::from_millis(600)
            }]
        );
    }

    #[test]
    fn rounding_of_presentation_times_is_no_freeze() {
        let shown = Happening::Shown {
            pts: Duration::ZERO,
            late: Duration::ZERO,
        };
        let (freezes, _) = viewing(&[event(0, shown), event(41, shown), event(80, shown)])
            .into_parts(Duration::from_millis(120));
        assert!(freezes.is_empty(), "{freezes:?}");
    }

    #[test]
    fn a_picture_that_stands_still_to_the_end_is_a_freeze_too() {
        let shown = Happening::Shown {
            pts: Duration::ZERO,
            late: Duration::ZERO,
        };
        let (freezes, _) = viewing(&[event(0, shown)]).into_parts(Duration::from_secs(2));
        let span = Span {
            from: Duration::from_millis(40),
            to: Duration::from_secs(2),
        };
        assert_eq!(freezes, [span]);
    }

    #[test]
    fn discarded_pictures_are_noted_with_their_time() {
        let discarded = Happening::Discarded {
            pts: Duration::ZERO,
            late: Duration::from_millis(300),
        };
        let (_, discards) = viewing(&[event(7, discarded)]).into_parts(Duration::ZERO);
        assert_eq!(discards, [Duration::from_millis(7)]);
    }
}
