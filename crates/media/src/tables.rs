//! The sample tables of a `stbl` box (ISO/IEC 14496-12 §8.6–8.7), walked into samples.

use std::iter::repeat_n;
use std::time::Duration;

use mp4_atom::{Co64, Ctts, Stco, Stsc, Stss, Stsz, StszSamples, Stts};

use crate::boxes::BoxView;
use crate::error::MediaError;
use crate::movie::duration_of;

/// Longest time between samples, or between fragments, that needs no confirmation.
pub(crate) const LONGEST: Duration = Duration::from_secs(10);

/// A composition offset as encoders write it. Boxes of version 0 hold unsigned numbers, but many encoders write
/// negative ones there, and players read them as such.
pub(crate) fn signed(offset: i64) -> i64 {
    u32::try_from(offset).map_or(offset, |offset| offset.cast_signed().into())
}

/// One sample as described by the tables or a fragment, with times in ticks of its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrackSample {
    pub(crate) offset: u64,
    pub(crate) size: u32,
    pub(crate) dts: u64,
    pub(crate) composition_offset: i64,
    pub(crate) duration: u32,
    pub(crate) key: bool,
}

impl TrackSample {
    /// Composition time, in ticks.
    pub(crate) fn cts(&self) -> i128 {
        i128::from(self.dts) + i128::from(self.composition_offset)
    }

    /// Offset of the byte after the sample in the file.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.size))
    }
}

#[derive(Debug)]
pub(crate) struct SampleTables {
    times: Stts,
    composition: Option<Ctts>,
    keys: Option<Stss>,
    chunks: Stsc,
    sizes: Stsz,
    /// Offsets of the chunks, from `stco` or `co64`.
    offsets: Vec<u64>,
}

/// Sizes of 4, 8 or 16 bits each (§8.7.3.3): after version, flags and three reserved bytes, the number of bits, the
/// number of samples, and the sizes.
fn compact_sizes(stz2: BoxView<'_>) -> Stsz {
    let (fields, entries) = stz2.body.split_at(stz2.body.len().min(12));
    let (bits, count) = match *fields {
        [.., bits @ (4 | 8 | 16), a, b, c, d] => (usize::from(bits), u32::from_be_bytes([a, b, c, d])),
        _ => (8, 0),
    };
    let size = |at: usize| {
        let first = at * bits / 8;
        let bytes = entries.get(first..first + bits.div_ceil(8))?;
        let value = bytes.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
        Some(if bits == 4 {
            value >> (4 - at % 2 * 4) & 15
        } else {
            value
        })
    };
    let sizes = (0..count as usize).map_while(size).collect();
    Stsz {
        samples: StszSamples::Different { sizes },
    }
}

impl SampleTables {
    pub(crate) fn read(stbl: BoxView<'_>) -> Result<Self, MediaError> {
        let offsets = if let Some(long) = stbl.find(0, *b"co64")? {
            long.decode_table::<Co64>(4, 8)?.entries
        } else {
            let short: Stco = stbl.require(*b"stco")?.decode_table(4, 4)?;
            short.entries.into_iter().map(u64::from).collect()
        };
        let keys = stbl
            .find(0, *b"stss")?
            .map(|stss| stss.decode_table::<Stss>(4, 4));
        let mut keys = keys.transpose()?;
        if let Some(keys) = &mut keys {
            keys.entries.sort_unstable();
        }
        let composition = stbl.find(0, *b"ctts")?.map(|ctts| ctts.decode_table(4, 8));
        let sizes = if let Some(compact) = stbl.find(0, *b"stz2")? {
            compact_sizes(compact)
        } else {
            let stsz = stbl.require(*b"stsz")?;
            // A common size stands for all entries.
            let is_table = stsz.body.get(4..8) == Some(&[0; 4]);
            if is_table {
                stsz.decode_table(8, 4)?
            } else {
                stsz.decode()?
            }
        };
        Ok(Self {
            times: stbl.require(*b"stts")?.decode_table(4, 8)?,
            composition: composition.transpose()?,
            keys,
            chunks: stbl.require(*b"stsc")?.decode_table(4, 12)?,
            sizes,
            offsets,
        })
    }

    /// Number of samples in the tables.
    pub(crate) fn len(&self) -> u64 {
        match &self.sizes.samples {
            StszSamples::Identical { count, .. } => u64::from(*count),
            StszSamples::Different { sizes } => sizes.len() as u64,
        }
    }

    /// Largest number of steps of a [`walk`](Self::walk): the samples, and the entries of all tables.
    pub(crate) fn steps(&self) -> u64 {
        let runs = self.composition.as_ref().map_or(0, |table| table.entries.len());
        let keys = self.keys.as_ref().map_or(0, |table| table.entries.len());
        let entries = self.times.entries.len() + runs + keys + self.chunks.entries.len() + self.offsets.len();
        self.len().saturating_add(entries as u64)
    }

