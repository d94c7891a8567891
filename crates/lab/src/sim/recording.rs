//! [`Recording`]: the reports of the server's connection of one flow.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use playrate_transport::telemetry::{Sample, Sink, TimeSeries};
use playrate_units::Bytes;
use quinn::{ConnectionStats, Runtime};
use video_server::serve::{ConnectionInfo, Observer, SessionSummary};

use super::meter::{ControlStatistics, Meter};
use super::restarts::RestartStatistics;
use super::windows::{Marks, SentCounter, Window, WindowCounts};
use super::{Access, Setup};

/// Samples kept per connection: one every 20 ms for 80 s, thinned out after that.
const SAMPLES: usize = 4_096;

/// Keeps the reports of the server's connection of one flow. If the client reconnects, the last connection counts.
#[derive(Debug)]
pub(super) struct Recording {
    runtime: Arc<dyn Runtime>,
    start: Instant,
    keeps_series: bool,
    bdp: Option<Bytes>,
    round_trip: Duration,
    windows: Vec<Window>,
    recorded: Mutex<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    series: Option<(Instant, Arc<TimeSeries>)>,
    meter: Option<Arc<Meter>>,
    sent: Option<Arc<SentCounter>>,
    totals: Option<ConnectionStats>,
}

impl Recording {
    /// A recording of a flow of `setup` with these access links, in a run that began at `start`.
    pub(super) fn new(setup: &Setup, access: Access, start: Instant, runtime: Arc<dyn Runtime>) -> Self {
        let round_trip = setup.path.round_trip().saturating_add(access.round_trip());
        Self {
            runtime,
            start,
            keeps_series: setup.taps,
            bdp: setup.path.forward.rate.mean().map(|rate| rate * round_trip),
            round_trip,
            windows: setup.windows.clone(),
            recorded: Mutex::default(),
        }
    }

    pub(super) fn windows(&self) -> &[Window] {
        &self.windows
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time at `now` since the run began.
    pub(super) fn since_start(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.start)
    }

    /// The connection's samples, on a clock that starts `joined` after the beginning of the run; empty without series.
    pub(super) fn samples(&self, joined: Duration) -> Vec<Sample> {
        let Some((connected, series)) = self.recorded().series.clone() else {
            return Vec::new();
        };
        let offset = self.since_start(connected).saturating_sub(joined);
        let mut samples = series.samples();
        for sample in &mut samples {
            sample.at = sample.at.saturating_add(offset);
        }
        samples
    }

    /// Statistics of window, RTT and estimates, and of restarts after pauses; `None` before the second sample.
    pub(super) fn statistics(&self) -> Option<(ControlStatistics, Option<RestartStatistics>)> {
        let meter = self.recorded().meter.clone();
        meter.and_then(|meter| meter.statistics())
    }

    /// The connection's congestion window in the latest sample; `None` without series.
    pub(super) fn latest_window(&self) -> Option<Bytes> {
        let (_, series) = self.recorded().series.clone()?;
        series.latest().map(|sample| sample.snapshot.window)
    }

    /// Counts in each of the setup's windows, in a run that lasted `length`.
    pub(super) fn counts(&self, length: Duration, received: &Marks) -> Vec<WindowCounts> {
        let counter = self.recorded().sent.clone().unwrap_or_default();
        counter.counts(&self.windows, length, received)
    }

    /// Sinks for the telemetry of a new connection.
    pub(super) fn sinks(&self) -> Vec<Arc<dyn Sink>> {
        let now = self.runtime.now();
        let mut recorded = self.recorded();
        let meter = Arc::new(Meter::new(self.bdp, self.round_trip));
        recorded.meter = Some(Arc::clone(&meter));
        let mut sinks: Vec<Arc<dyn Sink>> = vec![meter];
        if !self.windows.is_empty() {
            let began = self.since_start(now);
            let counter = Arc::new(SentCounter::new(&self.windows, began));
            recorded.sent = Some(Arc::clone(&counter));
            sinks.push(counter);
        }
        if self.keeps_series {
            let series = Arc::new(TimeSeries::new(SAMPLES));
            recorded.series = Some((now, Arc::clone(&series)));
            sinks.push(series);
        }
        sinks
    }

    /// Totals of the server's transport, once the connection has ended.
    pub(super) fn totals(&self) -> Option<ConnectionStats> {
        self.recorded().totals
    }
}

impl Observer for Recording {
    fn connecting(&self, _: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
        self.sinks()
    }

    fn finished(&self, session: &SessionSummary) {
        self.recorded().totals = Some(session.transport);
    }
}
