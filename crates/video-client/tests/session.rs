//! Whole sessions over loopback UDP, with servers that behave and servers that do not.
#![expect(
    clippy::disallowed_methods,
    reason = "these tests run on tokio and in real time"
)]
#![expect(clippy::unwrap_used, reason = "what a test needs and cannot have fails it")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Manner, media, serve};
use playrate_media::{Limits, StreamParser};
use playrate_transport::{Client, ClientOptions, Target, Trust};
use playrate_units::{Bitrate, Bytes};
use quinn::{Runtime, TokioRuntime};
use rstest::rstest;
use video_client::dash::{DashOptions, DashSession, MediaSegment, Presentation, Representation};
use video_client::playout::{Happening, PLAYOUT_BUFFER_448, Start};
use video_client::report::Outcome;
use video_client::{Observer, PlayError, PlayOptions, Played, Progress, Session};

const TITLE: &str = "title-720p.mp4";

/// Plays `file` from a server of this `manner` into memory, until `stop`.
async fn play(
    file: &bytes::Bytes,
    manner: Manner,
    options: PlayOptions,
    observer: &mut impl Observer,
    stop: impl Future<Output = ()> + Send,
) -> (Played, Vec<u8>) {
    let (address, pin) = serve(file.clone(), manner);
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let client = Client::bind(Arc::clone(&runtime), ClientOptions::new(Trust::Pin(pin))).unwrap();
    let target = Target::at("localhost", address);
    let session = Session::new(runtime, client, target, "/title.mp4", options);
    let mut bytes = Vec::new();
    let played = session.play(&mut bytes, observer, stop).await.unwrap();
    (played, bytes)
}

async fn play_whole(file: &bytes::Bytes, manner: Manner) -> (Played, Vec<u8>) {
    play(
        file,
        manner,
        PlayOptions::default(),
        &mut (),
        std::future::pending(),
    )
    .await
}

fn frames_of(file: &[u8]) -> u64 {
    let mut parser = StreamParser::new(Limits::default());
    parser.push(file).unwrap();
    parser.drain_frames().count() as u64
}

#[derive(Default)]
struct Watcher {
    progress: Vec<Progress>,
    shown: u64,
}

impl Observer for Watcher {
    fn event(&mut self, event: &video_client::playout::Event) {
        self.shown += u64::from(matches!(event.what, Happening::Shown { .. }));
    }

    fn progress(&mut self, progress: &Progress) {
        self.progress.push(progress.clone());
    }
}

