//! [`Session`]: one client's HTTP/3 connection.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::SendStream as _;
use quinn::Runtime;
use tokio::sync::watch;

use super::activity::Activity;
use super::clients::ClientPlace;
use super::exchange::{Arrival, SessionContext};
use crate::error::{ConnectionLost, H3_EXCESSIVE_LOAD};
use crate::quic::{AcceptedResponse, var_int};
use crate::{quic, time};
use playrate_quinn::{ConnectionController, WireOverhead};

/// Maximum number of bytes accepted in one request, header and body together. `h3` keeps a frame in memory until it is
/// complete.
const REQUEST_LIMIT: u64 = 64 << 10;
/// Longest time between the GOAWAY to an idle client and the end of its connection.
const GOAWAY_LIMIT: Duration = Duration::from_secs(1);

/// One client's connection. Dropping it closes the connection, so continue [accepting](Self::accept) until there is
/// nothing more to accept.
pub struct Session {
    h3: h3::server::Connection<quic::Connection, Bytes>,
    context: SessionContext,
    stop: watch::Receiver<bool>,
    activity: Activity,
    going_away: bool,
    /// Time limit for a client that was idle for too long to receive the GOAWAY.
    linger_until: Option<Instant>,
    /// If true, streams that are accepted from now on are rejected.
    rejecting: Arc<AtomicBool>,
    accepted: AcceptedResponse,
    _place: ClientPlace,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("peer", &self.peer())
            .field("control", &self.context.control)
            .field("going_away", &self.going_away)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(super) async fn new(
        context: SessionContext,
        mut place: ClientPlace,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, ConnectionLost> {
        let (quinn, control) = (&context.quinn, &context.control);
        if control.overhead().is_some() {
            WireOverhead::assume(control.knowledge());
        }
        let adapter = quic::Connection::new(
            quinn.clone(),
            REQUEST_LIMIT,
            Some(Arc::clone(control)),
            Some(Arc::clone(&context.turns)),
        );
        let (accepted, rejecting) = (adapter.accepted(), adapter.rejecting());
        let h3 = h3::server::builder()
            .max_field_section_size(REQUEST_LIMIT)
            // h3 would send a reserved frame type after the first response, and some clients would then miss the
            // response's end.
            .send_grease(false)
            .build(adapter)
            .await
            .map_err(|error| ConnectionLost::of(quinn, &error))?;
        if let Err(refusal) = place.establish(control) {
            control.lift_window();
            quinn.close(var_int(H3_EXCESSIVE_LOAD), refusal.to_string().as_bytes());
            return Err(ConnectionLost::Refused(refusal));
        }
        Ok(Self {
            h3,
            stop,
            context,
            activity: place.activity().clone(),
            going_away: false,
            linger_until: None,
            rejecting,
            accepted,
            _place: place,
        })
    }

    /// IP address and port of the client.
    pub fn peer(&self) -> SocketAddr {
        self.context.quinn.remote_address()
    }

    /// The connection's congestion control, to inform it of the video.
    pub fn control(&self) -> &ConnectionController {
        &self.context.control
    }

    /// The QUIC connection underneath.
    pub fn quinn(&self) -> &quinn::Connection {
        &self.context.quinn
    }

    /// The next request. `None` if the client has left in good order, if it was idle for too long, or if the server is
    /// shutting down and all of this session's exchanges have ended.
    ///
    /// This also drives the connection's control streams, so call it again immediately and answer requests elsewhere.
    /// Dropping the future loses nothing.
    pub async fn accept(&mut self) -> Result<Option<Arrival>, ConnectionLost> {
        loop {
            let is_stopping = *self.stop.borrow();
            if is_stopping
                && !self.going_away
                && let Err(error) = self.go_away().await
            {
                return self.ended(&error);
            }
            let mut resolver = tokio::select! {
                biased;
                // First, so that no request is accepted after the shutdown has begun: other connections may already
                // have received the GOAWAY.
                Ok(()) = self.stop.changed(), if !self.going_away => continue,
                accepted = self.h3.accept() => match accepted {
                    Ok(Some(resolver)) => resolver,
                    Ok(None) => return Ok(None),
                    Err(error) => return self.ended(&error),
                },
                () = drained(&self.activity, &*self.context.runtime, self.linger_until), if self.going_away => {
                    return Ok(None);
                }
                () = self.activity.expired(self.context.options.idle_limit), if !self.going_away => {
                    // Requests that the client sent before it received the GOAWAY are rejected, so that the client
                    // knows that it may send them again. This is set first, because this future may be dropped while it
                    // sends the GOAWAY.
                    let linger = GOAWAY_LIMIT.min(self.context.quinn.rtt() * 3);
                    self.linger_until = Some(self.context.runtime.now() + linger);
                    if let Err(error) = self.go_away().await {
                        return self.ended(&error);
                    }
                    continue;
                }
            };
            let response = self.accepted.lock().take();
            if self.going_away {
                continue;
            }
            if let Some((count, response)) = self.activity.begin_arrival().zip(response) {
                return Ok(Some(Arrival {
                    resolver,
                    response,
                    context: self.context.clone(),
                    count,
                }));
            }
            // The session has made room in the meantime; the client may send the request again on another connection.
            resolver.frame_stream.reset(Code::H3_REQUEST_REJECTED.value());
        }
    }

    /// Sends the client a GOAWAY, if it has room for that within [`GOAWAY_LIMIT`].
    async fn go_away(&mut self) -> Result<(), h3::error::ConnectionError> {
        self.going_away = true;
        self.rejecting.store(true, Relaxed);
        // The first rejected request is the one after the last accepted (RFC 9114 §5.2).
        let sending = self.h3.shutdown(1);
        time::timeout(&*self.context.runtime, GOAWAY_LIMIT, sending)
            .await
            .unwrap_or(Ok(()))
    }

    fn ended(&self, error: &h3::error::ConnectionError) -> Result<Option<Arrival>, ConnectionLost> {
        let lost = ConnectionLost::of(&self.context.quinn, error);
        if lost.is_orderly() { Ok(None) } else { Err(lost) }
    }
}

/// Waits until no exchange is in progress and `linger_until` has passed.
async fn drained(activity: &Activity, runtime: &dyn Runtime, linger_until: Option<Instant>) {
    activity.without_exchanges().await;
    if let Some(end) = linger_until {
        time::sleep(runtime, end.saturating_duration_since(runtime.now())).await;
    }
}
