//! Ears at both ends of a session, on the runtime's clock.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use playrate_transport::telemetry::{Sample, Sink, TimeSeries, Totals};
use playrate_units::Bytes;
use quinn::Runtime;
use video_client::observer::{Observer as Watcher, Progress};
use video_client::playout::{Event, Happening};
use video_server::serve::{ConnectionInfo, Observer, SessionSummary};

use super::meter::{Measured, Meter};
use super::seat::{Moment, Seat, Sight};
use super::windows::{Marks, Sent, Window};
use super::{Access, Setup, Watch};
use crate::record::Span;

/// Samples kept of a connection: every 20 ms for 80 s, thinned out beyond that.
const SAMPLES: usize = 4_096;

/// Keeps what the server's connection tells. A session has one connection; should the client connect again, the last
/// counts.
#[derive(Debug)]
pub struct Recording {
    runtime: Arc<dyn Runtime>,
    start: Instant,
    series: AtomicBool,
    bdp: Option<Bytes>,
    round_trip: Duration,
    windows: Vec<Window>,
    heard: Mutex<Heard>,
}

#[derive(Debug, Default)]
struct Heard {
    series: Option<(Instant, Arc<TimeSeries>)>,
    meter: Option<Arc<Meter>>,
    sent: Option<Arc<Departures>>,
    totals: Option<Totals>,
    min_rtt: Option<Duration>,
}

impl Recording {
    /// Hears nothing yet; `runtime` tells when a connection begins. The run begins now.
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        let start = runtime.now();
        Self::since(start, runtime)
    }

    /// As [`new`](Self::new), in a run that began at `start`.
    pub fn since(start: Instant, runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime,
            start,
            series: AtomicBool::new(true),
            bdp: None,
            round_trip: Duration::ZERO,
            windows: Vec::new(),
            heard: Mutex::default(),
        }
    }

    /// Tells what is measured: against which path, and in which parts of the run.
    pub(super) fn of_flow(self, setup: &Setup, access: Access) -> Self {
        let round_trip = setup.path.round_trip().saturating_add(access.round_trip());
        Self {
            bdp: setup.path.forward.rate.mean().map(|rate| rate * round_trip),
            round_trip,
            windows: setup.windows.clone(),
            ..self
        }
    }

    pub(super) fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Whether connections that begin from here on are sampled.
    pub fn keep_series(&self, keep: bool) {
        self.series.store(keep, Relaxed);
    }

    fn heard<T>(&self, look: impl FnOnce(&mut Heard) -> T) -> T {
        look(&mut lock(&self.heard))
    }

    pub(super) fn since_start(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.start)
    }

    /// The connection's samples, on a clock that began at `began`.
    pub fn samples(&self, began: Instant) -> Vec<(Duration, Sample)> {
        let Some((connected, series)) = self.heard(|heard| heard.series.clone()) else {
            return Vec::new();
        };
        let offset = connected.saturating_duration_since(began);
        let samples = series.samples();
        samples
            .into_iter()
            .map(|sample| (sample.at.saturating_add(offset), sample))
            .collect()
    }

    /// The connection's samples, on the clock of the run.
    pub(super) fn samples_of_run(&self) -> Vec<(Duration, Sample)> {
        self.samples(self.start)
    }

    /// What the window and the estimates did.
    pub fn measured(&self) -> Option<Measured> {
        let meter = self.heard(|heard| heard.meter.clone());
        meter.and_then(|meter| meter.measured())
    }

    /// The connection's newest sample.
    pub(super) fn latest(&self) -> Option<Sample> {
        self.heard(|heard| heard.series.clone())?.1.latest()
    }

    /// What was sent and lost.
    pub(super) fn sent(&self) -> Sent {
        let sent = self.heard(|heard| heard.sent.clone());
        sent.map(|sent| lock(&sent.sent).clone()).unwrap_or_default()
    }

    /// Ears for a connection that begins now.
    pub(super) fn listen(&self) -> Vec<Arc<dyn Sink>> {
        let now = self.runtime.now();
        let meter = Arc::new(Meter::new(self.bdp, self.round_trip));
        let mut ears: Vec<Arc<dyn Sink>> = vec![Arc::clone(&meter) as Arc<_>];
        self.heard(|heard| heard.meter = Some(meter));
        if !self.windows.is_empty() {
            let began = self.since_start(now);
            let sent = Arc::new(Departures {
                began,
                sent: Mutex::new(Sent::new(&self.windows, began)),
            });
            self.heard(|heard| heard.sent = Some(Arc::clone(&sent)));
            ears.push(sent);
        }
        if self.series.load(Relaxed) {
            let series = Arc::new(TimeSeries::new(SAMPLES));
            self.heard(|heard| heard.series = Some((now, Arc::clone(&series))));
            ears.push(Arc::new(Ear(series)));
        }
        ears
    }

    /// What the transport counted, once the connection is over.
    pub fn totals(&self) -> Option<Totals> {
        self.heard(|heard| heard.totals)
    }

    /// The smallest RTT among all samples taken.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.heard(|heard| heard.min_rtt)
    }
}

/// Keeps a connection's samples.
#[derive(Debug)]
struct Ear(Arc<TimeSeries>);

