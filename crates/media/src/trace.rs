//! [`FrameTrace`]: the frame sizes and times of a real encode, without its payload.

use std::collections::BTreeMap;
use std::iter;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes, duration};

use crate::error::MediaError;
use crate::frame::Frame;
use crate::limits::Limits;

/// Frame sizes and times of a real encode, in decode order. Scaling and repeating make long titles from it; a
/// [`TraceSource`](crate::TraceSource) generates their payload.
///
/// Text form: one frame per line in decode order, `pts_time,size,flags`, as printed by
/// `ffprobe -select_streams v -show_entries packet=pts_time,size,flags -of csv=p=0`. Times are in seconds, sizes in
/// bytes; `K` among the flags marks a key frame. Empty lines and lines starting with `#` are comments.
///
/// ```
/// use playrate_media::FrameTrace;
/// use playrate_units::Bitrate;
/// use std::time::Duration;
///
/// let trace: FrameTrace = "0.000,9000,K_\n0.120,2000,__\n0.040,500,__\n0.080,500,__\n".parse()?;
/// let title = trace.repeat_to(Duration::from_secs(60))?.scale_to_rate(Bitrate::from_mbps(5))?;
/// assert_eq!(title.average_rate(), Bitrate::from_mbps(5));
/// assert_eq!(title.duration(), Duration::from_secs(60));
/// # Ok::<(), playrate_media::MediaError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameTrace {
    /// Frames of the trace: [`frames`](Self::frames) adds their offsets and decode times.
    frames: Vec<Frame>,
    duration: Duration,
}

