//! The `moov` box: tracks, their codecs, timescales, edit lists, sample tables and fragment defaults.

use std::time::Duration;

use mp4_atom::{Elst, Mdhd, Mvhd, Tkhd, Trex};

use crate::boxes::BoxView;
use crate::codec::{self, Codec};
use crate::error::MediaError;
use crate::limits::Limits;
use crate::tables::SampleTables;

/// Kind of a track, from its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// A track's time: ticks of its media, and the tick at which its presentation starts.
#[derive(Debug)]
pub(crate) struct TrackClock {
    timescale: u32,
    edit: Edit,
    /// Media time at which the presentation starts; known once the first samples are.
    origin: Option<i128>,
    /// End of the last sample so far, in ticks since the origin.
    end: i128,
}

/// The used part of a track's edit list (ISO/IEC 14496-12 §8.6.6). Empty edits before the media only shift the track
/// against the others and are ignored. If there are several edits, the presentation starts with the first.
#[derive(Clone, Copy, Debug, Default)]
struct Edit {
    /// The media time at which the presentation starts, in ticks of the track.
    start: u64,
    /// Duration of the media in the edits, rounded up to the next tick of the movie's clock (the unit of edits); `None`
    /// if they leave that open, as in fragmented files.
    presented: Option<Duration>,
}

impl TrackClock {
    fn new(timescale: u32, edit: Edit) -> Self {
        Self {
            timescale,
            edit,
            origin: None,
            end: 0,
        }
    }

    /// Sets the origin to the earliest composition time of the track's first samples, or to that of the edit list if
    /// that is later. Later calls have no effect.
    pub(crate) fn start_at(&mut self, earliest_cts: i128) {
        self.origin
            .get_or_insert_with(|| earliest_cts.max(i128::from(self.edit.start)));
    }

    /// A media time in ticks as time since the presentation start; zero if it is earlier.
    pub(crate) fn since_start(&self, ticks: i128) -> Duration {
        self.duration_of(ticks.saturating_sub(self.origin.unwrap_or(0)))
    }

    /// Records the time at which a sample's presentation ends.
    pub(crate) fn extend_to(&mut self, ticks: i128) {
        self.end = self.end.max(ticks.saturating_sub(self.origin.unwrap_or(0)));
    }

    /// Duration of the samples so far, limited to that of the edit list.
    pub(crate) fn playing_time(&self) -> Duration {
        let end = self.duration_of(self.end);
        self.edit.presented.map_or(end, |presented| end.min(presented))
    }

    fn duration_of(&self, ticks: i128) -> Duration {
        duration_of(u128::try_from(ticks).unwrap_or(0), self.timescale)
    }
}

