//! [`Session`]: one client's HTTP/3 connection.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use h3::error::Code;
use tokio::sync::watch;

use super::Shared;
use super::exchange::{Arrival, Live};
use crate::adapter::ConnectionController;
use crate::error::ConnectionLost;
use crate::overhead::WireOverhead;
use crate::quic;
use crate::telemetry::Totals;

/// Most bytes taken of one request: header, body and all. `h3` keeps a frame in memory until it is whole.
const REQUEST_LIMIT: u64 = 64 << 10;

/// One client's connection. Dropping it closes the connection, so keep [accepting](Self::accept) until there is
/// nothing more to accept.
pub struct Session {
    h3: h3::server::Connection<quic::Connection, Bytes>,
    quinn: quinn::Connection,
    accepted: quic::Accepted,
    control: Arc<ConnectionController>,
    shared: Arc<Shared>,
    stop: watch::Receiver<bool>,
    live: Live,
    going_away: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("peer", &self.peer())
            .field("control", &self.control)
            .field("going_away", &self.going_away)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(super) async fn new(
        quinn: quinn::Connection,
        control: ConnectionController,
        shared: Arc<Shared>,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, ConnectionLost> {
        if control.overhead().is_some() {
            WireOverhead::assume(control.knowledge());
        }
        let adapter = quic::Connection::new(quinn.clone(), REQUEST_LIMIT);
        let accepted = adapter.accepted();
        let h3 = h3::server::builder()
            .max_field_section_size(REQUEST_LIMIT)
            .send_grease(shared.options.transport.seed.is_none())
            .build(adapter)
            .await
            .map_err(|error| ConnectionLost::of(&quinn, &error))?;
        Ok(Self {
            h3,
            quinn,
            accepted,
            control: Arc::new(control),
            shared,
            stop,
            live: Live::default(),
            going_away: false,
        })
    }

    /// The client's address.
    pub fn peer(&self) -> SocketAddr {
        self.quinn.remote_address()
    }

    /// The connection's congestion control: which controller, what it knows of the video, who watches.
    pub fn control(&self) -> &ConnectionController {
        &self.control
    }

    /// The connection's totals so far.
    pub fn totals(&self) -> Totals {
        self.quinn.stats().into()
    }

    /// The QUIC connection underneath.
    pub fn quinn(&self) -> &quinn::Connection {
        &self.quinn
    }

    /// The next request. `None` when the client has left in good order, or when the server is shutting down and
    /// all of this session's exchanges have ended.
    ///
    /// This also drives the connection's control streams, so call it again at once and answer requests elsewhere.
    /// Giving up the future loses nothing.
    pub async fn accept(&mut self) -> Result<Option<Arrival>, ConnectionLost> {
        loop {
            if !self.going_away && *self.stop.borrow() {
                self.going_away = true;
                // One more than the last accepted is the first that is not taken (RFC 9114 §5.2).
                if let Err(error) = self.h3.shutdown(1).await {
                    return self.ended(&error);
                }
            }
            let resolver = tokio::select! {
                biased;
                // Before a request that came after the shutdown had begun, by when other connections may know of it. An error says
                // that the server is gone; the endpoint closes this connection then.
                Ok(()) = self.stop.changed(), if !self.going_away => continue,
                accepted = self.h3.accept() => match accepted {
                    Ok(Some(resolver)) => resolver,
                    Ok(None) => return Ok(None),
                    Err(error) => return self.ended(&error),
                },
                () = self.live.none(), if self.going_away => return Ok(None),
            };
            let Some(stream) = self
                .accepted
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
            else {
                continue;
            };
            if self.going_away {
                stream
                    .wishes
                    .give_up
                    .store(Code::H3_REQUEST_REJECTED.value(), Relaxed);
                continue;
            }
            return Ok(Some(Arrival::new(
                resolver,
                stream,
                self.quinn.clone(),
                Arc::clone(&self.control),
                Arc::clone(&self.shared),
                self.live.begin(),
            )));
        }
    }

    fn ended(&self, error: &h3::error::ConnectionError) -> Result<Option<Arrival>, ConnectionLost> {
        let lost = ConnectionLost::of(&self.quinn, error);
        if lost.is_orderly() { Ok(None) } else { Err(lost) }
    }
}
