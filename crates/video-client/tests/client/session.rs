//! Complete sessions over loopback UDP, with servers that behave and servers that do not.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{self, Manner, client_of, media, serve};
use playrate_media::{Limits, StreamParser};
use playrate_test_support::{assert_contains, client};
use playrate_transport::Target;
use playrate_units::{Bitrate, Bytes};
use rstest::rstest;
use tokio::sync::Notify;
use video_client::dash::{DashOptions, MediaSegment, Presentation, Representation};
use video_client::playout::{PLAYOUT_BUFFER_448, PlayoutEventKind, Start};
use video_client::report::Outcome;
use video_client::{Observer, PlayError, PlayOptions, Played, Progress, Session};

const TITLE: &str = "title-720p.mp4";

/// A session with `file` on a server of this `manner`.
fn session(file: &bytes::Bytes, manner: Manner, options: PlayOptions) -> Session {
    let (client, target) = client_of(file, manner);
    Session::new(client, target, "/title.mp4", options)
}

/// Plays `file` from a server of this `manner` into memory.
async fn play(file: &bytes::Bytes, manner: Manner, options: PlayOptions) -> (Played, Vec<u8>) {
    common::play(session(file, manner, options), &mut ()).await
}

async fn play_whole(file: &bytes::Bytes, manner: Manner) -> (Played, Vec<u8>) {
    play(file, manner, PlayOptions::default()).await
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
    /// Notified once frames have been shown and reading has paused.
    paused: Arc<Notify>,
}

impl Observer for Watcher {
    fn event(&mut self, event: &video_client::playout::PlayoutEvent) {
        self.shown += u64::from(matches!(event.kind, PlayoutEventKind::Shown { .. }));
    }

