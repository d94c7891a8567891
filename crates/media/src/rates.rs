//! The peak rate of a title over a sliding window of playing time.

use std::collections::VecDeque;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

use crate::frame::{AudioSample, Frame};

/// The most bytes presented in any half-open window of `window`, as a rate. `audio` is sorted by time.
pub(crate) fn peak(frames: &[Frame], audio: &[AudioSample], window: Duration) -> Bitrate {
    let window = window.max(Duration::from_millis(1));
    let frames = frames.iter().map(|frame| (frame.pts, frame.size));
    let audio = audio
        .iter()
        .map(|sample| (sample.time, Bytes::new(sample.size.into())));
    let mut shown: Vec<(Duration, Bytes)> = frames.chain(audio).collect();
    shown.sort_unstable();
    let mut inside = VecDeque::new();
    let mut bytes = Bytes::ZERO;
    let mut most = Bytes::ZERO;
    for (time, size) in shown {
        inside.push_back((time, size));
        bytes += size;
        while let Some(&(oldest, size)) = inside.front()
            && time.saturating_sub(oldest) >= window
        {
            inside.pop_front();
            bytes -= size;
        }
        most = most.max(bytes);
    }
    most.per(window).unwrap_or(Bitrate::ZERO)
}
