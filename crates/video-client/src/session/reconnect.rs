//! [`ReconnectOptions`]: which errors a session survives, and when it retries.

use std::time::Duration;

use http::{Response, header};
use playrate_transport::{ConnectError, ConnectionLost, ExchangeError};
use rand_core::Rng;
use rand_pcg::Pcg32;

use crate::error::{PlayError, is_temporary};

/// Number of round trips that a handshake may take: with a Retry and one lost packet.
const HANDSHAKE_ROUND_TRIPS: u32 = 8;
/// Minimum time before an attempt to connect is abandoned: QUIC initially repeats its first packet after one second
/// (RFC 9002 §6.2.2).
const SHORTEST_ATTEMPT: Duration = Duration::from_secs(1);

/// Behaviour of a session after a loss of its connection.
///
/// It connects again and requests the rest of the interrupted response (`Range` with `If-Range`, RFC 9110 §13.1.5),
/// while the player plays on from its buffer. The first attempt is immediate, with two exceptions. If the server closed
/// or refused the connection, it may have done so with all of its clients, so the attempt waits for a random part of
/// [`first_delay`](Self::first_delay). If the previous interruption ended less than
/// [`longest_delay`](Self::longest_delay) ago, the attempt is delayed like a later one. The delay doubles before each
/// later attempt, up to `longest_delay`, less a random part of up to a half.
///
/// These errors are worth another attempt: a connection that timed out, was reset, refused or closed without an error;
/// a server that is going away or silent; a request that was rejected; a response that was cancelled; an internal error
/// of the server's HTTP/3; 408, 425, 429 and 503 in mid-session. Errors of certificates, HTTP and content end the
/// session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReconnectOptions {
    /// Maximum time without a byte, counted from when the loss is noticed; then the session fails.
    pub limit: Duration,
    /// Delay before the second attempt.
    pub first_delay: Duration,
    /// Longest delay between two attempts.
    pub longest_delay: Duration,
    /// Seed of the delays' random part. Clients of one server need different seeds: if it closed their connections at
    /// the same time, they come back spread over `first_delay`, and those that fail again, over half of each further
    /// delay.
    pub seed: u64,
}

impl ReconnectOptions {
    /// Silence after which a reconnecting client sends something
    /// ([`TransportOptions::keep_alive`](playrate_transport::TransportOptions::keep_alive)). A restarted server that
    /// kept its state answers with a reset, so this is the maximum time until the client notices the restart.
    pub const KEEP_ALIVE: Duration = Duration::from_secs(1);
    /// Silence of a server, despite [`KEEP_ALIVE`](Self::KEEP_ALIVE), after which such a client considers the
    /// connection lost ([`TransportOptions::idle_timeout`](playrate_transport::TransportOptions::idle_timeout)). After
    /// an outage a sender may stay silent for as long as the outage lasted because its probe timeout doubles (RFC 9002
    /// §6.2.1). A new connection does not have to wait for it.
    pub const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
}

impl Default for ReconnectOptions {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(60),
            first_delay: Duration::from_millis(100),
            longest_delay: Duration::from_secs(2),
            seed: 0,
        }
    }
}

/// Way to continue after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Send the request on a new connection.
    Reconnect,
    /// Repeat the request on the same connection.
    Repeat,
}

impl Remedy {
    /// The way to continue after `error`; `None` if it would only recur.
    pub(super) fn of(error: &PlayError) -> Option<Self> {
        match error {
            PlayError::Connect(ConnectError::NoAnswer { .. }) | PlayError::Silent(_) => Some(Self::Reconnect),
            PlayError::Connect(ConnectError::Lost(lost)) => lost.is_temporary().then_some(Self::Reconnect),
            PlayError::Exchange(error) if error.needs_new_connection() => Some(Self::Reconnect),
            PlayError::Exchange(error) if error.was_given_up() => Some(Self::Repeat),
            PlayError::Status { status, .. } if is_temporary(*status) => Some(Self::Repeat),
            _ => None,
        }
    }
}

/// Returns true if the server closed or refused the connection, possibly together with others.
fn is_closed_by_server(error: &PlayError) -> bool {
    let lost = match error {
        PlayError::Exchange(ExchangeError::GoingAway) => return true,
        PlayError::Exchange(ExchangeError::Connection(lost))
        | PlayError::Connect(ConnectError::Lost(lost)) => lost,
        _ => return false,
    };
    // The driver drops a connection that it closes itself, so this one was closed after the server's GOAWAY.
    matches!(
        lost,
        ConnectionLost::ClosedByPeer { .. }
            | ConnectionLost::ClosedInHandshake
            | ConnectionLost::RefusedByPeer
            | ConnectionLost::ClosedHere
    )
}

