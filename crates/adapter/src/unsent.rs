//! [`UnsentBytes`]: an estimate of the bytes written to a stack and not sent yet, so that a body is read and written
//! when it is needed and not long before.
//!
//! quinn 0.11 does not report how many bytes of a connection wait to be sent. The estimate relies on three facts of
//! quinn-proto 0.11: the controller is called under the connection's lock (so atomic operations here are only loads and
//! stores), `on_sent` reports every departing byte, and the `app_limited` of `on_end_acks` means that nothing is left
//! to send. A test of `playrate-quinn` compares the estimate with quinn's actual transmissions. Another stack has to
//! guarantee the same.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Maximum number of unsent bytes, in addition to one chunk for every body: some milliseconds of a fast path. More
/// would waste memory, and the processor's caches would evict them before they are sent.
const LIMIT: u64 = 256 << 10;
/// Minimum number of bytes of a packet that belong to no body: flags, packet number, AEAD tag, STREAM frame header.
const PACKET_OVERHEAD: u64 = 22;
/// The value of [`UnsentBytes::awaited`] while no writer waits.
const NONE_AWAITED: u64 = u64::MAX;

/// Estimate of one connection's unsent bytes: bytes written, less those acknowledged or in flight.
///
/// It is too low by the bytes that packets carry in addition to bodies, about a hundredth of the bytes written since
/// everything was last acknowledged; then it is exact again. For an endless body, the stack's send window bounds the
/// error.
#[derive(Debug)]
pub struct UnsentBytes {
    /// Bytes that have been sent and not lost. Only written while the stack holds the connection's lock.
    sent: AtomicU64,
    /// The value of `sent` at which waiting writers are woken.
    awaited: AtomicU64,
    /// Bytes written, on the scale of `sent`.
    written: Mutex<u64>,
    room: Notify,
    /// True once the connection is being closed; unsent bytes are then dropped.
    closing: AtomicBool,
}

impl Default for UnsentBytes {
    fn default() -> Self {
        Self {
            sent: AtomicU64::new(0),
            awaited: AtomicU64::new(NONE_AWAITED),
            written: Mutex::new(0),
            room: Notify::new(),
            closing: AtomicBool::new(false),
        }
    }
}

impl UnsentBytes {
    /// Counts `bytes` that left.
    #[inline]
    pub(crate) fn sent(&self, bytes: u64) {
        let sent = self.sent.load(Relaxed).saturating_add(bytes);
        self.sent.store(sent, Relaxed);
        if sent >= self.awaited.load(Relaxed) {
            self.wake();
        }
    }

    /// Bytes of bodies in `packets` packets of `bytes` in all.
    #[inline]
    pub(crate) fn content(bytes: u64, packets: u64) -> u64 {
        bytes.saturating_sub(packets.saturating_mul(PACKET_OVERHEAD))
    }

