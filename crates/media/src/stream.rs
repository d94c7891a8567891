//! [`StreamParser`]: reads an MP4 file as its bytes arrive. Sans-IO: no file, no socket, no clock.

use crate::boxes::{BoxHeader, BoxView, within};
use crate::error::{BoxName, MediaError};
use crate::frame::{AudioSample, FragmentStart, Frame, TitleInfo};
use crate::index::Index;
use crate::limits::Limits;

use playrate_units::Bytes;
use std::time::Duration;

/// Reads a progressive or fragmented MP4 file incrementally and returns its video frames as soon as they are known.
///
/// Bytes are pushed in file order, in pieces of any size. All frames of a progressive file are known once its `moov`
/// box is complete; those of a fragment, once its `moof` box is. Only box headers and one `moov` or `moof` box at a
/// time are kept, never media, within [`Limits`]. After an error, every call returns the same error.
///
/// ```no_run
/// use playrate_media::{Limits, StreamParser};
///
/// # fn received() -> Vec<u8> { Vec::new() }
/// let mut parser = StreamParser::new(Limits::default());
/// parser.push(&received())?;
/// if let Some(info) = parser.info() {
///     println!("{} at {}x{}", info.codecs, info.width, info.height);
/// }
/// for frame in parser.drain_frames() {
///     println!("frame due at {:?} ends at byte {}", frame.pts, frame.end());
/// }
/// # Ok::<(), playrate_media::MediaError>(())
/// ```
#[derive(Debug, Default)]
pub struct StreamParser {
    index: Index,
    state: ParserState,
    /// Number of bytes pushed or skipped.
    position: u64,
    /// An incomplete header or box.
    held: Vec<u8>,
    boxes: u64,
    media_seen: bool,
    /// Start of the next fragment, if a box that belongs to it came before its `moof` box.
    fragment_start: Option<u64>,
}

#[derive(Debug, Default)]
enum ParserState {
    /// `held` holds the beginning of a box header.
    #[default]
    Header,
    /// `held` holds the beginning of a `moov` or `moof` box's body. It may run to the end of the file.
    Collect {
        header: BoxHeader,
        offset: u64,
    },
    /// A box that is not kept. `end` is `None` if it runs to the end of the file.
    Skip {
        name: BoxName,
        offset: u64,
        end: Option<u64>,
    },
    Failed(MediaError),
}

impl StreamParser {
    /// Creates a parser at the start of a file.
    pub fn new(limits: Limits) -> Self {
        let mut parser = Self::default();
        parser.index.limits = limits;
        parser
    }

    /// Creates a parser that also keeps the data for a [`Title`](crate::Title).
    pub(crate) fn keeping(limits: Limits) -> Self {
        let mut parser = Self::new(limits);
        parser.index.keeps = true;
        parser
    }

