//! Packaged titles over loopback UDP from the product's own server: manifests, representations, and the data that both
//! sides exchange.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use playrate_cc::Playback;
use playrate_test_support::{assert_contains, client, fixture, text};
use playrate_transport::{ControllerChoice, Identity, Server, ServerOptions, Target};
use playrate_units::{Bitrate, Bytes};
use quinn::{Runtime, TokioRuntime};
use rstest::rstest;
use tempfile::TempDir;
use video_client::cmcd::{CmcdMode, CmcdOptions};
use video_client::dash::{Abr, DashOptions};
use video_client::report::Outcome;
use video_client::{Observer, Played, Progress, Seek, Session};
use video_server::library::Library;
use video_server::serve::{Settings, VideoServer};

use crate::common;

/// Numbers of frames of the four segments.
const FRAMES: [u64; 4] = [90, 90, 88, 90];
/// A position in the middle of the second segment.
const WITHIN_SECOND: Duration = Duration::from_millis(4_500);

/// The boxes of a file, by type and bytes.
fn boxes(file: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut rest = file;
    let mut found = Vec::new();
    while let Some(size) = rest.first_chunk::<4>() {
        let (one, after) = rest.split_at(u32::from_be_bytes(*size) as usize);
        found.push((&one[4..8], one));
        rest = after;
    }
    found
}

fn boxed(name: [u8; 4], body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(8 + body.len()).unwrap();
    [&size.to_be_bytes()[..], &name, body].concat()
}

/// The files of one representation.
struct Packaged {
    initialization: Vec<u8>,
    segments: Vec<Vec<u8>>,
}

impl Packaged {
    /// The four segments of the fixture (the last one repeats the first), each with `padding` bytes that no player
    /// reads.
    fn new(padding: usize) -> Self {
        let file = fs::read(fixture("fragmented-dash.mp4")).unwrap();
        let boxes = boxes(&file);
        let of = |wanted: &[u8; 4]| -> Vec<&[u8]> {
            let all = boxes.iter().filter(|(name, _)| name == wanted);
            all.map(|(_, bytes)| *bytes).collect()
        };
        let free = boxed(*b"free", &vec![0; padding]);
        let mut segments: Vec<_> = of(b"moof")
            .iter()
            .zip(of(b"mdat"))
            .map(|(moof, mdat)| [&free[..], moof, mdat].concat())
            .collect();
        segments.push(segments[0].clone());
        Self {
            initialization: [of(b"ftyp")[0], of(b"moov")[0]].concat(),
            segments,
        }
    }

    fn whole(&self) -> Vec<u8> {
        [&self.initialization[..], &self.segments.concat()].concat()
    }

    /// One file with a segment index, and the position of that index.
    fn indexed(&self) -> (Vec<u8>, std::ops::Range<usize>) {
        // Version 0, track 1, 1000 ticks per second, from time 0, the first immediately after, four of them.
        let mut words = vec![0, 1, 1_000, 0, 0, 4];
        for segment in &self.segments {
            words.extend([u32::try_from(segment.len()).unwrap(), 3_000, 0x9000_0000]);
        }
        let body: Vec<_> = words.into_iter().flat_map(u32::to_be_bytes).collect();
        let index = boxed(*b"sidx", &body);
        let begins = self.initialization.len();
        let file = [&self.initialization[..], &index, &self.segments.concat()].concat();
        (file, begins..begins + index.len())
    }
}

/// Padding of `high`: 1.2 Mbit/s.
const PADDING: usize = 450_000;

