//! [`FrameSource`]: origin of a title's frame index, with the parser for each kind.

use std::sync::Arc;
use std::time::Duration;

use playrate_media::{Frame, Limits, MediaError, MediaSource, StreamParser, TitleInfo};
use playrate_units::{Bitrate, Bytes};

/// Origin of the index that maps bytes of the response to frames.
#[derive(Clone, Debug, Default)]
pub enum FrameSource {
    /// The title's own boxes, as they arrive.
    #[default]
    Boxes,
    /// The index of this title, whose bytes the response must equal: payload generated from a frame trace has no boxes.
    /// The player knows all frames from the first byte on, as with a progressive file whose `moov` box comes first.
    Index(Arc<dyn MediaSource>),
}

/// Finds the frames of one response.
#[derive(Debug)]
pub(crate) enum FrameParser {
    Boxes(Box<StreamParser>),
    Index {
        source: Arc<dyn MediaSource>,
        passed_on: bool,
    },
}

impl FrameParser {
    pub(crate) fn new(source: &FrameSource, limits: Limits) -> Self {
        match source {
            FrameSource::Boxes => Self::Boxes(Box::new(StreamParser::new(limits))),
            FrameSource::Index(source) => Self::Index {
                source: Arc::clone(source),
                passed_on: false,
            },
        }
    }

    /// Parses the next bytes and passes on the frames in them, including those before an error.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        mut on_frames: impl FnMut(&[Frame]),
    ) -> Result<(), MediaError> {
        match self {
            Self::Boxes(parser) => {
                let parsed = parser.push(bytes);
                let frames: Vec<Frame> = parser.drain_frames().collect();
                if !frames.is_empty() {
                    on_frames(&frames);
                }
                parsed
            }
            Self::Index { source, passed_on } => {
                if !std::mem::replace(passed_on, true) {
                    on_frames(source.title().frames());
                }
                Ok(())
            }
        }
    }

    /// Ends the response; no more bytes may follow.
    ///
    /// # Errors
    /// If a box is incomplete.
    pub(crate) fn finish(&mut self) -> Result<(), MediaError> {
        match self {
            Self::Boxes(parser) => parser.finish(),
            Self::Index { .. } => Ok(()),
        }
    }

    /// Description of the title, once its `moov` box has been parsed.
    pub(crate) fn info(&self) -> Option<&TitleInfo> {
        match self {
            Self::Boxes(parser) => parser.info(),
            Self::Index { source, passed_on } => passed_on.then(|| source.title().info()),
        }
    }

    /// Average rate of the frames found so far.
    pub(crate) fn average_rate(&self) -> Option<Bitrate> {
        let (bytes, time): (Bytes, Duration) = match self {
            Self::Boxes(parser) => (parser.media_bytes(), parser.playing_time()),
            Self::Index { source, passed_on } if *passed_on => {
                (source.title().media_bytes(), source.title().duration())
            }
            Self::Index { .. } => return None,
        };
        bytes.per(time)
    }
}
