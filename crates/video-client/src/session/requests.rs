//! The requests of a [`Driver`] over its connection, one at a time. It reconnects after a loss.

use std::pin::pin;
use std::time::Duration;

use http::{HeaderMap, Response, StatusCode, header};
use playrate_transport::{Body, Connection, ExchangeError, time};
use playrate_units::Bytes;

use super::body::BodyReader;
use super::driver::{Driver, NextStep, Request, TitleSource, in_millis};
use super::reconnect::{Remedy, retry_after};
use super::resume::Rest;
use crate::cmsd::CmsdSample;
use crate::error::{PlayError, Result, is_temporary, status_error};
use crate::observer::Observer;
use crate::report::Interruption;
use crate::sink::Sink;
use crate::transfer::Transfer;

impl<O: Observer, P: TitleSource> Driver<'_, O, P> {
    /// Closes the connection if the session owns one.
    pub(super) fn close(&mut self) {
        let own = self.route.shared.is_none();
        if let Some(connection) = self.connection.take().filter(|_| own) {
            connection.close();
        }
    }

    pub(super) async fn fetch_all<S: Sink>(&mut self, sink: &mut S) -> Result<()> {
        loop {
            self.seek_if_due();
            let until = match P::next(self, sink).await? {
                NextStep::Fetch(request) => {
                    if let Err(error) = self.fetch(request, sink).await {
                        self.source.on_failure(self.now(), error)?;
                        self.resumed();
                    }
                    continue;
                }
                NextStep::WaitUntil(until) => until.min(self.next_seek()),
                NextStep::Done if self.next_seek() == Duration::MAX => break,
                NextStep::Done => self.next_seek(),
            };
            self.play_on(until, std::future::pending::<()>()).await;
        }
        sink.finish().await.map_err(PlayError::Sink)
    }

    /// Time of the viewer's next jump; `Duration::MAX` if there is none.
    fn next_seek(&self) -> Duration {
        let next = self.seeks.front().filter(|_| self.source.can_seek());
        next.map_or(Duration::MAX, |seek| seek.at)
    }

    /// Makes the viewer's next jump if it is due, after reporting the progress up to it to the observer.
    fn seek_if_due(&mut self) -> bool {
        let now = self.now();
        if now < self.next_seek() {
            return false;
        }
        self.next_progress = now;
        self.attend();
        if let Some(seek) = self.seeks.pop_front() {
            self.source.seek(now, seek.to);
        }
        true
    }

    /// Passes the body of a response to the source and the sink, at the pace of the slower one.
    async fn fetch<S: Sink>(&mut self, request: Box<Request>, sink: &mut S) -> Result<()> {
        let requested = self.now();
        let mut reader = self.open(request).await?;
        let (mut first_byte, mut bytes) = (None, Bytes::ZERO);
        while let Some(piece) = self.piece(&mut reader, true).await? {
            let now = self.now();
            first_byte.get_or_insert(if reader.at_once { requested } else { now });
            bytes += Bytes::from(piece.len());
            self.source.on_bytes(now, &piece)?;
            sink.write(piece).await.map_err(PlayError::Sink)?;
        }
        if self.seek_if_due() {
            return Ok(());
        }
        let finished = self.now();
        self.source.on_end(Transfer {
            requested,
            first_byte: first_byte.unwrap_or(requested),
            finished,
            bytes,
        })
    }

    /// Fetches a body of at most `limit` bytes into memory. A jump of the viewer waits for its end.
    pub(crate) async fn fetch_whole(&mut self, request: Request, limit: Bytes) -> Result<bytes::Bytes> {
        let path = request.path.clone();
        let mut reader = self.open(Box::new(request)).await?;
        let mut whole = Vec::new();
        while let Some(piece) = self.piece(&mut reader, false).await? {
            whole.extend_from_slice(&piece);
            if Bytes::from(whole.len()) > limit {
                return Err(PlayError::TooLarge { path, limit });
            }
        }
        Ok(whole.into())
    }

    /// Length of the file at `path`, if the server declares it.
    pub(crate) async fn length(&mut self, path: &str) -> Result<Option<Bytes>> {
        let response = loop {
            let connection = self.connection().await?;
            let exchange = async { Ok((connection.head(path, HeaderMap::new()).await?, ())) };
            if let Some((response, ())) = self.attempt(exchange, path).await? {
                break response;
            }
        };
        self.resumed();
        if response.status() != StatusCode::OK {
            return Err(status_error(&response, path));
        }
        let length = response.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(length.map(Bytes::new))
    }

    /// Sends a request and waits for the head of its response.
    async fn open(&mut self, request: Box<Request>) -> Result<BodyReader> {
        let (response, body) = self.send(&request, None).await?;
        let expected = match request.bytes {
            Some(_) => StatusCode::PARTIAL_CONTENT,
            None => StatusCode::OK,
        };
        if response.status() != expected {
            return Err(status_error(&response, &request.path));
        }
        self.source.on_response(body.promised().map(Bytes::new));
        Ok(BodyReader::new(request, &response, body))
    }

    /// Replaces the interrupted body of `reader` by one that continues it. Returns false if nothing is left.
    async fn resume(&mut self, reader: &mut BodyReader) -> Result<bool> {
        if reader.received() == 0 {
            *reader = self.open(reader.request.clone()).await?;
            return Ok(true);
        }
        let interruption = self.interruptions.present.as_ref();
        let cause = interruption
            .map(|present| present.reason.clone())
            .unwrap_or_default();
        let rest = reader.rest(cause)?;
        let (response, body) = self.send(&reader.request, Some(&rest)).await?;
        let Some(end) = rest.check(&response)? else {
            return Ok(false);
        };
        reader.go_on(body, end);
        Ok(true)
    }

    /// Sends a request, or one for the rest of its response, until a response arrives.
    async fn send(&mut self, request: &Request, rest: Option<&Rest>) -> Result<(Response<()>, Body)> {
        let Request { path, bytes, cmcd } = request;
        loop {
            let connection = self.connection().await?;
            let mut cmcd = cmcd.clone();
            if self.interruptions.present.is_some() {
                self.advance();
                self.source.refresh(&mut cmcd);
            }
            let mut headers = HeaderMap::new();
            let with_cmcd = self.options.cmcd.add(cmcd, path, &mut headers);
            let mut range = bytes
                .as_ref()
                .map(|range| (range.start, Some(range.end.saturating_sub(1))));
            if let Some(rest) = rest {
                headers.insert(header::IF_RANGE, rest.tag.clone());
                range = Some((rest.first, rest.last));
            }
            let exchange = async {
                match range {
                    Some((first, last)) => connection.get_range(&with_cmcd, first, last, headers).await,
                    None => connection.get(&with_cmcd, headers).await,
                }
            };
            if let Some((response, body)) = self.attempt(exchange, path).await? {
                if response.status().is_success() {
                    let now = self.now();
                    CmsdSample::read(&mut self.cmsd, response.headers(), now);
                }
                return Ok((response, body));
            }
        }
    }

    /// The response to a request for `path`; `None`, after a wait, if the request must be sent again.
    async fn attempt<T>(
        &mut self,
        exchange: impl Future<Output = Result<(Response<()>, T), ExchangeError>> + Send,
        path: &str,
    ) -> Result<Option<(Response<()>, T)>> {
        let (error, wait) = match self.in_time(exchange).await {
            // Before a session has begun, a refusal is the final answer.
            Ok((response, _)) if is_temporary(response.status()) && self.has_begun => {
                (status_error(&response, path), retry_after(&response))
            }
            Ok((response, body)) => {
                self.has_begun |= response.status().is_success();
                return Ok(Some((response, body)));
            }
            Err(error) => (error, None),
        };
        Box::pin(self.recover(error, wait)).await?;
        Ok(None)
    }

    /// The connection; establishes another if it was lost.
    async fn connection(&mut self) -> Result<Connection> {
        match &self.connection {
            Some(connection) => Ok(connection.clone()),
            // Boxed because it is rare: otherwise every session would reserve room for it.
            None => Box::pin(self.reconnect()).await,
        }
    }

    async fn reconnect(&mut self) -> Result<Connection> {
        let route = self.route;
        loop {
            let backoff = self.backoff.as_ref();
            let limit = backoff.map_or(Duration::MAX, |it| it.attempt_limit(self.rtt));
            let began = self.now();
            let until = began.saturating_add(limit).min(self.deadline());
            match self.play_on(until, route.connect()).await {
                Some(Ok(connection)) => {
                    let now = self.now();
                    self.interruptions.connected(now);
                    self.connection = Some(connection.clone());
                    return Ok(connection);
                }
                Some(Err(error)) => self.recover(error.into(), None).await?,
                None => {
                    let error = route.no_answer(until.saturating_sub(began));
                    self.recover(error.into(), None).await?;
                }
            }
        }
    }

    /// Waits at least `wait` until it is time to continue after `error`.
    ///
    /// # Errors
    /// `error`, if continuing cannot help or its time limit has passed.
    async fn recover(&mut self, error: PlayError, wait: Option<Duration>) -> Result<()> {
        let now = self.now();
        let Some(backoff) = &mut self.backoff else {
            return Err(error);
        };
        let interruptions = &mut self.interruptions;
        let Some(remedy) = Remedy::of(&error) else {
            return Err(match (&error, interruptions.present.as_ref()) {
                (PlayError::Connect(_), Some(present)) => given_up(present, now, error),
                _ => error,
            });
        };
        tracing::debug!(%error, ?remedy, "interrupted");
        if interruptions.present.is_none() {
            backoff.interrupted_after(now.saturating_sub(interruptions.last_end));
        }
        let present = interruptions.begin(now, &error);
        let delay = backoff.next_delay(&error).max(wait.unwrap_or_default());
        let until = now.saturating_add(delay);
        if until >= present.began.saturating_add(backoff.options.limit) {
            return Err(given_up(present, now, error));
        }
        if remedy == Remedy::Reconnect
            && let Some(connection) = self.connection.take()
        {
            self.rtt = connection.quinn().rtt();
            connection.close();
            interruptions.disconnected(now);
        }
        self.play_on(until, std::future::pending::<()>()).await;
        Ok(())
    }

    /// Ends the present interruption, if any, because the server has sent something.
    fn resumed(&mut self) {
        let now = self.now();
        self.interruptions.resumed(now);
    }

    /// Deadline of the present interruption; unlimited without one.
    fn deadline(&self) -> Duration {
        match (&self.backoff, self.interruptions.present.as_ref()) {
            (Some(backoff), Some(present)) => present.began.saturating_add(backoff.options.limit),
            _ => Duration::MAX,
        }
    }

    /// Maximum wait for the server's next bytes from now on.
    fn wait_limit(&self) -> Duration {
        let left = self.deadline().saturating_sub(self.now());
        self.options.timeout.min(left)
    }

    /// The result of `exchange`, or an error after the timeout. During an interruption the player plays on.
    async fn in_time<T>(
        &mut self,
        exchange: impl Future<Output = Result<T, ExchangeError>> + Send,
    ) -> Result<T> {
        let timeout = self.wait_limit();
        let mut exchange = pin!(exchange);
        let result = if self.interruptions.present.is_some() {
            let until = self.now().saturating_add(timeout);
            Box::pin(self.play_on(until, exchange.as_mut())).await
        } else {
            let runtime = self.route.runtime();
            time::timeout(&**runtime, timeout, exchange.as_mut()).await.ok()
        };
        Ok(result.ok_or(PlayError::Silent(timeout))??)
    }

    /// The next bytes of a body; `None` at its end, or when the viewer jumps. Waits while the source has paused
    /// reading, and resumes the body if it is interrupted.
    async fn piece(&mut self, reader: &mut BodyReader, may_jump: bool) -> Result<Option<bytes::Bytes>> {
        loop {
            let error = match self.piece_of(reader, may_jump).await {
                Ok(piece) => {
                    self.resumed();
                    return Ok(piece);
                }
                Err(error) => error,
            };
            // All of it had arrived; only its end was missing.
            if reader.is_complete() && self.backoff.is_some() && Remedy::of(&error).is_some() {
                return Ok(None);
            }
            Box::pin(self.recover(error, None)).await?;
            if !Box::pin(self.resume(reader)).await? {
                self.resumed();
                return Ok(None);
            }
        }
    }

    /// The next bytes of the present body; `None` at its end, or at a jump of the viewer if it `may_jump`.
    async fn piece_of(&mut self, reader: &mut BodyReader, may_jump: bool) -> Result<Option<bytes::Bytes>> {
        let limit = self.wait_limit();
        let mut silent_since = self.now();
        loop {
            let now = self.now();
            self.attend();
            // An observer may block, which does not count as the server's silence.
            silent_since = silent_since.saturating_add(self.now().saturating_sub(now));
            let seek = if may_jump { self.next_seek() } else { Duration::MAX };
            if now >= seek {
                return Ok(None);
            }
            let paused = self.source.reading_paused();
            if !paused && let Some(piece) = reader.take() {
                self.count(now, Bytes::from(piece.len()));
                return Ok(Some(piece));
            }
            let until = if paused {
                silent_since = self.now();
                self.source.playout().next_deadline().unwrap_or(Duration::MAX)
            } else {
                silent_since.saturating_add(limit)
            };
            if !paused && now >= until {
                return Err(PlayError::Silent(limit));
            }
            if let Some(chunk) = self.wait(&mut reader.body, paused, until.min(seek)).await
                && !reader.accept(chunk?)?
            {
                return Ok(None);
            }
        }
    }
}

/// The error of a session abandoned after `last`.
fn given_up(interruption: &Interruption, now: Duration, last: PlayError) -> PlayError {
    let tried = now.saturating_sub(interruption.began);
    PlayError::GivenUp {
        lost: interruption.reason.clone(),
        tried: in_millis(tried),
        last: Box::new(last),
    }
}
