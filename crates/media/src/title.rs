//! [`Title`]: the whole index of a title, from a file or a trace.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

use crate::error::MediaError;
use crate::frame::{AudioSample, FragmentStart, Frame, Layout, TitleInfo};
use crate::limits::Limits;
use crate::rates;
use crate::segments::{self, Segment};
use crate::stream::StreamParser;
use crate::tables::LONGEST;

/// A title's index: every video frame, the audio's share of the rate, segments. About 64 bytes of memory per frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title {
    info: TitleInfo,
    frames: Vec<Frame>,
    audio: Vec<AudioSample>,
    starts: Vec<FragmentStart>,
    /// End of the last shown sample in the file.
    media_end: u64,
    file_size: u64,
    media_bytes: Bytes,
    notes: Vec<String>,
}

/// Bytes per read: a few box headers, or a piece of a `moov` box.
const READ_BYTES: u64 = 16 << 10;

impl Title {
    /// Reads the index of the MP4 file at `path`, skipping the media itself.
    ///
    /// # Errors
    /// If the file cannot be read, is not MP4, is damaged or truncated, or has no video or audio track. The file is
    /// named by the error.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, MediaError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(MediaError::from);
        file.and_then(Self::read).map_err(|error| error.in_file(path))
    }

    /// Reads the index of an MP4 file from its start, with the default [`Limits`].
    ///
    /// # Errors
    /// As [`Title::open`], without the file's name.
    pub fn read(reader: impl Read + Seek) -> Result<Self, MediaError> {
        Self::read_within(reader, Limits::default())
    }

    /// Reads the index of an MP4 file from its start, within `limits`.
    ///
    /// # Errors
    /// As [`Title::open`], without the file's name.
    pub fn read_within(mut reader: impl Read + Seek, limits: Limits) -> Result<Self, MediaError> {
        let file_size = reader.seek(SeekFrom::End(0))?;
        reader.seek(SeekFrom::Start(0))?;
        let mut parser = StreamParser::keeping(limits);
        let mut buffer = Vec::new();
        while parser.position() < file_size {
            let skippable = parser.skippable();
            if skippable > 0 {
                parser.skip(skippable.min(file_size.saturating_sub(parser.position())));
                reader.seek(SeekFrom::Start(parser.position()))?;
                continue;
            }
            buffer.clear();
            if reader.by_ref().take(READ_BYTES).read_to_end(&mut buffer)? == 0 {
                break;
            }
            parser.push(&buffer)?;
        }
        parser.finish()?;
        let frames: Vec<Frame> = parser.drain_frames().collect();
        let (mut audio, mut starts) = parser.take_kept();
        audio.sort_by_key(|sample| sample.time);
        // Sound and hidden samples may lie beyond the end of the file; segments must not.
        for start in &mut starts {
            start.offset = start.offset.min(file_size);
        }
        let duration = parser.playing_time();
        let media_bytes = parser.media_bytes();
        let mut info = parser
            .info()
            .cloned()
            .ok_or(MediaError::NoMovie { end: file_size })?;
        info.duration = Some(duration);
        info.average_rate = media_bytes.per(duration);
        Ok(Self {
            info,
            frames,
            audio,
            starts,
            media_end: parser.media_end().min(file_size),
            file_size,
            media_bytes,
            notes: parser.notes().to_vec(),
        })
    }

    /// A title with frames only, for traces.
    pub(crate) fn of_frames(frames: Vec<Frame>, duration: Duration) -> Self {
        let media_bytes: Bytes = frames.iter().map(|frame| frame.size).sum();
        let info = TitleInfo {
            duration: Some(duration),
            average_rate: media_bytes.per(duration),
            has_video: true,
            ..TitleInfo::default()
        };
        let end = frames.iter().map(Frame::end).max().unwrap_or(0);
        let starts = frames
            .iter()
            .enumerate()
            .filter(|(at, frame)| frame.key || *at == 0);
        let starts = starts.map(|(first_frame, frame)| FragmentStart {
            offset: frame.offset,
            first_frame,
        });
        let starts = starts.collect();
        Self {
            info,
            media_end: end,
            file_size: end,
            frames,
            audio: Vec::new(),
            starts,
            media_bytes,
            notes: Vec::new(),
        }
    }

    /// The same bytes with an index that is wrong by `factor`: the average rate is `factor` times as high because all
    /// times are divided by it. Times that do not fit are capped.
    #[must_use]
    pub fn misdeclared(&self, factor: f64) -> Self {
        let divided = |time: Duration| {
            Duration::try_from_secs_f64(time.as_secs_f64() / factor).unwrap_or(Duration::MAX)
        };
        let mut title = self.clone();
        for frame in &mut title.frames {
            (frame.dts, frame.pts) = (divided(frame.dts), divided(frame.pts));
        }
        for sample in &mut title.audio {
            sample.time = divided(sample.time);
        }
        title.info.duration = Some(divided(self.duration()));
        title.info.average_rate = self.media_bytes.per(title.duration());
        title
    }

    /// Description of the title; duration and average rate are known.
    pub fn info(&self) -> &TitleInfo {
        &self.info
    }

    /// Every video frame, in decode order.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Size of the file, boxes included.
    pub fn file_size(&self) -> Bytes {
        Bytes::new(self.file_size)
    }

    /// Video and audio bytes, without boxes.
    pub fn media_bytes(&self) -> Bytes {
        self.media_bytes
    }

    /// Playing time: the longer of video and audio.
    pub fn duration(&self) -> Duration {
        self.info.duration.unwrap_or_default()
    }

    /// Layout of the frames in the file.
    pub fn layout(&self) -> Layout {
        self.info.layout
    }

    /// λ: video and audio bytes × 8 ÷ playing time. Zero if the playing time is zero.
    pub fn average_rate(&self) -> Bitrate {
        self.info.average_rate.unwrap_or(Bitrate::ZERO)
    }

    /// Contradictions in the file, each with the value used, and other remarks such as its encryption.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The rate for a sender to assume: the average rate, but at least a quarter of the peak over 10 s. The average
    /// of a title that shows nothing for a long time says little about the rate while it plays.
    pub fn sending_rate(&self) -> Bitrate {
        let peak = self.peak_rate(LONGEST).as_bits_per_second();
        self.average_rate().max(Bitrate::from_bits_per_second(peak / 4))
    }

    /// The highest rate of any `window` of playing time: the bytes of the frames and the audio presented in it × 8 ÷
    /// `window`. A window longer than the title gives the average rate; one below 1 ms counts as 1 ms.
    pub fn peak_rate(&self, window: Duration) -> Bitrate {
        if window >= self.duration() {
            return self.average_rate();
        }
        rates::peak(&self.frames, &self.audio, window)
    }

    /// The separately fetchable pieces of the title in decode order; without gaps unless the edit list repeats or
    /// reorders media: the fragments of a fragmented file, otherwise one piece from each key frame to the next.
    pub fn segments(&self) -> Vec<Segment> {
        let starts = segments::with_frames(&self.starts, self.frames.len());
        segments::cut(&self.frames, &starts, self.media_end, self.duration())
    }
}
