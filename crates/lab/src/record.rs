//! What a run leaves behind: plain data that figures, tables and explanations are made from.
//!
//! Nothing here knows how a run was made. Times are counted from the moment the viewer asked for the title;
//! in files they are seconds as decimal numbers, sizes are bytes and rates are bit/s.

use std::time::Duration;

use playrate_units::{Bitrate, Bytes, Probability};
use serde::{Deserialize, Serialize};

/// Several viewers of one title, each on its own copy of one path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Version of the program that made it.
    pub version: String,
    /// What was played.
    pub title: TitleFacts,
    /// What lay between server and viewer.
    pub path: PathFacts,
    /// How much a viewer's playout buffer holds, and what it waits for before it plays.
    pub playout_buffer: Bytes,
    /// One record for each controller, in the order asked for.
    pub runs: Vec<RunRecord>,
}

/// What was played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TitleFacts {
    /// Its name.
    pub name: String,
    /// Codec and picture size in words, such as `H.264, 1280×720, 30 frames/s`.
    pub format: String,
    /// Size of the file.
    pub size: Bytes,
    /// Playing time.
    #[serde(with = "seconds")]
    pub duration: Duration,
    /// Video and audio bytes over playing time.
    pub average_rate: Bitrate,
    /// How many pictures it has.
    pub pictures: u64,
}

/// What lay between server and viewer. The bottleneck shapes the direction that carries the video.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFacts {
    /// Rate of the bottleneck.
    pub rate: Bitrate,
    /// Propagation delay there and back, without queueing.
    #[serde(with = "seconds")]
    pub rtt: Duration,
    /// What the drop-tail queue before the bottleneck holds.
    pub queue: Bytes,
    /// How likely a packet that carries video is lost at random, besides queue overflow.
    pub loss: Probability,
    /// Seed of the random losses.
    pub seed: u64,
}

impl PathFacts {
    /// Bandwidth-delay product: what is in flight when the bottleneck is busy and its queue empty.
    pub fn bdp(&self) -> Bytes {
        self.rate * self.rtt
    }
}

/// One viewer's session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The controller as it was asked for.
    pub spec: String,
    /// What the viewer saw.
    pub viewer: Viewer,
    /// What the server's connection counted.
    pub sender: Sender,
    /// What the bottleneck counted in the direction that carries the video.
    pub link: LinkCounts,
    /// Playout buffer and delivered bytes over time.
    pub playout: Vec<PlayoutSample>,
    /// The server's window and RTT over time.
    pub transport: Vec<TransportSample>,
    /// Bytes waiting at the bottleneck over time.
    pub queue: Vec<QueueSample>,
    /// When the controller gave way, and by how much.
    pub cuts: Vec<WindowCut>,
}

/// What the viewer saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Viewer {
    /// From the request to the first picture; `None` if none was ever shown.
    #[serde(with = "seconds::optional")]
    pub startup: Option<Duration>,
    /// Pictures that fell due.
    pub pictures: u64,
    /// Pictures whose data came too late to show them.
    pub discarded: u64,
    /// Underflow events: how often the picture froze.
    pub underflows: u64,
    /// How long the picture stood still altogether, after playback had begun.
    #[serde(with = "seconds")]
    pub frozen: Duration,
    /// When it stood still.
    pub freezes: Vec<Span>,
    /// When pictures were discarded.
    #[serde(with = "seconds::list")]
    pub discard_times: Vec<Duration>,
    /// How often the player gave up its clock and filled its buffer anew.
    pub rebases: u64,
    /// Bytes of the title delivered to the player.
    pub delivered: Bytes,
    /// From the request to the last byte, or to the end of the session.
    #[serde(with = "seconds")]
    pub receiving: Duration,
    /// From the request to the end of the session.
    #[serde(with = "seconds")]
    pub length: Duration,
    /// How it ended.
    pub outcome: Outcome,
}

impl Viewer {
    /// Delivered bytes over the time they took to come.
    pub fn throughput(&self) -> Bitrate {
        self.delivered.per(self.receiving).unwrap_or(Bitrate::ZERO)
    }
}