impl Sink for Ear {
    fn take(&self, sample: &Sample) {
        self.0.take(sample);
    }
}

/// Counts what a connection sends and loses.
#[derive(Debug)]
struct Departures {
    /// When the connection began, in the run.
    began: Duration,
    sent: Mutex<Sent>,
}

impl Sink for Departures {
    fn take(&self, sample: &Sample) {
        lock(&self.sent).see(self.began, sample);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observer for Recording {
    fn connecting(&self, _: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
        self.listen()
    }

    fn finished(&self, session: &SessionSummary) {
        self.heard(|heard| {
            heard.totals = Some(session.totals);
            heard.min_rtt = Some(session.totals.min_rtt);
        });
    }
}

/// Notes when the picture stood still and when pictures were discarded, and passes on how things stand.
#[derive(Debug)]
pub struct Viewing {
    /// How long a picture is shown when nothing goes wrong.
    picture: Duration,
    watch: Option<Arc<Watch>>,
    seat: Option<(Seat, Arc<Recording>)>,
    told: Bytes,
    /// When the session began, in the run.
    joined: Duration,
    received: Marks,
    last_shown: Option<Duration>,
    underflows: u64,
    freezes: Vec<Span>,
    discards: Vec<Duration>,
}

impl Viewing {
    /// A viewer of a title whose pictures are shown for `picture` each.
    pub fn new(picture: Duration) -> Self {
        Self {
            picture,
            watch: None,
            seat: None,
            told: Bytes::ZERO,
            joined: Duration::ZERO,
            received: Marks::default(),
            last_shown: None,
            underflows: 0,
            freezes: Vec::new(),
            discards: Vec::new(),
        }
    }

    pub(super) fn tell(&mut self, watch: Arc<Watch>, joined: Duration, windows: &[Window]) {
        self.watch = Some(watch);
        self.joined = joined;
        self.received = Marks::new(windows);
        self.received.see(joined, 0);
    }

    /// Bytes of the title received, at the edges of windows.
    pub(super) fn received(&self) -> &Marks {
        &self.received
    }

    pub(super) fn ended(&mut self, at: Duration, received: Bytes) {
        self.received
            .see(self.joined.saturating_add(at), received.as_u64());
    }

    /// Passes on every moment to whoever looks at `seat`, with the window of the connection that `recording` hears.
    pub(super) fn sit(&mut self, seat: Seat, recording: Arc<Recording>) {
        self.seat = Some((seat, recording));
    }

    /// The session ended at `end`: a picture that stood still until then was a freeze too.
    pub(super) fn close(&mut self, end: Duration) {
        self.shown(end);
    }

    /// When the picture stood still, and when pictures were discarded.
    pub(super) fn parts(&self) -> (&[Span], &[Duration]) {
        (&self.freezes, &self.discards)
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
            Happening::Ended => {
                if let Some((seat, _)) = &self.seat {
                    seat.set(Moment {
                        at: seat.get().at,
                        sight: Sight::Ended,
                        freezes: self.underflows,
                        discarded: self.discards.len() as u64,
                        ..Moment::default()
                    });
                }
            }
            _ => {}
        }
    }

    fn progress(&mut self, now: &Progress) {
        self.received
            .see(self.joined.saturating_add(now.at), now.received.as_u64());
        if let Some(watch) = &self.watch {
            watch.add((now.received - self.told).as_u64());
            self.told = now.received;
        }
        let Some((seat, recording)) = &self.seat else {
            return;
        };
        let still = self.last_shown.map(|last| now.at.saturating_sub(last));
        let sight = match still {
            None => Sight::Waiting,
            Some(still) if still > self.picture.saturating_mul(3) => Sight::Frozen,
            Some(_) => Sight::Playing,
        };
        seat.set(Moment {
            at: now.at,
            sight,
            ahead: now.held_time,
            delivered: now.received,
            window: recording.latest().map(|sample| sample.snapshot.window),
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
        let mut viewing = Viewing::new(Duration::from_millis(40));
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
        let mut viewing = viewing(&[
            event(100, shown),
            event(140, shown),
            event(600, shown),
            event(620, shown),
        ]);
        viewing.close(Duration::from_millis(660));
        assert_eq!(
            viewing.parts().0,
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
        let mut viewing = viewing(&[event(0, shown), event(41, shown), event(80, shown)]);
        viewing.close(Duration::from_millis(120));
        assert!(viewing.parts().0.is_empty(), "{viewing:?}");
    }

    #[test]
    fn a_picture_that_stands_still_to_the_end_is_a_freeze_too() {
        let shown = Happening::Shown {
            pts: Duration::ZERO,
            late: Duration::ZERO,
        };
        let mut viewing = viewing(&[event(0, shown)]);
        viewing.close(Duration::from_secs(2));
        let span = Span {
            from: Duration::from_millis(40),
            to: Duration::from_secs(2),
        };
        assert_eq!(viewing.parts().0, [span]);
    }

    #[test]
    fn discarded_pictures_are_noted_with_their_time() {
        let discarded = Happening::Discarded {
            pts: Duration::ZERO,
            late: Duration::from_millis(300),
        };
        let viewing = viewing(&[event(7, discarded)]);
        assert_eq!(viewing.parts().1, [Duration::from_millis(7)]);
    }
}
