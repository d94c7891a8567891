//! [`Ladder`]: a title in several representations, for players that choose one for each segment.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

use crate::error::MediaError;
use crate::source::{MediaSource, TraceSource};
use crate::trace::{FrameTrace, shares};

/// Segment sizes of one film in several real encodes.
///
/// Text form, as in `assets/ladders/`: lines of comma-separated fields. First `segment_duration_s,3`, then
/// `encode_kbps,230,331,…` with the nominal rate of each encode, then one line per segment: its number from 0 and its
/// size in bytes in each encode. Lines that begin with `#` are comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSizes {
    duration: Duration,
    encodes: Vec<(Bitrate, Vec<u64>)>,
}

fn failed(problem: impl Into<String>) -> MediaError {
    MediaError::Ladder {
        problem: problem.into(),
    }
}

impl SegmentSizes {
    /// Playing time of every segment.
    pub fn segment_duration(&self) -> Duration {
        self.duration
    }

    /// Number of segments of the film.
    pub fn len(&self) -> usize {
        self.encodes.first().map_or(0, |(_, sizes)| sizes.len())
    }

    /// Returns true if there are no segments, which the text form cannot express.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sizes of `count` segments with an average rate of exactly `rate`: those of the encode with the nearest
    /// nominal rate (by ratio), scaled, and repeated from the beginning after the film's end.
    ///
    /// # Errors
    /// If the rate is so low that segments would be empty.
    pub fn at_rate(&self, rate: Bitrate, count: usize) -> Result<Vec<u64>, MediaError> {
        let asked = rate.as_bits_per_second().max(1);
        // Ratios above one, in thousandths, so that 2 and ½ are equally far.
        let distance = |(rate, _): &&(Bitrate, Vec<u64>)| {
            let has = rate.as_bits_per_second().max(1);
            u128::from(has.max(asked)) * 1_000 / u128::from(has.min(asked))
        };
        let nearest = self.encodes.iter().min_by_key(distance);
        let sizes = nearest.map(|(_, sizes)| sizes.as_slice()).unwrap_or_default();
        let real = sizes.iter().copied().cycle().take(count);
        let time = self.duration.as_nanos().saturating_mul(count as u128);
        let target = u128::from(asked).saturating_mul(time).div_ceil(8_000_000_000);
        shares(real, target)
            .filter(|sizes| !sizes.is_empty() && !sizes.contains(&0))
            .ok_or_else(|| failed(format!("{count} segments at {rate} would be empty or too large")))
    }
}

impl FromStr for SegmentSizes {
    type Err = MediaError;

    fn from_str(text: &str) -> Result<Self, MediaError> {
        let mut duration = None;
        let mut encodes: Vec<(Bitrate, Vec<u64>)> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let fail = |problem: &str| failed(format!("line {}: {problem}: `{line}`", at + 1));
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (head, values) = line.split_once(',').ok_or_else(|| {
                fail("a comma is missing: write a name or number, then the values, such as `0,110000,660000`")
            })?;
            if head == "segment_duration_s" {
                let time = playrate_units::duration::parse(&format!("{}s", values.trim())).ok();
                let time = time.filter(|time| !time.is_zero());
                duration = Some(time.ok_or_else(|| fail("no time in seconds"))?);
                continue;
            }
            let values: Vec<u64> = values
                .split(',')
                .map(|value| value.trim().parse::<u32>().ok().filter(|&value| value > 0))
                .map(|value| value.map(u64::from))
                .collect::<Option<_>>()
                .ok_or_else(|| fail("expected whole numbers above zero, separated by commas"))?;
            if head == "encode_kbps" {
                let encode = |kbps| (Bitrate::from_kbps(kbps), Vec::new());
                encodes = values.into_iter().map(encode).collect();
                continue;
            }
            if values.len() != encodes.len() {
                return Err(fail("expected one size for each encode"));
            }
            for ((_, sizes), size) in encodes.iter_mut().zip(values) {
                sizes.push(size);
            }
        }
        let sizes = Self {
            duration: duration.ok_or_else(|| {
                failed("the line with the segment duration is missing, such as `segment_duration_s,3`")
            })?,
            encodes,
        };
        if sizes.is_empty() {
            return Err(failed(
                "at least one segment is needed: a line of sizes for each, such as `0,110000,660000`",
            ));
        }
        Ok(sizes)
    }
}

