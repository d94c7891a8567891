//! The sample tables of a `stbl` box (ISO/IEC 14496-12 §8.6–8.7), walked into samples.

use std::iter::repeat_n;

use mp4_atom::{Atom, Co64, Ctts, Stco, Stsc, Stss, Stsz, StszSamples, Stts};

use crate::boxes::BoxView;
use crate::error::{BoxName, MediaError};

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
    /// Offset of the `stbl` box.
    offset: u64,
    times: Stts,
    composition: Option<Ctts>,
    keys: Option<Stss>,
    chunks: Stsc,
    sizes: Stsz,
    /// Offsets of the chunks, from `stco` or `co64`.
    offsets: Vec<u64>,
}

fn optional<A: Atom>(stbl: BoxView<'_>, name: [u8; 4]) -> Result<Option<A>, MediaError> {
    stbl.find(0, name)?.map(|found| found.decode()).transpose()
}

impl SampleTables {
    pub(crate) fn read(stbl: BoxView<'_>) -> Result<Self, MediaError> {
        let offsets = if let Some(long) = optional::<Co64>(stbl, *b"co64")? {
            long.entries
        } else {
            let short: Stco = stbl.require(*b"stco")?.decode()?;
            short.entries.into_iter().map(u64::from).collect()
        };
        let mut keys: Option<Stss> = optional(stbl, *b"stss")?;
        if let Some(keys) = &mut keys {
            keys.entries.sort_unstable();
        }
        Ok(Self {
            offset: stbl.offset,
            times: stbl.require(*b"stts")?.decode()?,
            composition: optional(stbl, *b"ctts")?,
            keys,
            chunks: stbl.require(*b"stsc")?.decode()?,
            sizes: stbl.require(*b"stsz")?.decode()?,
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

    fn malformed(&self, problem: String) -> MediaError {
        MediaError::malformed(BoxName(*b"stbl"), self.offset, problem)
    }

    /// Calls `visit` with each sample in decode order. The time is proportional to the tables and [`Self::len`].
    pub(crate) fn walk(&self, mut visit: impl FnMut(TrackSample)) -> Result<(), MediaError> {
        let count = self.len();
        // The tables are run-length encoded.
        let times = self.times.entries.iter();
        let mut times = times.flat_map(|run| repeat_n(run.sample_delta, run.sample_count as usize));
        let mut composition = self.composition.as_ref().map(|table| {
            let runs = table.entries.iter();
            runs.flat_map(|run| repeat_n(run.sample_offset, run.sample_count as usize))
        });
        let mut keys = self.keys.as_ref().map(|table| table.entries.iter().peekable());
        let mut places = Places::new(self);
        let mut dts = 0_u64;
        for index in 0..count {
            let number = index + 1;
            let size = self.size(index);
            let too_short =
                |table: &str| self.malformed(format!("stsz lists {count} samples, but {table} {index}"));
            let offset = places
                .next(size)
                .ok_or_else(|| too_short("stsc and stco place"))??;
            let duration = times.next().ok_or_else(|| too_short("stts gives times for"))?;
            let composition_offset = match &mut composition {
                Some(offsets) => offsets.next().ok_or_else(|| too_short("ctts gives times for"))?,
                None => 0,
            };
            let key = keys.as_mut().is_none_or(|keys| {
                while keys.next_if(|&&key| u64::from(key) < number).is_some() {}
                keys.peek().is_some_and(|&&key| u64::from(key) == number)
            });
            visit(TrackSample {
                offset,
                size,
                dts,
                composition_offset,
                duration,
                key,
            });
            dts = dts.saturating_add(u64::from(duration));
        }
        Ok(())
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

    /// The offset of the next sample, which has `size` bytes; `None` after the last chunk.
    fn next(&mut self, size: u32) -> Option<Result<u64, MediaError>> {
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
        match offset.checked_add(u64::from(size)) {
            Some(end) => {
                self.at = end;
                Some(Ok(offset))
            }
            None => Some(Err(self.tables.malformed(format!(
                "a sample at offset {offset} runs past the largest offset"
            )))),
        }
    }
}
