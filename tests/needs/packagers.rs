//! `video-client` plays titles of other projects' packagers to the end.
//!
//! Needs `ffmpeg`, `gst-launch-1.0` (`GStreamer` with its good, bad, ugly and libav plugins), and `packager` (Shaka
//! Packager, npm's package `shaka-packager`) on the PATH.

use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;
use playrate_test_support::{fixture, program};
use tempfile::TempDir;

use crate::support;

pub(crate) fn tests() -> Vec<Trial> {
    let ffmpeg = support::on_the_path(&[("ffmpeg", "-version")]);
    let gstreamer = support::on_the_path(&[("gst-launch-1.0", "--version")]);
    let shaka = support::on_the_path(&[("packager", "--version")]);
    let mut tests = tests![&ffmpeg, manifests_of_ffmpeg_play_to_the_end];
    tests.extend(tests![&gstreamer, manifests_of_gstreamer_play_to_the_end]);
    tests.extend(tests![&shaka, manifests_of_shaka_packager_play_to_the_end]);
    tests
}

/// Maximum time of a packager or a player.
const LIMIT: Duration = Duration::from_secs(60);

/// Packages a title with each command in a directory of its own, and plays its manifest. `{in}` stands for the fixture,
/// which lasts 9 s; other titles may be shorter.
fn play(titles: &[(&str, &str)]) {
    let directory = TempDir::new().expect("a directory");
    let input = fixture("progressive-moov-first.mp4");
    for (at, (_, command)) in titles.iter().enumerate() {
        let place = directory.path().join(at.to_string());
        std::fs::create_dir(&place).expect("a directory");
        let line = command.replace("{in}", input.to_str().expect("a path in UTF-8"));
        let mut shell = Command::new("sh");
        support::output_within(LIMIT, shell.args(["-c", &line]).current_dir(place), "");
    }
    let server = support::serve(directory.path(), &[]);
    for (at, (manifest, command)) in titles.iter().enumerate() {
        let url = format!("https://{}/{at}/{manifest}", server.address());
        let mut client = Command::new(program("video-client"));
        client.args(["play", &url, "--insecure", "--json"]);
        let report = support::json_within(LIMIT, &mut client, &serde_json::Value::Null);
        assert_eq!(report["outcome"], "complete", "{command}: {report}");
        let shown = report["viewer"]["shown_s"].as_f64();
        assert!(
            shown.is_some_and(|shown| (3.5..9.2).contains(&shown)),
            "{command}: {report}"
        );
        let segments = &report["dash"];
        assert!(segments["segments"].as_u64() > Some(0), "{command}: {report}");
        assert_eq!(
            segments["segments"], segments["segments_fetched"],
            "{command}: {report}"
        );
    }
}

fn manifests_of_ffmpeg_play_to_the_end() {
    let copy = "ffmpeg -v error -i {in} -c copy";
    let dash = format!("{copy} -f dash -seg_duration 3");
    let hls = format!("{copy} -f hls -hls_time 3 -hls_playlist_type vod");
    let fmp4 = format!("{hls} -hls_segment_type fmp4");
    let encode = "ffmpeg -v error -i {in} -t 4";
    let titles = [
        ("m.mpd", format!("{dash} m.mpd")),
        ("m.mpd", format!("{dash} -use_timeline 0 m.mpd")),
        ("m.mpd", format!("{dash} -use_template 0 m.mpd")),
        ("m.mpd", format!("{dash} -single_file 1 m.mpd")),
        ("master.m3u8", format!("{dash} -hls_playlist 1 m.mpd")),
        (
            "m.mpd",
            format!("{encode} -c:v libx265 -x265-params log-level=none -f dash m.mpd"),
        ),
        (
            "m.mpd",
            format!("{encode} -c:v libvpx-vp9 -cpu-used 8 -dash_segment_type mp4 -f dash m.mpd"),
        ),
        (
            "m.mpd",
            format!("{encode} -an -c:v libaom-av1 -cpu-used 8 -dash_segment_type mp4 -f dash m.mpd"),
        ),
        (
            "m.mpd",
            format!("{dash} -ldash 1 -streaming 1 -frag_type duration -frag_duration 0.5 m.mpd"),
        ),
        ("m.m3u8", format!("{hls} m.m3u8")),
        ("m.m3u8", format!("{hls} -hls_flags single_file m.m3u8")),
        (
            "m.m3u8",
            format!("{copy} -f hls -hls_time 3 -hls_list_size 0 m.m3u8"),
        ),
        ("m.m3u8", format!("{fmp4} m.m3u8")),
        ("m.m3u8", format!("{fmp4} -hls_flags single_file m.m3u8")),
        (
            "m.m3u8",
            format!("{fmp4} -master_pl_name m.m3u8 -var_stream_map 'v:0,agroup:a a:0,agroup:a' v%v.m3u8"),
        ),
        (
            "m.m3u8",
            format!("{copy} -vn -f hls -hls_time 3 -hls_playlist_type vod m.m3u8"),
        ),
    ];
    play(
        &titles
            .each_ref()
            .map(|(manifest, command)| (*manifest, &**command)),
    );
}

fn manifests_of_gstreamer_play_to_the_end() {
    let video = "gst-launch-1.0 -q videotestsrc num-buffers=96 ! video/x-raw,width=128,height=72,framerate=24/1 \
        ! x264enc key-int-max=24 tune=zerolatency ! h264parse ! queue";
    let sound = "audiotestsrc num-buffers=187 ! audio/x-raw,rate=48000 ! avenc_aac ! aacparse ! queue";
    let hls = "target-duration=1 playlist-length=0 max-files=0 playlist-location=m.m3u8";
    let titles = [
        (
            "m.mpd",
            // `dashsink` of GStreamer 1.22 hangs in about one run of five.
            format!(
                "for attempt in 1 2 3 4 5 6; do timeout 9 \
                {video} ! m.video_0 dashsink name=m mpd-filename=m.mpd target-duration=1 muxer=ts && exit; done; exit 1"
            ),
        ),
        (
            "m.m3u8",
            format!("{video} ! m.video {sound} ! m.audio hlssink2 name=m {hls}"),
        ),
        (
            "m.m3u8",
            format!("{video} ! mpegtsmux name=m {sound} ! m. m. ! hlssink {hls}"),
        ),
    ];
    play(
        &titles
            .each_ref()
            .map(|(manifest, command)| (*manifest, &**command)),
    );
}

fn manifests_of_shaka_packager_play_to_the_end() {
    let package = "packager --quiet --segment_duration 3";
    let names = "--mpd_output m.mpd --hls_master_playlist_output m.m3u8";
    let one = "in={in},stream=video,output=v.mp4 in={in},stream=audio,output=a.mp4";
    let many = "in={in},stream=video,init_segment=vi.mp4,segment_template='v$Number$.m4s' \
        in={in},stream=audio,init_segment=ai.mp4,segment_template='a$Number$.m4s' --generate_static_live_mpd";
    let ts = "in={in},stream=video,segment_template='v$Number$.ts' \
        in={in},stream=audio,segment_template='a$Number$.ts' --hls_master_playlist_output m.m3u8";
    let titles = [
        ("m.mpd", format!("{package} {one} {names}")),
        ("m.m3u8", format!("{package} {one} {names}")),
        ("m.mpd", format!("{package} {many} {names}")),
        ("m.m3u8", format!("{package} {many} {names}")),
        ("m.m3u8", format!("{package} {ts}")),
    ];
    play(
        &titles
            .each_ref()
            .map(|(manifest, command)| (*manifest, &**command)),
    );
}
