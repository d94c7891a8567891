//! CMCD, Common Media Client Data: what a player tells a server about itself in a request
//! ([CTA-5004](https://cdn.cta.tech/cta/media/media/resources/standards/pdfs/cta-5004-final.pdf)), in four header
//! fields or in the query parameter `CMCD`, or since version 2 (CTA-5004-B) in a report of events.
//!
//! [`Cmcd::read`] and [`Cmcd::read_events`] do not trust players: they bound the length and the number of members,
//! treat a value out of range as absent, and skip and count unknown members. [`Cmcd::write_headers`] and
//! [`Cmcd::append_to`] round as the specification requires.
//!
//! ```
//! use http::HeaderMap;
//! use playrate_media::cmcd::{Cmcd, ObjectType};
//! use playrate_units::Bitrate;
//!
//! let mut said = Cmcd::default();
//! said.bitrate = Some(Bitrate::from_kbps(3_200));
//! said.object_type = Some(ObjectType::Video);
//! said.startup = true;
//! let mut headers = HeaderMap::new();
//! said.write_headers(&mut headers);
//! assert_eq!(headers["cmcd-object"], "br=3200,ot=v");
//! assert_eq!(headers["cmcd-request"], "su");
//! assert_eq!(Cmcd::read(&headers, &"/film.mp4".parse()?), Some(said));
//! # Ok::<(), http::uri::InvalidUri>(())
//! ```

mod keys;
mod read;
mod write;

use core::ops::Range;
use core::time::Duration;

use http::HeaderName;
use playrate_units::Bitrate;

/// Maximum number of bytes read from one field, or from the decoded query parameter.
pub const MAX_FIELD: usize = 4096;
/// Maximum number of members read from one request.
pub const MAX_MEMBERS: usize = 64;
/// Maximum number of characters read of a session or content identifier: that of version 2. At most 64 are written.
pub const MAX_IDENTIFIER: usize = 128;
/// Highest rate accepted in a member.
pub const MAX_RATE: Bitrate = Bitrate::from_mbps(10_000);
/// Longest time accepted in a member.
pub const MAX_TIME: Duration = Duration::from_secs(24 * 3600);

/// Events (`e`) that are read, by their tokens in CTA-5004-B.
pub const EVENTS: [&str; 19] = [
    "abe", "abs", "ae", "as", "b", "bc", "c", "ce", "e", "h", "m", "pc", "pe", "pr", "ps", "rr", "sk", "t",
    "um",
];
/// Player states (`sta`) that are read, by their tokens in CTA-5004-B.
pub const STATES: [&str; 10] = ["a", "d", "e", "f", "k", "p", "q", "r", "s", "w"];

/// The four header fields (§2.1). A player puts each key into the field that changes as often as the key does. Some
/// players get this wrong, so every key is read from every field.
const FIELDS: [HeaderName; 4] = [
    HeaderName::from_static("cmcd-object"),
    HeaderName::from_static("cmcd-request"),
    HeaderName::from_static("cmcd-session"),
    HeaderName::from_static("cmcd-status"),
];

/// Type of the requested object (`ot`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ObjectType {
    /// `m`: a manifest or playlist.
    Manifest,
    /// `a`: audio without video.
    Audio,
    /// `v`: video without audio.
    Video,
    /// `av`: audio and video in one object.
    Muxed,
    /// `i`: an initialisation segment.
    Initialization,
    /// `c`: captions or subtitles.
    Caption,
    /// `tt`: timed text in ISO BMFF.
    TimedText,
    /// `k`: a key, licence or certificate.
    Key,
    /// `o`: any other object.
    Other,
}

impl ObjectType {
    const TOKENS: [(Self, &str); 9] = [
        (Self::Manifest, "m"),
        (Self::Audio, "a"),
        (Self::Video, "v"),
        (Self::Muxed, "av"),
        (Self::Initialization, "i"),
        (Self::Caption, "c"),
        (Self::TimedText, "tt"),
        (Self::Key, "k"),
        (Self::Other, "o"),
    ];

    pub(crate) fn token(self) -> &'static str {
        let own = Self::TOKENS.iter().find(|(object, _)| *object == self);
        own.map_or("o", |(_, token)| token)
    }

    pub(crate) fn from_token(token: &str) -> Option<Self> {
        let own = Self::TOKENS.iter().find(|(_, its)| *its == token);
        own.map(|(object, _)| *object)
    }
}

/// The CMCD of one request or event. Every key is optional (§3). Keys of version 2 are written only in that version.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Cmcd {
    /// `br`: encoded rate of the requested object.
    pub bitrate: Option<Bitrate>,
    /// `bl`: playing time in the buffer of this object type.
    pub buffer_length: Option<Duration>,
    /// `bs`: the buffer ran empty since the previous request.
    pub underflow: bool,
    /// `cid`: identifier of the title.
    pub content: Option<String>,
    /// `d`: playing time of the requested object.
    pub object_duration: Option<Duration>,
    /// `dl`: latest time for the first byte to avoid an underflow.
    pub deadline: Option<Duration>,
    /// `e`: the event that this reports, one of [`EVENTS`]; version 2.
    pub event: Option<&'static str>,
    /// `lb`: lowest rate that the player may choose; version 2.
    pub lowest_bitrate: Option<Bitrate>,
    /// `mtp`: throughput measured by the player.
    pub measured_throughput: Option<Bitrate>,
    /// `nor`: path of the object requested next, percent-encoded.
    pub next_object: Option<String>,
    /// `nrr`: byte range of the next request. In version 2 it is the parameter `r` of `nor`.
    pub next_range: Option<Range<u64>>,
    /// `ot`: type of the requested object.
    pub object_type: Option<ObjectType>,
    /// `pr`: playing speed; 1 is real time, 0 is paused.
    pub playback_rate: Option<f64>,
    /// `rtp`: highest throughput that the player can use.
    pub requested_throughput: Option<Bitrate>,
    /// `sf`: `d` DASH, `h` HLS, `s` Smooth Streaming, `o` other.
    pub streaming_format: Option<&'static str>,
    /// `sid`: identifier of the session.
    pub session: Option<String>,
    /// `st`: `v` video on demand, `l` live, `ll` live with low latency (version 2).
    pub stream_type: Option<&'static str>,
    /// `sta`: state of the player, one of [`STATES`]; version 2.
    pub state: Option<&'static str>,
    /// `su`: the object is needed urgently: start-up, seek, or after an underflow.
    pub startup: bool,
    /// `tb`: highest rate that the player may choose.
    pub top_bitrate: Option<Bitrate>,
    /// `ts`: time of the event since the Unix epoch, in whole milliseconds; version 2.
    pub time: Option<Duration>,
    /// `v=2`: keys and lists of version 2 are written.
    pub version_2: bool,
    /// Members that were unknown or exceeded a limit. Not written.
    pub ignored: usize,
}

#[cfg(test)]
mod tests;