    /// Corrects the count after an ACK frame: `sent` is the acknowledged content plus the bytes in flight. `idle` means
    /// that there is nothing to send.
    #[inline]
    pub(crate) fn acked(&self, sent: u64, idle: bool) {
        self.sent.store(sent, Relaxed);
        let awaited = self.awaited.load(Relaxed);
        if awaited == NONE_AWAITED {
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
        self.awaited.store(NONE_AWAITED, Relaxed);
        self.room.notify_waiters();
    }

    /// Counts `bytes` of a body handed to the stack.
    pub fn wrote(&self, bytes: u64) {
        let mut written = self.written();
        *written = (*written).max(self.sent.load(Relaxed)).saturating_add(bytes);
    }

    /// Counts everything as sent, because a body was reset together with its unsent bytes. Other bodies may then write
    /// a little more.
    pub fn discarded(&self) {
        *self.written() = self.sent.load(Relaxed);
        self.wake();
    }

    pub(crate) fn close(&self) {
        self.closing.store(true, Relaxed);
    }

    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Implements [`ConnectionController::wait_for_room`](crate::ConnectionController::wait_for_room); `synchronize`
    /// takes and releases the connection's lock.
    pub(crate) async fn room(&self, synchronize: impl Fn()) {
        let room = self.room.notified();
        tokio::pin!(room);
        room.as_mut().enable();
        let awaited = self.written().saturating_sub(LIMIT);
        if awaited <= self.sent.load(Relaxed) {
            return;
        }
        self.awaited.fetch_min(awaited, Relaxed);
        // Either the next departing packet sees the waiting writer, or this writer sees the last packet that left.
        synchronize();
        if awaited > self.sent.load(Relaxed) {
            room.await;
        }
    }

    /// The estimate, in bytes.
    pub fn estimate(&self) -> u64 {
        self.written().saturating_sub(self.sent.load(Relaxed))
    }

    fn written(&self) -> MutexGuard<'_, u64> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    const CHUNK: u64 = 64 << 10;

    /// Writes chunks until no more are taken.
    fn fill(unsent: &UnsentBytes) -> u64 {
        let mut chunks = 0;
        while unsent.room(|| {}).now_or_never().is_some() {
            unsent.wrote(CHUNK);
            chunks += 1;
        }
        chunks * CHUNK
    }

    #[test]
    fn unsent_bytes_stay_between_the_limit_and_one_chunk_more() {
        let unsent = UnsentBytes::default();
        assert_eq!(fill(&unsent), LIMIT + CHUNK);
        for _ in 0..100 {
            for _ in 0..CHUNK / 1_024 {
                unsent.sent(1_024);
            }
            assert_eq!(fill(&unsent), CHUNK);
        }
    }

    #[test]
    fn a_waiting_writer_is_woken_once_a_chunk_has_left_and_not_before() {
        let unsent = UnsentBytes::default();
        fill(&unsent);
        let mut room = Box::pin(unsent.room(|| {}));
        assert!(room.as_mut().now_or_never().is_none());
        unsent.sent(CHUNK - 1);
        assert!(room.as_mut().now_or_never().is_none());
        unsent.sent(1);
        assert!(room.as_mut().now_or_never().is_some());
    }

    #[test]
    fn lost_bytes_count_as_unsent_again() {
        let unsent = UnsentBytes::default();
        fill(&unsent);
        unsent.sent(CHUNK);
        // All but a tenth of it was lost.
        unsent.acked(CHUNK / 10 + 1, false);
        assert_eq!(fill(&unsent), 0);
        unsent.sent(CHUNK);
        assert_eq!(fill(&unsent), CHUNK);
    }

    #[test]
    fn a_packet_that_leaves_between_the_check_and_the_wait_is_not_missed() {
        let unsent = UnsentBytes::default();
        fill(&unsent);
        assert!(unsent.room(|| unsent.sent(CHUNK)).now_or_never().is_some());
    }

    #[test]
    fn every_waiting_writer_may_write_one_chunk() {
        let unsent = UnsentBytes::default();
        fill(&unsent);
        let mut rooms: Vec<_> = (0..3).map(|_| Box::pin(unsent.room(|| {}))).collect();
        for room in &mut rooms {
            assert!(room.as_mut().now_or_never().is_none());
        }
        unsent.sent(CHUNK);
        for room in &mut rooms {
            assert!(room.as_mut().now_or_never().is_some());
            unsent.wrote(CHUNK);
        }
        assert_eq!(fill(&unsent), 0);
    }

    #[test]
    fn discarded_bytes_do_not_count_as_unsent() {
        let unsent = UnsentBytes::default();
        fill(&unsent);
        let mut room = Box::pin(unsent.room(|| {}));
        assert!(room.as_mut().now_or_never().is_none());
        unsent.discarded();
        assert!(
            room.as_mut().now_or_never().is_some(),
            "nothing else would wake it"
        );
        drop(room);
        assert_eq!(fill(&unsent), LIMIT + CHUNK);
    }

    /// On another path totals may begin lower than they were.
    #[test]
    fn an_idle_connection_wakes_its_writers_whatever_was_counted() {
        let unsent = UnsentBytes::default();
        unsent.sent(10_000_000);
        fill(&unsent);
        let mut room = Box::pin(unsent.room(|| {}));
        assert!(room.as_mut().now_or_never().is_none());
        // Everything in flight was acknowledged, but bytes lost earlier have yet to leave again.
        unsent.acked(1_000_000, false);
        assert!(room.as_mut().now_or_never().is_none());
        unsent.acked(1_000_000, true);
        assert!(room.as_mut().now_or_never().is_some());
        drop(room);
        assert_eq!(fill(&unsent), LIMIT + CHUNK);
    }
}
