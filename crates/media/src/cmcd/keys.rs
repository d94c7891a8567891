//! The table of all keys, for reading and for writing.

use core::ops::Range;
use core::time::Duration;

use playrate_units::Bitrate;

use super::{Cmcd, EVENTS, MAX_TIME, ObjectType, STATES};

/// Index in [`FIELDS`](super::FIELDS) of the field that a key is written to.
const OBJECT: usize = 0;
const REQUEST: usize = 1;
const SESSION: usize = 2;
const STATUS: usize = 3;

/// Keys that only version 2 has.
pub(super) const NEW: [&str; 5] = ["e", "lb", "sta", "ts", "v"];
/// Keys with a list of values by object type in version 2.
pub(super) const LISTS: [&str; 5] = ["bl", "br", "lb", "mtp", "tb"];
/// Keys of version 2 that are accepted and not used.
pub(super) const UNUSED: [&str; 29] = [
    "ab", "bg", "bsa", "bsd", "bsda", "cdn", "cen", "cmsdd", "cmsds", "cs", "dfa", "ec", "h", "lab", "ltc",
    "msd", "nr", "pb", "pt", "rc", "smrt", "sn", "tab", "tbl", "tpb", "ttfb", "ttfbb", "ttlb", "url",
];

/// Value of a key, and its kind.
pub(super) enum Slot<'a> {
    /// A rate, written in kbit/s as a multiple of this number.
    Rate(&'a mut Option<Bitrate>, u64),
    /// A time up to a limit, written in milliseconds as a multiple of this number.
    Time(&'a mut Option<Duration>, u64, Duration),
    Flag(&'a mut bool),
    Identifier(&'a mut Option<String>),
    /// A URL, relative to that of the request.
    Path(&'a mut Option<String>),
    Range(&'a mut Option<Range<u64>>),
    Object(&'a mut Option<ObjectType>),
    Speed(&'a mut Option<f64>),
    /// A token that is one of the list.
    Token(&'a mut Option<&'static str>, &'static [&'static str]),
    /// The version: true for 2, false for 1.
    Version(&'a mut bool),
}

impl Cmcd {
    /// All keys in alphabetical order, with the field that each is written to and the place of its value.
    #[rustfmt::skip]
    pub(super) fn slots(&mut self) -> [(&'static str, usize, Slot<'_>); 22] {
        use Slot::{Flag, Identifier, Object, Path, Range, Rate, Speed, Time, Token, Version};
        [
            ("bl", REQUEST, Time(&mut self.buffer_length, 100, MAX_TIME)),
            ("br", OBJECT, Rate(&mut self.bitrate, 1)),
            ("bs", STATUS, Flag(&mut self.underflow)),
            ("cid", SESSION, Identifier(&mut self.content)),
            ("d", OBJECT, Time(&mut self.object_duration, 1, MAX_TIME)),
            ("dl", REQUEST, Time(&mut self.deadline, 100, MAX_TIME)),
            ("e", REQUEST, Token(&mut self.event, &EVENTS)),
            ("lb", OBJECT, Rate(&mut self.lowest_bitrate, 1)),
            ("mtp", REQUEST, Rate(&mut self.measured_throughput, 100)),
            ("nor", REQUEST, Path(&mut self.next_object)),
            ("nrr", REQUEST, Range(&mut self.next_range)),
            ("ot", OBJECT, Object(&mut self.object_type)),
            ("pr", SESSION, Speed(&mut self.playback_rate)),
            ("rtp", STATUS, Rate(&mut self.requested_throughput, 100)),
            ("sf", SESSION, Token(&mut self.streaming_format, &["d", "h", "s", "o"])),
            ("sid", SESSION, Identifier(&mut self.session)),
            ("st", SESSION, Token(&mut self.stream_type, &["v", "l", "ll"])),
            ("sta", REQUEST, Token(&mut self.state, &STATES)),
            ("su", REQUEST, Flag(&mut self.startup)),
            ("tb", OBJECT, Rate(&mut self.top_bitrate, 1)),
            ("ts", REQUEST, Time(&mut self.time, 1, Duration::MAX)),
            ("v", SESSION, Version(&mut self.version_2)),
        ]
    }
}
