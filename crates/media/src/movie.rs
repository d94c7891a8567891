//! The `moov` box: tracks, their codecs, timescales, edit lists, sample tables and fragment defaults.

use std::ops::Range;
use std::time::Duration;

use mp4_atom::{Elst, Mdhd, Mvhd, Tkhd, Trex};

use crate::boxes::BoxView;
use crate::codec::{self, Codec};
use crate::error::MediaError;
use crate::limits::Limits;
use crate::tables::{LONGEST, SampleTables, TrackSample};

/// Kind of a track, from its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TrackKind {
    /// Video in any codec.
    Video,
    Audio,
    /// Subtitles, metadata, hints: not shown by our players, not counted in rates.
    Other,
}

#[derive(Debug)]
pub(crate) struct Track {
    pub(crate) id: u32,
    pub(crate) kind: TrackKind,
    pub(crate) codec: Codec,
    pub(crate) clock: TrackClock,
    /// `None` once they have been walked, and for a track that is not read.
    pub(crate) tables: Option<SampleTables>,
    /// Defaults for the fragments of this track.
    pub(crate) defaults: Trex,
    /// Decode time, in ticks, of the next sample if its fragment does not declare one.
    pub(crate) next_dts: u64,
    /// Nanoseconds by which the decode times of its fragments are ahead of the movie's clock.
    shift: i128,
}

/// Maps a track's media to the movie's clock.
#[derive(Debug)]
pub(crate) struct TrackClock {
    pub(crate) timescale: u32,
    pub(crate) edits: Vec<Edit>,
    /// Presentation time and end of the sample shown last so far. Reordered samples may have longer decode durations.
    pub(crate) end: (Duration, Duration),
}

/// An edit that shows media (ISO/IEC 14496-12 §8.6.6). Empty edits only delay those after them.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    /// Media time in ticks of the track; samples whose composition time lies in it are shown, as in ffmpeg.
    media: Range<i128>,
    /// Movie time at which the edit begins.
    at: Duration,
    /// Movie time at which it ends.
    until: Duration,
    /// A tick of the movie's clock. Writers round durations to it, so a sample may end up to one later than the edit.
    tick: Duration,
    /// True if the edit shows one frame all the time (media rate 0).
    dwells: bool,
}

impl Edit {
    /// The whole media, from movie time zero on.
    pub(crate) const ALL: Self = Self {
        media: i128::MIN..i128::MAX,
        at: Duration::ZERO,
        until: Duration::MAX,
        tick: Duration::ZERO,
        dwells: false,
    };

    /// Moves the beginning and the end of the shown media by `ticks` to earlier times.
    fn move_back(&mut self, ticks: i128) {
        for end in [&mut self.media.start, &mut self.media.end] {
            if !matches!(*end, i128::MIN | i128::MAX) {
                *end -= ticks;
            }
        }
    }

    /// Lets the edit last as long as there is media: fragments extend the last edit, whatever its duration.
    pub(crate) fn open(&mut self) {
        if !self.dwells {
            (self.media.end, self.until) = (i128::MAX, Duration::MAX);
        }
    }
}

impl Track {
    /// End of the last sample so far on the movie's clock, in decode time; zero if the track is not played.
    pub(crate) fn decoded(&self) -> Duration {
        match self.kind {
            TrackKind::Other => Duration::ZERO,
            _ => duration_of(self.next_dts.into(), self.clock.timescale),
        }
    }
}

/// Decode time, presentation time and end of presentation of a shown sample, on the movie's clock.
pub(crate) struct ShownAt {
    pub(crate) dts: Duration,
    pub(crate) pts: Duration,
    pub(crate) end: Duration,
}

impl TrackClock {
    /// The tick closest to `nanos` nanoseconds.
    fn ticks(&self, nanos: i128) -> i128 {
        (nanos * i128::from(self.timescale) + SECOND / 2).div_euclid(SECOND)
    }