/// Delays before further attempts, and their time limits.
#[derive(Debug)]
pub(super) struct Backoff {
    pub(super) options: ReconnectOptions,
    generator: Pcg32,
    attempts: u32,
}

impl Backoff {
    pub(super) fn new(options: &ReconnectOptions) -> Self {
        Self {
            generator: Pcg32::new(options.seed, 0),
            options: options.clone(),
            attempts: 0,
        }
    }

    /// Resets the delays if the last interruption ended long enough before this one: `undisturbed` ago.
    pub(super) fn interrupted_after(&mut self, undisturbed: Duration) {
        if undisturbed >= self.options.longest_delay {
            self.attempts = 0;
        }
    }

    /// Counts the next attempt, after `error`, and returns the delay before it. The fixed half of the delay elapses
    /// during an attempt without an answer.
    pub(super) fn next_delay(&mut self, error: &PlayError) -> Duration {
        let doublings = self.attempts.checked_sub(1);
        self.attempts = self.attempts.saturating_add(1);
        let Some(doublings) = doublings else {
            return if is_closed_by_server(error) {
                self.random_part(self.options.first_delay.min(self.options.longest_delay))
            } else {
                Duration::ZERO
            };
        };
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        let delay = self.options.first_delay.saturating_mul(factor);
        let half = delay.min(self.options.longest_delay) / 2;
        let waited = match error {
            PlayError::Connect(ConnectError::NoAnswer { waited, .. }) => *waited,
            _ => Duration::ZERO,
        };
        half.saturating_sub(waited) + self.random_part(half)
    }

    fn random_part(&mut self, whole: Duration) -> Duration {
        whole.mul_f64(f64::from(self.generator.next_u32()) / f64::from(u32::MAX))
    }

    /// Maximum duration of the attempt counted last, on a path with this RTT. Later attempts may take twice as long as
    /// the first, because the path may have changed. No attempt takes longer: QUIC doubles the time between an
    /// attempt's packets, so a client would notice the end of an outage equally late.
    pub(super) fn attempt_limit(&self, rtt: Duration) -> Duration {
        let first = SHORTEST_ATTEMPT.max(rtt.saturating_mul(HANDSHAKE_ROUND_TRIPS));
        first.saturating_mul(self.attempts.clamp(1, 2))
    }
}

