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
    // ffprobe: video 2,691,001 bit/s over 27 s, audio 128,030 bit/s over 26.944 s.
    let rate = title.average_rate();
    assert!(rate > Bitrate::from_kbps(2_818), "{rate}");
    assert!(rate < Bitrate::from_kbps(2_820), "{rate}");
    // A real title has a variable rate: its busiest second is well above the average.
    assert!(title.peak_rate(Duration::from_secs(1)) > rate.scaled(14, 10));
}
