//! [`Observer`]: who wants to know what happens on a server's connections.

use core::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playrate_transport::telemetry::{Sink, Totals};
use playrate_units::Bytes;

/// A connection, as it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// Counts a server's connections from 0. Handshakes that fail use up a number.
    pub id: u64,
    /// The client's address as the connection begins.
    pub peer: SocketAddr,
    /// The spec of the controller that it gets.
    pub controller: String,
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The client left, or was told to and did.
    Orderly,
    /// Anything else, in words.
    Lost(String),
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Orderly => f.pad("in good order"),
            Self::Lost(why) => f.pad(why),
        }
    }
}

/// A connection, looked back at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionSummary {
    /// Which connection.
    pub connection: ConnectionInfo,
    /// From the end of the handshake to the end of the connection.
    pub duration: Duration,
    /// Requests that arrived whole.
    pub requests: u64,
    /// Responses that the client acknowledged whole.
    pub responses: u64,
    /// Responses that were broken off.
    pub aborted: u64,
    /// Bytes of content handed to the transport.
    pub bytes: Bytes,
    /// What the transport counted.
    pub totals: Totals,
    /// Why it is over.
    pub end: SessionEnd,
}

/// Is told of a server's connections. Called on their tasks: it must not block.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use playrate_transport::telemetry::{Sink, TimeSeries};
/// use video_server::serve::{ConnectionInfo, Observer};
///
/// /// Keeps the series of every connection, at most 4096 samples each.
/// #[derive(Debug, Default)]
/// struct Recording(Mutex<Vec<(u64, Arc<TimeSeries>)>>);
///
/// impl Observer for Recording {
///     fn connecting(&self, connection: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
///         let series = Arc::new(TimeSeries::new(4096));
///         self.0.lock().unwrap().push((connection.id, Arc::clone(&series)));
///         vec![series]
///     }
/// }
/// ```
pub trait Observer: fmt::Debug + Send + Sync {
    /// A client wants to connect. What is returned takes the samples of its congestion control.
    fn connecting(&self, connection: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
        let _ = connection;
        Vec::new()
    }

    /// A connection whose handshake had succeeded is over.
    fn finished(&self, session: &SessionSummary) {
        let _ = session;
    }
}
