//! The `moof` box (ISO/IEC 14496-12 §8.8): the samples of one fragment.

use mp4_atom::{Tfdt, Tfhd, Trun};

use crate::boxes::BoxView;
use crate::error::MediaError;
use crate::movie::{Movie, TrackKind};
use crate::tables::{self, TrackSample};

/// Sample flags of a frame that is no key frame: `sample_is_non_sync_sample`, or `sample_depends_on` 1
/// (ISO/IEC 14496-12 §8.8.3.1).
const NON_SYNC: u32 = 0x0101_0000;

/// Largest duration of a sample in ticks. Larger ones are negative numbers, from encoders whose clock was set.
const LARGEST: u32 = i32::MAX.unsigned_abs();

/// Reads the fragment and advances the tracks' decode times. Returns the samples of each of its tracks, after the
/// track's index in [`Movie::tracks`]. `taken` of at most `limit` samples have been read.
pub(crate) fn read(
    moof: BoxView<'_>,
    movie: &mut Movie,
    (mut taken, limit): (u64, u64),
) -> Result<Vec<(usize, Vec<TrackSample>)>, MediaError> {
    let mut parts = Vec::new();
    let mut earliest: Option<i128> = None;
    for traf in moof.children(0) {
        let traf = traf?;
        if &traf.name.0 != b"traf" {
            continue;
        }
        let header: Tfhd = traf.require(*b"tfhd")?.decode()?;
        let mut tracks = movie.tracks.iter();
        let Some(index) = tracks.position(|track| track.id == header.track_id) else {
            let id = header.track_id;
            let note = format!(
                "fragments of track {id} are passed over: the moov box has no usable description of it"
            );
            movie.notes.push(note);
            continue;
        };
        let is_played = movie
            .tracks
            .get(index)
            .is_some_and(|track| track.kind != TrackKind::Other);
        // Its data may determine the place of the next track's, unless the file says otherwise.
        if !is_played && header.default_base_is_moof {
            continue;
        }
        let tfdt: Option<Tfdt> = match traf.find(0, *b"tfdt")? {
            Some(found) if is_played => Some(found.decode()?),
            _ => None,
        };
        let declared = tfdt.map(|time| time.base_media_decode_time);
        let time = declared.and_then(|time| movie.nanos(index, time));
        earliest = earliest.into_iter().chain(time).min();
        parts.push((traf, index, header, declared));
    }
    if let Some(earliest) = earliest {
        movie.begin(earliest);
    }
    let mut fragments = Vec::new();
    // Without an explicit base, the first track's data offset counts from the moof box, and the next track's from the
    // end of the previous track's data (§8.8.7.1).
    let mut previous_end = moof.offset;
    for (traf, index, header, declared) in parts {
        let base = match header.base_data_offset {
            Some(base) => base,
            None if header.default_base_is_moof => moof.offset,
            None => previous_end,
        };
        let declared = declared.and_then(|time| movie.fragment_time(index, time));
        let Some(track) = movie.tracks.get_mut(index) else {
            continue;
        };
        let (of_track, of_movie) = (&header, &track.defaults);
        let mut run = TrackRun {
            duration: of_track
                .default_sample_duration
                .unwrap_or(of_movie.default_sample_duration),
            size: of_track
                .default_sample_size
                .unwrap_or(of_movie.default_sample_size),
            flags: of_track
                .default_sample_flags
                .unwrap_or(of_movie.default_sample_flags),
            dts: declared.unwrap_or(track.next_dts),
            at: base,
            samples: Vec::new(),
        };
        for child in traf.children(0) {
            let child = child?;
            if &child.name.0 == b"trun" {
                let trun: Trun = child.decode()?;
                taken += trun.samples.len() as u64;
                child.within(taken, "samples", limit)?;
                let mut durations = trun.samples.iter().filter_map(|entry| entry.duration);
                if durations.any(|ticks| ticks > LARGEST) {
                    let id = track.id;
                    let note = format!("negative durations in fragments of track {id} are ignored");
                    movie.notes.push(note);
                }
                run.append(child, &trun, base)?;
            }
        }
        track.next_dts = run.dts;
        movie.decoded = movie.decoded.max(track.decoded());
        previous_end = run.at;
        fragments.push((index, run.samples));
    }
    Ok(fragments)
}

/// The samples so far, and the defaults for values that a `trun` entry omits.
struct TrackRun {
    duration: u32,
    size: u32,
    flags: u32,
    dts: u64,
    at: u64,
    samples: Vec<TrackSample>,
}

impl TrackRun {
    fn append(&mut self, view: BoxView<'_>, trun: &Trun, base: u64) -> Result<(), MediaError> {
        let past_the_end = || view.malformed(&"it places its data outside any file");
        if let Some(offset) = trun.data_offset {
            self.at = base
                .checked_add_signed(i64::from(offset))
                .ok_or_else(past_the_end)?;
        }
        for entry in &trun.samples {
            let declared = entry.duration.filter(|&ticks| ticks <= LARGEST);
            let duration = declared.unwrap_or(self.duration);
            let size = entry.size.unwrap_or(self.size);
            let flags = entry.flags.unwrap_or(self.flags);
            self.samples.push(TrackSample {
                offset: self.at,
                size,
                dts: self.dts,
                composition_offset: tables::signed(entry.cts.unwrap_or(0)),
                duration,
                key: flags & NON_SYNC == 0,
            });
            self.at = self.at.checked_add(u64::from(size)).ok_or_else(past_the_end)?;
            self.dts = self.dts.saturating_add(u64::from(duration));
        }
        Ok(())
    }
}
