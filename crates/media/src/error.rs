//! [`MediaError`]: what is wrong with a title or a manifest, where in the file, and the fix.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The four-character type of an MP4 box. Printed as text; bytes other than printable ASCII are escaped.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "the type of a box is four bytes")]
pub struct BoxName(pub [u8; 4]);

impl BoxName {
    /// Returns true if all four characters are printable ASCII, as in every registered box type (some start with
    /// `©`).
    pub(crate) fn is_printable(self) -> bool {
        self.0
            .iter()
            .enumerate()
            .all(|(at, byte)| matches!(byte, 0x20..=0x7e) || (at == 0 && *byte == 0xa9))
    }
}

impl fmt::Display for BoxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for BoxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoxName({self})")
    }
}

/// Reason why a title or its manifest cannot be read. The text names the box and its byte offset, or the line, and the
/// fix.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MediaError {
    /// The bytes do not begin as an MP4 file does.
    #[error(
        "not an MP4: {found}; a title is an MP4 file \
         (make one with `ffmpeg -i INPUT -c:v libx264 -c:a aac -movflags +faststart title.mp4`)"
    )]
    NotMp4 {
        /// First bytes of the file.
        found: String,
    },
    /// The file ends within a box.
    #[error(
        "{name} box at offset {offset} is truncated: it runs to byte {needed}, but the file ends at {end}; \
         copy or download the file again, in full"
    )]
    Truncated {
        /// Type of the truncated box.
        name: BoxName,
        /// Offset of the box in the file.
        offset: u64,
        /// Offset at which the box should end.
        needed: u64,
        /// Length of the file.
        end: u64,
    },
    /// A box contradicts itself, its parent or its neighbours.
    #[error(
        "{name} box at offset {offset} is malformed: {problem}; \
         repair the file with `ffmpeg -i FILE -c copy -movflags +faststart repaired.mp4`"
    )]
    Malformed {
        /// Type of the box.
        name: BoxName,
        /// Offset of the box in the file.
        offset: u64,
        /// Description of the problem.
        problem: String,
    },
    /// A box exceeds the reader's [`Limits`](crate::Limits).
    #[error(
        "{name} box at offset {offset} exceeds the limit of {limit} {what}; \
         raise the limit if the file is to be trusted"
    )]
    BeyondLimit {
        /// Type of the box.
        name: BoxName,
        /// Offset of the box in the file.
        offset: u64,
        /// Name of the limit: `bytes in one moov box`, `samples`, ….
        what: &'static str,
        /// The largest value allowed.
        limit: u64,
    },
    /// The file ended without a `moov` box, which describes the media.
    #[error(
        "no moov box in the {end} bytes of the file: the recording was not finished; \
         record it again, or write it with `-movflags +frag_keyframe+empty_moov`, which survives that"
    )]
    NoMovie {
        /// Length of the file.
        end: u64,
    },
    /// No track holds video or audio.
    #[error("none of the {tracks} tracks holds video or audio; write the file again from its source")]
    NoMedia {
        /// Number of tracks of other kinds.
        tracks: usize,
    },
    /// A `moof` box before any `moov` box: the file is a media segment.
    #[error(
        "the moof box at offset {offset} comes before the moov box that explains it: this is a media segment; \
         name it in a manifest (docs/media.md)"
    )]
    FragmentFirst {
        /// Offset of the box in the file.
        offset: u64,
    },
    /// The played track has no frames.
    #[error(
        "the played track holds no frames; write the file again from its source, or name it in a manifest if it is an \
         initialisation segment (docs/media.md)"
    )]
    NoFrames,
    /// A frame lies past the end of the file.
    #[error(
        "frame {frame} needs bytes up to {needed}, but the file ends at {end}; \
         copy or download the file again, in full"
    )]
    FrameBeyondEnd {
        /// The frame's number in decode order, from 0.
        frame: usize,
        /// Offset of the byte after the frame.
        needed: u64,
        /// Length of the file.
        end: u64,
    },
    /// A line of a frame trace cannot be read.
    #[error(
        "line {line} of the frame trace: {problem}; \
         a line is `pts_time,size,flags`, such as `0.033333,3847,__` or `3.000000,179863,K_`"
    )]
    Trace {
        /// The line's number, from 1.
        line: usize,
        /// Description of the problem.
        problem: String,
    },
    /// A frame trace cannot be scaled or repeated as requested.
    #[error("the frame trace cannot be {asked}: {problem}")]
    TraceLength {
        /// Name of the rejected operation.
        asked: String,
        /// Description of the problem.
        problem: String,
    },
    /// A ladder of representations cannot be read or made.
    #[error("the ladder cannot be made: {problem}")]
    Ladder {
        /// Description of the problem, with its place.
        problem: String,
    },
    /// A line of a manifest is not valid.
    #[error("line {line}: {problem}; {fix}")]
    Manifest {
        /// The line's number, from 1.
        line: usize,
        /// Description of the problem.
        problem: String,
        /// Advice to the reader.
        fix: &'static str,
    },
    /// A manifest exceeds a limit.
    #[error("it holds more than {limit} {what}; split the title into several")]
    ManifestTooLarge {
        /// Unit of the limit, such as `segments`.
        what: &'static str,
        /// The largest number allowed.
        limit: u64,
    },
    /// The file cannot be opened or read.
    #[error("{problem}")]
    Io {
        /// The kind of the operating system's error.
        kind: io::ErrorKind,
        /// Message of the operating system.
        problem: String,
    },
    /// Any of the above, together with its file.
    #[error("{}: {source}", path.display())]
    InFile {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        source: Box<MediaError>,
    },
}

impl MediaError {
    /// This error, with the name of its file. An error that already names a file is left unchanged.
    #[must_use]
    pub fn in_file(self, path: &Path) -> Self {
        match self {
            Self::InFile { .. } => self,
            other => Self::InFile {
                path: path.to_owned(),
                source: Box::new(other),
            },
        }
    }

    /// The error itself, without the file name around it.
    #[must_use]
    pub fn cause(&self) -> &Self {
        match self {
            Self::InFile { source, .. } => source.cause(),
            other => other,
        }
    }

    /// A problem in a line of a manifest, counted from 1.
    pub(crate) fn manifest(line: usize, problem: impl Into<String>, fix: &'static str) -> Self {
        let problem = problem.into();
        Self::Manifest { line, problem, fix }
    }

    pub(crate) fn malformed(name: BoxName, offset: u64, problem: impl Into<String>) -> Self {
        Self::Malformed {
            name,
            offset,
            problem: problem.into(),
        }
    }
}

impl From<io::Error> for MediaError {
    fn from(error: io::Error) -> Self {
        Self::Io {
            kind: error.kind(),
            problem: error.to_string(),
        }
    }
}
