//! The `sidx` box (ISO/IEC 14496-12 §8.16.3): byte ranges and durations of the segments of a file.

use std::ops::Range;
use std::time::Duration;

use mp4_atom::Sidx;

use crate::boxes::BoxView;
use crate::error::{BoxName, MediaError};
use crate::movie::duration_of;

/// A segment of a file in the file's segment index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexedSegment {
    /// Byte range in the file.
    pub bytes: Range<u64>,
    /// Media time at which the segment begins.
    pub start: Duration,
    /// Playing time of the segment.
    pub duration: Duration,
}

/// Reads the segment index in `bytes`, which begin at `offset` of their file.
///
/// # Errors
/// If they contain no complete `sidx` box, or it contradicts itself or points to further indexes.
pub fn segment_index(bytes: &[u8], offset: u64) -> Result<Vec<IndexedSegment>, MediaError> {
    const NAME: BoxName = BoxName(*b"sidx");
    let around = BoxView {
        name: BoxName(*b"file"),
        offset,
        body: bytes,
        body_offset: offset,
    };
    let found = around.find(0, NAME.0)?;
    let view = found.ok_or_else(|| MediaError::malformed(NAME, offset, "it does not begin here"))?;
    let index: Sidx = view.decode()?;
    if index.timescale == 0 {
        return Err(view.malformed(&"its timescale is 0"));
    }
    // Offsets count from the first byte after the box.
    let end = view.body_offset.saturating_add(view.body.len() as u64);
    let mut at = end.saturating_add(index.first_offset);
    let mut start = duration_of(index.earliest_presentation_time.into(), index.timescale);
    let mut segments = Vec::with_capacity(index.references.len());
    for reference in &index.references {
        if reference.reference_type {
            return Err(view.malformed(&"it points to further indexes, which are not followed"));
        }
        let next = at.saturating_add(u64::from(reference.referenced_size));
        let duration = duration_of(reference.subsegment_duration.into(), index.timescale);
        if next == at || duration.is_zero() {
            return Err(view.malformed(&"it lists a segment of no bytes or no playing time"));
        }
        segments.push(IndexedSegment {
            bytes: at..next,
            start,
            duration,
        });
        start = start.saturating_add(duration);
        at = next;
    }
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mp4_atom::{Encode, SegmentReference};

    fn index(first_offset: u64, references: &[(bool, u32, u32)]) -> Vec<u8> {
        let references = references.iter();
        let references =
            references.map(
                |&(reference_type, referenced_size, subsegment_duration)| SegmentReference {
                    reference_type,
                    referenced_size,
                    subsegment_duration,
                    starts_with_sap: true,
                    sap_type: 1,
                    sap_delta_time: 0,
                },
            );
        let sidx = Sidx {
            reference_id: 1,
            timescale: 15_360,
            earliest_presentation_time: 7_680,
            first_offset,
            references: references.collect(),
        };
        let mut bytes = Vec::new();
        sidx.encode(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn segments_follow_each_other_from_behind_the_index() {
        let bytes = index(4, &[(false, 1_000, 46_080), (false, 500, 23_040)]);
        let segments = segment_index(&bytes, 800).unwrap();
        let begin = 800 + bytes.len() as u64 + 4;
        let expected = [
            (begin..begin + 1_000, 500, 3_000),
            (begin + 1_000..begin + 1_500, 3_500, 1_500),
        ];
        let expected = expected.map(|(bytes, start, duration)| IndexedSegment {
            bytes,
            start: Duration::from_millis(start),
            duration: Duration::from_millis(duration),
        });
        assert_eq!(segments, expected);
    }

    #[test]
    fn what_is_no_index_of_segments_is_refused_with_its_place() {
        let whole = index(0, &[(false, 1, 1)]);
        for (bytes, problem) in [
            (&[][..], "it does not begin here"),
            (&whole[..20], "has 20 left"),
            (&index(0, &[(true, 10, 10)]), "further indexes"),
            (&index(0, &[(false, 0, 10)]), "no bytes"),
        ] {
            let error = segment_index(bytes, 77).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("offset 77"), "{error}");
        }
    }
}