    /// Parses the next bytes of the file.
    ///
    /// # Errors
    /// If the file is not MP4, is malformed, has no video or audio track or exceeds the limits.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), MediaError> {
        while !bytes.is_empty() {
            if let Err(error) = self.step(&mut bytes) {
                self.held = Vec::new();
                self.state = ParserState::Failed(error);
            }
            if let ParserState::Failed(error) = &self.state {
                return Err(error.clone());
            }
        }
        Ok(())
    }

    /// Number of upcoming bytes that the parser does not need; the caller may [`skip`](Self::skip) them instead of
    /// pushing them. `u64::MAX` if the rest of the file is not needed.
    pub fn skippable(&self) -> u64 {
        match &self.state {
            ParserState::Skip { end, .. } => end.map_or(u64::MAX, |end| end.saturating_sub(self.position)),
            ParserState::Header | ParserState::Collect { .. } | ParserState::Failed(_) => 0,
        }
    }

    /// Skips the next `bytes` bytes of the file, at most [`Self::skippable`]; returns the number skipped.
    pub fn skip(&mut self, bytes: u64) -> u64 {
        let skipped = bytes.min(self.skippable());
        self.position = self.position.saturating_add(skipped);
        if let ParserState::Skip { end: Some(end), .. } = &self.state
            && self.position >= *end
        {
            self.state = ParserState::Header;
        }
        skipped
    }

    /// The frames found since the last call, in decode order.
    pub fn drain_frames(&mut self) -> impl Iterator<Item = Frame> {
        self.index.frames.drain(..)
    }

    /// Description of the title, once the `moov` box has been parsed.
    pub fn info(&self) -> Option<&TitleInfo> {
        self.index.info.as_ref()
    }

    /// Number of bytes of the file pushed or skipped.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Video and audio bytes of all samples shown so far (not of boxes).
    pub fn media_bytes(&self) -> Bytes {
        self.index.media_bytes()
    }

    /// Playing time on the movie's clock, as far as the samples are known.
    pub fn playing_time(&self) -> Duration {
        self.index.playing_time()
    }

    /// Ends the file and checks that it is complete. If its last box runs to the end of the file, more frames may be
    /// known after this call.
    ///
    /// # Errors
    /// If the file ends within a box or a frame, has no `moov` box or no frames, or an earlier call failed.
    pub fn finish(&mut self) -> Result<(), MediaError> {
        let mut result = Ok(());
        if let ParserState::Collect { header, offset } = self.state
            && header.size.is_none()
        {
            self.state = ParserState::Header;
            result = self.take_collected(header, offset);
        }
        result = result.and_then(|()| self.check_end());
        if let Err(error) = &result {
            self.state = ParserState::Failed(error.clone());
        }
        result
    }

    /// Contradictions found so far, each with the value used, and other remarks such as the file's encryption.
    pub fn notes(&self) -> &[String] {
        &self.index.notes
    }

    pub(crate) fn media_end(&self) -> u64 {
        self.index.media_end
    }

    pub(crate) fn take_kept(&mut self) -> (Vec<AudioSample>, Vec<FragmentStart>) {
        (
            std::mem::take(&mut self.index.audio),
            std::mem::take(&mut self.index.starts),
        )
    }

    fn check_end(&self) -> Result<(), MediaError> {
        let end = self.position;
        let truncated = |name, offset, needed| MediaError::Truncated {
            name,
            offset,
            needed,
            end,
        };
        match &self.state {
            ParserState::Failed(error) => return Err(error.clone()),
            // A few bytes after the last box are padding.
            ParserState::Header if self.boxes > 0 || end == 0 => {}
            ParserState::Header => return Err(not_mp4(&self.held)),
            ParserState::Collect { header, offset } => {
                let needed = offset.saturating_add(header.size.unwrap_or(0));
                return Err(truncated(header.name, *offset, needed));
            }
            ParserState::Skip { end: None, .. } => {}
            // Nothing that is shown is missing.
            ParserState::Skip { .. } if self.index.frame_count > 0 && self.index.media_end <= end => {}
            ParserState::Skip {
                name,
                offset,
                end: Some(needed),
            } => return Err(truncated(*name, *offset, *needed)),
        }
        if end == 0 {
            return Err(MediaError::NotMp4 {
                found: "the file is empty".to_owned(),
            });
        }
        if self.index.info.is_none() {
            return Err(MediaError::NoMovie { end });
        }
        if self.index.frame_count == 0 {
            return Err(MediaError::NoFrames);
        }
        let (frame, needed) = self.index.furthest;
        if needed > end {
            return Err(MediaError::FrameBeyondEnd { frame, needed, end });
        }
        Ok(())
    }

    /// The type in an incomplete header; `????` if even that is missing.
    fn held_name(&self) -> BoxName {
        let name = self.held.get(4..8).and_then(|name| name.try_into().ok());
        BoxName(name.unwrap_or(*b"????"))
    }

    /// Consumes as many bytes from the front of `bytes` as the state can use.
    fn step(&mut self, bytes: &mut &[u8]) -> Result<(), MediaError> {
        match self.state {
            ParserState::Header => {
                let wanted = BoxHeader::len_of(&self.held);
                self.hold(bytes, wanted);
                let offset = self.position.saturating_sub(self.held.len() as u64);
                if self.held.len() < BoxHeader::len_of(&self.held) {
                    return Ok(());
                }
                match self.read_header(offset) {
                    // Once frames are known, trailing bytes need not form a box.
                    Err(MediaError::Malformed { name, .. }) if self.index.frame_count > 0 => {
                        self.index.note(format!(
                            "no box begins at offset {offset}; the rest is passed over"
                        ));
                        self.held.clear();
                        self.state = ParserState::Skip {
                            name,
                            offset,
                            end: None,
                        };
                    }
                    header => {
                        if let Some(header) = header? {
                            self.held.clear();
                            self.enter(header, offset)?;
                        }
                    }
                }
                Ok(())
            }
            ParserState::Collect { header, offset } => {
                let limit = self.limit_of(header.name).unwrap_or(("bytes", 0));
                // Within the limit, which fits a usize, unless the box runs to the end of the file.
                let body = header
                    .size
                    .map_or(u64::MAX, |size| size.saturating_sub(header.header_len));
                let most = body.min(limit.1.saturating_add(1));
                self.hold(bytes, usize::try_from(most).unwrap_or(usize::MAX));
                within((header.name, offset), self.held.len() as u64, limit)?;
                if self.held.len() as u64 == body {
                    self.state = ParserState::Header;
                    self.take_collected(header, offset)?;
                }
                Ok(())
            }
            ParserState::Skip { .. } => {
                let skipped = self.skip(bytes.len() as u64);
                *bytes = bytes
                    .get(usize::try_from(skipped).unwrap_or(usize::MAX)..)
                    .unwrap_or_default();
                Ok(())
            }
            ParserState::Failed(ref error) => Err(error.clone()),
        }
    }

    /// Moves bytes into `held` until it has `wanted` of them. Memory grows with the received size, not with the
    /// declared one.
    fn hold(&mut self, bytes: &mut &[u8], wanted: usize) {
        let missing = wanted.saturating_sub(self.held.len());
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.held.extend_from_slice(taken);
        self.position = self.position.saturating_add(taken.len() as u64);
        *bytes = rest;
    }

    fn read_header(&self, offset: u64) -> Result<Option<BoxHeader>, MediaError> {
        let name = self.held_name();
        let header = BoxHeader::read(&self.held, offset);
        if self.boxes == 0 {
            let header = header.as_ref().ok().and_then(Option::as_ref);
            let is_small = header.is_some_and(|header| header.size.is_some_and(|size| size <= FIRST_BOX));
            if !(is_first_box(name) || (is_small && name.is_printable())) {
                return Err(not_mp4(&self.held));
            }
        }
        if !name.is_printable() {
            let problem =
                "its type is not text: the box before it declares a wrong size, or the file is damaged";
            return Err(MediaError::malformed(name, offset, problem));
        }
        let header = header?;
        if let Some(size) = header.and_then(|header| header.size)
            && offset.checked_add(size).is_none()
        {
            let problem = format!("it claims {size} bytes, beyond the end of any file");
            return Err(MediaError::malformed(name, offset, problem));
        }
        Ok(header)
    }

    /// Limit on the body of a box that is kept; `None` if boxes of this type are not.
    fn limit_of(&self, name: BoxName) -> Option<(&'static str, u64)> {
        match &name.0 {
            b"moov" => Some(("bytes in the moov box", self.index.limits.movie_bytes)),
            b"moof" => Some(("bytes in one moof box", self.index.limits.fragment_bytes)),
            _ => None,
        }
    }

    fn enter(&mut self, header: BoxHeader, offset: u64) -> Result<(), MediaError> {
        let name = header.name;
        self.boxes = self.boxes.saturating_add(1);
        within((name, offset), self.boxes, ("boxes", self.index.limits.boxes))?;
        let end = header.size.map(|size| offset.saturating_add(size));
        if let Some(limit) = self.limit_of(name) {
            let body = header
                .size
                .map_or(1, |size| size.saturating_sub(header.header_len));
            within((name, offset), body, limit)?;
            self.state = ParserState::Collect { header, offset };
            if body == 0 {
                self.state = ParserState::Header;
                self.take_collected(header, offset)?;
            }
            return Ok(());
        }
        match &name.0 {
            b"mdat" => {
                self.media_seen = true;
                self.fragment_start = None;
            }
            b"styp" | b"sidx" | b"prft" | b"emsg" => {
                self.fragment_start.get_or_insert(offset);
            }
            _ => {}
        }
        let nothing_left = end.is_some_and(|end| end <= self.position);
        self.state = if nothing_left {
            ParserState::Header
        } else {
            ParserState::Skip { name, offset, end }
        };
        Ok(())
    }

    fn take_collected(&mut self, header: BoxHeader, offset: u64) -> Result<(), MediaError> {
        let body = std::mem::take(&mut self.held);
        let view = BoxView {
            name: header.name,
            offset,
            body: &body,
            body_offset: offset.saturating_add(header.header_len),
        };
        if &header.name.0 == b"moov" {
            self.fragment_start = None;
            return self.index.take_movie(view, self.media_seen);
        }
        let start = self.fragment_start.take().unwrap_or(offset);
        self.index.take_fragment(view, start)
    }
}

/// Largest first box of a type that is not known here: text and most other formats declare more by chance.
const FIRST_BOX: u64 = 1 << 20;

/// Types of the first box in files of the MP4 family (`QuickTime` files may lack `ftyp`).
fn is_first_box(name: BoxName) -> bool {
    const NAMES: [&[u8; 4]; 13] = [
        b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"free", b"skip", b"wide", b"pnot", b"sidx", b"pdin",
        b"uuid", b"emsg",
    ];
    NAMES.contains(&&name.0)
}

fn not_mp4(start: &[u8]) -> MediaError {
    let start = start.get(..start.len().min(8)).unwrap_or_default();
    let found = match start {
        [0x1a, b'E', 0xdf, 0xa3, ..] => {
            "it is Matroska or WebM, which is served as a file, not as a title".to_owned()
        }
        _ => format!("it begins with `{}`, not with an ftyp box", start.escape_ascii()),
    };
    MediaError::NotMp4 { found }
}