impl FrameTrace {
    /// Reads the text form.
    ///
    /// # Errors
    /// If a line is invalid, or there are fewer than two frames or no two different times.
    pub fn parse(text: &str) -> Result<Self, MediaError> {
        let limit = Limits::default().samples;
        let mut frames = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fail = |problem: String| MediaError::Trace {
                line: at + 1,
                problem,
            };
            if frames.len() as u64 >= limit {
                return Err(fail(format!("more than {limit} frames")));
            }
            frames.push(trace_frame(line).map_err(fail)?);
        }
        let first = frames.iter().map(|frame| frame.pts).min().unwrap_or_default();
        for frame in &mut frames {
            frame.pts = frame.pts.saturating_sub(first);
        }
        let last = frames.iter().map(|frame| frame.pts).max().unwrap_or_default();
        let gaps = u32::try_from(frames.len().saturating_sub(1)).unwrap_or(u32::MAX);
        if last.is_zero() || gaps == 0 {
            return Err(MediaError::Trace {
                line: text.lines().count(),
                problem: "a trace needs at least two frames at two times".to_owned(),
            });
        }
        // The last frame lasts as long as the average of the others.
        let duration = last.saturating_add(last / gaps);
        Ok(Self { frames, duration })
    }

    /// Reads a file in the text form.
    ///
    /// # Errors
    /// As [`FrameTrace::parse`], or if the file cannot be read; the error names the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, MediaError> {
        let path = path.as_ref();
        std::fs::read_to_string(path)
            .map_err(MediaError::from)
            .and_then(|text| Self::parse(&text))
            .map_err(|error| error.in_file(path))
    }

    /// Number of frames in the trace.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Playing time: the last frame lasts as long as the average of the others.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Bytes of all frames.
    pub fn media_bytes(&self) -> Bytes {
        Bytes::new(self.total())
    }

    /// Bytes of all frames × 8 ÷ playing time.
    pub fn average_rate(&self) -> Bitrate {
        self.media_bytes().per(self.duration).unwrap_or(Bitrate::ZERO)
    }

    /// The same trace with every size scaled so that the average rate is `rate`, exact to the byte: rounding is carried
    /// from frame to frame. The rate is that of the title, so it stands for video and audio together.
    ///
    /// # Errors
    /// If the rate is so low that frames would have less than one byte on average.
    pub fn scale_to_rate(&self, rate: Bitrate) -> Result<Self, MediaError> {
        // Rounded up, so that reading the rate back, which rounds down, gives the requested one.
        let bits = u128::from(rate.as_bits_per_second()).saturating_mul(self.duration.as_nanos());
        let target = bits.div_ceil(8_000_000_000);
        let scaled = u64::try_from(target).ok();
        let scaled = scaled.and_then(|target| scale(&self.frames, target));
        let problem = "its frames would have less than a byte each, or too many bytes";
        let frames = scaled.ok_or_else(|| cannot(format!("scaled to {rate}"), problem))?;
        Ok(Self { frames, ..*self })
    }

    /// The same trace with the bytes of each second `factor` times as far from their mean, within limits: no second is
    /// negative, and no frame is smaller than one byte. Frames within a second keep their proportions, and the total
    /// stays the same. A factor of 1 changes nothing.
    ///
    /// Single frames are not moved away from their mean: most are far below it and would soon be empty.
    ///
    /// # Errors
    /// If `factor` is not between 0 and 10, or there are fewer bytes than frames.
    pub fn with_variability(&self, factor: f64) -> Result<Self, MediaError> {
        let fail = |problem| cannot(format!("made {factor} times as variable"), problem);
        if !(0.0..=MOST_VARIABILITY).contains(&factor) {
            return Err(fail("the factor must be between 0 and 10"));
        }
        if (factor - 1.0).abs() < f64::EPSILON {
            return Ok(self.clone());
        }
        let second = |frame: &Frame| frame.pts.as_secs();
        let mut seconds: BTreeMap<u64, u64> = BTreeMap::new();
        for frame in &self.frames {
            *seconds.entry(second(frame)).or_default() += frame.size.as_u64();
        }
        let rate = self.total() as f64 / self.duration.as_secs_f64();
        // The factor of a frame in second `at`, which has `bytes`.
        let stretch = |at: u64, bytes: u64| {
            let left = self.duration.saturating_sub(Duration::from_secs(at));
            let mean = rate * left.as_secs_f64().min(1.0);
            ((1.0 - factor) * mean / bytes.max(1) as f64 + factor).max(0.0)
        };
        let weighted = self.frames.iter().map(|frame| {
            let at = second(frame);
            let bytes = seconds.get(&at).copied().unwrap_or_default();
            Frame {
                size: Bytes::new(thousandths(frame.size.as_u64() as f64 * stretch(at, bytes))),
                ..*frame
            }
        });
        let weighted: Vec<Frame> = weighted.collect();
        let frames = scale(&weighted, self.total())
            .ok_or_else(|| fail("its frames have less than a byte each, or too many bytes"))?;
        Ok(Self { frames, ..*self })
    }

    /// The same trace starting at another frame: at the last cut up to frame `frame`, counted from 0 in decode order.
    /// The frames before it move to the end. A cut is a key frame after all frames that precede it are shown; if only
    /// the first frame is marked as a key frame, any frame can be a cut.
    #[must_use]
    pub fn rotated_to(&self, frame: usize) -> Self {
        let (before, after) = self.frames.split_at(self.cut_up_to(frame));
        let begins = after.iter().map(|frame| frame.pts).min().unwrap_or_default();
        let rest = self.duration.saturating_sub(begins);
        let earlier = |frame: &Frame| Frame {
            pts: frame.pts.saturating_sub(begins),
            ..*frame
        };
        let later = |frame: &Frame| Frame {
            pts: frame.pts.saturating_add(rest),
            ..*frame
        };
        let frames = after.iter().map(earlier).chain(before.iter().map(later));
        Self {
            frames: frames.collect(),
            ..*self
        }
    }

    /// The last frame up to `frame` that can begin the trace; see [`Self::rotated_to`].
    fn cut_up_to(&self, frame: usize) -> usize {
        let has_marks = self.frames.iter().skip(1).any(|frame| frame.key);
        let mut earliest = Duration::MAX;
        let mut first_shown: Vec<Duration> = Vec::with_capacity(self.frames.len());
        for frame in self.frames.iter().rev() {
            earliest = earliest.min(frame.pts);
            first_shown.push(earliest);
        }
        let (mut cut, mut last_shown) = (0, None);
        let candidates = self.frames.iter().zip(first_shown.iter().rev()).enumerate();
        for (at, (one, first_shown)) in candidates.take(frame.saturating_add(1)) {
            let is_complete = last_shown.is_none_or(|last| last < *first_shown);
            if is_complete && (one.key || !has_marks) {
                cut = at;
            }
            last_shown = last_shown.max(Some(one.pts));
        }
        cut
    }

    /// The trace repeated and cut at `duration`. The cut changes the average rate slightly, so scale afterwards.
    ///
    /// # Errors
    /// If `duration` is zero, or the title would have more frames than the default [`Limits`] allow.
    pub fn repeat_to(&self, duration: Duration) -> Result<Self, MediaError> {
        let limit = usize::try_from(Limits::default().samples).unwrap_or(usize::MAX);
        let asked = format!("repeated to {}", duration::display(duration));
        if duration.is_zero() {
            return Err(cannot(asked, "the playing time must be above zero"));
        }
        let starts = iter::successors(Some(Duration::ZERO), |start| start.checked_add(self.duration));
        let repeated = starts
            .take_while(|start| *start < duration)
            .flat_map(|start| {
                self.frames
                    .iter()
                    .map(move |frame| (start.saturating_add(frame.pts), frame))
            })
            .filter(|(pts, _)| *pts < duration);
        let count = repeated.clone().take(limit.saturating_add(1)).count();
        if count > limit {
            return Err(cannot(asked, format!("that is more than {limit} frames")));
        }
        let mut frames = Vec::with_capacity(count);
        frames.extend(repeated.map(|(pts, frame)| Frame { pts, ..*frame }));
        Ok(Self { frames, duration })
    }

    /// The trace cut into segments of `duration`, one for each of the `sizes`, with frames scaled so that each segment
    /// has its size: a real encode's sizes with the trace's frame pattern. Every segment begins at a multiple of
    /// `duration` with its only key frame, so [`Title::segments`](crate::Title::segments) returns the same segments.
    ///
    /// # Errors
    /// If a segment would have no frames, or fewer bytes than frames.
    pub fn with_segments(&self, duration: Duration, sizes: &[u64]) -> Result<Self, MediaError> {
        let asked = || format!("cut into segments of {}", duration::display(duration));
        let count = u32::try_from(sizes.len()).map_err(|_| cannot(asked(), "too many segments"))?;
        let title = self.repeat_to(duration.saturating_mul(count))?;
        let mut pieces: Vec<Vec<Frame>> = vec![Vec::new(); sizes.len()];
        for frame in title.frames {
            // Written times are rounded: a time just short of a boundary belongs after it.
            let at = frame.pts.saturating_add(ROUNDING).as_nanos() / duration.as_nanos().max(1);
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            if let Some(piece) = pieces.get_mut(at) {
                piece.push(frame);
            }
        }
        let mut frames = Vec::new();
        for (at, (piece, &size)) in pieces.into_iter().zip(sizes).enumerate() {
            let scaled = scale(&piece, size).ok_or_else(|| {
                let held = piece.len();
                cannot(
                    asked(),
                    format!("segment {at} would have {held} frames in {size} bytes"),
                )
            })?;
            let begins = duration.saturating_mul(u32::try_from(at).unwrap_or(u32::MAX));
            let earliest = scaled.iter().map(|frame| frame.pts).min().unwrap_or_default();
            frames.extend(scaled.into_iter().enumerate().map(|(at, frame)| Frame {
                pts: begins.saturating_add(frame.pts.saturating_sub(earliest)),
                key: at == 0,
                ..frame
            }));
        }
        Ok(Self {
            frames,
            duration: title.duration,
        })
    }

    /// The frames, laid out without gaps from offset 0. Decode times are the sorted presentation times, moved earlier
    /// until no frame is decoded after it is shown.
    pub fn frames(&self) -> Vec<Frame> {
        let mut times: Vec<Duration> = self.frames.iter().map(|frame| frame.pts).collect();
        times.sort_unstable();
        let shown = self.frames.iter().zip(&times);
        let delays = shown.map(|(frame, time)| time.saturating_sub(frame.pts));
        let delay = delays.max().unwrap_or_default();
        let mut offset = 0_u64;
        let mut frames = self.frames.clone();
        for (frame, time) in frames.iter_mut().zip(times) {
            (frame.offset, frame.dts) = (offset, time.saturating_sub(delay));
            offset = frame.end();
        }
        frames
    }

    fn total(&self) -> u64 {
        let sizes = self.frames.iter().map(|frame| frame.size.as_u64());
        sizes.fold(0, u64::saturating_add)
    }
}

