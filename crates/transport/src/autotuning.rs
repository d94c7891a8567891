//! [`Autotuning`]: a receive window that follows the application's reads.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use playrate_units::Bytes;

/// Receive window with Linux's sizing (`tcp_rcv_space_adjust` in `net/ipv4/tcp_input.c`, 2.6 to 3.10): twice the most
/// bytes that the application read from one read to the first read a round trip later. It never shrinks.
///
/// It differs in two ways: round trips are the connection's own rather than a receiver's estimate, and the first window
/// is available immediately, while Linux opens it with arriving segments.
#[derive(Debug)]
pub(crate) struct Autotuning {
    /// Size at which the window stops growing.
    largest: Bytes,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    window: Bytes,
    /// Beginning of the current round trip.
    since: Instant,
    /// Bytes read in it.
    read: Bytes,
    /// Bytes read since room was announced.
    freed: Bytes,
}

/// The change of the connection's receive window after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowUpdate {
    /// Too little was read since the last change.
    None,
    /// Announce the free room of a window whose size does not change.
    Announce(Bytes),
    /// Widen the window to this.
    Widen(Bytes),
}

/// Bytes read after which room is announced: two segments, like a TCP receiver that delays its acknowledgements (RFC
/// 9293, section 3.8.6.2.2).
const ANNOUNCED: Bytes = Bytes::new(2 * 1_460);

impl Autotuning {
    /// A window of `window` bytes that may grow to `largest`.
    pub(crate) fn new(window: Bytes, largest: Bytes, now: Instant) -> Self {
        let state = State {
            window,
            since: now,
            read: Bytes::ZERO,
            freed: Bytes::ZERO,
        };
        Self {
            largest,
            state: Mutex::new(state),
        }
    }

    /// Counts `bytes` that the application read at `now`.
    pub(crate) fn on_read(&self, now: Instant, rtt: Duration, bytes: Bytes) -> WindowUpdate {
        let mut state = self.state.lock();
        state.read += bytes;
        state.freed += bytes;
        if now.saturating_duration_since(state.since) >= rtt {
            let wanted = (state.read + state.read).min(self.largest);
            (state.since, state.read) = (now, Bytes::ZERO);
            if wanted > state.window {
                (state.window, state.freed) = (wanted, Bytes::ZERO);
                return WindowUpdate::Widen(wanted);
            }
        }
        if state.freed < ANNOUNCED {
            return WindowUpdate::None;
        }
        state.freed = Bytes::ZERO;
        WindowUpdate::Announce(state.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn kb(thousands: u64) -> Bytes {
        Bytes::new(thousands * 1_000)
    }

    /// A window of 64 kB that may grow to a megabyte, and a function that reads bytes from it at the given number of
    /// milliseconds after its creation.
    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn reader() -> impl Fn(u64, Bytes) -> WindowUpdate {
        let start = Instant::now();
        let window = Autotuning::new(kb(64), kb(1_000), start);
        move |ms, bytes| window.on_read(start + Duration::from_millis(ms), RTT, bytes)
    }

    #[test]
    fn the_window_is_twice_what_was_read_in_a_round_trip_and_never_shrinks() {
        let at = reader();
        let under_way = at(50, kb(60));
        assert_eq!(under_way, WindowUpdate::Announce(kb(64)));
        assert_eq!(at(100, kb(60)), WindowUpdate::Widen(kb(240)));
        let slower = at(200, kb(50));
        assert_eq!(slower, WindowUpdate::Announce(kb(240)));
        assert_eq!(
            at(900, kb(900)),
            WindowUpdate::Widen(kb(1_000)),
            "the largest window"
        );
        assert_eq!(at(1_900, kb(5_000)), WindowUpdate::Announce(kb(1_000)));
    }

    #[test]
    fn room_is_announced_when_two_segments_have_been_read() {
        let at = reader();
        let updates = [1_460, 1_459, 1, 2_919, 1].map(|bytes| at(1, Bytes::new(bytes)));
        let announced = WindowUpdate::Announce(kb(64));
        assert_eq!(
            updates,
            [
                WindowUpdate::None,
                WindowUpdate::None,
                announced,
                WindowUpdate::None,
                announced
            ]
        );
    }
}