    fn progress(&mut self, progress: &Progress) {
        self.progress.push(progress.clone());
        if progress.reading_paused && self.shown > 0 {
            self.paused.notify_one();
        }
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
    let session = session(&file, Manner::Good, PlayOptions::default());
    let (played, bytes) = common::play(session, &mut watcher).await;
    played.result.unwrap();
    assert!(bytes == file, "the bytes are the title's");
    let report = &played.report;
    let (seen, frames) = (&report.playback, frames_of(&file));
    assert_eq!(report.outcome, Outcome::Complete);
    assert_eq!((seen.frames, seen.frames_remaining()), (frames, 0));
    assert_eq!(seen.frames_shown + seen.frames_discarded, frames);
    assert_eq!(
        watcher.shown, seen.frames_shown,
        "the observer receives every frame"
    );
    assert!(
        seen.ended > Some(report.network.ended),
        "the report runs to the end of the title"
    );
    let length = Bytes::from(file.len());
    assert_eq!(report.network.received, length);
    assert_eq!(report.network.promised, Some(length));
    assert!(report.title.as_ref().unwrap().codecs.starts_with("avc1."));
    assert!(!report.series.is_empty() && !watcher.progress.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_title_arrives_and_is_not_complete() {
    let mut file = media("fixtures/progressive-moov-last.mp4").to_vec();
    let find = |file: &[u8], name: &[u8]| file.windows(4).rposition(|window| window == name).unwrap();
    // The sample entry's last two boxes, of 39 bytes, make room for a `sinf` box.
    let (entry, room) = (find(&file, b"avc1"), find(&file, b"colr") - 4);
    file[entry..entry + 4].copy_from_slice(b"encv");
    file[room..room + 39]
        .copy_from_slice(b"\0\0\0\x27sinf\0\0\0\x0cfrmaavc1\0\0\0\x13schm\0\0\0\0cenc\0\x01\0");
    let (played, bytes) = play_whole(&file.into(), Manner::Good).await;
    played.result.unwrap();
    assert_eq!(Bytes::from(bytes.len()), played.report.network.received);
    assert_eq!(played.report.outcome, Outcome::Encrypted("cenc".to_owned()));
    assert_contains(&played.report.to_text(), &["encrypted (cenc)", "without a key"]);
    assert!(!played.report.to_text().contains("complete"));
    let json = played.report.to_json(false).unwrap();
    assert_contains(&json, &["\"outcome\": \"encrypted\""]);
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
    let received = report.network.received;
    assert_eq!(received, Bytes::from(bytes.len()));
    assert!(received >= PLAYOUT_BUFFER_448, "{received}");
    assert!(report.playback.startup_delay.is_some());
    assert!(report.playback.frames_remaining() > 0);
    assert_eq!(report.playback.ended, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_title_is_an_error_with_its_status() {
    let (played, bytes) = play_whole(&media("fixtures/fragmented.mp4"), Manner::NotFound).await;
    let error = played.result.unwrap_err().to_string();
    assert_contains(&error, &["404", "/title.mp4", "check the path"]);
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
    assert!(played.report.playback.frames > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_silent_is_given_up_after_the_timeout() {
    let mut options = PlayOptions::default();
    options.session.timeout = Duration::from_secs(5);
    let (played, bytes) = play(&media(TITLE), Manner::FallsSilentAfter(100_000), options).await;
    let error = played.result.unwrap_err();
    assert!(matches!(error, PlayError::Silent(_)), "{error}");
    assert_eq!(bytes.len(), 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_receive_buffer_pauses_reading_until_frames_are_shown() {
    let mut options = PlayOptions::default();
    options.playout.receive_buffer = options.playout.playout_buffer;
    let receive_buffer = options.playout.receive_buffer;
    let (mut watcher, mut bytes) = (Watcher::default(), Vec::new());
    let paused = Arc::clone(&watcher.paused);
    let stop = async {
        paused.notified().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    let session = session(&media(TITLE), Manner::Good, options);
    let played = session.play(&mut bytes, &mut watcher, stop).await.unwrap();
    assert!(matches!(played.result, Err(PlayError::Stopped)));
    assert_eq!(played.report.outcome, Outcome::Stopped);
    assert!(played.report.playback.frames_shown > 0);
    // The piece that fills it may exceed the limit.
    let slack = Bytes::new(16 << 10);
    for progress in &watcher.progress {
        assert!(progress.held <= receive_buffer + slack, "{progress:?}");
    }
    let (read, time) = (Bytes::from(bytes.len()), played.report.network.ended);
    let most = receive_buffer + slack + played.report.average_rate.unwrap() * time * 2;
    assert!(read < most, "{read} were read in {time:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_works_while_the_sink_is_stuck() {
    /// Notifies of the first write, which never completes.
    struct Stuck(Arc<Notify>);
    impl video_client::Sink for Stuck {
        async fn write(&mut self, _: bytes::Bytes) -> std::io::Result<()> {
            self.0.notify_one();
            std::future::pending().await
        }
    }
    let file = media("fixtures/fragmented.mp4");
    let session = session(&file, Manner::Good, PlayOptions::default());
    let is_stuck = Arc::new(Notify::new());
    let mut sink = Stuck(Arc::clone(&is_stuck));
    let stop = is_stuck.notified();
    let played = session.play(&mut sink, &mut (), stop).await.unwrap();
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
    }
    let session = session(&media(TITLE), Manner::Good, PlayOptions::default());
    let stop = tokio::time::sleep(Duration::from_secs(1));
    let mut sink = Slow(0);
    let played = session.play(&mut sink, &mut (), stop).await.unwrap();
    assert!(matches!(played.result, Err(PlayError::Stopped)));
    assert_eq!(played.report.network.received, Bytes::from(sink.0));
    // The sink has one more piece, and one may exceed the first bytes.
    let pieces = played.report.network.ended.as_millis() / 50 + 2;
    let most = 50_000 + pieces * (16 << 10);
    assert!((sink.0 as u128) < most, "{} bytes of at most {most}", sink.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_servers_key_is_refused_and_nothing_is_fetched() {
    let (address, _) = serve(media("fixtures/fragmented.mp4"), Manner::Good);
    let (_, other) = serve(bytes::Bytes::new(), Manner::Good);
    let mut options = PlayOptions::default();
    options.playout.start = Start::After(Duration::from_secs(1));
    let target = Target::at("localhost", address);
    let session = Session::new(client(other, |_| {}), target, "/t.mp4", options);
    // A separate task, like the many that a lab runs.
    let task = async move { common::play(session, &mut ()).await };
    let (played, _) = tokio::spawn(task).await.unwrap();
    let error = played.result.unwrap_err().to_string();
    assert_contains(&error, &[&other.to_string()]);
    assert_eq!(played.report.network.connected, None);
}

/// A title of three segments in two representations, all of them this same file.
fn ladder(segments: usize) -> Arc<Presentation> {
    let segment = |path| MediaSegment {
        path,
        bytes: None,
        duration: Duration::from_secs(3),
        frames: 90,
        hidden: Duration::ZERO,
        is_gap: false,
    };
    let representation = |(name, kbps): (&str, u64)| Representation {
        name: name.to_owned(),
        rate: Bitrate::from_kbps(kbps),
        initializations: Vec::new(),
        segments: (0..segments)
            .map(|number| segment(format!("/{name}/{number}.m4s")))
            .collect(),
    };
    let both = [("low", 100), ("high", 200)].map(representation);
    Arc::new(Presentation::new(both.into()).unwrap())
}

async fn play_ladder(manner: Manner) -> (Played, Vec<u8>) {
    let (client, target) = client_of(&media("fixtures/fragmented.mp4"), manner);
    let mut options = DashOptions::default();
    options.presentation = Some(ladder(3));
    options.session.timeout = Duration::from_secs(5);
    common::play(Session::new(client, target, "/film.mpd", options), &mut ()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adaptive_title_comes_segment_by_segment() {
    let (played, bytes) = play_ladder(Manner::Good).await;
    played.result.unwrap();
    assert_eq!(bytes.len(), 3 * media("fixtures/fragmented.mp4").len());
    let report = played.report;
    assert!(report.url.ends_with("/film.mpd"));
    let seen = &report.playback;
    assert_eq!((seen.frames_shown, seen.underflow_events), (270, 0));
    assert_eq!(report.cmsd.samples.len(), 3, "one for each response");
    let dash = report.dash.unwrap();
    assert_eq!(dash.segments.len(), 3);
    let transfers: Vec<_> = dash.segments.iter().map(|it| it.transfer).collect();
    let in_order = transfers.is_sorted_by(|one, next| one.finished <= next.requested);
    assert!(in_order, "one request at a time");
}

#[rstest]
#[case::not_found(Manner::NotFound, "404", 0)]
#[case::silent(Manner::FallsSilentAfter(5_000), "no data from the server for 5s", 1)]
#[tokio::test(flavor = "multi_thread")]
async fn an_adaptive_title_that_breaks_off_says_why(
    #[case] manner: Manner,
    #[case] words: &str,
    #[case] successful: usize,
) {
    let (played, _) = play_ladder(manner).await;
    let error = played.result.unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
    assert_eq!(played.report.playback.startup_delay, None);
    let cmsd = played.report.cmsd.samples.len();
    assert_eq!(cmsd, successful, "the CMSD of an error does not count");
    assert!(matches!(played.report.outcome, Outcome::Failed(_)));
}
