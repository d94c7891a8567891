//! [`VideoKnowledge`]: what the server knows of the video on one connection; [`Facts`]: which pieces of it.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use playrate_units::{Bitrate, Bytes, Probability};

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
    /// µs
    deadline: AtomicU64,
    /// A [`Playback`]
    playback: AtomicU64,
    /// parts per billion
    wire_overhead: AtomicU64,
}

/// What a player is doing, as far as it says so. In the order of how much it needs: the last is worst off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Playback {
    /// It plays from its buffer.
    Playing,
    /// It fills its buffer before it plays: at the start, after a seek.
    Starting,
    /// Its buffer has run empty: the viewer sees a picture that stands still.
    Starved,
}

/// A set of things that a [`VideoKnowledge`] may know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Facts(u8);

impl Facts {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// [`VideoKnowledge::average_rate`].
    pub const AVERAGE_RATE: Self = Self(1);
    /// [`VideoKnowledge::playout_buffer`].
    pub const PLAYOUT_BUFFER: Self = Self(2);
    /// [`VideoKnowledge::buffered`].
    pub const BUFFERED: Self = Self(4);

    const NAMES: [(Self, &'static str); 3] = [
        (Self::AVERAGE_RATE, "average-rate"),
        (Self::PLAYOUT_BUFFER, "playout-buffer"),
        (Self::BUFFERED, "buffered"),
    ];

    /// What is in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in it.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names in telemetry: lower case, words joined by `-`.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .into_iter()
            .filter_map(move |(fact, name)| self.contains(fact).then_some(name))
    }
}

impl fmt::Display for Facts {
    /// The [names](Self::names) with a comma between them; `-` if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("-");
        }
        for (index, name) in self.names().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
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
            deadline: unknown(),
            playback: unknown(),
            wire_overhead: unknown(),
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

    /// What packets, frames and HTTP add to the video's bytes, as a share of them, as far as the transport has measured it.
    pub fn wire_overhead(&self) -> Option<Probability> {
        let parts = read(&self.wire_overhead)?;
        u32::try_from(parts).ok().map(Probability::from_parts_per_billion)
    }

    /// Sets or forgets the [overhead](Self::wire_overhead).
    pub fn set_wire_overhead(&self, share: Option<Probability>) {
        write(
            &self.wire_overhead,
            share.map(|share| u64::from(share.as_parts_per_billion())),
        );
    }

    /// The [average rate](Self::average_rate) in bytes that count towards a window: with the [overhead](Self::wire_overhead),
    /// if that is known.
    pub fn wire_rate(&self) -> Option<Bitrate> {
        const BILLION: u64 = 1_000_000_000;
        let rate = self.average_rate()?;
        let overhead = self.wire_overhead().map_or(0, Probability::as_parts_per_billion);
        Some(rate.scaled(BILLION + u64::from(overhead), BILLION))
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

    /// How long, when it last asked for something, the player could go on before it needed that.
    pub fn deadline(&self) -> Option<Duration> {
        read(&self.deadline).map(Duration::from_micros)
    }

    /// Sets or forgets the [deadline](Self::deadline), to the microsecond.
    pub fn set_deadline(&self, time: Option<Duration>) {
        write(
            &self.deadline,
            time.map(|time| u64::try_from(time.as_micros()).unwrap_or(UNKNOWN - 1)),
        );
    }

    /// What the player is doing.
    pub fn playback(&self) -> Option<Playback> {
        match read(&self.playback)? {
            0 => Some(Playback::Playing),
            1 => Some(Playback::Starting),
            _ => Some(Playback::Starved),
        }
    }

    /// Sets or forgets what the player [is doing](Self::playback).
    pub fn set_playback(&self, playback: Option<Playback>) {
        write(
            &self.playback,
            playback.map(|playback| match playback {
                Playback::Playing => 0,
                Playback::Starting => 1,
                Playback::Starved => 2,
            }),
        );
    }
}

impl VideoKnowledge {
    /// Those of `facts` that are unknown.
    pub fn unknown_of(&self, facts: Facts) -> Facts {
        let unknown = |cell: &AtomicU64, fact: Facts| match read(cell) {
            None if facts.contains(fact) => fact,
            _ => Facts::NONE,
        };
        unknown(&self.average_rate, Facts::AVERAGE_RATE)
            .union(unknown(&self.playout_buffer, Facts::PLAYOUT_BUFFER))
            .union(unknown(&self.buffered, Facts::BUFFERED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_which_of_some_facts_are_unknown() {
        let known = VideoKnowledge::new();
        let wanted = Facts::AVERAGE_RATE.union(Facts::BUFFERED);
        assert_eq!(known.unknown_of(wanted), wanted);
        assert_eq!(wanted.to_string(), "average-rate,buffered");
        known.set_average_rate(Some(Bitrate::from_kbps(5_240)));
        assert_eq!(known.unknown_of(wanted), Facts::BUFFERED);
        known.set_buffered(Some(Duration::ZERO));
        assert!(known.unknown_of(wanted).is_empty());
        assert_eq!(Facts::NONE.to_string(), "-");
    }

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
    fn what_the_player_does_is_kept_as_told() {
        let known = VideoKnowledge::new();
        assert_eq!((known.playback(), known.deadline()), (None, None));
        for playback in [Playback::Playing, Playback::Starting, Playback::Starved] {
            known.set_playback(Some(playback));
            assert_eq!(known.playback(), Some(playback));
        }
        known.set_deadline(Some(Duration::from_millis(700)));
        assert_eq!(known.deadline(), Some(Duration::from_millis(700)));
        known.set_playback(None);
        assert_eq!(known.playback(), None);
    }

    #[test]
    fn the_wire_carries_the_overhead_too() {
        let known = VideoKnowledge::new();
        known.set_average_rate(Some(Bitrate::from_mbps(5)));
        assert_eq!(known.wire_rate(), Some(Bitrate::from_mbps(5)));
        known.set_wire_overhead("4%".parse().ok());
        assert_eq!(known.wire_rate(), Some(Bitrate::from_kbps(5_200)));
    }

    #[test]
    fn a_rate_of_zero_is_no_knowledge() {
        let known = VideoKnowledge::new();
        known.set_average_rate(Some(Bitrate::ZERO));
        assert_eq!(known.average_rate(), None);
    }
}
