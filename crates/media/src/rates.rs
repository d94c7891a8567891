//! The peak rate of a title over a sliding window of playing time.

use std::collections::VecDeque;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

use crate::frame::{AudioSample, Frame};

/// The most bytes presented in any half-open window of `window`, as a rate. `audio` is sorted by time.
pub(crate) fn peak(frames: &[Frame], audio: &[AudioSample], window: Duration) -> Bitrate {
    let window = window.max(Duration::from_millis(1));
    let width = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
    let mut shown: Vec<(u64, u64)> = frames
        .iter()
        .map(|frame| {
            let time = u64::try_from(frame.pts.as_nanos()).unwrap_or(u64::MAX);
            (time, frame.size.as_u64())
        })
        .chain(
            audio
                .iter()
                .map(|sample| (sample.time_ns, u64::from(sample.size))),
        )
        .collect();
    shown.sort_unstable();
    let mut inside = VecDeque::new();
    let mut bytes = Bytes::ZERO;
    let mut most = Bytes::ZERO;
    for (time, size) in shown {
        inside.push_back((time, size));
        bytes += Bytes::new(size);
        while let Some(&(oldest, size)) = inside.front()
            && time.saturating_sub(oldest) >= width
        {
            inside.pop_front();
            bytes -= Bytes::new(size);
        }
        most = most.max(bytes);
    }
    most.per(window).unwrap_or(Bitrate::ZERO)
}
