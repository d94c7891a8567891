//! Packaged titles over loopback UDP from the product's own server: manifests, representations, and the data that both
//! sides exchange.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use playrate_cc::Playback;
use playrate_test_support::{assert_contains, text};
use playrate_units::{Bitrate, Bytes};
use rstest::rstest;
use video_client::cmcd::CmcdMode;
use video_client::dash::DashOptions;
use video_client::report::Outcome;
use video_client::{Observer, Progress, Seek};

use crate::package::{FRAMES, Packaged, Running, WITHIN_SECOND, fixed};

#[rstest]
#[case::dash("/film.mpd", "low")]
#[case::dash_in_one_file("/single.mpd", "low")]
#[case::hls("/film.m3u8", "low/index.m3u8")]
#[case::one_playlist("/low/index.m3u8?token=1", "index.m3u8")]
#[tokio::test(flavor = "multi_thread")]
async fn a_title_plays_from_its_manifest(#[case] path: &str, #[case] name: &str) {
    let running = Running::start();
    let (played, bytes) = running.play(path, fixed(name, CmcdMode::Off), &mut ()).await;
    played.result.unwrap();
    assert!(
        bytes == Packaged::new(0).whole(),
        "initialisation and segments, in order"
    );
    let report = played.report;
    assert_eq!(report.outcome, Outcome::Complete);
    let frames = FRAMES.iter().sum::<u64>();
    assert_eq!(report.playback.frames_shown, frames, "as the boxes say");
    assert_eq!(report.title.unwrap().duration, Some(Duration::from_secs(12)));
    assert!(
        report.network.received > Bytes::from(bytes.len()),
        "the manifest counts"
    );
    assert_eq!(report.dash.unwrap().segments.len(), 4);
    assert_eq!(report.cmsd.samples, [], "no CMSD without CMCD");
    let notes = ["not fetched: 1 representation of sound (mp4a.40.2)"];
    assert_eq!(report.notes, notes[..usize::from(path.ends_with("mpd"))]);
}

/// A main playlist with these playlists.
fn main_of(playlists: &[&str]) -> String {
    let streams = playlists
        .iter()
        .map(|name| format!("#EXT-X-STREAM-INF:BANDWIDTH=9,CODECS=\"avc1.64000a\"\n{name}\n"));
    format!(
        "#EXTM3U\n#EXT-X-DEFINE:NAME=\"at\",VALUE=\"low\"\n{}",
        streams.collect::<String>()
    )
}

