//! The growing index of a title: frames in decode order, and the audio data that rates need.

use std::collections::VecDeque;
use std::time::Duration;

use playrate_units::Bytes;

use crate::boxes::BoxView;
use crate::error::MediaError;
use crate::fragment;
use crate::frame::{AudioSample, FragmentStart, Frame, Layout, TitleInfo};
use crate::limits::Limits;
use crate::movie::{Edit, Movie, Track, TrackKind};
use crate::tables::{LONGEST, TrackSample};

/// Largest number of notes kept about a file.
const NOTES: usize = 16;
/// Times that the largest allowed tables may be walked: each edit of a list walks them.
const WALKS: u64 = 100;

#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) limits: Limits,
    movie: Option<Movie>,
    pub(crate) info: Option<TitleInfo>,
    /// Frames that have not been drained yet.
    pub(crate) frames: VecDeque<Frame>,
    /// True if `audio` and `starts` are filled, which a whole title needs but a stream does not.
    pub(crate) keeps: bool,
    pub(crate) audio: Vec<AudioSample>,
    /// Places at which a segment may begin.
    pub(crate) starts: Vec<FragmentStart>,
    /// Frames known so far, drained or not.
    pub(crate) frame_count: usize,
    sample_count: u64,
    /// Samples shown so far; an edit list may show a sample more than once.
    shown_count: u64,
    /// Table entries and samples visited so far, once for each edit.
    visits: u64,
    fragment_count: u64,
    /// Bytes of all video and audio samples shown so far.
    media_bytes: u64,
    /// End of the last shown sample in the file.
    pub(crate) media_end: u64,
    /// Contradictions in the file, each with the value used.
    pub(crate) notes: Vec<String>,
    /// The frame with the highest end offset in the file, and that offset.
    pub(crate) furthest: (usize, u64),
}

impl Index {
    pub(crate) fn media_bytes(&self) -> Bytes {
        Bytes::new(self.media_bytes)
    }

    /// End of the presentation, as far as it is known.
    pub(crate) fn playing_time(&self) -> Duration {
        self.movie.as_ref().map(Movie::playing_time).unwrap_or_default()
    }

    /// Adds the `moov` box; `media_came_first` says whether an `mdat` box came before it.
    pub(crate) fn take_movie(&mut self, moov: BoxView<'_>, media_came_first: bool) -> Result<(), MediaError> {
        if self.movie.is_some() {
            let offset = moov.offset;
            self.note(format!(
                "the moov box at offset {offset} is not the first one; it is passed over"
            ));
            return Ok(());
        }
        let mut movie = Movie::read(moov, &self.limits)?;
        let main = movie.main;
        for note in std::mem::take(&mut movie.notes) {
            self.note(note);
        }
        for (at, track) in movie.tracks.iter_mut().enumerate() {
            let Some(tables) = track.tables.take() else {
                continue;
            };
            self.count_samples(tables.len(), moov)?;
            let edits = std::mem::take(&mut track.clock.edits);
            // Ignore an edit list that shows nothing.
            for edits in [edits, vec![Edit::ALL]] {
                let before = self.media_end;
                self.media_end = 0;
                for edit in &edits {
                    self.count_visits(tables.steps(), moov)?;
                    let placed = tables.walk(|sample| {
                        track.next_dts = sample.dts.saturating_add(u64::from(sample.duration));
                        self.take_sample(track, (at == main, !movie.fragmented), (edit, &sample));
                    });
                    moov.within(self.shown_count, "shown samples", self.limits.samples)?;
                    if placed < tables.len() {
                        let (id, all) = (track.id, tables.len());
                        self.note(format!(
                            "the tables of track {id} place {placed} of {all} samples; those are played"
                        ));
                    }
                }
                track.clock.edits = edits;
                let has_shown = self.media_end > 0;
                self.media_end = self.media_end.max(before);
                if has_shown || tables.len() == 0 {
                    break;
                }
                self.note(format!(
                    "the edit list of track {} shows nothing; it is ignored",
                    track.id
                ));
            }
            movie.decoded = movie.decoded.max(track.decoded());
        }
        let layout = match (movie.fragmented, media_came_first) {
            (true, _) => Layout::Fragmented,
            (false, false) => Layout::ProgressiveMoovFirst,
            (false, true) => Layout::ProgressiveMoovLast,
        };
        let duration = (!movie.fragmented).then(|| movie.playing_time());
        if let Some(found) = duration
            && !movie.declared.is_zero()
            && found.abs_diff(movie.declared) > found / 10 + Duration::from_secs(1)
        {
            self.note(format!(
                "the header declares {:?}, the tables {found:?}; the tables are used",
                movie.declared
            ));
        }
        let played = movie.tracks.get(main);
        let (width, height) = played.map_or((0, 0), |track| track.codec.resolution);
        let mut schemes = movie.tracks.iter().map(|track| &track.codec.encryption);
        let encryption = schemes.find_map(Clone::clone);
        if let Some(scheme) = &encryption {
            self.note(format!(
                "encrypted ({scheme}): served unchanged; players need a key"
            ));
        }
        self.info = Some(TitleInfo {
            codecs: movie.codecs(),
            width,
            height,
            duration,
            average_rate: duration.and_then(|duration| self.media_bytes().per(duration)),
            layout,
            has_audio: movie.tracks.iter().any(|track| track.kind == TrackKind::Audio),
            has_video: played.is_some_and(|track| track.kind == TrackKind::Video),
            encryption,
        });
        self.movie = Some(movie);
        Ok(())
    }