/// One encode of a title, cut into segments at the same times as all its other encodes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LadderRepresentation {
    /// Name, such as `720p`.
    pub name: String,
    /// Declared rate (`@bandwidth` of a DASH manifest): here the average rate.
    pub rate: Bitrate,
    trace: FrameTrace,
    /// Its bytes: the segments one after another, as in DASH's on-demand profile.
    pub source: Arc<dyn MediaSource>,
}

impl LadderRepresentation {
    fn new(name: String, rate: Bitrate, trace: FrameTrace) -> Self {
        Self {
            name,
            rate,
            source: Arc::new(TraceSource::new(&trace)),
            trace,
        }
    }
}

/// A title in several representations, the lowest rate first.
///
/// ```
/// use playrate_media::{FrameTrace, Ladder, SegmentSizes};
/// use playrate_units::Bitrate;
/// use std::time::Duration;
///
/// let sizes: SegmentSizes = "segment_duration_s,3\nencode_kbps,500,1000\n0,190000,380000\n1,180000,370000\n".parse()?;
/// let frames: FrameTrace = "0.0,60000,K\n0.5,9000,_\n1.0,9000,_\n".parse()?;
/// let rates = [("low".to_owned(), Bitrate::from_kbps(440)), ("high".to_owned(), Bitrate::from_kbps(2_640))];
/// let ladder = Ladder::generate(&sizes, &frames, &rates, Duration::from_secs(12))?;
/// let high = &ladder.representations()[1];
/// assert_eq!(high.source.title().segments().len(), 4);
/// assert_eq!(high.source.title().average_rate(), high.rate);
/// # Ok::<(), playrate_media::MediaError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ladder {
    segment_duration: Duration,
    segments: usize,
    representations: Vec<LadderRepresentation>,
}

impl Ladder {
    /// A ladder of generated payload for each of `rates` (a name and an average rate). Segments have the sizes of a
    /// real encode scaled to that rate, and the frame pattern of `frames`. It plays for `duration`, rounded up to whole
    /// segments.
    ///
    /// # Errors
    /// If there are no rates, two of them are equal, or one cannot be reached.
    pub fn generate(
        sizes: &SegmentSizes,
        frames: &FrameTrace,
        rates: &[(String, Bitrate)],
        duration: Duration,
    ) -> Result<Self, MediaError> {
        let mut rates = rates.to_vec();
        rates.sort_by_key(|(_, rate)| *rate);
        for pair in rates.windows(2) {
            if let [(one, rate), (other, same)] = pair
                && (rate == same || one == other)
            {
                let problem = format!("{one} at {rate} and {other} at {same}: names and rates must differ");
                return Err(failed(problem));
            }
        }
        if rates.is_empty() {
            return Err(failed("the ladder has no rates: at least one is needed"));
        }
        let count = duration.as_nanos().div_ceil(sizes.duration.as_nanos().max(1));
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(MOST_SEGMENTS);
        let mut representations = Vec::with_capacity(rates.len());
        for (name, rate) in rates {
            let scaled = sizes.at_rate(rate, count)?;
            let trace = frames.with_segments(sizes.duration, &scaled)?;
            representations.push(LadderRepresentation::new(name, rate, trace));
        }
        Ok(Self {
            segment_duration: sizes.duration,
            segments: count,
            representations,
        })
    }

    /// The same ladder, starting with segment `segment`, counted from 0; the segments before it move to the end. A
    /// number beyond the last segment means the last one.
    #[must_use]
    pub fn rotated_to(&self, segment: usize) -> Self {
        let representations = self.representations.iter().map(|it| {
            let segments = it.source.title().segments();
            let first = segments.get(segment).or(segments.last());
            let trace = it.trace.rotated_to(first.map_or(0, |first| first.frames.start));
            LadderRepresentation::new(it.name.clone(), it.rate, trace)
        });
        Self {
            representations: representations.collect(),
            ..*self
        }
    }

    /// The representations, the lowest rate first.
    pub fn representations(&self) -> &[LadderRepresentation] {
        &self.representations
    }

    /// Playing time of every segment.
    pub fn segment_duration(&self) -> Duration {
        self.segment_duration
    }

    /// Number of segments of each representation.
    pub fn segment_count(&self) -> usize {
        self.segments
    }

    /// Bytes of all representations.
    pub fn size(&self) -> Bytes {
        let sources = self.representations.iter();
        sources
            .map(|representation| Bytes::new(representation.source.len()))
            .sum()
    }
}

/// Maximum number of segments of a generated title: a day in segments of 3 s.
const MOST_SEGMENTS: usize = 28_800;
