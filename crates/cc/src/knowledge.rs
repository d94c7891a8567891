//! [`VideoKnowledge`]: what the server knows of the video on one connection.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use playrate_units::{Bitrate, Bytes};

/// What is known of the video that a connection carries. Shared (`Arc`) between the application, which learns,
/// and the connection's controller, which reads without locks on the ACK path.
///
/// Everything starts unknown and may change at any time. A part of a controller that needs what is unknown
/// behaves as its plain counterpart until it is known.
#[derive(Debug)]
pub struct VideoKnowledge {
    /// bit/s
    average_rate: AtomicU64,
    /// bytes
    playout_buffer: AtomicU64,
    /// µs
    buffered: AtomicU64,
}

const UNKNOWN: u64 = u64::MAX;

fn read(cell: &AtomicU64) -> Option<u64> {
    Some(cell.load(Relaxed)).filter(|&value| value != UNKNOWN)
}

fn write(cell: &AtomicU64, value: Option<u64>) {
    cell.store(value.map_or(UNKNOWN, |value| value.min(UNKNOWN - 1)), Relaxed);
}

impl Default for VideoKnowledge {
    fn default() -> Self {
        let unknown = || AtomicU64::new(UNKNOWN);
        Self {
            average_rate: unknown(),
            playout_buffer: unknown(),
            buffered: unknown(),
        }
    }
}

impl VideoKnowledge {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Average rate of what is being streamed (video and audio bytes over playing time; "video rate" in the papers).
    /// A rate of zero counts as unknown.
    pub fn average_rate(&self) -> Option<Bitrate> {
        read(&self.average_rate).map(Bitrate::from_bits_per_second)
    }

    /// Sets or forgets the [average rate](Self::average_rate).
    pub fn set_average_rate(&self, rate: Option<Bitrate>) {
        write(
            &self.average_rate,
            rate.map(Bitrate::as_bits_per_second).filter(|&rate| rate > 0),
        );
    }

    /// How much the player's playout buffer holds when full.
    pub fn playout_buffer(&self) -> Option<Bytes> {
        read(&self.playout_buffer).map(Bytes::new)
    }

    /// Sets or forgets the [size of the playout buffer](Self::playout_buffer).
    pub fn set_playout_buffer(&self, size: Option<Bytes>) {
        write(&self.playout_buffer, size.map(Bytes::as_u64));
    }

    /// Playing time that the player holds and has not shown yet.
    pub fn buffered(&self) -> Option<Duration> {
        read(&self.buffered).map(Duration::from_micros)
    }

    /// Sets or forgets the [buffered playing time](Self::buffered), to the microsecond.
    pub fn set_buffered(&self, time: Option<Duration>) {
        write(
            &self.buffered,
            time.map(|time| u64::try_from(time.as_micros()).unwrap_or(UNKNOWN - 1)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_unknown_and_can_be_forgotten_again() {
        let known = VideoKnowledge::new();
        assert_eq!(
            (known.average_rate(), known.playout_buffer(), known.buffered()),
            (None, None, None)
        );
        known.set_average_rate(Some(Bitrate::from_kbps(5_240)));
        known.set_playout_buffer(Some(Bytes::new(655_872)));
        known.set_buffered(Some(Duration::from_millis(1_500)));
        assert_eq!(known.average_rate(), Some(Bitrate::from_kbps(5_240)));
        assert_eq!(known.playout_buffer(), Some(Bytes::new(655_872)));
        assert_eq!(known.buffered(), Some(Duration::from_millis(1_500)));
        known.set_average_rate(None);
        assert_eq!(known.average_rate(), None);
    }

    #[test]
    fn a_rate_of_zero_is_no_knowledge() {
        let known = VideoKnowledge::new();
        known.set_average_rate(Some(Bitrate::ZERO));
        assert_eq!(known.average_rate(), None);
    }
}
