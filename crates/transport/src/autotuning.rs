//! [`Autotuning`]: a receive window that follows what the application reads.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use playrate_units::Bytes;

/// Receive window as Linux sizes it (`tcp_rcv_space_adjust` in `net/ipv4/tcp_input.c`, 2.6 to 3.10): twice the most
/// that the application read from one read to the first one a round trip later, and never smaller than before.
///
/// What differs: round trips are those of the connection's own packets rather than a receiver's estimate; the first
/// window is there at once, where Linux opens it with the segments that arrive; and quinn announces room only when an
/// eighth of the window is free again, where Linux does so with each acknowledgement.
#[derive(Debug)]
pub(crate) struct Autotuning {
    /// Size at which the window stops growing.
    largest: Bytes,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    window: Bytes,
    /// Beginning of the round trip under way.
    since: Instant,
    /// Bytes read in it.
    read: Bytes,
}

impl Autotuning {
    /// A window of `window` bytes that may grow to `largest`.
    pub(crate) fn new(window: Bytes, largest: Bytes, now: Instant) -> Self {
        let state = State {
            window,
            since: now,
            read: Bytes::ZERO,
        };
        Self {
            largest,
            state: Mutex::new(state),
        }
    }

    /// Counts `bytes` that the application read at `now`. Returns the new window if it grew.
    pub(crate) fn on_read(&self, now: Instant, rtt: Duration, bytes: Bytes) -> Option<Bytes> {
        let mut state = self.state.lock().ok()?;
        state.read += bytes;
        if now.saturating_duration_since(state.since) < rtt {
            return None;
        }
        let wanted = (state.read + state.read).min(self.largest);
        (state.since, state.read) = (now, Bytes::ZERO);
        if wanted <= state.window {
            return None;
        }
        state.window = wanted;
        Some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn kb(thousands: u64) -> Bytes {
        Bytes::new(thousands * 1_000)
    }

    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    #[test]
    fn the_window_is_twice_what_was_read_in_a_round_trip_and_never_shrinks() {
        let start = Instant::now();
        let window = Autotuning::new(kb(64), kb(1_000), start);
        let at = |ms, bytes| window.on_read(start + Duration::from_millis(ms), RTT, bytes);
        assert_eq!(at(50, kb(60)), None, "the round trip is under way");
        assert_eq!(at(100, kb(60)), Some(kb(240)));
        assert_eq!(at(200, kb(50)), None, "a reader that slows down keeps its window");
        assert_eq!(at(900, kb(900)), Some(kb(1_000)), "the largest window");
        assert_eq!(at(1_900, kb(5_000)), None);
    }
}
