//! Values in manifests: times and byte ranges, and excerpts for errors.

use std::ops::Range;
use std::time::Duration;

use super::LONGEST;

/// `FIRST-LAST`, both inclusive, as a half-open range.
pub(super) fn byte_range(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.trim().split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then(|| first..last.saturating_add(1))
}

/// An `xs:duration` that is not negative. As in dash.js 4, a year has 365 days and a month has 30.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let rest = unsigned.strip_prefix('P')?;
    let (days, clock) = rest.split_once('T').unwrap_or((rest, ""));
    let mut seconds = 0.0;
    for (mut rest, units) in [
        (days, [('Y', 31_536_000.0), ('M', 2_592_000.0), ('D', 86_400.0)]),
        (clock, [('H', 3_600.0), ('M', 60.0), ('S', 1.0)]),
    ] {
        for (unit, length) in units {
            if let Some((count, after)) = rest.split_once(unit) {
                if !count.starts_with(|digit: char| digit.is_ascii_digit()) {
                    return None;
                }
                seconds += count.parse::<f64>().ok()? * length;
                rest = after;
            }
        }
        if !rest.is_empty() {
            return None;
        }
    }
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    (time <= LONGEST && (text == unsigned || time.is_zero())).then_some(time)
}

/// The beginning of a text, for an error. A hostile value may be megabytes long.
pub(super) fn excerpt(text: &str) -> &str {
    let end = text.char_indices().nth(80).map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or_default()
}