impl FromStr for FrameTrace {
    type Err = MediaError;
    fn from_str(text: &str) -> Result<Self, MediaError> {
        Self::parse(text)
    }
}

/// The error for a trace that cannot be changed as `asked`.
fn cannot(asked: String, problem: impl Into<String>) -> MediaError {
    MediaError::TraceLength {
        asked,
        problem: problem.into(),
    }
}

/// Largest factor of [`FrameTrace::with_variability`].
const MOST_VARIABILITY: f64 = 10.0;

/// Presentation times in traces have six decimals.
const ROUNDING: Duration = Duration::from_micros(500);

/// A size that is not negative, in thousandths of a byte.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, and nothing negative comes here"
)]
fn thousandths(bytes: f64) -> u64 {
    (bytes * 1e3).round() as u64
}

/// The same frames with `target` bytes in all: one byte each, and the rest in proportion to size. `None` if that is
/// impossible.
fn scale(frames: &[Frame], target: u64) -> Option<Vec<Frame>> {
    let shared = u128::from(target).checked_sub(frames.len() as u128)?;
    let sizes = shares(frames.iter().map(|frame| frame.size.as_u64()), shared)?;
    let scaled = frames.iter().zip(sizes).map(|(frame, size)| {
        let size = Bytes::new(size.checked_add(1)?);
        Some(Frame { size, ..*frame })
    });
    scaled
        .collect::<Option<Vec<_>>>()
        .filter(|scaled| !scaled.is_empty())
}

