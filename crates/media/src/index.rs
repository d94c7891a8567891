//! The growing index of a title: frames in decode order, and the audio data that rates need.

use std::collections::VecDeque;
use std::time::Duration;

use playrate_units::Bytes;

use crate::boxes::BoxView;
use crate::error::MediaError;
use crate::fragment;
use crate::frame::{AudioSample, FragmentStart, Frame, Layout, TitleInfo};
use crate::limits::Limits;
use crate::movie::{Movie, Track, TrackKind};
use crate::tables::TrackSample;

/// The components of the index that a whole title needs but a stream does not.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) audio: Vec<AudioSample>,
    pub(crate) fragments: Vec<FragmentStart>,
    /// End of the last `mdat` box that declares its size.
    pub(crate) media_end: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) limits: Limits,
    movie: Option<Movie>,
    pub(crate) info: Option<TitleInfo>,
    /// Frames that have not been drained yet.
    pub(crate) frames: VecDeque<Frame>,
    /// `None` for a stream.
    pub(crate) kept: Option<Kept>,
    /// Frames known so far, drained or not.
    pub(crate) frame_count: usize,
    sample_count: u64,
    fragment_count: u64,
    /// Bytes of all video and audio samples known so far.
    media_bytes: u64,
    /// The frame with the highest end offset in the file, and that offset.
    pub(crate) furthest: (usize, u64),
}

impl Index {
    pub(crate) fn media_bytes(&self) -> Bytes {
        Bytes::new(self.media_bytes)
    }

    /// The longest playing time of the tracks, as far as it is known.
    pub(crate) fn playing_time(&self) -> Duration {
        self.movie.as_ref().map(Movie::playing_time).unwrap_or_default()
    }

    /// Adds the `moov` box; `media_came_first` says whether an `mdat` box came before it.
    pub(crate) fn take_movie(&mut self, moov: BoxView<'_>, media_came_first: bool) -> Result<(), MediaError> {
        if self.movie.is_some() {
            return Err(moov.malformed(&"it is the second one of the file"));
        }
        let mut movie = Movie::read(moov, &self.limits)?;
        let main = movie.main;
        for (at, track) in movie.tracks.iter_mut().enumerate() {
            let Some(tables) = track.tables.take() else {
                continue;
            };
            let count = tables.len();
            self.count_samples(count, moov)?;
            let mut earliest = None;
            tables.walk(|sample| earliest = Some(sample.cts().min(earliest.unwrap_or(i128::MAX))))?;
            if let Some(earliest) = earliest {
                track.clock.start_at(earliest);
            }
            if at == main {
                // The first walk has shown that the tables contain as many as they claim.
                self.frames.reserve_exact(usize::try_from(count).unwrap_or(0));
            }
            tables.walk(|sample| {
                track.next_dts = sample.dts.saturating_add(u64::from(sample.duration));
                self.take_sample(track, at == main, sample);
            })?;
        }
        let layout = match (movie.fragmented, media_came_first) {
            (true, _) => Layout::Fragmented,
            (false, false) => Layout::ProgressiveMoovFirst,
            (false, true) => Layout::ProgressiveMoovLast,
        };
        if !movie.fragmented && self.frame_count == 0 {
            return Err(MediaError::NoFrames);
        }
        let duration = (!movie.fragmented).then(|| movie.playing_time());
        let (width, height) = movie
            .tracks
            .get(main)
            .map_or((0, 0), |track| track.codec.resolution);
        self.info = Some(TitleInfo {
            codecs: movie.codecs(),
            width,
            height,
            duration,
            average_rate: duration.and_then(|duration| self.media_bytes().per(duration)),
            layout,
            has_audio: movie.tracks.iter().any(|track| track.kind == TrackKind::Audio),
        });
        self.movie = Some(movie);
        Ok(())
    }

    /// Adds a `moof` box. `start` is the beginning of its fragment: the box itself, or the `styp` or `sidx` box before
    /// it.
    pub(crate) fn take_fragment(&mut self, moof: BoxView<'_>, start: u64) -> Result<(), MediaError> {
        self.fragment_count = self.fragment_count.saturating_add(1);
        if self.fragment_count > self.limits.fragments {
            return Err(moof.beyond_limit("fragments", self.limits.fragments));
        }
        let mut movie = self
            .movie
            .take()
            .ok_or_else(|| moof.malformed(&"it comes before the moov box that explains it"))?;
        if !movie.fragmented {
            return Err(moof.malformed(&"the moov box announced no fragments (it has no mvex box)"));
        }
        if let Some(kept) = &mut self.kept {
            kept.fragments.push(FragmentStart {
                offset: start,
                first_frame: self.frame_count,
            });
        }
        let left = self.limits.samples.saturating_sub(self.sample_count);
        let parts = fragment::read(moof, &mut movie, left, self.limits.samples)?;
        for part in parts {
            self.count_samples(part.samples.len() as u64, moof)?;
            let is_main = part.track == movie.main;
            if let Some(track) = movie.tracks.get_mut(part.track) {
                let earliest = part.samples.iter().map(TrackSample::cts).min();
                if let Some(earliest) = earliest {
                    track.clock.start_at(earliest);
                }
                for sample in part.samples {
                    self.take_sample(track, is_main, sample);
                }
            }
        }
        self.movie = Some(movie);
        Ok(())
    }

    fn count_samples(&mut self, more: u64, whose: BoxView<'_>) -> Result<(), MediaError> {
        self.sample_count = self.sample_count.saturating_add(more);
        if self.sample_count > self.limits.samples {
            return Err(whose.beyond_limit("samples", self.limits.samples));
        }
        Ok(())
    }

    fn take_sample(&mut self, track: &mut Track, is_main: bool, sample: TrackSample) {
        if track.kind == TrackKind::Other {
            return;
        }
        let cts = sample.cts();
        track
            .clock
            .extend_to(cts.saturating_add(i128::from(sample.duration)));
        self.media_bytes = self.media_bytes.saturating_add(u64::from(sample.size));
        let pts = track.clock.since_start(cts);
        if is_main {
            if sample.end() > self.furthest.1 {
                self.furthest = (self.frame_count, sample.end());
            }
            self.frames.push_back(Frame {
                offset: sample.offset,
                size: Bytes::new(u64::from(sample.size)),
                dts: track.clock.since_start(i128::from(sample.dts)),
                pts,
                key: sample.key,
            });
            self.frame_count += 1;
        } else if let Some(kept) = &mut self.kept {
            kept.audio.push(AudioSample {
                time: pts,
                size: sample.size,
            });
        }
    }
}
