//! Sessions over loopback UDP that request the rest of interrupted responses.

use std::time::Duration;

use playrate_test_support::raw::{self, OK, raw_server};
use playrate_test_support::{assert_contains, client};
use playrate_transport::Target;
use playrate_units::Bytes;
use rstest::rstest;
use tokio::sync::watch;
use video_client::dash::DashOptions;
use video_client::report::Interruptions;
use video_client::{Observer, PlayError, PlayOptions, Played, Progress, ReconnectOptions, Session, Sink};

use crate::common::{self, Interrupts, Manner, client_of, media, serve_watched};

/// Keeps the bytes of a title and reports their number.
struct Taking {
    bytes: Vec<u8>,
    taken: watch::Sender<usize>,
}

impl Sink for Taking {
    async fn write(&mut self, bytes: bytes::Bytes) -> std::io::Result<()> {
        self.bytes.extend_from_slice(&bytes);
        self.taken.send_replace(self.bytes.len());
        Ok(())
    }
}

fn film() -> bytes::Bytes {
    media("fixtures/progressive-moov-first.mp4")
}

/// Options of a session that reconnects.
fn reconnecting() -> PlayOptions {
    let mut options = PlayOptions::default();
    options.session.reconnect = Some(ReconnectOptions::default());
    options
}

/// Plays the film from a server of this `manner`.
async fn play_watched(
    manner: Manner,
    options: PlayOptions,
    observer: &mut impl Observer,
) -> (Played, Vec<u8>) {
    let (taken, seen) = watch::channel(0);
    let (address, pin) = serve_watched(film(), manner, seen);
    let target = Target::at("localhost", address);
    let session = Session::new(client(pin, |_| {}), target, "/title.mp4", options);
    let (bytes, never) = (Vec::new(), std::future::pending());
    let mut sink = Taking { bytes, taken };
    let played = session.play(&mut sink, observer, never).await.unwrap();
    (played, sink.bytes)
}

async fn play(manner: Manner) -> (Played, Vec<u8>) {
    play_watched(manner, reconnecting(), &mut ()).await
}

/// Asserts that the film arrived completely. Returns the session's interruptions.
fn whole((played, bytes): (Played, Vec<u8>)) -> Interruptions {
    played.result.unwrap();
    assert!(bytes == film(), "the bytes are the title's");
    played.report.network.interruptions
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_is_cancelled_again_and_again_is_fetched_in_parts() {
    let seen = whole(play(Manner::Interrupts(Interrupts::after(12_000))).await);
    assert_eq!((seen.count, seen.reconnects), (4, 0), "on one connection");
    assert_eq!(seen.disconnected, Duration::ZERO);
    assert!(seen.recorded.iter().all(|it| it.resumed.is_some()), "{seen:?}");
}

#[rstest]
#[case::untagged(Interrupts { tagged: false, ..Interrupts::after(12_000) }, "no strong ETag")]
#[case::without_ranges(Interrupts { ranges: false, ..Interrupts::after(12_000) }, "all of it")]
#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_cannot_be_continued_is_an_error_that_says_why(
    #[case] how: Interrupts,
    #[case] words: &str,
) {
    let (played, bytes) = play(Manner::Interrupts(how)).await;
    let error = played.result.unwrap_err();
    assert!(matches!(error, PlayError::NotResumable { .. }), "{error}");
    assert_contains(&error.to_string(), &[words, "the peer cancelled"]);
    assert!(bytes == film()[..12_000]);
}

#[rstest]
#[case::too_short(-1, true)]
#[case::empty(-46_557, true)]
#[case::too_long(1, true)]
#[case::shorter_than_its_range_without_a_length_before(-1, false)]
#[tokio::test(flavor = "multi_thread")]
async fn a_rest_of_another_length_than_declared_is_an_error(#[case] surplus: isize, #[case] declared: bool) {
    let how = Interrupts {
        declared,
        surplus,
        ..Interrupts::after(12_000)
    };
    let (played, bytes) = play(Manner::Interrupts(how)).await;
    let error = played.result.unwrap_err();
    let PlayError::WrongLength {
        declared, received, ..
    } = &error
    else {
        panic!("{error}");
    };
    let length = film().len();
    assert_eq!(*declared, Bytes::from(length));
    assert_eq!(
        *received,
        Bytes::from(length.saturating_add_signed(surplus)),
        "{error}"
    );
    assert!(bytes == film()[..bytes.len()]);
}

