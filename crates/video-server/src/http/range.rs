//! Byte ranges ([RFC 9110 §14](https://www.rfc-editor.org/rfc/rfc9110#section-14)).
//!
//! One range is honoured. A field with several ranges is ignored and answered with the whole, as §14.2 allows: players
//! never request several, and `multipart/byteranges` invites overlapping-range attacks (§17.15). A field that is
//! malformed or in an unknown unit is ignored likewise.

use core::ops::Range;

/// Byte range that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RangeSelection {
    /// The whole representation: no `Range` field, or one that is ignored.
    Whole,
    /// These bytes (the end is exclusive), at least one.
    Bytes(Range<u64>),
    /// A range that starts past the end: 416.
    Unsatisfiable,
}

/// Reads the value of a `Range` field against a representation of `length` bytes.
///
/// Positions too large for 64 bits count as positions past the end, not as errors.
pub(crate) fn select(field: &str, length: u64) -> RangeSelection {
    parse(field, length).unwrap_or(RangeSelection::Whole)
}

/// Returns `None` for a field to ignore.
fn parse(field: &str, length: u64) -> Option<RangeSelection> {
    let (unit, set) = field.trim().split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    // §5.6.1.2: skip empty list elements.
    let specs = set.split(',').map(|spec| spec.trim_matches([' ', '\t']));
    let mut specs = specs.filter(|spec| !spec.is_empty());
    let spec = specs.next()?;
    if specs.next().is_some() {
        return None;
    }
    let (first, last) = spec.split_once('-')?;
    if first.is_empty() {
        return Some(suffix(position(last)?, length));
    }
    let first = position(first)?;
    let last = if last.is_empty() {
        u64::MAX
    } else {
        position(last)?
    };
    if last < first {
        return None;
    }
    if first >= length {
        return Some(RangeSelection::Unsatisfiable);
    }
    Some(RangeSelection::Bytes(first..last.saturating_add(1).min(length)))
}

/// The last `count` bytes.
fn suffix(count: u64, length: u64) -> RangeSelection {
    match (count, length) {
        (0, _) => RangeSelection::Unsatisfiable,
        // Satisfiable by §14.1.2, but `Content-Range` cannot name an empty range.
        (_, 0) => RangeSelection::Whole,
        _ => RangeSelection::Bytes(length.saturating_sub(count)..length),
    }
}

/// Parses `1*DIGIT`; saturates at the largest number.
fn position(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::first_byte("bytes=0-0", 0..1)]
    #[case::first_500("bytes=0-499", 0..500)]
    #[case::second_500("bytes=500-999", 500..1000)]
    #[case::last_500("bytes=-500", 9500..10_000)]
    #[case::from_9500("bytes=9500-", 9500..10_000)]
    #[case::from_the_start("bytes=0-", 0..10_000)]
    #[case::last_byte("bytes=9999-9999", 9999..10_000)]
    #[case::end_past_the_end("bytes=9000-20000", 9000..10_000)]
    #[case::end_past_64_bits("bytes=1-99999999999999999999999", 1..10_000)]
    #[case::suffix_longer_than_all("bytes=-20000", 0..10_000)]
    #[case::suffix_past_64_bits("bytes=-99999999999999999999999", 0..10_000)]
    #[case::unit_in_capitals("BYTES=0-9", 0..10)]
    #[case::spaces_around(" bytes= 0-9 ", 0..10)]
    #[case::empty_list_elements("bytes=, ,0-9,", 0..10)]
    #[case::leading_zeros("bytes=00-009", 0..10)]
    fn one_range_is_honoured(#[case] field: &str, #[case] part: Range<u64>) {
        assert_eq!(select(field, 10_000), RangeSelection::Bytes(part));
    }

    #[rstest]
    #[case::just_past("bytes=10000-")]
    #[case::far_past("bytes=20000-30000")]
    #[case::past_64_bits("bytes=99999999999999999999999-")]
    #[case::both_past_64_bits("bytes=99999999999999999999999-99999999999999999999999")]
    #[case::no_last_bytes("bytes=-0")]
    fn a_range_past_the_end_is_unsatisfiable(#[case] field: &str) {
        assert_eq!(select(field, 10_000), RangeSelection::Unsatisfiable);
    }

    #[rstest]
    #[case::empty("")]
    #[case::no_unit("0-499")]
    #[case::unknown_unit("seconds=0-10")]
    #[case::no_set("bytes=")]
    #[case::only_commas("bytes=,,")]
    #[case::only_a_dash("bytes=-")]
    #[case::no_dash("bytes=5")]
    #[case::backwards("bytes=500-499")]
    #[case::negative("bytes=-1-5")]
    #[case::sign("bytes=+1-5")]
    #[case::letters("bytes=a-b")]
    #[case::hexadecimal("bytes=0x0-0xff")]
    #[case::space_inside("bytes=0 -5")]
    #[case::unit_with_space("bytes =0-5")]
    #[case::other_digits("bytes=٠-٥")]
    #[case::two_ranges("bytes=0-0,-1")]
    #[case::overlapping_ranges("bytes=0-,0-,0-")]
    #[case::two_past_the_end("bytes=20000-,30000-")]
    fn a_field_that_is_malformed_or_names_several_ranges_is_ignored(#[case] field: &str) {
        assert_eq!(select(field, 10_000), RangeSelection::Whole);
    }

    #[rstest]
    #[case("bytes=0-", RangeSelection::Unsatisfiable)]
    #[case("bytes=0-0", RangeSelection::Unsatisfiable)]
    #[case("bytes=-0", RangeSelection::Unsatisfiable)]
    #[case("bytes=-5", RangeSelection::Whole)]
    fn nothing_of_an_empty_file_can_be_named(#[case] field: &str, #[case] selection: RangeSelection) {
        assert_eq!(select(field, 0), selection);
    }

    #[test]
    fn the_last_position_of_64_bits_does_not_overflow() {
        let last = u64::MAX;
        assert_eq!(
            select(&format!("bytes=0-{last}"), u64::MAX),
            RangeSelection::Bytes(0..u64::MAX)
        );
        assert_eq!(
            select(&format!("bytes={last}-"), u64::MAX),
            RangeSelection::Unsatisfiable
        );
    }

    proptest::proptest! {
        #[test]
        fn a_part_is_never_empty_and_never_past_the_end(
            field in "(bytes|BYTES|x)=[ ,]?[0-9]{0,21}-?[0-9]{0,21}(,[0-9-]{0,3})?|\\PC*",
            length: u64,
        ) {
            if let RangeSelection::Bytes(part) = select(&field, length) {
                proptest::prop_assert!(part.start < part.end && part.end <= length, "{part:?}");
            }
        }

        #[test]
        fn a_well_formed_range_names_its_bytes(first: u32, more: u32, after: u32) {
            let (first, last) = (u64::from(first), u64::from(first) + u64::from(more));
            let length = last + 1 + u64::from(after);
            let part = RangeSelection::Bytes(first..last + 1);
            proptest::prop_assert_eq!(select(&format!("bytes={first}-{last}"), length), part);
            let tail = RangeSelection::Bytes(length - u64::from(after) - 1..length);
            proptest::prop_assert_eq!(select(&format!("bytes=-{}", u64::from(after) + 1), length), tail);
        }
    }
}
