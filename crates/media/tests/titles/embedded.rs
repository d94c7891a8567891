//! The embedded title matches its documentation.

use std::time::Duration;

use playrate_media::{Layout, MediaSource, assets};
use playrate_units::Bitrate;

#[test]
fn the_embedded_title_is_27_s_of_h264_and_aac_at_its_documented_rate() {
    let source = assets::title().unwrap();
    let title = source.title();
    assert_eq!(title.info().codecs, "avc1.64001f, mp4a.40.2");
    assert_eq!((title.info().width, title.info().height), (1280, 720));
    assert_eq!(title.layout(), Layout::ProgressiveMoovFirst);
    assert_eq!(title.frames().len(), 810);
    assert_eq!(title.duration(), Duration::from_secs(27));
    // ffprobe: 9,071,389 bytes of video and 433,606 of audio, both over 27 s.
    let rate = title.average_rate();
    assert_eq!(rate, Bitrate::from_bits_per_second(2_816_294));
    // A real title has a variable rate: its busiest second is well above the average.
    assert!(title.peak_rate(Duration::from_secs(1)) > rate.scaled(14, 10));
}
