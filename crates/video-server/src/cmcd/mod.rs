//! CMCD, what a player says of itself with a request ([CTA-5004](https://cdn.cta.tech/cta/media/media/resources/standards/pdfs/cta-5004-final.pdf)):
//! in four header fields, or in the query parameter `CMCD`.
//!
//! Players are not trusted: what is read is bounded in length and number, values out of bounds count as not given, and what is not
//! understood is passed over and counted. Pure: text in, [`Cmcd`] out.

mod parse;

use core::ops::Range;
use core::time::Duration;

use http::{HeaderMap, Uri};
use percent_encoding::percent_decode_str;
use playrate_units::Bitrate;

/// Most bytes read of one field, or of the query parameter before and after decoding.
pub const LONGEST: usize = 4096;
/// Most `key=value` pairs read of one request.
pub const PAIRS: usize = 64;
/// Longest session and content identifiers (CTA-5004 §3: 64 characters).
pub const IDENTIFIER: usize = 64;
/// Highest rate believed.
pub const FASTEST: Bitrate = Bitrate::from_mbps(10_000);
/// Longest time believed.
pub const LONGEST_TIME: Duration = Duration::from_secs(24 * 3600);

/// The header fields (§2): which key stands in which is the player's business, and some get it wrong.
const FIELDS: [&str; 4] = ["cmcd-object", "cmcd-request", "cmcd-session", "cmcd-status"];

/// What an object is (`ot`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ObjectType {
    /// `m`: a manifest or playlist.
    Manifest,
    /// `a`: sound.
    Audio,
    /// `v`: pictures.
    Video,
    /// `av`: both in one.
    Muxed,
    /// `i`: an initialisation segment.
    Initialization,
    /// `c`: captions.
    Caption,
    /// `tt`: timed text in ISO BMFF.
    TimedText,
    /// `k`: a key, licence or certificate.
    Key,
    /// `o`: anything else.
    Other,
}

/// What one request says. Everything is optional (§3).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Cmcd {
    /// `br`: the encoded rate of what is asked for.
    pub bitrate: Option<Bitrate>,
    /// `bl`: media in the buffer of this object's type.
    pub buffer_length: Option<Duration>,
    /// `bs`: the buffer ran empty since the request before.
    pub starved: bool,
    /// `cid`: which title.
    pub content: Option<String>,
    /// `d`: playing time of what is asked for.
    pub object_duration: Option<Duration>,
    /// `dl`: how long until the first of it must be there, or the buffer runs empty.
    pub deadline: Option<Duration>,
    /// `mtp`: the throughput that the player measures.
    pub measured_throughput: Option<Bitrate>,
    /// `nor`: what will be asked for next.
    pub next_object: Option<String>,
    /// `nrr`: which bytes of it.
    pub next_range: Option<Range<u64>>,
    /// `ot`: what is asked for.
    pub object_type: Option<ObjectType>,
    /// `pr`: playing speed, 1 is real time, 0 is paused.
    pub playback_rate: Option<f64>,
    /// `rtp`: the most throughput that the player asks for.
    pub requested_throughput: Option<Bitrate>,
    /// `sf`: `d` DASH, `h` HLS, `s` Smooth Streaming, `o` other.
    pub streaming_format: Option<char>,
    /// `sid`: which viewing.
    pub session: Option<String>,
    /// `st`: `v` video on demand, `l` live.
    pub stream_type: Option<char>,
    /// `su`: needed urgently, for start-up, seeking or after the buffer ran empty.
    pub startup: bool,
    /// `tb`: the highest rate that the player may choose.
    pub top_bitrate: Option<Bitrate>,
    /// Pairs that were not understood, or beyond a limit.
    pub ignored: usize,
}

impl Cmcd {
    /// What a request says; `None` if it says nothing of CMCD. Fields and query are both read; where both say the same thing, the
    /// fields win.
    pub fn of(headers: &HeaderMap, uri: &Uri) -> Option<Self> {
        let mut reader = parse::Reader::default();
        if let Some(value) = uri.query().and_then(parameter) {
            // `+` stands for itself: the parameter is percent-encoded, not form-encoded (§2.2).
            let decoded = percent_decode_str(value).decode_utf8().unwrap_or_default();
            reader.read(&decoded);
        }
        for name in FIELDS {
            for value in headers.get_all(name) {
                reader.read(value.to_str().unwrap_or_default());
            }
        }
        reader.finish()
    }
}

/// The value of the query parameter `CMCD`, still encoded.
fn parameter(query: &str) -> Option<&str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find_map(|(name, value)| (name == "CMCD").then_some(value))
}

#[cfg(test)]
mod tests;