/// The wait requested by an unsuccessful response (`Retry-After`, RFC 9110 §10.2.3); `None` if it has none, or a date,
/// which is not supported.
pub(super) fn retry_after(response: &Response<()>) -> Option<Duration> {
    let field = response.headers().get(header::RETRY_AFTER)?;
    field.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use playrate_units::Bytes;
    use rstest::rstest;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn backoff(seed: u64) -> Backoff {
        Backoff::new(&ReconnectOptions {
            seed,
            ..ReconnectOptions::default()
        })
    }

    fn silent() -> PlayError {
        PlayError::Silent(Duration::from_secs(30))
    }

    fn delays(backoff: &mut Backoff) -> Vec<u128> {
        (0..8)
            .map(|_| backoff.next_delay(&silent()).as_millis())
            .collect()
    }

    #[test]
    fn the_first_attempt_is_at_once_and_the_delay_doubles_up_to_its_limit() {
        let seen = delays(&mut backoff(1));
        assert_eq!(seen[0], 0);
        for (delay, largest) in seen[1..].iter().zip([100, 200, 400, 800, 1_600, 2_000, 2_000]) {
            assert!((largest / 2..=largest).contains(delay), "{seen:?}");
        }
    }

    #[test]
    fn the_fixed_half_of_a_delay_passes_during_an_attempt_without_an_answer() {
        let delay = |waited_ms| {
            let mut backoff = backoff(1);
            delays(&mut backoff);
            let (address, waited) = (([127, 0, 0, 1], 4433).into(), ms(waited_ms));
            backoff.next_delay(&PlayError::Connect(ConnectError::NoAnswer { address, waited }))
        };
        let random_part = delay(0).saturating_sub(ms(1_000));
        assert_eq!(delay(600), random_part + ms(400));
        assert_eq!(delay(2_000), random_part);
        assert!(random_part > Duration::ZERO);
    }

    #[test]
    fn clients_of_a_server_that_closes_their_connections_come_back_spread_over_the_first_delay() {
        for error in [
            closed(0x100),
            ExchangeError::GoingAway.into(),
            lost(ConnectionLost::ClosedHere),
            PlayError::Connect(ConnectionLost::RefusedByPeer.into()),
        ] {
            let delays: Vec<_> = (0..100).map(|seed| backoff(seed).next_delay(&error)).collect();
            let within = |from, to| {
                let range = ms(from)..=ms(to);
                delays.iter().filter(|&delay| range.contains(delay)).count()
            };
            assert_eq!(within(0, 100), 100, "{error}");
            assert!(within(0, 30) > 10 && within(70, 100) > 10, "{error}: {delays:?}");
        }
    }

    #[test]
    fn delays_follow_from_the_seed() {
        assert_eq!(delays(&mut backoff(7)), delays(&mut backoff(7)));
        assert_ne!(delays(&mut backoff(7)), delays(&mut backoff(8)));
    }

    #[test]
    fn only_after_a_time_without_interruptions_is_the_first_attempt_at_once() {
        let mut backoff = backoff(1);
        backoff.next_delay(&silent());
        backoff.interrupted_after(ms(1_999));
        assert!(backoff.next_delay(&silent()) >= ms(50));
        backoff.interrupted_after(ms(2_000));
        assert_eq!(backoff.next_delay(&silent()), Duration::ZERO);
    }

    #[test]
    fn attempts_may_take_longer_on_a_long_path_and_after_failures() {
        let mut backoff = backoff(1);
        backoff.next_delay(&silent());
        assert_eq!(
            [1, 600].map(|rtt| backoff.attempt_limit(ms(rtt))),
            [ms(1_000), ms(4_800)]
        );
        for _ in 0..3 {
            backoff.next_delay(&silent());
            assert_eq!(backoff.attempt_limit(ms(1)), ms(2_000));
        }
    }

    fn lost(lost: ConnectionLost) -> PlayError {
        ExchangeError::from(lost).into()
    }

    fn closed(code: u64) -> PlayError {
        lost(ConnectionLost::ClosedByPeer { code, reason: None })
    }

    fn status(status: StatusCode) -> PlayError {
        PlayError::Status {
            status,
            path: "/film.mp4".to_owned(),
            location: None,
        }
    }

    fn reason() -> String {
        "unexpected frame".to_owned()
    }

    #[rstest]
    #[case(lost(ConnectionLost::TimedOut), Some(Remedy::Reconnect))]
    #[case(lost(ConnectionLost::Reset), Some(Remedy::Reconnect))]
    #[case(closed(0), Some(Remedy::Reconnect))]
    #[case(closed(0x100), Some(Remedy::Reconnect))]
    #[case(closed(0x102), Some(Remedy::Reconnect))]
    #[case(closed(0x107), Some(Remedy::Reconnect))]
    #[case(PlayError::Connect(ConnectionLost::RefusedByPeer.into()), Some(Remedy::Reconnect))]
    #[case(silent(), Some(Remedy::Reconnect))]
    #[case(ExchangeError::GoingAway.into(), Some(Remedy::Reconnect))]
    #[case(ExchangeError::Cancelled(0x10b).into(), Some(Remedy::Reconnect))]
    #[case(ExchangeError::Cancelled(0x102).into(), Some(Remedy::Repeat))]
    #[case(ExchangeError::Cancelled(0x10c).into(), Some(Remedy::Repeat))]
    #[case(status(StatusCode::REQUEST_TIMEOUT), Some(Remedy::Repeat))]
    #[case(status(StatusCode::TOO_EARLY), Some(Remedy::Repeat))]
    #[case(status(StatusCode::TOO_MANY_REQUESTS), Some(Remedy::Repeat))]
    #[case(status(StatusCode::SERVICE_UNAVAILABLE), Some(Remedy::Repeat))]
    #[case(closed(0x101), None)]
    #[case(lost(ConnectionLost::Broken(reason())), None)]
    #[case(PlayError::Connect(ConnectError::Untrusted(reason())), None)]
    #[case(ExchangeError::Malformed(reason()).into(), None)]
    #[case(status(StatusCode::NOT_FOUND), None)]
    #[case(status(StatusCode::INTERNAL_SERVER_ERROR), None)]
    #[case(PlayError::Changed { path: "/film.mp4".to_owned(), received: Bytes::new(1) }, None)]
    #[case(PlayError::Stopped, None)]
    fn errors_of_path_and_server_are_survived_and_others_are_not(
        #[case] error: PlayError,
        #[case] remedy: Option<Remedy>,
    ) {
        assert_eq!(Remedy::of(&error), remedy, "{error}");
    }

    #[test]
    fn a_time_to_come_again_is_read_in_seconds() {
        let response = |value: &str| {
            let response = Response::builder().header(header::RETRY_AFTER, value);
            retry_after(&response.body(()).unwrap())
        };
        assert_eq!(response("12"), Some(Duration::from_secs(12)));
        assert_eq!(response("Fri, 31 Dec 1999 23:59:59 GMT"), None);
    }
}
