//! [`VideoKnowledge`]: facts of the video on one connection; [`Facts`]: a set of their names.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use playrate_units::{Bitrate, Bytes, Probability};

/// Facts of the video that a connection carries. The application sets them, and the connection's controller reads them
/// without locks on the ACK path; both share it by `Arc`.
///
/// Every fact is unknown at first and may change at any time. A component that lacks a fact behaves as its plain
/// counterpart until the fact is known.
///
/// Players may report false values. So the application derives the facts that raise a window from its own data: the
/// [average rate](Self::average_rate), the [highest rate](Self::highest_rate) and the [playout
/// buffer](Self::playout_buffer). It also limits how long a [state above `Playing`](Playback) lasts. A controller may
/// use the others ([buffered time](Self::buffered), [deadline](Self::deadline), [reported
/// buffer](Self::reported_buffer)) only to lower its window.
#[derive(Debug, Default)]
pub struct VideoKnowledge {
    /// Average rate in bit/s.
    average_rate: MaybeNumber,
    /// Highest rate in bit/s.
    highest_rate: MaybeNumber,
    /// Playout buffer in bytes.
    playout_buffer: MaybeNumber,
    /// Playout buffer according to its player, in bytes.
    reported_buffer: MaybeNumber,
    /// In units of 1 µs.
    buffered: MaybeNumber,
    /// In units of 1 µs.
    deadline: MaybeNumber,
    /// A [`Playback`] by number.
    playback: MaybeNumber,
    /// In parts per billion.
    wire_overhead: MaybeNumber,
    follows_path: AtomicBool,
}

/// State of a player as it reports it, in ascending order of need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Playback {
    /// It plays from its buffer.
    Playing,
    /// It fills its buffer before playback: at the start, after a seek.
    Starting,
    /// Its buffer has run empty and playback has stalled (`bs` in CMCD).
    Starved,
}

type IsKnown = fn(&VideoKnowledge) -> bool;

/// A set of facts that a [`VideoKnowledge`] may contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Facts(u8);

impl Facts {
    /// The set of no facts.
    pub const NONE: Self = Self(0);
    /// The average rate of the video: [`VideoKnowledge::average_rate`].
    pub const AVERAGE_RATE: Self = Self(1);
    /// The size of the playout buffer: [`VideoKnowledge::playout_buffer`].
    pub const PLAYOUT_BUFFER: Self = Self(2);
    /// The buffered playing time: [`VideoKnowledge::buffered`].
    pub const BUFFERED: Self = Self(4);
    /// The size of the playout buffer, reports included: [`VideoKnowledge::buffer_size`].
    pub const BUFFER_SIZE: Self = Self(8);

    /// Each fact with its name, and a function that returns true if it is known.
    const ALL: [(Self, &'static str, IsKnown); 4] = [
        (Self::AVERAGE_RATE, "average-rate", |known| {
            known.average_rate().is_some()
        }),
        (Self::PLAYOUT_BUFFER, "playout-buffer", |known| {
            known.playout_buffer().is_some()
        }),
        (Self::BUFFERED, "buffered", |known| known.buffered().is_some()),
        (Self::BUFFER_SIZE, "buffer-size", |known| {
            known.buffer_size().is_some()
        }),
    ];

    /// The union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if it contains all facts of `other`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if it contains no fact.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names in telemetry: lower case, words joined by `-`.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::ALL
            .into_iter()
            .filter_map(move |(fact, name, _)| self.contains(fact).then_some(name))
    }
}

impl fmt::Display for Facts {
    /// The [names](Self::names) with a comma between them; `-` if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("-");
        }
        f.write_str(&self.names().collect::<Vec<_>>().join(","))
    }
}

/// A number that may be unknown.
#[derive(Debug)]
struct MaybeNumber(AtomicU64);

impl MaybeNumber {
    const UNKNOWN: u64 = u64::MAX;

    fn get(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|&value| value != Self::UNKNOWN)
    }

    fn set(&self, value: Option<u64>) {
        let known = value.map(|value| value.min(Self::UNKNOWN - 1));
        self.0.store(known.unwrap_or(Self::UNKNOWN), Relaxed);
    }

    fn time(&self) -> Option<Duration> {
        self.get().map(Duration::from_micros)
    }

    fn set_time(&self, time: Option<Duration>) {
        self.set(time.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)));
    }
}