#[rstest]
#[case::first(&["none.m3u8", "low/index.m3u8"], 1)]
#[case::last(&["low/index.m3u8", "none.m3u8"], 1)]
#[case::of_two_streams(&["none.m3u8", "none.m3u8", "low/index.m3u8"], 1)]
#[case::two(&["none.m3u8", "low/index.m3u8", "gone/a.m3u8"], 2)]
#[case::not_a_playlist(&["low/init.m3u8", "low/index.m3u8"], 1)]
#[case::with_an_import(&["imports.m3u8"], 0)]
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_playlist_is_reported_and_another_is_played(
    #[case] names: &[&str],
    #[case] missing: usize,
) {
    let running = Running::start();
    running.write("main.m3u8", main_of(names));
    running.write("low/init.m3u8", "#EXTM3U\n#EXTINF:long\na\n");
    let playlist = fs::read_to_string(running.directory.path().join("low/index.m3u8")).unwrap();
    let import = "#EXTM3U\n#EXT-X-DEFINE:IMPORT=\"at\"";
    let playlist = playlist
        .replace("#EXTM3U", import)
        .replace("init.mp4", "{$at}/init.mp4");
    let playlist = [0, 1, 2, 3].iter().fold(playlist, |text, number| {
        text.replace(&format!("\n{number}.m4s"), &format!("\n{{$at}}/{number}.m4s"))
    });
    running.write("imports.m3u8", playlist);
    let (played, bytes) = running.play("/main.m3u8", DashOptions::default(), &mut ()).await;
    played.result.unwrap();
    assert!(bytes == Packaged::new(0).whole());
    assert_eq!(played.report.outcome, Outcome::Complete);
    let notes = played.report.notes;
    let named = notes.iter().filter(|note| note.starts_with("not fetched: the "));
    assert_eq!(named.count(), missing, "{notes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_in_another_codec_takes_the_place_of_those_without_playlists() {
    let running = Running::start();
    let [none, low] = [main_of(&["none.m3u8"]), main_of(&["low/index.m3u8"])];
    let low = low.replace("avc1.64000a", "hvc1.1.6.L93.B0");
    let (_, low) = low.split_once("VALUE=\"low\"\n").unwrap();
    running.write("main.m3u8", none + low);
    let (played, bytes) = running.play("/main.m3u8", DashOptions::default(), &mut ()).await;
    played.result.unwrap();
    assert!(bytes == Packaged::new(0).whole());
    assert_contains(&played.report.notes.concat(), &["404", "/none.m3u8"]);
}

#[rstest]
#[case::encrypted("#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:3,\na.m4s\n#EXT-X-ENDLIST\n")]
#[case::for_trick_modes("#EXTM3U\n#EXT-X-I-FRAMES-ONLY\n#EXTINF:3,\na.m4s\n#EXT-X-ENDLIST\n")]
#[case::a_main_playlist("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\na.m3u8\n")]
#[case::elsewhere("https://cdn.invalid/a.m3u8")]
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_in_another_codec_takes_the_place_of_one_that_cannot_be_played(#[case] playlist: &str) {
    let running = Running::start();
    running.write("first.m3u8", playlist);
    let is_url = playlist.starts_with("https");
    let first = main_of(&[if is_url { playlist } else { "first.m3u8" }]);
    let low = "#EXT-X-STREAM-INF:BANDWIDTH=9,CODECS=\"hvc1.1.6.L93.B0\"\nlow/index.m3u8\n";
    running.write("main.m3u8", first + low);
    let (played, bytes) = running.play("/main.m3u8", DashOptions::default(), &mut ()).await;
    played.result.unwrap();
    assert!(bytes == Packaged::new(0).whole());
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_does_not_replace_missing_video() {
    let running = Running::start();
    let sound = "#EXT-X-STREAM-INF:BANDWIDTH=9,CODECS=\"mp4a.40.2\"\nlow/index.m3u8\n";
    running.write("main.m3u8", main_of(&["none.m3u8"]) + sound);
    let (played, _) = running.play("/main.m3u8", DashOptions::default(), &mut ()).await;
    assert_contains(&played.result.unwrap_err().to_string(), &["404", "/none.m3u8"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_of_a_whole_file_are_counted() {
    let running = Running::start();
    running.write("whole", Packaged::new(0).whole());
    let text = "<MPD mediaPresentationDuration=\"PT12S\"><Period><AdaptationSet contentType=\"video\">\
        <Representation id=\"low\" bandwidth=\"20000\"><BaseURL>whole</BaseURL></Representation>\
        </AdaptationSet></Period></MPD>";
    running.write("whole.mpd", text);
    let (played, _) = running
        .play("/whole.mpd", fixed("low", CmcdMode::Off), &mut ())
        .await;
    played.result.unwrap();
    assert_eq!(played.report.playback.frames_shown, FRAMES.iter().sum::<u64>());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_segment_is_named() {
    let running = Running::start();
    running.write("empty.ts", "");
    running.write(
        "ts.m3u8",
        "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\nempty.ts\n#EXT-X-ENDLIST\n",
    );
    running.write("main.m3u8", main_of(&["ts.m3u8"]));
    let (played, _) = running.play("/main.m3u8", DashOptions::default(), &mut ()).await;
    assert_contains(
        &played.result.unwrap_err().to_string(),
        &["/empty.ts", "no frames"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_title_without_any_of_its_playlists_fails_with_the_first_error() {
    let running = Running::start();
    running.write("main.m3u8", main_of(&["none.m3u8", "gone.m3u8"]));
    let (played, _) = running.play("/main.m3u8", DashOptions::default(), &mut ()).await;
    let error = played.result.unwrap_err().to_string();
    assert_contains(&error, &["404", "/none.m3u8"]);
}

/// A controller's knowledge: the player's state, the rate, the buffer.
type Known = (Option<Playback>, Option<Bitrate>, Option<Duration>);

/// Records the knowledge of the server's controller as it changes.
struct Watcher {
    known: playrate_scripted::Known,
    seen: Vec<Known>,
}

impl Observer for Watcher {
    fn progress(&mut self, _: &Progress) {
        let known = self.known.lock().last().map(Arc::clone);
        let Some(known) = known else { return };
        let now = (known.playback(), known.average_rate(), known.buffered());
        if self.seen.last() != Some(&now) {
            self.seen.push(now);
        }
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_controller_learns_from_the_player_and_the_player_from_the_server(
    #[values(CmcdMode::Header, CmcdMode::Query)] mode: CmcdMode,
    #[values(false, true)] version_2: bool,
) {
    // Long enough for the server to measure the path before the last one is requested.
    const PADDING: usize = 3_000_000;
    let running = Running::with(PADDING);
    let mut watcher = Watcher {
        known: Arc::clone(&running.known),
        seen: Vec::new(),
    };
    let mut options = fixed("high", mode);
    options.session.cmcd.version_2 = version_2;
    // Observes whenever bytes arrive.
    options.session.progress_interval = Duration::ZERO;
    let (played, bytes) = running.play("/film.mpd", options, &mut watcher).await;
    played.result.unwrap();
    assert!(bytes == Packaged::new(PADDING).whole());
    let declared = Some(Bitrate::from_mbps(8));
    let seen = &watcher.seen;
    let index = |wanted: &dyn Fn(&Known) -> bool| {
        let found = seen.iter().position(wanted);
        found.unwrap_or_else(|| panic!("never so: {seen:?}"))
    };
    let starting = index(&|it| *it == (Some(Playback::Starting), declared, Some(Duration::ZERO)));
    // The player counts as starting only until the server has sent enough, which may be before the client observes.
    let half = index(&|&(_, rate, buffered)| rate == declared && buffered == Some(Duration::from_secs(3)));
    let playing = index(&|&(playback, rate, buffered)| {
        let enough = buffered.is_some_and(|time| time > Duration::from_secs(3));
        playback == Some(Playback::Playing) && rate == declared && enough
    });
    assert!(starting < half && half < playing, "{seen:?}");
    let rtt = played.report.cmsd.samples.last().and_then(|last| last.path.rtt);
    assert!(rtt.is_some_and(|rtt| rtt < Duration::from_secs(10)), "{rtt:?}");
}

#[rstest]
#[case::start_at(WITHIN_SECOND, None, FRAMES[1] / 2)]
// Due once the manifest has been read, that is, while the initialisation segment is fetched.
#[case::jump(Duration::ZERO, Some(Seek { at: Duration::ZERO, to: WITHIN_SECOND }), FRAMES[1])]
#[tokio::test(flavor = "multi_thread")]
async fn playback_begins_where_it_should(
    #[case] start_at: Duration,
    #[case] seek: Option<Seek>,
    #[case] of_first: u64,
) {
    let running = Running::start();
    let mut options = fixed("low", CmcdMode::Header);
    (options.start_at, options.session.seeks) = (start_at, Vec::from_iter(seek));
    let (played, bytes) = running.play("/film.mpd", options, &mut ()).await;
    played.result.unwrap();
    let packaged = Packaged::new(0);
    assert!(bytes == [packaged.initialization, packaged.segments[1..].concat()].concat());
    let frames = of_first + FRAMES[2] + FRAMES[3];
    assert_eq!(played.report.playback.frames_shown, frames);
    assert_eq!(played.report.dash.unwrap().first_segment, 1);
}

/// A playlist of these segments of `low`; `!` marks a gap.
fn holes(names: &str) -> String {
    let mut text = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXT-X-MAP:URI=\"init.mp4\"\n".to_owned();
    for name in names.split(' ') {
        let gap = name.strip_prefix('!').map_or("", |_| "#EXT-X-GAP\n");
        text.extend([format!("{gap}#EXTINF:3,\n{}.m4s\n", name.trim_start_matches('!'))]);
    }
    text + "#EXT-X-ENDLIST\n"
}

#[rstest]
#[case::the_last_is_absent("0 1 4", &[90, 90], &[(2, "404 Not Found to /low/4.m4s")])]
#[case::the_first_is_absent("4 1 2", &[90, 88], &[(0, "404 Not Found to /low/4.m4s")])]
#[case::several_are_absent("0 7 8 9 1", &[90, 90], &[(1, "404"), (2, "404"), (3, "404")])]
#[case::ten_gaps(
    "0 !1 !1 !1 !1 !1 !1 !1 !1 !1 !1 2", &[90, 88], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|at| (at, "GAP"))
)]
#[case::failures_with_one_fetched_between(
    "0 4 5 6 7 8 9 1 4 5 6 7 8 9", &[90, 90], &[1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13].map(|at| (at, "404"))
)]
#[case::broken("0 zeros 2", &[90, 88], &[(1, "/low/zeros.m4s cannot be played")])]
#[case::cut_off("0 half 2", &[90, 88], &[(1, "/low/half.m4s cannot be played")])]
#[case::a_gap("0 !1 2", &[90, 88], &[(1, "#EXT-X-GAP")])]
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_broken_segment_is_an_event_and_not_the_end(
    #[case] names: &str,
    #[case] frames: &[u64],
    #[case] passed_over: &[(usize, &str)],
) {
    let running = Running::start();
    running.write("low/zeros.m4s", [0; 100]);
    let segment = fs::read(running.directory.path().join("low/1.m4s")).unwrap();
    running.write("low/half.m4s", &segment[..200]);
    running.write("low/holes.m3u8", holes(names));
    let options = fixed("holes.m3u8", CmcdMode::Off);
    let (played, _) = running.play("/low/holes.m3u8", options, &mut ()).await;
    played.result.unwrap();
    let report = played.report;
    assert_eq!(report.outcome, Outcome::Incomplete(passed_over.len()));
    assert_eq!(report.playback.frames_shown, frames.iter().sum::<u64>());
    let dash = report.dash.unwrap();
    assert_eq!(dash.segments_fetched, frames.len());
    assert_eq!(dash.passed_over.len(), passed_over.len());
    for (over, (segment, words)) in dash.passed_over.iter().zip(passed_over) {
        assert_eq!(over.segment, *segment);
        assert!(over.reason.contains(words), "{}", over.reason);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_the_tenth_failure_in_a_row() {
    let running = Running::start();
    running.write(
        "low/holes.m3u8",
        holes("4 0 !1 50 51 52 53 54 55 56 57 58 59 1 2"),
    );
    let options = fixed("holes.m3u8", CmcdMode::Off);
    let (played, _) = running.play("/low/holes.m3u8", options, &mut ()).await;
    let error = played.result.unwrap_err().to_string();
    assert_contains(&error, &["404 Not Found to /low/50.m4s"]);
    let dash = played.report.dash.unwrap();
    assert_eq!((dash.segments_fetched, dash.passed_over.len()), (1, 12));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_title_without_some_segments_is_incomplete_and_the_run_fails() {
    let running = Running::start();
    running.write("low/holes.m3u8", holes("0 4 5"));
    let output = running.run("low/holes.m3u8", &["--json"]).await;
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["outcome"], "incomplete");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_playlist_of_frames_for_trick_modes_is_left_out() {
    let running = Running::start();
    let frames = holes("0 1 2 3").replace("#EXT-X-MAP", "#EXT-X-I-FRAMES-ONLY\n#EXT-X-MAP");
    running.write("low/frames.m3u8", frames);
    let main = "#EXT-X-STREAM-INF:BANDWIDTH=9000\nlow/frames.m3u8\n";
    let film = fs::read_to_string(running.directory.path().join("film.m3u8")).unwrap();
    running.write("tricks.m3u8", film + main);
    let options = fixed("low/index.m3u8", CmcdMode::Off);
    let (played, _) = running.play("/tricks.m3u8", options, &mut ()).await;
    played.result.unwrap();
    let report = played.report;
    assert_eq!(report.dash.unwrap().representations.len(), 2);
    assert_eq!(report.notes, ["not fetched: 1 representation of other data"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn periods_play_one_after_the_other_with_their_own_initialisation() {
    let running = Running::start();
    running.write("low/advert.mp4", Packaged::new(0).initialization);
    let period = |initialization: &str, first: u32, rate: u32| {
        format!(
            "<Period duration=\"PT6S\"><AdaptationSet contentType=\"video\"><SegmentTemplate duration=\"3\" \
             media=\"low/$Number$.m4s\" initialization=\"low/{initialization}\" startNumber=\"{first}\"/>\
             <Representation id=\"{rate}\" bandwidth=\"{rate}\" codecs=\"avc1.64000a\"/></AdaptationSet></Period>"
        )
    };
    let text = period("init.mp4", 0, 20_000) + &period("advert.mp4", 2, 30_000);
    running.write("periods.mpd", format!("<MPD>{text}</MPD>"));
    let options = fixed("20000", CmcdMode::Off);
    let (played, bytes) = running.play("/periods.mpd", options, &mut ()).await;
    played.result.unwrap();
    let low = Packaged::new(0);
    let [first, second] = [&low.segments[..2], &low.segments[2..]].map(<[_]>::concat);
    assert!(
        bytes
            == [&low.initialization, &first, &low.initialization, &second]
                .map(Vec::as_slice)
                .concat()
    );
    assert_eq!(played.report.playback.frames_shown, FRAMES.iter().sum::<u64>());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_own_origin_is_no_other_host() {
    let running = Running::start();
    let port = running.server.local_addr().unwrap().port();
    let own = format!("https://localhost:{port}/");
    let film = fs::read_to_string(running.directory.path().join("film.mpd")).unwrap();
    let bases = format!("<Period><BaseURL>https://cdn.invalid/</BaseURL><BaseURL>{own}</BaseURL>");
    running.write("own.mpd", film.replace("<Period>", &bases));
    let list = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=20000\n";
    let backup = list.replace("#EXTM3U\n", "") + "https://cdn.invalid/low/index.m3u8\n";
    running.write("own.m3u8", format!("{list}{own}low/index.m3u8\n{backup}"));
    for (path, name) in [("/own.mpd", "low"), ("/own.m3u8", "index.m3u8")] {
        let (played, _) = running.play(path, fixed(name, CmcdMode::Off), &mut ()).await;
        played.result.unwrap();
        assert_eq!(played.report.playback.frames_shown, FRAMES.iter().sum::<u64>());
    }
}

#[rstest]
#[case::broken("/broken.mpd", "/broken.mpd cannot be read: line 3")]
#[case::no_media("/zeros.mpd", "/low/zeros-0 cannot be played: ")]
#[case::not_there("/none.mpd", "404 Not Found to /none.mpd")]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_played_is_named(#[case] path: &str, #[case] words: &str) {
    let running = Running::start();
    let (played, _) = running.play(path, fixed("low", CmcdMode::Header), &mut ()).await;
    let error = played.result.unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
    assert_eq!(played.report.outcome, Outcome::Failed(error));
    assert_eq!(played.report.playback.startup_delay, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_plays_a_manifest_adaptively() {
    let running = Running::start();
    let output = running.run("film.mpd", &["--json"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["outcome"], "complete");
    let dash = &json["dash"];
    assert_eq!(dash["segments_fetched"], 4);
    assert_eq!(
        dash["series"]["representation"][0], 0,
        "1 Mbit/s is assumed at first"
    );
    assert_eq!(dash["representations"][1]["rate_bps"], 1_200_000);

    for (more, fix) in [
        (["--abr", "fixed:4k"], "expected one of: low, high"),
        (["--start-at", "1h"], "duration (12s)"),
    ] {
        let output = running.run("film.mpd", &more).await;
        assert_contains(&text(&output.stderr), &[fix]);
        assert_eq!(output.status.code(), Some(2));
    }
}
