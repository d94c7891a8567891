//! Telemetry: a connection's congestion control as a stream of [`Sample`]s.
//!
//! A [`PathController`](crate::PathController) counts on the ACK path in plain integers. It hands a [`Sample`] to the
//! connection's [`Monitor`] at most once per sampling interval, immediately when the path signals congestion, and when
//! the connection ends. It takes a lock only then. Nothing is sampled while nothing is acknowledged.

use std::fmt::{Debug, Display};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use playrate_cc::{Estimate, Snapshot};
use playrate_units::{Bitrate, Bytes};

mod recorder;
mod series;
mod waits;

pub(crate) use recorder::{LastAckFrame, Recorder};
pub use series::TimeSeries;
use waits::WaitLog;

/// State of a connection's congestion control at one time. Totals count from the connection's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample {
    /// Time since the connection began.
    pub at: Duration,
    /// State of the controller.
    pub snapshot: Snapshot,
    /// Bytes in flight after the last ACK frame.
    pub bytes_in_flight: Bytes,
    /// True if the application or flow control limited the sender, as of that ACK frame.
    pub app_limited: bool,
    /// Last RTT sample: arrival of the ACK frame minus departure of the newest packet it acknowledged. It contains the
    /// peer's acknowledgement delay.
    pub latest_rtt: Option<Duration>,
    /// The transport's smoothed RTT, without the peer's acknowledgement delay (RFC 9002 §5.3).
    pub smoothed_rtt: Option<Duration>,
    /// Bytes handed to the path, in QUIC packets (without UDP and IP headers, without MTU probes).
    pub sent: Bytes,
    /// Bytes of acknowledged packets.
    pub delivered: Bytes,
    /// Number of acknowledged ack-eliciting packets.
    pub delivered_packets: u64,
    /// Bytes of packets declared lost.
    pub lost: Bytes,
    /// Number of congestion signals: rounds of loss detection that found a loss, and ECN-CE.
    pub congestion_events: u64,
    /// Bytes acknowledged since the previous sample, over the time between the two. `None` for the first.
    pub delivery_rate: Option<Bitrate>,
    /// Rate that the connection was [estimated](crate::ConnectionController::estimate) to carry, as of this sample.
    pub estimate: Option<Estimate>,
}

impl Sample {
    /// Sets the delivery rate from the previous sample.
    fn rate_since(&mut self, before: Option<&Self>) {
        self.delivery_rate = before
            .and_then(|before| (self.delivered - before.delivered).per(self.at.saturating_sub(before.at)));
    }
}

/// Receiver of samples. Called on the connection's task: it must not block.
pub trait Sink: Debug + Send + Sync {
    /// Receives one sample; a connection's samples come in the order of their times.
    fn take(&self, sample: &Sample);
}

impl<S: Sink + ?Sized> Sink for Arc<S> {
    fn take(&self, sample: &Sample) {
        (**self).take(sample);
    }
}

/// Distributor of a connection's samples to its sinks. One per connection, shared (`Arc`) between its controller and
/// the code that reads [`latest`](Self::latest).
#[derive(Debug)]
pub struct Monitor {
    name: String,
    interval: Duration,
    sinks: Vec<Box<dyn Sink>>,
    began: OnceLock<Instant>,
    latest: Mutex<Option<Sample>>,
    waits: WaitLog,
}

impl Default for Monitor {
    fn default() -> Self {
        Self::new(Self::DEFAULT_INTERVAL)
    }
}

impl Monitor {
    /// Interval between samples: fine enough for a figure over a minute, coarse enough to cost nothing.
    pub const DEFAULT_INTERVAL: Duration = Duration::from_millis(20);

    /// A monitor that takes a sample at most every `interval`.
    pub fn new(interval: Duration) -> Self {
        Self {
            name: String::new(),
            interval,
            sinks: Vec::new(),
            began: OnceLock::new(),
            latest: Mutex::new(None),
            waits: WaitLog::default(),
        }
    }

    /// Logs under the name `connection`.
    #[must_use]
    pub fn named(mut self, connection: impl Display) -> Self {
        self.name = connection.to_string();
        self
    }

    /// Adds a sink that receives all samples from now on.
    #[must_use]
    pub fn with_sink(mut self, sink: impl Sink + 'static) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// The last sample taken; `None` before the first acknowledgement.
    pub fn latest(&self) -> Option<Sample> {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shortest time between two samples without a congestion signal between them.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Time of the connection's beginning: `now` at the first call, when its first controller is built.
    fn began(&self, now: Instant) -> Instant {
        *self.began.get_or_init(|| now)
    }

    fn record(&self, sample: &Sample) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(*sample);
        self.waits.log(&self.name, sample.snapshot.waiting_for);
        for sink in &self.sinks {
            sink.take(sample);
        }
    }
}