/// `ticks` of a clock with `timescale` ticks per second, rounded down to a nanosecond.
fn duration_of(ticks: u128, timescale: u32) -> Duration {
    let nanos = ticks.saturating_mul(1_000_000_000) / u128::from(timescale.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[derive(Debug)]
pub(crate) struct Movie {
    pub(crate) tracks: Vec<Track>,
    /// The index in `tracks` of the played H.264 track: the first one.
    pub(crate) main: usize,
    /// True if fragments follow (there is an `mvex` box).
    pub(crate) fragmented: bool,
}

impl Movie {
    pub(crate) fn read(moov: BoxView<'_>, limits: &Limits) -> Result<Self, MediaError> {
        let mut tracks = Vec::new();
        let mut defaults = Vec::new();
        let mut fragmented = false;
        let timescale = moov.require(*b"mvhd")?.decode::<Mvhd>()?.timescale;
        for child in moov.children(0) {
            let child = child?;
            match &child.name.0 {
                b"trak" if tracks.len() as u64 >= limits.tracks => {
                    return Err(child.beyond_limit("tracks", limits.tracks));
                }
                b"trak" => tracks.push(track(child, timescale)?),
                b"mvex" => {
                    fragmented = true;
                    for child in child.children(0) {
                        let child = child?;
                        if &child.name.0 == b"trex" && (defaults.len() as u64) < limits.tracks {
                            defaults.push(child.decode::<Trex>()?);
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
        let main = tracks
            .iter()
            .position(|track| track.kind == TrackKind::Video && track.codec.h264)
            .ok_or_else(|| MediaError::NoH264 {
                found: described(&tracks),
            })?;
        Ok(Self {
            tracks,
            main,
            fragmented,
        })
    }

    /// The codecs as RFC 6381 lists them, the played video first.
    pub(crate) fn codecs(&self) -> String {
        let played = self.tracks.get(self.main).map(|track| track.codec.name.as_str());
        let audio = self
            .tracks
            .iter()
            .filter(|track| track.kind == TrackKind::Audio)
            .map(|track| track.codec.name.as_str());
        played.into_iter().chain(audio).collect::<Vec<_>>().join(", ")
    }

    /// The longest playing time of the video and audio tracks, as far as their samples are known.
    pub(crate) fn playing_time(&self) -> Duration {
        self.tracks
            .iter()
            .filter(|track| track.kind != TrackKind::Other)
            .map(|track| track.clock.playing_time())
            .max()
            .unwrap_or_default()
    }
}

fn described(tracks: &[Track]) -> String {
    if tracks.is_empty() {
        return "no tracks at all".to_owned();
    }
    let names = tracks.iter().map(|track| {
        let kind = match track.kind {
            TrackKind::Video => "video",
            TrackKind::Audio => "audio",
            TrackKind::Other => "other",
        };
        format!("{kind} ({})", track.codec.name)
    });
    names.collect::<Vec<_>>().join(", ")
}

fn track(trak: BoxView<'_>, movie_timescale: u32) -> Result<Track, MediaError> {
    let id = trak.require(*b"tkhd")?.decode::<Tkhd>()?.track_id;
    let mdia = trak.require(*b"mdia")?;
    let mdhd = mdia.require(*b"mdhd")?;
    let timescale = mdhd.decode::<Mdhd>()?.timescale;
    if timescale == 0 {
        return Err(mdhd.malformed(&"its timescale is 0 ticks per second"));
    }
    let hdlr = mdia.require(*b"hdlr")?;
    // Version and flags, a reserved word, then the handler (ISO/IEC 14496-12 §8.4.3).
    let kind = match hdlr.body.get(8..12) {
        Some(b"vide") => TrackKind::Video,
        Some(b"soun") => TrackKind::Audio,
        Some(_) => TrackKind::Other,
        None => return Err(hdlr.malformed(&"it ends before the handler's type")),
    };
    let stbl = mdia.require(*b"minf")?.require(*b"stbl")?;
    let codec = match codec::first_entry(stbl.require(*b"stsd")?) {
        Ok(codec) => codec,
        // A track that is not played need not be understood.
        Err(_) if kind == TrackKind::Other => Codec {
            name: "unknown".to_owned(),
            ..Codec::default()
        },
        Err(error) => return Err(error),
    };
    let tables = match kind {
        TrackKind::Other => None,
        TrackKind::Video | TrackKind::Audio => Some(SampleTables::read(stbl)?),
    };
    Ok(Track {
        id,
        kind,
        codec,
        clock: TrackClock::new(timescale, edit(trak, movie_timescale)?),
        tables,
        defaults: Trex::default(),
        next_dts: 0,
    })
}

fn edit(trak: BoxView<'_>, movie_timescale: u32) -> Result<Edit, MediaError> {
    let Some(edts) = trak.find(0, *b"edts")? else {
        return Ok(Edit::default());
    };
    let Some(elst) = edts.find(0, *b"elst")? else {
        return Ok(Edit::default());
    };
    let elst: Elst = elst.decode()?;
    let mut shown = elst.entries.iter().filter_map(|edit| edit.media_time);
    let presented: u128 = elst
        .entries
        .iter()
        .filter(|edit| edit.media_time.is_some())
        .map(|edit| u128::from(edit.segment_duration))
        .sum();
    Ok(Edit {
        start: shown.next().unwrap_or(0),
        presented: (presented > 0).then(|| duration_of(presented.saturating_add(1), movie_timescale)),
    })
}