    /// Replaces sample durations that cannot be right by the one before, and returns a note about it. Those of 2³¹
    /// ticks and more are negative numbers. One of more than [`LONGEST`] has to agree with more of the `declared`
    /// playing times of the track than the duration before.
    pub(crate) fn settle(&mut self, timescale: u32, declared: [Duration; 3]) -> Option<String> {
        // Runs without samples say nothing about the durations.
        self.times.entries.retain(|run| run.sample_count > 0);
        let longest = LONGEST.as_secs().saturating_mul(timescale.into());
        let is_long = |delta: u32| u64::from(delta) > longest;
        let mut ordinary = self
            .times
            .entries
            .iter()
            .map(|run| run.sample_delta)
            .find(|&delta| !is_long(delta))?;
        let (mut settled, mut before, mut after) = (self.times.clone(), 0_i128, 0_i128);
        for run in &mut settled.entries {
            let count = i128::from(run.sample_count);
            before += count * i128::from(run.sample_delta);
            if is_long(run.sample_delta) {
                run.sample_delta = ordinary;
            }
            ordinary = run.sample_delta;
            after += count * i128::from(ordinary);
        }
        let [before, after] = [before, after].map(|ticks| duration_of(ticks, timescale));
        let agreeing = |time: Duration| {
            let agrees = |other: &&Duration| other.abs_diff(time) <= time / 10;
            declared.iter().filter(agrees).count()
        };
        if let [run] = &mut self.times.entries[..]
            && (run.sample_count, agreeing(before), agreeing(declared[0])) == (1, 0, declared.len())
        {
            let ticks = declared[0].as_nanos() * u128::from(timescale) / 1_000_000_000;
            run.sample_delta = u32::try_from(ticks).ok()?;
            return Some(format!(
                "the only sample lasts {before:?}; the headers declare {:?}, which is used",
                declared[0]
            ));
        }
        let is_negative = self
            .times
            .entries
            .iter()
            .any(|run| run.sample_delta > i32::MAX.unsigned_abs());
        (is_negative || agreeing(after) > agreeing(before)).then(|| {
            self.times = settled;
            format!("sample durations add up to {before:?}; without those that cannot be right, to {after:?}")
        })
    }

    /// Calls `visit` with each sample in decode order. The time is proportional to the tables and [`Self::len`].
    /// Returns the number of samples. It is less than [`Self::len`] if the tables do not place all of them.
    ///
    /// A sample without a time lasts as long as the one before, and one without a composition offset has offset zero.
    pub(crate) fn walk(&self, mut visit: impl FnMut(TrackSample)) -> u64 {
        // The tables are run-length encoded.
        let times = self.times.entries.iter();
        let mut times = times.flat_map(|run| repeat_n(run.sample_delta, run.sample_count as usize));
        let runs = self.composition.iter().flat_map(|table| &table.entries);
        let mut composition = runs.flat_map(|run| repeat_n(run.sample_offset, run.sample_count as usize));
        let mut keys = self.keys.as_ref().map(|table| table.entries.iter().peekable());
        let mut places = Places::new(self);
        let (mut dts, mut duration) = (0_u64, 0);
        for index in 0..self.len() {
            let number = index + 1;
            let size = self.size(index);
            let Some(offset) = places.next(size) else {
                return index;
            };
            duration = times.next().unwrap_or(duration);
            let key = keys.as_mut().is_none_or(|keys| {
                while keys.next_if(|&&key| u64::from(key) < number).is_some() {}
                keys.peek().is_some_and(|&&key| u64::from(key) == number)
            });
            visit(TrackSample {
                offset,
                size,
                dts,
                composition_offset: signed(composition.next().unwrap_or(0)),
                duration,
                key,
            });
            dts = dts.saturating_add(u64::from(duration));
        }
        self.len()
    }

    fn size(&self, index: u64) -> u32 {
        match &self.sizes.samples {
            StszSamples::Identical { size, .. } => *size,
            StszSamples::Different { sizes } => usize::try_from(index)
                .ok()
                .and_then(|index| sizes.get(index))
                .copied()
                .unwrap_or(0),
        }
    }
}

/// Offsets of samples: chunks of `stco`/`co64`, each with the number of samples that `stsc` declares.
struct Places<'a> {
    tables: &'a SampleTables,
    /// The index of the next chunk, from 0.
    chunk: usize,
    /// The index in `stsc` of the entry after the one that applies to `chunk`.
    entry: usize,
    per_chunk: u32,
    left: u32,
    at: u64,
}

impl<'a> Places<'a> {
    fn new(tables: &'a SampleTables) -> Self {
        Self {
            tables,
            chunk: 0,
            entry: 0,
            per_chunk: 0,
            left: 0,
            at: 0,
        }
    }

    /// The offset of the next sample, which has `size` bytes; `None` after the last chunk or the largest offset.
    fn next(&mut self, size: u32) -> Option<u64> {
        while self.left == 0 {
            self.at = *self.tables.offsets.get(self.chunk)?;
            // Chunks are numbered from 1 in stsc.
            self.chunk += 1;
            while let Some(entry) = self.tables.chunks.entries.get(self.entry)
                && entry.first_chunk as usize <= self.chunk
            {
                self.per_chunk = entry.samples_per_chunk;
                self.entry += 1;
            }
            self.left = self.per_chunk;
        }
        self.left -= 1;
        let offset = self.at;
        self.at = offset.checked_add(u64::from(size))?;
        Some(offset)
    }
}
