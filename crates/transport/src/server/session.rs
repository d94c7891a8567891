//! [`Session`]: one client's HTTP/3 connection.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use tokio::sync::watch;

use super::ServerState;
use super::clients::ClientPlace;
use super::exchange::{Arrival, ExchangeCount, SessionContext};
use crate::error::ConnectionLost;
use crate::quic;
use playrate_quinn::telemetry::Totals;
use playrate_quinn::{ConnectionController, WireOverhead};

/// Most bytes accepted in one request, header and body together. `h3` keeps a frame in memory until it is complete.
const REQUEST_LIMIT: u64 = 64 << 10;

/// One client's connection. Dropping it closes the connection, so keep [accepting](Self::accept) until there is
/// nothing more to accept.
pub struct Session {
    h3: h3::server::Connection<quic::Connection, Bytes>,
    context: SessionContext,
    stop: watch::Receiver<bool>,
    exchanges: ExchangeCount,
    going_away: bool,
    /// Has streams that are accepted from now on rejected.
    rejecting: Arc<AtomicBool>,
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
        quinn: quinn::Connection,
        control: ConnectionController,
        shared: Arc<ServerState>,
        stop: watch::Receiver<bool>,
        place: ClientPlace,
    ) -> Result<Self, ConnectionLost> {
        if control.overhead().is_some() {
            WireOverhead::assume(control.knowledge());
        }
        let adapter = quic::Connection::new(quinn.clone(), REQUEST_LIMIT);
        let (responses, rejecting) = (adapter.responses(), adapter.rejecting());
        let h3 = h3::server::builder()
            .max_field_section_size(REQUEST_LIMIT)
            .send_grease(shared.options.transport.seed.is_none())
            .build(adapter)
            .await
            .map_err(|error| ConnectionLost::of(&quinn, &error))?;
        Ok(Self {
            h3,
            context: SessionContext {
                quinn,
                control: Arc::new(control),
                shared,
                responses,
            },
            stop,
            exchanges: ExchangeCount::default(),
            going_away: false,
            rejecting,
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

    /// Totals of the connection so far, as quinn counts them.
    pub fn totals(&self) -> Totals {
        self.context.quinn.stats().into()
    }

    /// The QUIC connection underneath.
    pub fn quinn(&self) -> &quinn::Connection {
        &self.context.quinn
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
                self.rejecting.store(true, Relaxed);
                // One more than the last accepted is the first that is not taken (RFC 9114 §5.2).
                if let Err(error) = self.h3.shutdown(1).await {
                    return self.ended(&error);
                }
            }
            let resolver = tokio::select! {
                biased;
                // First, so that no request is accepted that came after the shutdown had begun, of which other
                // connections may be informed by then. An error says that the server is gone; the endpoint closes
                // this connection then.
                Ok(()) = self.stop.changed(), if !self.going_away => continue,
                accepted = self.h3.accept() => match accepted {
                    Ok(Some(resolver)) => resolver,
                    Ok(None) => return Ok(None),
                    Err(error) => return self.ended(&error),
                },
                () = self.exchanges.none(), if self.going_away => return Ok(None),
            };
            if !self.going_away {
                let (context, count) = (self.context.clone(), self.exchanges.begin());
                return Ok(Some(Arrival::new(resolver, context, count)));
            }
        }
    }

    fn ended(&self, error: &h3::error::ConnectionError) -> Result<Option<Arrival>, ConnectionLost> {
        let lost = ConnectionLost::of(&self.context.quinn, error);
        if lost.is_orderly() { Ok(None) } else { Err(lost) }
    }
}
