//! [`ServedResponse`]: the record of a response, over any version of HTTP, for an access log.

use core::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::{Request, StatusCode};
use playrate_units::Bytes;
use quinn::Runtime;

use crate::site::Site;

/// A response that has ended: complete, reset by the client, or aborted by the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServedResponse {
    /// Wall-clock time at which the request had arrived; `None` without a clock.
    pub time: Option<SystemTime>,
    /// Address of the client.
    pub peer: SocketAddr,
    /// The request as the client sent it.
    pub request: Request<bytes::Bytes>,
    /// Status; `None` if the client left before there was an answer.
    pub status: Option<StatusCode>,
    /// Size of the content that the answer announced.
    pub length: Bytes,
    /// Bytes of content handed to the transport.
    pub sent: Bytes,
    /// Time from the request to the end of the response. Over HTTP/3 that is the client's last acknowledgement; over
    /// TCP, the moment when the last byte was handed to the connection.
    pub duration: Duration,
    /// Time from the request to the moment when the head of the response was handed to the transport.
    pub first_byte: Option<Duration>,
    /// Spec of the controller at the end; `None` over TCP.
    pub controller: Option<String>,
    /// Arm of the connection, if one was chosen.
    pub arm: Option<String>,
    /// Stalls that the connection's players have reported so far (CMCD `bs`); `None` without reports, and over TCP.
    pub stalls: Option<u64>,
    /// True if everything was sent and, over HTTP/3, acknowledged.
    pub is_complete: bool,
}

/// Receives a record of each response at its end. Called on tasks of connections, so it must not block.
pub trait ResponseLog: fmt::Debug + Send + Sync {
    /// A response has ended.
    fn ended(&self, response: &ServedResponse);
}

/// The record of a response in progress; reported when dropped, even if its task panics.
#[derive(Debug)]
pub(crate) struct PendingRecord {
    log: Arc<dyn ResponseLog>,
    runtime: Arc<dyn Runtime>,
    began: Instant,
    pub(crate) served: ServedResponse,
}

impl PendingRecord {
    /// Begins the record of a response to `request`; `None` if the site has no log.
    pub(crate) fn begin(
        site: &Site,
        runtime: &Arc<dyn Runtime>,
        peer: SocketAddr,
        request: &Request<bytes::Bytes>,
    ) -> Option<Self> {
        let log = Arc::clone(site.log.as_ref()?);
        let served = ServedResponse {
            time: site.now(),
            peer,
            request: request.clone(),
            status: None,
            length: Bytes::ZERO,
            sent: Bytes::ZERO,
            duration: Duration::ZERO,
            first_byte: None,
            controller: None,
            arm: None,
            stalls: None,
            is_complete: false,
        };
        Some(Self {
            log,
            runtime: Arc::clone(runtime),
            began: runtime.now(),
            served,
        })
    }

    /// Notes in `record`, if there is one, that the head of the response is handed to the transport now.
    pub(crate) fn begin_response(record: &mut Option<Self>, status: StatusCode, length: u64) {
        if let Some(record) = record {
            record.served.status = Some(status);
            record.served.length = Bytes::new(length);
            record.served.first_byte = Some(record.age());
        }
    }

    fn age(&self) -> Duration {
        self.runtime.now().saturating_duration_since(self.began)
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        self.served.duration = self.age();
        self.log.ended(&self.served);
    }
}
