//! [`Estimate`]: the rate that a path was observed to carry, for an encoder or the choice of a representation.

use core::fmt;
use core::time::Duration;

use playrate_units::Bitrate;

/// Rate that the path's narrowest link was observed to carry for one connection, as a bound for an encoder or for the
/// choice of a representation.
///
/// It does not depend on the congestion controller: it comes from acknowledged bytes alone. It is never deliberately
/// high, because a sender that exceeds the link fills a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Estimate {
    /// Bytes of QUIC packets that arrived per time, without UDP and IP headers. These headers add 28 bytes (IPv4) or
    /// 48 bytes (IPv6) to each packet on the link; QUIC's own headers and frames are part of the rate.
    pub rate: Bitrate,
    /// The relation of the rate to the link's.
    pub source: EstimateSource,
    /// Time since the arrival of the newest ACK frame that the rate includes. It grows during a pause or an outage,
    /// because nothing is acknowledged then.
    pub age: Duration,
    /// Time that an estimate spans on this path: the shortest RTT, but at least [`SHORTEST_SPAN`](Self::SHORTEST_SPAN).
    /// Soon after a pause, the rate was measured over less, but at least over a quarter of it.
    pub span: Duration,
}

impl Estimate {
    /// Span of an estimate on a path with a short RTT.
    pub const SHORTEST_SPAN: Duration = Duration::from_millis(600);

    /// An estimate of `rate` from `source` over the shortest span, whose newest measurement is `age` old.
    pub const fn new(rate: Bitrate, source: EstimateSource, age: Duration) -> Self {
        Self {
            rate,
            source,
            age,
            span: Self::SHORTEST_SPAN,
        }
    }

    /// Sets the time that the rate was measured over.
    #[must_use]
    pub const fn with_span(mut self, span: Duration) -> Self {
        self.span = span;
        self
    }

    /// Returns false if the rate says nothing about the present: for as long as it spans, nothing was acknowledged,
    /// because the path is idle or fails. While packets are acknowledged, estimates come eight times per span.
    pub fn is_current(&self) -> bool {
        self.age < self.span
    }

    /// Returns true if the sender did not keep the link busy: the link may carry more than [`rate`](Self::rate).
    pub const fn is_lower_bound(&self) -> bool {
        !matches!(self.source, EstimateSource::BusyLink)
    }
}

/// Relation of an [`Estimate`] to the rate of the path's narrowest link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EstimateSource {
    /// Packets waited at the narrowest link all the time, for longer than an ACK path usually delays frames. So the
    /// rate is the link's, less the traffic of others.
    BusyLink,
    /// The congestion window limited the sender, but the link was not seen to be busy all the time: a lower bound.
    Window,
    /// The application or flow control limited the sender for a part of the time: a lower bound.
    Application,
}

impl EstimateSource {
    /// The name in telemetry: lower case, words joined by `-`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BusyLink => "busy-link",
            Self::Window => "window",
            Self::Application => "application",
        }
    }
}

impl fmt::Display for EstimateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