impl Default for MaybeNumber {
    fn default() -> Self {
        Self(AtomicU64::new(Self::UNKNOWN))
    }
}

impl VideoKnowledge {
    /// All facts are unknown.
    pub fn new() -> Self {
        Self::default()
    }

    /// Average rate of the current stream (video and audio bytes over playing time; "video rate" in the papers). A rate
    /// of zero counts as unknown.
    pub fn average_rate(&self) -> Option<Bitrate> {
        self.average_rate.get().map(Bitrate::from_bits_per_second)
    }

    /// Sets or forgets the [average rate](Self::average_rate).
    pub fn set_average_rate(&self, rate: Option<Bitrate>) {
        let rate = rate.map(Bitrate::as_bits_per_second);
        self.average_rate.set(rate.filter(|&rate| rate > 0));
    }

    /// Rate of the best representation that the player may choose: the higher of the manifest's (usually a peak) and
    /// the measured rate. While it is unknown, the [average rate](Self::average_rate) applies.
    pub fn highest_rate(&self) -> Option<Bitrate> {
        let highest = self.highest_rate.get().map(Bitrate::from_bits_per_second);
        highest.max(self.average_rate())
    }

    /// Sets or forgets the [highest rate](Self::highest_rate).
    pub fn set_highest_rate(&self, rate: Option<Bitrate>) {
        let rate = rate.map(Bitrate::as_bits_per_second);
        self.highest_rate.set(rate.filter(|&rate| rate > 0));
    }

    /// Returns true if an encoder chooses its rate by what the connection carries. Then a controller must not bound its
    /// window by the [average](Self::average_rate) or the [highest rate](Self::highest_rate): an encoder that follows a
    /// bounded window would never raise its rate.
    pub fn follows_path(&self) -> bool {
        self.follows_path.load(Relaxed)
    }

    /// Records that an encoder [follows the path](Self::follows_path), or no longer does.
    pub fn set_follows_path(&self, follows: bool) {
        self.follows_path.store(follows, Relaxed);
    }

    /// Bytes that packets, QUIC frames and HTTP add, as a share of the video's bytes, as measured by the transport.
    pub fn wire_overhead(&self) -> Option<Probability> {
        let parts = u32::try_from(self.wire_overhead.get()?).ok()?;
        Some(Probability::from_parts_per_billion(parts))
    }

    /// Sets or forgets the [overhead](Self::wire_overhead).
    pub fn set_wire_overhead(&self, share: Option<Probability>) {
        let parts = share.map(|share| share.as_parts_per_billion().into());
        self.wire_overhead.set(parts);
    }

    /// The [average rate](Self::average_rate) in bytes that count towards a window: including the
    /// [overhead](Self::wire_overhead), if known.
    pub fn wire_rate(&self) -> Option<Bitrate> {
        self.average_rate().map(|rate| self.on_the_wire(rate))
    }

    /// `rate` including the [overhead](Self::wire_overhead), if known.
    pub fn on_the_wire(&self, rate: Bitrate) -> Bitrate {
        const BILLION: u64 = 1_000_000_000;
        let overhead = self.wire_overhead().map_or(0, Probability::as_parts_per_billion);
        rate.scaled(BILLION + u64::from(overhead), BILLION)
    }

    /// Size of the player's playout buffer, from a trusted source.
    pub fn playout_buffer(&self) -> Option<Bytes> {
        self.playout_buffer.get().map(Bytes::new)
    }

    /// Sets or forgets the [size of the playout buffer](Self::playout_buffer).
    pub fn set_playout_buffer(&self, size: Option<Bytes>) {
        self.playout_buffer.set(size.map(Bytes::as_u64));
    }

    /// Size of the playout buffer as its player reports it.
    pub fn reported_buffer(&self) -> Option<Bytes> {
        self.reported_buffer.get().map(Bytes::new)
    }

    /// Sets or forgets the [reported size of the playout buffer](Self::reported_buffer).
    pub fn set_reported_buffer(&self, size: Option<Bytes>) {
        self.reported_buffer.set(size.map(Bytes::as_u64));
    }