/// `target` divided in proportion to `sizes`; rounding is carried from one to the next, so the sum is exact. `None` if
/// the sizes are all zero, or a number becomes too large.
pub(crate) fn shares(sizes: impl Iterator<Item = u64> + Clone, target: u128) -> Option<Vec<u64>> {
    let total = sizes.clone().map(u128::from).sum::<u128>();
    let (mut seen, mut before) = (0_u128, 0_u128);
    let shares = sizes.map(|size| {
        seen += u128::from(size);
        let until = seen.checked_mul(target)?.checked_div(total)?;
        u64::try_from(until - std::mem::replace(&mut before, until)).ok()
    });
    shares.collect()
}

fn trace_frame(line: &str) -> Result<Frame, String> {
    let mut fields = line.split(',');
    let (Some(time), Some(size), Some(flags)) = (fields.next(), fields.next(), fields.next()) else {
        return Err(format!("`{line}` has fewer than three fields"));
    };
    let pts = duration::parse(&format!("{}s", time.trim()))
        .map_err(|_| format!("`{time}` is not a time in seconds"))?;
    let size = size
        .trim()
        .parse::<u32>()
        .map_err(|_| format!("`{size}` is not a number of bytes"))?;
    Ok(Frame {
        offset: 0,
        size: Bytes::new(size.into()),
        dts: Duration::ZERO,
        pts,
        key: flags.contains('K'),
    })
}