#[rstest]
#[case::progressive(TITLE)]
#[case::moov_first("fixtures/progressive-moov-first.mp4")]
#[case::moov_last("fixtures/progressive-moov-last.mp4")]
#[case::fragmented("fixtures/fragmented.mp4")]
#[tokio::test(flavor = "multi_thread")]
async fn a_title_of_any_layout_comes_whole_and_every_frame_is_seen(#[case] name: &str) {
    let file = media(name);
    let mut watcher = Watcher::default();
    let never = std::future::pending();
    let (played, bytes) = play(&file, Manner::Good, PlayOptions::default(), &mut watcher, never).await;
    played.result.unwrap();
    assert!(bytes == file, "the bytes are the title's");
    let report = &played.report;
    let frames = frames_of(&file);
    assert_eq!(report.outcome, Outcome::Complete);
    assert_eq!((report.playout.frames, report.playout.remaining()), (frames, 0));
    assert_eq!(report.playout.shown + report.playout.discarded, frames);
    assert_eq!(
        watcher.shown, report.playout.shown,
        "the observer hears of every frame"
    );
    assert!(
        report.playout.ended.unwrap() > report.network.ended,
        "the report runs to the end of the title"
    );
    assert_eq!(report.network.received, Bytes::from(file.len()));
    assert_eq!(report.network.promised, Some(Bytes::from(file.len())));
    assert!(report.title.as_ref().unwrap().codecs.starts_with("avc1."));
    assert!(!report.series.is_empty() && !watcher.progress.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_leaves_mid_stream_leaves_a_report_of_what_came() {
    let file = media(TITLE);
    let (played, bytes) = play_whole(&file, Manner::LeavesAfter(3_000_000)).await;
    let error = played.result.unwrap_err();
    assert!(matches!(error, PlayError::Exchange(_)), "{error}");
    let report = &played.report;
    assert!(matches!(&report.outcome, Outcome::Failed(reason) if *reason == error.to_string()));
    assert!(
        bytes == file[..bytes.len()],
        "what came is the beginning of the title"
    );
    assert_eq!(report.network.received, Bytes::from(bytes.len()));
    assert!(
        report.network.received >= PLAYOUT_BUFFER_448,
        "{}",
        report.network.received
    );
    assert!(report.playout.startup_delay.is_some());
    assert!(report.playout.remaining() > 0);
    assert_eq!(report.playout.ended, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_title_is_an_error_with_its_status() {
    let (played, bytes) = play_whole(&media("fixtures/fragmented.mp4"), Manner::NotFound).await;
    let error = played.result.unwrap_err().to_string();
    assert!(
        error.contains("404") && error.contains("/title.mp4") && error.contains("check the path"),
        "{error}"
    );
    assert!(bytes.is_empty(), "the body of an error is not the title");
    assert!(played.report.network.connected.is_some());
    assert_eq!(played.report.network.first_byte, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_mp4_is_refused_as_soon_as_that_is_known() {
    let file: bytes::Bytes = b"this is a text about films\n".repeat(100_000).into();
    let (played, bytes) = play_whole(&file, Manner::Good).await;
    let error = played.result.unwrap_err();
    assert!(matches!(error, PlayError::Media(_)), "{error}");
    assert!(bytes.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_cut_short_is_an_error_at_its_end() {
    let file = media("fixtures/progressive-moov-first.mp4");
    let (played, _) = play_whole(&file.slice(..file.len() - 2_000), Manner::Good).await;
    let error = played.result.unwrap_err();
    assert!(matches!(error, PlayError::Media(_)), "{error}");
    assert!(played.report.playout.frames > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_silent_is_given_up_after_the_timeout() {
    let options = PlayOptions {
        timeout: Duration::from_secs(1),
        ..PlayOptions::default()
    };
    let manner = Manner::FallsSilentAfter(100_000);
    let (played, bytes) = play(&media(TITLE), manner, options, &mut (), std::future::pending()).await;
    let error = played.result.unwrap_err();
    assert!(matches!(error, PlayError::Silent(_)), "{error}");
    assert_eq!(bytes.len(), 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_receive_buffer_pauses_reading_until_frames_are_shown() {
    let mut options = PlayOptions::default();
    options.playout.receive_buffer = options.playout.playout_buffer;
    let receive_buffer = options.playout.receive_buffer;
    let stop = tokio::time::sleep(Duration::from_secs(2));
    let mut watcher = Watcher::default();
    let (played, bytes) = play(&media(TITLE), Manner::Good, options, &mut watcher, stop).await;
    assert!(matches!(played.result, Err(PlayError::Stopped)));
    assert_eq!(played.report.outcome, Outcome::Stopped);
    assert!(played.report.playout.shown > 0);
    // The piece that fills it may go beyond.
    let slack = Bytes::new(16 << 10);
    for progress in &watcher.progress {
        assert!(progress.held <= receive_buffer + slack, "{progress:?}");
        assert!(progress.playout_buffer_fill <= progress.playout_buffer);
    }
    assert!(watcher.progress.iter().any(|progress| progress.reading_paused));
    assert!(
        bytes.len() < 3_000_000,
        "{} bytes were read in 2 s of a 2.8 Mbit/s title",
        bytes.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_works_while_the_sink_is_stuck() {
    struct Stuck;
    impl video_client::Sink for Stuck {
        async fn write(&mut self, _: bytes::Bytes) -> std::io::Result<()> {
            std::future::pending().await
        }
        async fn finish(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (address, pin) = serve(media("fixtures/fragmented.mp4"), Manner::Good);
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let client = Client::bind(Arc::clone(&runtime), ClientOptions::new(Trust::Pin(pin))).unwrap();
    let session = Session::new(
        runtime,
        client,
        Target::at("localhost", address),
        "/title.mp4",
        PlayOptions::default(),
    );
    let stop = tokio::time::sleep(Duration::from_millis(300));
    let played = session.play(&mut Stuck, &mut (), stop).await.unwrap();
    assert!(matches!(played.result, Err(PlayError::Stopped)));
    assert!(played.report.network.received > Bytes::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_player_counts_only_what_a_slow_sink_has_been_offered() {
    /// Takes 50 kB and then 16 kB every 50 ms.
    struct Slow(usize);
    impl video_client::Sink for Slow {
        async fn write(&mut self, bytes: bytes::Bytes) -> std::io::Result<()> {
            self.0 += bytes.len();
            if self.0 > 50_000 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(())
        }
        async fn finish(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (address, pin) = serve(media(TITLE), Manner::Good);
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let client = Client::bind(Arc::clone(&runtime), ClientOptions::new(Trust::Pin(pin))).unwrap();
    let target = Target::at("localhost", address);
    let session = Session::new(runtime, client, target, "/title.mp4", PlayOptions::default());
    let stop = tokio::time::sleep(Duration::from_secs(1));
    let mut sink = Slow(0);
    let played = session.play(&mut sink, &mut (), stop).await.unwrap();
    assert!(matches!(played.result, Err(PlayError::Stopped)));
    assert_eq!(played.report.network.received, Bytes::from(sink.0));
    assert!(sink.0 < 50_000 + 22 * (16 << 10), "{} bytes in 1 s", sink.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_servers_key_is_refused_and_nothing_is_fetched() {
    let (address, _) = serve(media("fixtures/fragmented.mp4"), Manner::Good);
    let (_, other) = serve(bytes::Bytes::new(), Manner::Good);
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let client = Client::bind(Arc::clone(&runtime), ClientOptions::new(Trust::Pin(other))).unwrap();
    let mut options = PlayOptions::default();
    options.playout.start = Start::After(Duration::from_secs(1));
    let session = Session::new(
        runtime,
        client,
        Target::at("localhost", address),
        "/t.mp4",
        options,
    );
    // As a task of its own, as a lab runs many of them.
    let task = async move {
        session
            .play(&mut Vec::new(), &mut (), std::future::pending())
            .await
    };
    let played = tokio::spawn(task).await.unwrap().unwrap();
    let error = played.result.unwrap_err();
    assert!(error.to_string().contains(&other.to_string()), "{error}");
    assert_eq!(played.report.network.connected, None);
}

/// A title of three segments in two representations, all of them this very file.
fn ladder(segments: usize) -> Arc<Presentation> {
    let representation = |name: &str, kbps| Representation {
        name: name.to_owned(),
        rate: Bitrate::from_kbps(kbps),
        initialization: None,
        segments: (0..segments)
            .map(|number| MediaSegment {
                path: format!("/{name}/{number}.m4s"),
                bytes: None,
                duration: Duration::from_secs(3),
                pictures: 90,
            })
            .collect(),
    };
    Arc::new(Presentation::new(vec![representation("low", 100), representation("high", 200)]).unwrap())
}

async fn play_ladder(manner: Manner) -> (Played, Vec<u8>) {
    let file = media("fixtures/fragmented.mp4");
    let (address, pin) = serve(file, manner);
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let client = Client::bind(Arc::clone(&runtime), ClientOptions::new(Trust::Pin(pin))).unwrap();
    let options = DashOptions {
        timeout: Duration::from_millis(300),
        ..DashOptions::default()
    };
    let target = Target::at("localhost", address);
    let session = DashSession::new(runtime, client, target, "/film.mpd", ladder(3), options);
    let mut bytes = Vec::new();
    let never = std::future::pending();
    let played = session.play(&mut bytes, &mut (), never).await.unwrap();
    (played, bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adaptive_title_comes_segment_by_segment() {
    let (played, bytes) = play_ladder(Manner::Good).await;
    played.result.unwrap();
    assert_eq!(bytes.len(), 3 * media("fixtures/fragmented.mp4").len());
    let report = played.report;
    assert!(report.url.ends_with("/film.mpd"));
    assert_eq!((report.playout.shown, report.playout.underflows), (270, 0));
    let dash = report.dash.unwrap();
    assert_eq!(dash.segments.len(), 3);
    assert!(
        dash.segments
            .windows(2)
            .all(|pair| pair[0].finished <= pair[1].requested),
        "one request at a time"
    );
}

#[rstest]
#[case::not_found(Manner::NotFound, "404")]
#[case::silent(Manner::FallsSilentAfter(5_000), "nothing came from the server for 300ms")]
#[tokio::test(flavor = "multi_thread")]
async fn an_adaptive_title_that_breaks_off_says_why(#[case] manner: Manner, #[case] words: &str) {
    let (played, _) = play_ladder(manner).await;
    let error = played.result.unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
    assert_eq!(played.report.playout.startup_delay, None);
    assert!(matches!(played.report.outcome, Outcome::Failed(_)));
}
