//! [`Backlog`]: how much of the bodies waits to be sent, so that they are read and written when they are needed and not long before.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What waits at most, beside a piece for every body, bytes: some milliseconds of a fast path. More would be memory of which nobody has
/// anything, and cold by the time that it is sent.
const ENOUGH: u64 = 256 << 10;
/// What a packet has at least beside a body's bytes: flags, packet number, AEAD tag, STREAM frame header.
const PACKET_OVERHEAD: u64 = 22;
/// Nobody waits.
const NOBODY: u64 = u64::MAX;

/// The backlog of one connection.
///
/// It is an estimate, since quinn tells nobody: what was written, less what was acknowledged or is in flight. It falls short of the
/// truth by what packets carry beside bodies, about a hundredth of what was written since everything was acknowledged last; then it is right
/// again. quinn's send window bounds what a body without end makes of that.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// Bytes that have been sent and not lost. Only written while quinn holds the connection's lock.
    sent: AtomicU64,
    /// How many these must be for those who wait to be woken.
    awaited: AtomicU64,
    /// Bytes written, on the same scale.
    written: Mutex<u64>,
    room: Notify,
}

impl Default for Backlog {
    fn default() -> Self {
        Self {
            sent: AtomicU64::new(0),
            awaited: AtomicU64::new(NOBODY),
            written: Mutex::new(0),
            room: Notify::new(),
        }
    }
}

impl Backlog {
    /// `bytes` left.
    #[inline]
    pub(crate) fn sent(&self, bytes: u64) {
        let sent = self.sent.load(Relaxed).saturating_add(bytes);
        self.sent.store(sent, Relaxed);
        if sent >= self.awaited.load(Relaxed) {
            self.wake();
        }
    }

    /// An ACK frame was read: these are the totals of what was acknowledged, and what is in flight. `idle`: there is nothing to send.
    #[inline]
    pub(crate) fn acked(&self, bytes: u64, packets: u64, in_flight: u64, idle: bool) {
        let content = bytes.saturating_sub(packets.saturating_mul(PACKET_OVERHEAD));
        let sent = content.saturating_add(in_flight);
        self.sent.store(sent, Relaxed);
        let awaited = self.awaited.load(Relaxed);
        if awaited == NOBODY {
            return;
        }
        if idle {
            *self.written() = sent;
            self.wake();
        } else if sent >= awaited {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.awaited.store(NOBODY, Relaxed);
        self.room.notify_waiters();
    }

    /// `bytes` of a body were handed to quinn.
    pub(crate) fn wrote(&self, bytes: u64) {
        let mut written = self.written();
        *written = (*written).max(self.sent.load(Relaxed)).saturating_add(bytes);
    }

    /// A body was given up, and what of it waited with it. What waits of others counts as sent; that lets them write a little more.
    pub(crate) fn gave_up(&self) {
        *self.written() = self.sent.load(Relaxed);
        self.wake();
    }

    /// Waits until little enough waits for one more piece to be written. Whoever has waited may write one whatever others have written
    /// meanwhile, so that none of a connection's bodies waits for ever.
    ///
    /// `synchronize` must take and leave the connection's lock.
    pub(crate) async fn room(&self, synchronize: impl Fn()) {
        let room = self.room.notified();
        tokio::pin!(room);
        room.as_mut().enable();
        let awaited = self.written().saturating_sub(ENOUGH);
        if awaited <= self.sent.load(Relaxed) {
            return;
        }
        self.awaited.fetch_min(awaited, Relaxed);
        // Either what leaves next sees that somebody waits, or what left last is seen here.
        synchronize();
        if awaited > self.sent.load(Relaxed) {
            room.await;
        }
    }

    fn written(&self) -> MutexGuard<'_, u64> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    const PIECE: u64 = 64 << 10;

    /// Writes pieces until no more are taken.
    fn fill(backlog: &Backlog) -> u64 {
        let mut pieces = 0;
        while backlog.room(|| {}).now_or_never().is_some() {
            backlog.wrote(PIECE);
            pieces += 1;
        }
        pieces * PIECE
    }

    #[test]
    fn what_waits_stays_between_what_is_enough_and_a_piece_more() {
        let backlog = Backlog::default();
        assert_eq!(fill(&backlog), ENOUGH + PIECE);
        for _ in 0..100 {
            for _ in 0..PIECE / 1_024 {
                backlog.sent(1_024);
            }
            assert_eq!(fill(&backlog), PIECE);
        }
    }

    #[test]
    fn who_waits_is_woken_once_a_piece_has_left_and_not_before() {
        let backlog = Backlog::default();
        fill(&backlog);
        let mut room = Box::pin(backlog.room(|| {}));
        assert!(room.as_mut().now_or_never().is_none());
        backlog.sent(PIECE - 1);
        assert!(room.as_mut().now_or_never().is_none());
        backlog.sent(1);
        assert!(room.as_mut().now_or_never().is_some());
    }

    #[test]
    fn what_was_lost_waits_again() {
        let backlog = Backlog::default();
        fill(&backlog);
        backlog.sent(PIECE);
        // All but a tenth of it was lost.
        backlog.acked(PIECE / 10, 0, 1, false);
        assert_eq!(fill(&backlog), 0);
        backlog.sent(PIECE);
        assert_eq!(fill(&backlog), PIECE);
    }

    #[test]
    fn what_left_between_looking_and_waiting_is_not_missed() {
        let backlog = Backlog::default();
        fill(&backlog);
        assert!(backlog.room(|| backlog.sent(PIECE)).now_or_never().is_some());
    }

    #[test]
    fn each_of_those_who_wait_may_write_a_piece() {
        let backlog = Backlog::default();
        fill(&backlog);
        let mut rooms: Vec<_> = (0..3).map(|_| Box::pin(backlog.room(|| {}))).collect();
        for room in &mut rooms {
            assert!(room.as_mut().now_or_never().is_none());
        }
        backlog.sent(PIECE);
        for room in &mut rooms {
            assert!(room.as_mut().now_or_never().is_some());
            backlog.wrote(PIECE);
        }
        assert_eq!(fill(&backlog), 0);
    }

    #[test]
    fn what_is_given_up_does_not_wait() {
        let backlog = Backlog::default();
        fill(&backlog);
        let mut room = Box::pin(backlog.room(|| {}));
        assert!(room.as_mut().now_or_never().is_none());
        backlog.gave_up();
        assert!(
            room.as_mut().now_or_never().is_some(),
            "nobody is left to wake it"
        );
        drop(room);
        assert_eq!(fill(&backlog), ENOUGH + PIECE);
    }

    /// On another path totals may begin lower than they were.
    #[test]
    fn a_connection_with_nothing_to_send_lets_writers_go_on_whatever_was_counted() {
        let backlog = Backlog::default();
        backlog.sent(10_000_000);
        fill(&backlog);
        let mut room = Box::pin(backlog.room(|| {}));
        assert!(room.as_mut().now_or_never().is_none());
        // All that was in flight was acknowledged, but what was lost before it has yet to leave again.
        backlog.acked(1_000_000, 0, 0, false);
        assert!(room.as_mut().now_or_never().is_none());
        backlog.acked(1_000_000, 0, 0, true);
        assert!(room.as_mut().now_or_never().is_some());
        drop(room);
        assert_eq!(fill(&backlog), ENOUGH + PIECE);
    }
}