    /// Adds a `moof` box. `start` is the beginning of its fragment: the box itself, or the `styp` or `sidx` box before
    /// it.
    pub(crate) fn take_fragment(&mut self, moof: BoxView<'_>, start: u64) -> Result<(), MediaError> {
        self.fragment_count = self.fragment_count.saturating_add(1);
        moof.within(self.fragment_count, "fragments", self.limits.fragments)?;
        let mut movie = self
            .movie
            .take()
            .ok_or(MediaError::FragmentFirst { offset: moof.offset })?;
        if self.keeps {
            self.starts.push(FragmentStart {
                offset: start,
                first_frame: self.frame_count,
            });
        }
        let counts = (&mut self.sample_count, self.limits.samples);
        let mut parts = Vec::new();
        match fragment::read(moof, &mut movie, counts, &mut parts) {
            Err(error @ MediaError::Malformed { .. }) if self.frame_count > 0 => {
                self.note(format!("a fragment is passed over: {error}"));
            }
            read => read?,
        }
        for note in std::mem::take(&mut movie.notes) {
            self.note(note);
        }
        for (at, samples) in parts {
            let is_main = at == movie.main;
            let Some(track) = movie.tracks.get_mut(at) else {
                continue;
            };
            let mut edits = std::mem::take(&mut track.clock.edits);
            if let Some(last) = edits.last_mut() {
                last.open();
            }
            for edit in &edits {
                self.count_visits(samples.len() as u64 + 1, moof)?;
                for sample in &samples {
                    self.take_sample(track, (is_main, false), (edit, sample));
                }
            }
            track.clock.edits = edits;
            moof.within(self.shown_count, "shown samples", self.limits.samples)?;
        }
        self.movie = Some(movie);
        Ok(())
    }

    /// Records a contradiction, if there is still room.
    pub(crate) fn note(&mut self, note: String) {
        if self.notes.len() < NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn count_samples(&mut self, more: u64, whose: BoxView<'_>) -> Result<(), MediaError> {
        self.sample_count = self.sample_count.saturating_add(more);
        whose.within(self.sample_count, "samples", self.limits.samples)
    }

    fn count_visits(&mut self, more: u64, whose: BoxView<'_>) -> Result<(), MediaError> {
        let limit = self.limits.samples.saturating_mul(WALKS);
        self.visits = self.visits.saturating_add(more);
        whose.within(self.visits, "samples × edits", limit)
    }

    /// Adds a sample if `edit` shows it. `is_main` and `starts` say whether it is a frame, and whether a segment may
    /// begin with it.
    fn take_sample(
        &mut self,
        track: &mut Track,
        (is_main, starts): (bool, bool),
        (edit, sample): (&Edit, &TrackSample),
    ) {
        if track.kind == TrackKind::Other {
            return;
        }
        if self.keeps && is_main && starts && (sample.key || self.starts.is_empty()) {
            self.starts.push(FragmentStart {
                offset: sample.offset,
                first_frame: self.frame_count,
            });
        }
        let mut sample = *sample;
        if sample.composition_offset.unsigned_abs() > LONGEST.as_secs() * u64::from(track.clock.timescale) {
            self.note(format!(
                "composition offsets of track {} above {LONGEST:?} are ignored",
                track.id
            ));
            sample.composition_offset = 0;
        }
        let Some(shown) = track.clock.show(&sample, edit, is_main) else {
            return;
        };
        self.shown_count = self.shown_count.saturating_add(1);
        // The caller returns an error; until then the frames take no more memory.
        if self.shown_count > self.limits.samples {
            return;
        }
        track.clock.end = track.clock.end.max((shown.pts, shown.end));
        self.media_bytes = self.media_bytes.saturating_add(u64::from(sample.size));
        self.media_end = self.media_end.max(sample.end());
        if is_main {
            if sample.end() > self.furthest.1 {
                self.furthest = (self.frame_count, sample.end());
            }
            self.frames.push_back(Frame {
                offset: sample.offset,
                size: Bytes::new(u64::from(sample.size)),
                dts: shown.dts,
                pts: shown.pts,
                key: sample.key,
            });
            self.frame_count += 1;
        } else if self.keeps {
            self.audio.push(AudioSample {
                time: shown.pts,
                size: sample.size,
            });
        }
    }
}