    /// Times of `sample` in `edit`, or `None` if the edit does not show it. Times before zero are zero. For
    /// sound, the sample just before the edit is included, because decoders need it.
    pub(crate) fn show(&self, sample: &TrackSample, edit: &Edit, is_frame: bool) -> Option<ShownAt> {
        let (from, until) = (sample.cts(), sample.cts() + i128::from(sample.duration));
        let start = edit.media.start.max(0);
        if edit.dwells {
            let covers = from <= start && start < until;
            return covers.then_some(ShownAt {
                dts: edit.at,
                pts: edit.at,
                end: edit.until,
            });
        }
        let since = |ticks: i128| edit.at.saturating_add(duration_of(ticks - start, self.timescale));
        let is_heard = !is_frame && from < edit.media.end && until >= edit.media.start;
        (is_heard || edit.media.contains(&from)).then(|| ShownAt {
            dts: since(i128::from(sample.dts)),
            pts: since(from),
            end: match since(until) {
                end if end < edit.until.saturating_add(edit.tick) => end,
                _ => edit.until,
            },
        })
    }
}

/// One second in nanoseconds, the unit of shifts.
const SECOND: i128 = 1_000_000_000;

/// `ticks` of a clock with `timescale` ticks per second, rounded down to a nanosecond; zero if negative.
pub(crate) fn duration_of(ticks: i128, timescale: impl Into<u64>) -> Duration {
    let ticks = u128::try_from(ticks).unwrap_or(0);
    let nanos = ticks.saturating_mul(1_000_000_000) / u128::from(timescale.into().max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[derive(Debug)]
pub(crate) struct Movie {
    pub(crate) tracks: Vec<Track>,
    /// The index in `tracks` of the track whose samples are the title's frames: the first video track, H.264 if there
    /// is any; the first audio track of a title without video.
    pub(crate) main: usize,
    /// True if the tables describe no frame, so fragments must follow. Some writers do not announce them by `mvex`.
    pub(crate) fragmented: bool,
    /// Playing time in the `mvhd` box.
    pub(crate) declared: Duration,
    /// End of the samples so far on the movie's clock, in decode time.
    pub(crate) decoded: Duration,
    /// Nanoseconds by which the decode times of fragments are ahead of the movie's clock; `None` before the first.
    shift: Option<i128>,
    /// Contradictions that were settled.
    pub(crate) notes: Vec<String>,
}

impl Movie {
    pub(crate) fn read(moov: BoxView<'_>, limits: &Limits) -> Result<Self, MediaError> {
        let mut tracks: Vec<Track> = Vec::new();
        let mut broken = Vec::new();
        let mut notes = Vec::new();
        let mut defaults = Vec::new();
        let header: Mvhd = moov.require(*b"mvhd")?.decode()?;
        for child in moov.children(0) {
            let child = match child {
                Err(error) if tracks.iter().any(|track| track.kind == TrackKind::Video) => {
                    notes.push(format!("the rest of the moov box is passed over: {error}"));
                    break;
                }
                child => child?,
            };
            match &child.name.0 {
                b"trak" => {
                    child.within((tracks.len() + broken.len()) as u64 + 1, "tracks", limits.tracks)?;
                    let kind = kind_of(child);
                    // A track of unknown kind may be the video.
                    let likely = kind.as_ref().map_or(TrackKind::Video, |kind| *kind);
                    match kind.and_then(|kind| track(child, kind, &header, &mut notes)) {
                        Ok(track) => tracks.push(track),
                        Err(error) => {
                            notes.push(format!("a track is left out: {error}"));
                            broken.push((likely, error));
                        }
                    }
                }
                b"mvex" => {
                    for child in child.children(0) {
                        let child = child?;
                        if &child.name.0 == b"trex" && (defaults.len() as u64) < limits.tracks {
                            defaults.extend(child.decode::<Trex>());
                        }
                    }
                }
                _ => {}
            }
        }
        for track in &mut tracks {
            if let Some(trex) = defaults.iter().find(|trex| trex.track_id == track.id) {
                track.defaults = trex.clone();
            }
        }
        let rank = |track: &Track| (track.kind, !track.codec.name.starts_with("avc"));
        let main = (0..tracks.len()).min_by_key(|&at| tracks.get(at).map(rank));
        let main_kind = tracks
            .iter()
            .map(|track| track.kind)
            .min()
            .unwrap_or(TrackKind::Other);
        // A damaged track is left out unless it is the one to be played.
        if let Some(at) = broken.iter().position(|(kind, _)| *kind < main_kind) {
            return Err(broken.swap_remove(at).1);
        }
        let main = main
            .filter(|_| main_kind != TrackKind::Other)
            .ok_or(MediaError::NoMedia { tracks: tracks.len() })?;
        let has_samples = |track: &Track| track.tables.as_ref().is_some_and(|tables| tables.len() > 0);
        Ok(Self {
            fragmented: !tracks.get(main).is_some_and(has_samples),
            main,
            // All ones stand for an unknown duration.
            declared: match header.duration {
                0xffff_ffff | u64::MAX => Duration::ZERO,
                ticks => duration_of(ticks.into(), header.timescale),
            },
            decoded: Duration::ZERO,
            shift: None,
            tracks,
            notes,
        })
    }

    /// Begins the movie's clock at `earliest`, the first decode time of the first fragment in nanoseconds. An edit list
    /// that refers to the recording's clock moves with it. One that begins earlier and within 1 s only hides the
    /// reordering delay, and stays as it is.
    pub(crate) fn begin(&mut self, earliest: i128) {
        if self.shift.is_some() {
            return;
        }
        let shift = if self.decoded.is_zero() { earliest } else { 0 };
        self.shift = Some(shift);
        for track in &mut self.tracks {
            track.shift = shift;
            let clock = &mut track.clock;
            let start = clock.edits.first().map_or(0, |edit| edit.media.start.max(0));
            let start = start * SECOND / i128::from(clock.timescale);
            if start >= shift || start > SECOND {
                let ticks = clock.ticks(shift);
                clock.edits.iter_mut().for_each(|edit| edit.move_back(ticks));
            }
        }
    }

    /// Decode time of a fragment of the track `at`, in nanoseconds; `None` for a track that is not played.
    pub(crate) fn nanos(&self, at: usize, declared: u64) -> Option<i128> {
        let track = self.tracks.get(at)?;
        let nanos = i128::from(declared) * SECOND / i128::from(track.clock.timescale);
        (track.kind != TrackKind::Other).then_some(nanos)
    }

    /// Time of a fragment of the track `at` in ticks of the movie's clock, which [`begin`](Self::begin) has set.
    /// If a decode time is more than 1 s before or [`LONGEST`] after the end of the track's previous fragment, the
    /// clock of the recording was set, or recordings were joined: the fragment then follows the previous ones.
    pub(crate) fn fragment_time(&mut self, at: usize, declared: u64) -> Option<u64> {
        let time = self.nanos(at, declared)?;
        let common = self.shift.unwrap_or_default();
        let decoded = i128::try_from(self.decoded.as_nanos()).unwrap_or(i128::MAX);
        let longest = i128::from(LONGEST.as_secs()) * SECOND;
        let track = self.tracks.get_mut(at)?;
        let end = i128::try_from(track.decoded().as_nanos()).unwrap_or(i128::MAX);
        let follows = |shift: i128| (end - SECOND..=end + longest).contains(&(time - shift));
        if !follows(track.shift) {
            track.shift = if follows(common) { common } else { time - decoded };
            self.shift = Some(track.shift);
            if track.shift.abs_diff(common) > SECOND.unsigned_abs() {
                let [from, to] = [end + common, time].map(|time| duration_of(time, 1_000_000_000_u64));
                let note = format!(
                    "decode times jump from {from:?} to {to:?}; the fragments are played without a gap"
                );
                self.notes.push(note);
            }
        }
        let ticks = i128::from(declared) - track.clock.ticks(track.shift);
        u64::try_from(ticks.max(0)).ok()
    }

    /// The codecs as RFC 6381 lists them, the played video first.
    pub(crate) fn codecs(&self) -> String {
        let played = self.tracks.get(self.main);
        let others = self.tracks.iter().enumerate().filter(|(at, _)| *at != self.main);
        let audio = others.filter(|(_, track)| track.kind == TrackKind::Audio);
        let all = played.into_iter().chain(audio.map(|(_, track)| track));
        all.map(|track| &*track.codec.name).collect::<Vec<_>>().join(", ")
    }

    /// End of the last video or audio sample known so far, on the movie's clock.
    pub(crate) fn playing_time(&self) -> Duration {
        self.tracks
            .iter()
            .filter(|track| track.kind != TrackKind::Other)
            .map(|track| track.clock.end.1)
            .max()
            .unwrap_or_default()
    }
}

fn kind_of(trak: BoxView<'_>) -> Result<TrackKind, MediaError> {
    let hdlr = trak.require(*b"mdia")?.require(*b"hdlr")?;
    // Version and flags, a reserved word, then the handler (ISO/IEC 14496-12 §8.4.3).
    match hdlr.body.get(8..12) {
        Some(b"vide") => Ok(TrackKind::Video),
        Some(b"soun") => Ok(TrackKind::Audio),
        Some(_) => Ok(TrackKind::Other),
        None => Err(hdlr.malformed(&"it ends before the handler's type")),
    }
}

fn track(
    trak: BoxView<'_>,
    kind: TrackKind,
    movie: &Mvhd,
    notes: &mut Vec<String>,
) -> Result<Track, MediaError> {
    let header: Tkhd = trak.require(*b"tkhd")?.decode()?;
    let mut found = Track {
        id: header.track_id,
        kind,
        codec: Codec::default(),
        clock: TrackClock {
            timescale: 1,
            edits: vec![Edit::ALL],
            end: Default::default(),
        },
        tables: None,
        defaults: Trex::default(),
        next_dts: 0,
        shift: 0,
    };
    // A track that is not played need not be complete.
    if kind == TrackKind::Other {
        return Ok(found);
    }
    let mdia = trak.require(*b"mdia")?;
    let mdhd = mdia.require(*b"mdhd")?;
    let times: Mdhd = mdhd.decode()?;
    if times.timescale == 0 {
        return Err(mdhd.malformed(&"its timescale is 0 ticks per second"));
    }
    let stbl = mdia.require(*b"minf")?.require(*b"stbl")?;
    found.codec = codec::first_entry(stbl.require(*b"stsd")?, kind)?;
    // Some writers leave the size to the track header.
    if found.codec.resolution.0 == 0 || found.codec.resolution.1 == 0 {
        found.codec.resolution = (header.width.integer().into(), header.height.integer().into());
    }
    found.clock.timescale = times.timescale;
    found.clock.edits = edits(trak, movie.timescale, times.timescale)?;
    let mut tables = SampleTables::read(stbl)?;
    let declared = [
        duration_of(times.duration.into(), times.timescale),
        duration_of(header.duration.into(), movie.timescale),
        duration_of(movie.duration.into(), movie.timescale),
    ];
    notes.extend(tables.settle(times.timescale, declared));
    found.tables = Some(tables);
    Ok(found)
}

/// The edits that show media; all of the media if there are none.
fn edits(trak: BoxView<'_>, movie_timescale: u32, timescale: u32) -> Result<Vec<Edit>, MediaError> {
    let elst = trak.find(0, *b"edts")?.map(|edts| edts.find(0, *b"elst"));
    // An edit list that cannot be read cannot be followed.
    let Some(elst) = elst.transpose()?.flatten().and_then(|elst| {
        elst.decode_table::<Elst>(4, if elst.body.first() == Some(&1) { 20 } else { 12 })
            .ok()
    }) else {
        return Ok(vec![Edit::ALL]);
    };
    let (per_second, mut ticks) = (i128::from(movie_timescale.max(1)), 0_i128);
    let mut edits = Vec::new();
    for entry in &elst.entries {
        let (from, length) = (ticks, i128::from(entry.segment_duration));
        ticks += length;
        let Some(start) = entry.media_time.map(i128::from) else {
            continue;
        };
        let dwells = entry.media_rate.integer() == 0 && entry.media_rate.decimal() == 0;
        // A duration of zero leaves the end open.
        let is_open = length == 0 && !dwells;
        let media = (length * i128::from(timescale) + per_second / 2) / per_second;
        edits.push(Edit {
            media: start..if is_open { i128::MAX } else { start + media },
            at: duration_of(from, movie_timescale),
            until: if is_open {
                Duration::MAX
            } else {
                duration_of(ticks, movie_timescale)
            },
            tick: duration_of(1, movie_timescale),
            dwells,
        });
    }
    if edits.is_empty() {
        edits.push(Edit::ALL);
    }
    Ok(edits)
}
