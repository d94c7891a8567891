//! Traces and tables of numbers: recorded links, frames of titles, segment sizes of ladders.

use playrate_media::{FrameTrace, Ladder, MediaSource, SegmentSizes, TraceSource};
use playrate_netsim::{LinkConfig, MahimahiTrace, Packet, Rate, Seed, Time};
use playrate_units::{Bitrate, Duration};

/// Lines of the three kinds of files, and times that make calculations difficult.
pub(super) const WORDS: &str = "\
    segment_duration_s,3 encode_kbps,230,331 0,110000,660000 1,90000,500000 0.000,9000,K_ 0.040,500,__ \
    0.080,179863,K_ 18446744073 1e9 # - _ , . 0.000000001";

/// Maximum length of an input: a trace with that many lines of two bytes is still read quickly.
const LONGEST: usize = 16 << 10;

/// The first line chooses the kind of file: `link`, `frames` or `ladder`; the rest is the file.
pub(super) fn check(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(&bytes[..bytes.len().min(LONGEST)]) else {
        return;
    };
    let (kind, text) = text.split_once('\n').unwrap_or(("", text));
    match kind {
        "link" => link(text),
        "ladder" => ladder(text),
        _ => frames(text),
    }
}

/// Packets leave a link of the trace in order, and none leaves before it arrived.
fn link(text: &str) {
    let Ok(trace) = MahimahiTrace::parse(text) else {
        return;
    };
    let config = LinkConfig::new(Rate::Trace(trace), Duration::from_millis(5));
    let Ok(mut link) = config.build(Duration::from_millis(100), Seed::new(1)) else {
        return;
    };
    let mut last = Time::ZERO;
    for at in [0, 0, 1, 999, 1_000, 5_000_000, 86_400_000_000_u64] {
        let now = Time::from_micros(at);
        if let Some(arrival) = link.offer(now, Packet::new(1_472)).arrival() {
            assert!(arrival >= now, "{arrival:?} after {last:?}, offered at {now:?}");
            assert!(arrival >= last, "{arrival:?} after {last:?}, offered at {now:?}");
            last = arrival;
        }
    }
    assert!(link.stats().is_conserved());
}

/// Frames are contiguous, and remain so in every trace made from one.
fn frames(text: &str) {
    let trace = match FrameTrace::parse(text) {
        Ok(trace) => trace,
        Err(error) => {
            assert!(error.to_string().starts_with("line "), "{error}");
            return;
        }
    };
    is_laid_end_to_end(&trace);
    let middle = trace.frame_count() / 2;
    let rotated = trace.rotated_to(middle);
    is_laid_end_to_end(&rotated);
    assert_eq!(rotated.frame_count(), trace.frame_count());
    assert_eq!(rotated.media_bytes(), trace.media_bytes());
    for rate in [Bitrate::from_kbps(1), Bitrate::from_mbps(5), Bitrate::MAX] {
        if let Ok(scaled) = trace.scale_to_rate(rate) {
            is_laid_end_to_end(&scaled);
        }
    }
    for factor in [0.0, 0.5, 3.0, f64::NAN] {
        if let Ok(varied) = trace.with_variability(factor) {
            is_laid_end_to_end(&varied);
            assert_eq!(
                varied.media_bytes(),
                trace.media_bytes(),
                "{factor} times as variable"
            );
        }
    }
    let mean_gap = trace.duration() / u32::try_from(trace.frame_count()).unwrap_or(u32::MAX);
    if let Ok(repeated) = trace.repeat_to(mean_gap.saturating_mul(1_000)) {
        is_laid_end_to_end(&repeated);
        let source = TraceSource::new(&repeated);
        assert_eq!(source.len(), repeated.media_bytes().as_u64());
        let segments = source.title().segments();
        assert!(segments.iter().all(|segment| segment.bytes.end <= source.len()));
    }
}

fn is_laid_end_to_end(trace: &FrameTrace) {
    let frames = trace.frames();
    assert_eq!(frames.len(), trace.frame_count());
    let mut end = 0;
    for frame in &frames {
        assert!(frame.offset == end, "{frame:?} after byte {end}");
        assert!(frame.dts <= frame.pts, "{frame:?} after byte {end}");
        assert!(
            frame.pts <= trace.duration(),
            "{frame:?} in {:?}",
            trace.duration()
        );
        end = frame.end();
    }
    assert_eq!(end, trace.media_bytes().as_u64());
}

/// Segments at a rate add up to that rate, and become frames of that many bytes.
fn ladder(text: &str) {
    let Ok(sizes) = text.parse::<SegmentSizes>() else {
        return;
    };
    let count = 2 * sizes.len().min(100);
    for rate in [Bitrate::from_kbps(1), Bitrate::from_kbps(800), Bitrate::MAX] {
        if let Ok(scaled) = sizes.at_rate(rate, count) {
            assert!(scaled.len() == count, "{scaled:?}");
            assert!(scaled.iter().all(|&size| size > 0), "{scaled:?}");
        }
    }
    let frames: FrameTrace = "0.0,60000,K\n0.5,9000,_\n1.0,9000,_\n".parse().expect("a trace");
    // A day in segments of a microsecond is refused, but only after counting them.
    let duration = sizes.segment_duration().saturating_mul(20);
    let rates = [
        ("low".to_owned(), Bitrate::from_kbps(300)),
        ("high".to_owned(), Bitrate::from_mbps(3)),
    ];
    if duration < Duration::from_secs(600)
        && let Ok(ladder) = Ladder::generate(&sizes, &frames, &rates, duration)
    {
        let total: u64 = ladder.representations().iter().map(|it| it.source.len()).sum();
        assert_eq!((ladder.segment_count(), total), (20, ladder.size().as_u64()));
    }
}