#[rstest]
#[case::rejected(0x10b)]
#[case::cancelled(0x10c)]
#[case::internal_error(0x102)]
#[case::load(0x107)]
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_the_server_did_not_answer_is_sent_again(#[case] code: u32) {
    let (address, pin) = raw_server(100_000, move |number, mut send, mut receive| async move {
        receive.read_to_end(10_000).await.unwrap();
        if number < 2 {
            send.reset(code.into()).unwrap();
        } else {
            send.write_all(&[OK, &raw::data(&film())].concat()).await.unwrap();
            send.finish().unwrap();
        }
    });
    let target = Target::at("localhost", address);
    let session = Session::new(client(pin, |_| {}), target, "/title.mp4", reconnecting());
    let seen = whole(common::play(session, &mut ()).await);
    assert_eq!(seen.recorded.len(), 1);
    assert_contains(&seen.recorded[0].reason, &[&format!("{code:#x}")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_lost_between_the_last_byte_and_the_end_is_no_interruption() {
    let seen = whole(play(Manner::LeavesAfter(film().len())).await);
    assert_eq!(seen, Interruptions::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_of_unknown_length_that_lacks_only_its_end_is_complete() {
    let how = Interrupts {
        declared: false,
        ..Interrupts::after(film().len())
    };
    let seen = whole(play(Manner::Interrupts(how)).await);
    assert_eq!(seen.count, 1);
    assert!(seen.recorded[0].resumed.is_some(), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observer_that_blocks_is_no_silence_of_the_server() {
    /// Takes longer than the timeout this many times.
    struct Slow(u32);
    impl Observer for Slow {
        fn progress(&mut self, _: &Progress) {
            if let Some(left) = self.0.checked_sub(1) {
                self.0 = left;
                std::thread::sleep(Duration::from_millis(3_500));
            }
        }
    }
    let mut options = reconnecting();
    options.session.timeout = Duration::from_secs(3);
    let seen = whole(play_watched(Manner::Good, options, &mut Slow(2)).await);
    assert_eq!(seen, Interruptions::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_player_plays_on_while_the_rest_of_a_response_is_awaited() {
    #[derive(Default)]
    struct Watcher(Vec<Duration>);
    impl Observer for Watcher {
        fn progress(&mut self, progress: &Progress) {
            self.0.push(progress.at);
        }
    }
    let mut watcher = Watcher::default();
    let how = Interrupts {
        delay: Duration::from_secs(3),
        ..Interrupts::after(30_000)
    };
    let played = play_watched(Manner::Interrupts(how), reconnecting(), &mut watcher).await;
    let seen = whole(played);
    let interruption = &seen.recorded[0];
    let times = interruption.began..interruption.resumed.unwrap();
    let calls = watcher.0.iter().filter(|&at| times.contains(at)).count();
    assert!(calls >= 4, "{calls} calls in {times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_length_of_a_file_is_asked_for_again_after_a_refusal_in_mid_session() {
    // A playlist that does not declare its rate, so that the length of the first segment determines it.
    let playlist =
        "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:9,\n0.m4s\n#EXT-X-ENDLIST\n";
    let (client, target) = client_of(&playlist.into(), Manner::FullForHead);
    let mut options = DashOptions::default();
    let mut reconnect = ReconnectOptions::default();
    reconnect.limit = Duration::from_millis(5_500);
    options.session.reconnect = Some(reconnect);
    let session = Session::new(client, target, "/film.m3u8", options);
    let (played, _) = common::play(session, &mut ()).await;
    let error = played.result.unwrap_err();
    let PlayError::GivenUp { tried, last, .. } = &error else {
        panic!("{error}");
    };
    assert!(matches!(**last, PlayError::Status { .. }), "{error}");
    assert!(
        *tried >= Duration::from_secs(2),
        "asked again after a second each: {error}"
    );
}
