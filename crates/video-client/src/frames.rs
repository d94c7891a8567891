//! Where the player learns which bytes are which frame.

use std::sync::Arc;
use std::time::Duration;

use playrate_media::{Frame, Limits, MediaError, MediaSource, StreamParser, TitleInfo};
use playrate_units::{Bitrate, Bytes};

/// Where the player learns which bytes of the response are which frame.
#[derive(Clone, Debug, Default)]
pub enum FrameSource {
    /// From the title's own boxes, as they arrive.
    #[default]
    Boxes,
    /// From the index of this title, which the response must be: payload generated from a frame trace has no boxes. The
    /// player knows all frames when the first byte comes, as it does of a progressive file with the `moov` box first.
    Index(Arc<dyn MediaSource>),
}

/// Tells the frames of one response.
#[derive(Debug)]
pub(crate) enum Framing {
    Boxes(Box<StreamParser>),
    Index {
        source: Arc<dyn MediaSource>,
        told: bool,
    },
}

impl Framing {
    pub(crate) fn new(source: &FrameSource, limits: Limits) -> Self {
        match source {
            FrameSource::Boxes => Self::Boxes(Box::new(StreamParser::new(limits))),
            FrameSource::Index(source) => Self::Index {
                source: Arc::clone(source),
                told: false,
            },
        }
    }

    /// Takes the next bytes and passes on the frames that have become known. What was learnt before a mistake counts.
    pub(crate) fn push(&mut self, bytes: &[u8], mut learnt: impl FnMut(&[Frame])) -> Result<(), MediaError> {
        match self {
            Self::Boxes(parser) => {
                let parsed = parser.push(bytes);
                let frames: Vec<Frame> = parser.drain_frames().collect();
                if !frames.is_empty() {
                    learnt(&frames);
                }
                parsed
            }
            Self::Index { source, told } => {
                if !std::mem::replace(told, true) {
                    learnt(source.title().frames());
                }
                Ok(())
            }
        }
    }

    /// No more bytes come.
    pub(crate) fn finish(&mut self) -> Result<(), MediaError> {
        match self {
            Self::Boxes(parser) => parser.finish(),
            Self::Index { .. } => Ok(()),
        }
    }

    /// What the title says of itself, once known.
    pub(crate) fn info(&self) -> Option<&TitleInfo> {
        match self {
            Self::Boxes(parser) => parser.info(),
            Self::Index { source, told } => told.then(|| source.title().info()),
        }
    }

    /// Average rate of the frames known so far.
    pub(crate) fn average_rate(&self) -> Option<Bitrate> {
        let (bytes, time): (Bytes, Duration) = match self {
            Self::Boxes(parser) => (parser.media_bytes(), parser.playing_time()),
            Self::Index { source, told } if *told => {
                (source.title().media_bytes(), source.title().duration())
            }
            Self::Index { .. } => return None,
        };
        bytes.per(time)
    }
}