    /// Size of the [playout buffer](Self::playout_buffer); while it is unknown, the [reported
    /// one](Self::reported_buffer).
    pub fn buffer_size(&self) -> Option<Bytes> {
        self.playout_buffer().or_else(|| self.reported_buffer())
    }

    /// Playing time that the player has received and not shown yet.
    pub fn buffered(&self) -> Option<Duration> {
        self.buffered.time()
    }

    /// Sets or forgets the [buffered playing time](Self::buffered), to the microsecond.
    pub fn set_buffered(&self, time: Option<Duration>) {
        self.buffered.set_time(time);
    }

    /// Time for which the player could continue without its latest request, as of that request.
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline.time()
    }

    /// Sets or forgets the [deadline](Self::deadline), to the microsecond.
    pub fn set_deadline(&self, time: Option<Duration>) {
        self.deadline.set_time(time);
    }

    /// State of the player.
    pub fn playback(&self) -> Option<Playback> {
        Some(match self.playback.get()? {
            0 => Playback::Playing,
            1 => Playback::Starting,
            _ => Playback::Starved,
        })
    }

    /// Sets or forgets the [state of the player](Self::playback).
    pub fn set_playback(&self, playback: Option<Playback>) {
        self.playback.set(playback.map(|playback| playback as u64));
    }

    /// Those of `facts` that are unknown.
    pub fn unknown_of(&self, facts: Facts) -> Facts {
        let unknown = Facts::ALL
            .into_iter()
            .filter(|(fact, _, is_known)| facts.contains(*fact) && !is_known(self));
        unknown.fold(Facts::NONE, |unknown, (fact, ..)| unknown.union(fact))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_those_of_some_facts_that_are_unknown() {
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
    fn every_fact_starts_unknown_is_kept_as_reported_and_can_be_forgotten() {
        let known = VideoKnowledge::new();
        let facts = || {
            let player = (known.buffered(), known.playback(), known.deadline());
            (known.average_rate(), known.playout_buffer(), player)
        };
        assert_eq!(facts(), (None, None, (None, None, None)));
        for playback in [Playback::Playing, Playback::Starting, Playback::Starved].map(Some) {
            let rate = Some(Bitrate::from_kbps(5_240));
            let buffer = Some(Bytes::new(655_872));
            let times = [1_500, 700].map(|ms| Some(Duration::from_millis(ms)));
            known.set_average_rate(rate);
            known.set_playout_buffer(buffer);
            known.set_buffered(times[0]);
            known.set_playback(playback);
            known.set_deadline(times[1]);
            assert_eq!(facts(), (rate, buffer, (times[0], playback, times[1])));
        }
        known.set_average_rate(None);
        known.set_playback(None);
        assert_eq!((known.average_rate(), known.playback()), (None, None));
    }

    #[test]
    fn a_reported_buffer_counts_only_as_the_size_of_the_buffer() {
        let known = VideoKnowledge::new();
        let wanted = Facts::PLAYOUT_BUFFER.union(Facts::BUFFER_SIZE);
        known.set_reported_buffer(Some(Bytes::new(4_000_000)));
        assert_eq!(known.playout_buffer(), None);
        assert_eq!(known.buffer_size(), Some(Bytes::new(4_000_000)));
        assert_eq!(known.unknown_of(wanted), Facts::PLAYOUT_BUFFER);
        known.set_playout_buffer(Some(Bytes::new(655_872)));
        assert_eq!(known.buffer_size(), Some(Bytes::new(655_872)), "the trusted size");
        assert!(known.unknown_of(wanted).is_empty());
    }

    #[test]
    fn the_highest_rate_is_at_least_the_average() {
        let known = VideoKnowledge::new();
        assert_eq!(known.highest_rate(), None);
        known.set_average_rate(Some(Bitrate::from_mbps(5)));
        assert_eq!(known.highest_rate(), Some(Bitrate::from_mbps(5)));
        known.set_highest_rate(Some(Bitrate::from_mbps(8)));
        assert_eq!(known.highest_rate(), Some(Bitrate::from_mbps(8)));
        known.set_highest_rate(Some(Bitrate::from_mbps(2)));
        assert_eq!(known.highest_rate(), Some(Bitrate::from_mbps(5)));
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
