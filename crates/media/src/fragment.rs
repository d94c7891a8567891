//! The `moof` box (ISO/IEC 14496-12 §8.8): the samples of one fragment.

use mp4_atom::{Tfdt, Tfhd, Trun};

use crate::boxes::BoxView;
use crate::error::MediaError;
use crate::movie::{Movie, TrackKind};
use crate::tables::{self, TrackSample};

/// Sample flags of a frame that is no key frame: `sample_is_non_sync_sample`, or a `sample_depends_on`
/// of 1 (ISO/IEC 14496-12 §8.8.3.1).
const NON_SYNC: u32 = 0x0101_0000;

/// Largest duration of a sample in ticks. Larger values are negative durations, written by encoders when the
/// system clock was set back.
const LARGEST: u32 = i32::MAX.unsigned_abs();

/// Reads the fragment and advances the tracks' decode times. Adds the samples of each of its tracks to `fragments`,
/// after the track's index in [`Movie::tracks`]. `taken` of at most `limit` samples have been read. If the error is
/// [`MediaError::Malformed`], the tracks in `fragments` are complete.
pub(crate) fn read(
    moof: BoxView<'_>,
    movie: &mut Movie,
    (taken, limit): (&mut u64, u64),
    fragments: &mut Vec<(usize, Vec<TrackSample>)>,
) -> Result<(), MediaError> {
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
    let mut outcome = Ok(());
    // Without an explicit base, the first track's data offset counts from the moof box, and the next track's from the
    // end of the previous track's data (§8.8.7.1).
    let mut previous_end = Some(moof.offset);
    for (traf, index, header, declared) in parts {
        let implied = if header.default_base_is_moof {
            Some(moof.offset)
        } else {
            previous_end
        };
        let Some(base) = header.base_data_offset.or(implied) else {
            continue;
        };
        let declared = declared.and_then(|time| movie.fragment_time(index, time));
        let Some(track) = movie.tracks.get_mut(index) else {
            continue;
        };
        let (of_track, of_movie) = (&header, &track.defaults);
        let durations = [
            of_track.default_sample_duration,
            Some(of_movie.default_sample_duration),
        ];
        let mut durations = durations.into_iter().flatten().peekable();
        let mut run = TrackRun {
            has_negative: durations.peek().is_some_and(|&ticks| ticks > LARGEST),
            duration: durations.find(|&ticks| ticks <= LARGEST).unwrap_or(0),
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
        let read = run.read(traf, base, (&mut *taken, limit));
        if run.has_negative {
            let id = track.id;
            let note = format!("negative durations in fragments of track {id} are ignored");
            movie.notes.push(note);
        }
        track.next_dts = run.dts;
        movie.decoded = movie.decoded.max(track.decoded());
        previous_end = read.is_ok().then_some(run.at);
        match read {
            Ok(()) => fragments.push((index, run.samples)),
            Err(MediaError::Malformed { .. }) => outcome = read,
            Err(_) => return read,
        }
    }
    outcome
}

/// The samples so far, and the defaults for values that a `trun` entry omits.
struct TrackRun {
    has_negative: bool,
    duration: u32,
    size: u32,
    flags: u32,
    dts: u64,
    at: u64,
    samples: Vec<TrackSample>,
}

impl TrackRun {
    fn read(
        &mut self,
        traf: BoxView<'_>,
        base: u64,
        (taken, limit): (&mut u64, u64),
    ) -> Result<(), MediaError> {
        for child in traf.children(0) {
            let child = child?;
            if &child.name.0 == b"trun" {
                let trun: Trun = child.decode()?;
                *taken = taken.saturating_add(trun.samples.len() as u64);
                child.within(*taken, "samples", limit)?;
                self.append(child, &trun, base)?;
            }
        }
        Ok(())
    }

    fn append(&mut self, view: BoxView<'_>, trun: &Trun, base: u64) -> Result<(), MediaError> {
        let past_the_end = || view.malformed(&"it places its data outside any file");
        if let Some(offset) = trun.data_offset {
            self.at = base
                .checked_add_signed(i64::from(offset))
                .ok_or_else(past_the_end)?;
        }
        for entry in &trun.samples {
            let declared = entry.duration.filter(|&ticks| ticks <= LARGEST);
            self.has_negative |= declared != entry.duration;
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