/// `low` at 14 kbit/s and `high` with this much padding, 12 s, as DASH, as HLS, and as DASH in one file each.
fn package(root: &Path, padding: usize) {
    let write = |name: &str, content: &[u8]| fs::write(root.join(name), content).unwrap();
    let (mut representations, mut single) = (String::new(), String::new());
    let mut main = "#EXTM3U\n".to_owned();
    for (name, padding, rate) in [("low", 0, 20_000), ("high", padding, padding / 3 * 8)] {
        let packaged = Packaged::new(padding);
        fs::create_dir(root.join(name)).unwrap();
        write(&format!("{name}/init.mp4"), &packaged.initialization);
        let mut playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXT-X-MAP:URI=\"init.mp4\"\n".to_owned();
        for (number, segment) in packaged.segments.iter().enumerate() {
            write(&format!("{name}/{number}.m4s"), segment);
            playlist.extend([format!("#EXTINF:3,\n{number}.m4s\n")]);
        }
        playlist.push_str("#EXT-X-ENDLIST\n");
        write(&format!("{name}/index.m3u8"), playlist.as_bytes());
        main.extend([format!(
            "#EXT-X-STREAM-INF:BANDWIDTH={rate},CODECS=\"avc1.64000a\"\n{name}/index.m3u8\n"
        )]);
        let (file, index) = packaged.indexed();
        write(&format!("{name}.mp4"), &file);
        let head = format!("<Representation id=\"{name}\" codecs=\"avc1.64000a\" bandwidth=\"{rate}\"");
        representations.extend([format!("{head}/>")]);
        single.extend([format!(
            "{head}><BaseURL>{name}.mp4</BaseURL><SegmentBase indexRange=\"{}-{}\"><Initialization range=\"0-{}\"/>\
             </SegmentBase></Representation>",
            index.start,
            index.end - 1,
            index.start - 1
        )]);
    }
    write("film.m3u8", main.as_bytes());
    let mpd = |name: &str, set: &str| {
        let text = format!(
            "<MPD mediaPresentationDuration=\"PT12S\">\
             <Period>\n<AdaptationSet contentType=\"video\">{set}</AdaptationSet>\n\
             <AdaptationSet contentType=\"audio\"><Representation id=\"sound\" codecs=\"mp4a.40.2\" \
             bandwidth=\"8000\"><SegmentTemplate media=\"sound-$Number$.m4s\" duration=\"3\"/></Representation>\
             </AdaptationSet></Period></MPD>"
        );
        write(name, text.as_bytes());
    };
    let template = "<SegmentTemplate media=\"$RepresentationID$/$Number$.m4s\" \
        initialization=\"$RepresentationID$/init.mp4\" duration=\"3\" startNumber=\"0\"/>";
    mpd("film.mpd", &format!("{template}{representations}"));
    mpd("single.mpd", &single);
    // Unplayable ones: malformed, and without boxes.
    mpd("broken.mpd", &format!("\n<{template}"));
    let zeros = template.replace("$Number$.m4s", "zeros-$Number$");
    mpd(
        "zeros.mpd",
        &format!("{zeros}<Representation id=\"low\" bandwidth=\"20000\"/>"),
    );
    write("low/zeros-0", &[0; 100]);
}

/// A server with a packaged title, and the knowledge of each connection's controller.
struct Running {
    server: VideoServer,
    directory: TempDir,
    identity: Identity,
    known: playrate_scripted::Known,
}

impl Running {
    fn start() -> Self {
        Self::with(PADDING)
    }

    fn with(padding: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        package(directory.path(), padding);
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let identity = Identity::development(&[]).unwrap();
        let options = ServerOptions::new(identity.clone());
        let transport = Server::bind(([127, 0, 0, 1], 0).into(), Arc::clone(&runtime), options).unwrap();
        let (registry, known) = playrate_scripted::watched();
        let settings = Settings::new(ControllerChoice::from_registry(&registry, "watched").unwrap());
        let library = Library::scan(directory.path()).unwrap();
        Self {
            server: VideoServer::start(transport, runtime, library, settings),
            directory,
            identity,
            known,
        }
    }

    /// Adds a file to the served directory.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.directory.path().join(name), content).unwrap();
    }

    async fn play(
        &self,
        path: &str,
        options: DashOptions,
        observer: &mut impl Observer,
    ) -> (Played, Vec<u8>) {
        // Keeps the server close to what the observer sees.
        let client = client(self.identity.pin(), |options| {
            options.transport.stream_receive_window = Bytes::new(256 << 10);
        });
        let target = Target::at("localhost", self.server.local_addr().unwrap());
        common::play(Session::new(client, target, path, options), observer).await
    }

    async fn run(&self, name: &str, more: &[&str]) -> Output {
        let url = format!("https://{}/{name}", self.server.local_addr().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_video-client"));
        command.args(["play", &url, "--pin", &self.identity.pin().to_string()]);
        command.args(more);
        let output = tokio::task::spawn_blocking(move || command.output());
        output.await.unwrap().unwrap()
    }
}

fn fixed(name: &str, cmcd: CmcdMode) -> DashOptions {
    let mut options = DashOptions::default();
    options.abr = Abr::Fixed(name.to_owned());
    options.session.cmcd = CmcdOptions {
        mode: cmcd,
        session: "6e2fb550-c457-11e9-bb97-0800200c9a66".to_owned(),
        ..CmcdOptions::default()
    };
    options
}

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