/// How a session ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The title was played to its end.
    #[default]
    Played,
    /// The session was stopped before the title was in.
    Stopped,
    /// The connection or the player failed; the text says how.
    Failed(String),
}

/// What the server's connection counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// Packets sent.
    pub packets: u64,
    /// Packets declared lost; their data was sent again.
    pub lost: u64,
}

/// What the bottleneck counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounts {
    /// Packets that came through, acknowledgements of the viewer's not among them.
    pub forwarded: u64,
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Worst delay of a packet beyond what the model asked for.
    #[serde(with = "seconds")]
    pub lateness: Duration,
    /// Why the path was not what it was asked to be, in words; empty if it was.
    pub flaws: Vec<String>,
}

impl LinkCounts {
    /// Whether the path was what it was asked to be all the time, so that the run may be believed.
    pub fn is_valid(&self) -> bool {
        self.flaws.is_empty()
    }
}

/// The player at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayoutSample {
    /// When.
    #[serde(with = "seconds")]
    pub at: Duration,
    /// Playing time that is complete and not yet shown.
    #[serde(with = "seconds")]
    pub ahead: Duration,
    /// Bytes of the title delivered so far.
    pub delivered: Bytes,
}

/// The server's connection at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransportSample {
    /// When.
    #[serde(with = "seconds")]
    pub at: Duration,
    /// Congestion window.
    pub window: Bytes,
    /// Slow start threshold; `None` while it is infinite.
    pub ssthresh: Option<Bytes>,
    /// Smoothed RTT.
    #[serde(with = "seconds::optional")]
    pub rtt: Option<Duration>,
    /// Last sample of the RTT, with the viewer's acknowledgement delay in it.
    #[serde(with = "seconds::optional", default)]
    pub latest_rtt: Option<Duration>,
    /// The controller's estimate of the path's capacity, if it has one.
    #[serde(default)]
    pub capacity: Option<Bitrate>,
}

/// The bottleneck at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSample {
    /// When.
    #[serde(with = "seconds")]
    pub at: Duration,
    /// Bytes waiting.
    pub queued: Bytes,
}

/// A controller made its window smaller after a congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowCut {
    /// When.
    #[serde(with = "seconds")]
    pub at: Duration,
    /// The window before.
    pub before: Bytes,
    /// The window after.
    pub after: Bytes,
}

/// From one moment to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Its beginning.
    #[serde(with = "seconds")]
    pub from: Duration,
    /// Its end.
    #[serde(with = "seconds")]
    pub to: Duration,
}

/// Times as decimal numbers of seconds, to the microsecond.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    fn number(time: Duration) -> f64 {
        time.as_micros() as f64 / 1e6
    }

    fn time<E: serde::de::Error>(number: f64) -> Result<Duration, E> {
        Duration::try_from_secs_f64(number)
            .map(|exact| {
                Duration::from_micros(u64::try_from((exact.as_nanos() + 500) / 1000).unwrap_or(u64::MAX))
            })
            .map_err(|error| E::custom(format!("`{number}` is not a time in seconds: {error}")))
    }

    pub(super) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(number(*value))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        time(f64::deserialize(from)?)
    }

    pub(super) mod optional {
        use super::{Deserializer, Duration, Serializer, number, time};
        use serde::{Deserialize as _, Serialize as _};

        #[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
        pub(in crate::record) fn serialize<S: Serializer>(
            value: &Option<Duration>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            value.map(number).serialize(to)
        }

        pub(in crate::record) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<Duration>, D::Error> {
            Option::<f64>::deserialize(from)?.map(time).transpose()
        }
    }

    pub(super) mod list {
        use super::{Deserializer, Duration, Serializer, number, time};
        use serde::Deserialize as _;

        pub(in crate::record) fn serialize<S: Serializer>(
            values: &[Duration],
            to: S,
        ) -> Result<S::Ok, S::Error> {
            to.collect_seq(values.iter().map(|&value| number(value)))
        }

        pub(in crate::record) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Vec<Duration>, D::Error> {
            Vec::<f64>::deserialize(from)?.into_iter().map(time).collect()
        }
    }
}
