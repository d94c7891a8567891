//! [`ServedResponse`]: the record of a response, over any version of HTTP, for an access log.

use core::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::header::{RANGE, REFERER, USER_AGENT};
use http::{Request, StatusCode, Version};
use playrate_media::cmcd::Cmcd;
use playrate_units::Bytes;
use quinn::Runtime;

use crate::access::redacted;
use crate::site::Site;

/// Maximum number of bytes that are kept of one field of a request: its client chooses the length, up to 64 KiB, and
/// how long the response takes.
pub(crate) const MAX_FIELD: usize = 2 << 10;

/// A response that has ended: complete, reset by the client, or aborted by the server. Fields of the request are cut
/// at 2 KiB.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServedResponse {
    /// Wall-clock time at which the request had arrived; `None` without a clock.
    pub time: Option<SystemTime>,
    /// Address of the client.
    pub peer: SocketAddr,
    /// Method of the request.
    pub method: Vec<u8>,
    /// Path and query of the request, with `*` in place of tokens.
    pub target: Vec<u8>,
    /// Version of HTTP of the request.
    pub version: Version,
    /// Field `Range` of the request.
    pub range: Option<Vec<u8>>,
    /// Field `User-Agent` of the request.
    pub user_agent: Option<Vec<u8>>,
    /// Field `Referer` of the request, with `*` in place of tokens.
    pub referer: Option<Vec<u8>>,
    /// Session that the player reported (CMCD `sid`).
    pub session: Option<Vec<u8>>,
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
    pub(crate) fn begin<B>(
        site: &Site,
        runtime: &Arc<dyn Runtime>,
        peer: SocketAddr,
        request: &Request<B>,
    ) -> Option<Self> {
        let log = Arc::clone(site.settings.response_log.as_ref()?);
        let (uri, fields) = (request.uri(), request.headers());
        let cut = |field: &[u8]| field[..field.len().min(MAX_FIELD)].to_vec();
        let field = |name| fields.get(name).map(|value| cut(value.as_bytes()));
        let without_tokens = |text: &[u8]| cut(redacted(&String::from_utf8_lossy(text)).as_bytes());
        let target = uri.path_and_query().map_or("", |target| target.as_str());
        let session = Cmcd::read(fields, uri).and_then(|report| report.session);
        let served = ServedResponse {
            time: site.now(),
            peer,
            method: cut(request.method().as_str().as_bytes()),
            target: without_tokens(target.as_bytes()),
            version: request.version(),
            range: field(RANGE),
            user_agent: field(USER_AGENT),
            referer: fields.get(REFERER).map(|value| without_tokens(value.as_bytes())),
            session: session.map(String::into_bytes),
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

    /// Notes that the head of the response is handed to the transport now.
    pub(crate) fn begin_response(&mut self, status: StatusCode, length: u64) {
        self.served.status = Some(status);
        self.served.length = Bytes::new(length);
        self.served.first_byte = Some(self.age());
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
