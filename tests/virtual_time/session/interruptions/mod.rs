//! Sessions whose path fails temporarily, and whose server goes away and comes back.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playrate_media::{FrameTrace, MediaSource, TraceSource};
use playrate_netsim::{LinkConfig, PathConfig, QueueLimit, Rate, Seed};
use playrate_transport::{ConnectError, EndpointKey, Identity};
use playrate_units::{Bitrate, Bytes};
use video_client::playout::{Clock, Fill, PlayoutConfig};
use video_client::report::{Interruption, Interruptions, QualityReport};
use video_client::{FrameSource, PlayError, PlayOptions, Played, ReconnectOptions, Session};
use video_server::library::Library;
use video_server::serve::{Observer, SessionSummary, Settings, VideoServer};

use crate::rig::{Rig, reconnecting};

mod outages;
mod segments;

const RATE: Bitrate = Bitrate::from_kbps(400);

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A title of 400 kbit/s. Each duration gives a different file.
fn title(duration: Duration) -> Arc<TraceSource> {
    let trace: FrameTrace = "0.00,60000,K\n0.04,9000,_\n0.08,9000,_\n0.12,9000,_\n"
        .parse()
        .unwrap();
    let trace = trace.repeat_to(duration).unwrap().scale_to_rate(RATE).unwrap();
    Arc::new(TraceSource::new(&trace))
}

fn bytes_of(title: &TraceSource) -> Vec<u8> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < title.len() {
        bytes.extend_from_slice(&title.read_at(bytes.len() as u64, 1 << 20).unwrap());
    }
    bytes
}

fn library(title: &Arc<TraceSource>) -> Library {
    Library::new()
        .with_source("title.mp4", Arc::clone(title) as Arc<_>)
        .unwrap()
}

/// Starts a server of `title` whose endpoint has this key. The previous server vanishes.
fn start(rig: &Rig, title: &Arc<TraceSource>, settings: Settings, key: &EndpointKey) -> VideoServer {
    rig.start(library(title), settings, |options| {
        options.endpoint_key = Some(key.clone());
    })
}

fn settings() -> Settings {
    Settings::new("cubic".parse().unwrap())
}

/// A path of twice the title's rate, except at the times of `rate`; both directions fail together.
fn path(rate: &str) -> PathConfig {
    let rate: Rate = rate.parse().unwrap();
    let queue = QueueLimit::Bytes(Bytes::from_kb(40));
    let link = LinkConfig::new(rate, Duration::from_millis(20)).with_queue(queue);
    PathConfig::new(link.clone(), link)
}

fn steady() -> PathConfig {
    path("800kbit/s")
}

/// A player of `title` with a buffer of one second that stops its clock when the buffer is empty.
fn options(title: &Arc<TraceSource>, reconnect_limit: Duration) -> PlayOptions {
    let second = RATE * secs(1);
    let clock = Clock::Rebuffer(Fill::Bytes(second));
    let mut options = PlayOptions::default();
    options.playout = PlayoutConfig::new(second, clock);
    options.frames = FrameSource::Index(Arc::clone(title) as Arc<_>);
    options.session = reconnecting(reconnect_limit);
    options
}

/// Plays `title` while `happen` acts on the server.
fn play(
    rig: &Rig,
    title: &Arc<TraceSource>,
    options: PlayOptions,
    happen: impl Future<Output = ()>,
) -> (Played, Vec<u8>) {
    let (client, target) = rig.client("client", |_| {});
    let session = Session::new(client, target, "/title.mp4", options);
    let (mut bytes, mut observer) = (Vec::new(), ());
    let playing = session.play(&mut bytes, &mut observer, std::future::pending());
    let (played, ()) = rig.run(async { tokio::join!(playing, happen) });
    let played = played.unwrap();
    assert_eq!(played.report.network.received, Bytes::from(bytes.len()));
    assert!(
        bytes == bytes_of(title)[..bytes.len()],
        "the bytes are the title's"
    );
    (played, bytes)
}

/// The same; the title must arrive completely.
fn play_whole(rig: &Rig, title: &Arc<TraceSource>, happen: impl Future<Output = ()>) -> QualityReport {
    let (played, bytes) = play(rig, title, options(title, secs(60)), happen);
    played.result.unwrap();
    assert_eq!(bytes.len() as u64, title.len());
    played.report
}

/// Waits on the simulation's clock.
async fn sleep(rig: &Rig, time: Duration) {
    playrate_transport::time::sleep(&*rig.runtime, time).await;
}

/// Plays the title on `path` from a server that stays; it must arrive completely.
fn play_through(path: &PathConfig, duration: Duration) -> QualityReport {
    let (rig, title) = (Rig::new(Seed::new(1), path), title(duration));
    let _server = rig.start(library(&title), settings(), |_| {});
    play_whole(&rig, &title, async {})
}

/// Fails if `time` is not between these seconds.
#[track_caller]
fn assert_within(time: Duration, seconds: Range<u64>) {
    assert!(
        (secs(seconds.start)..secs(seconds.end)).contains(&time),
        "{time:?} is not in {seconds:?}"
    );
}

/// The time that a session spent trying to reconnect, and its last error.
fn given_up(error: &PlayError) -> (Duration, &PlayError) {
    match error {
        PlayError::GivenUp { tried, last, .. } => (*tried, last),
        _ => panic!("{error}"),
    }
}

/// The interruption of a session with exactly one.
fn interruption(report: &QualityReport) -> &Interruption {
    let [interruption] = &report.network.interruptions.recorded[..] else {
        panic!("{:?}", report.network.interruptions);
    };
    interruption
}

#[test]
fn a_short_outage_is_survived_on_the_same_connection() {
    let report = play_through(&path("800kbit/s,0bit/s@20s,800kbit/s@25s"), secs(60));
    assert_eq!(report.network.interruptions.reconnects, 0);
    assert_eq!(report.playback.underflow_events, 0);
}

#[test]
fn a_long_outage_is_survived_on_another_connection_and_not_seen_if_the_buffer_lasts() {
    // After 60 s of the title's double rate, the buffer holds 60 s.
    let report = play_through(&path("800kbit/s,0bit/s@60s,800kbit/s@100s"), secs(150));
    assert!(report.network.interruptions.reconnects >= 1);
    assert_eq!(report.playback.underflow_events, 0);
    let interruption = interruption(&report);
    assert_within(interruption.resumed.unwrap(), 100..104);
}

#[test]
fn a_long_outage_is_a_stall_like_any_other_if_the_buffer_does_not_last() {
    // After 20 s the buffer holds 20 s, so 20 s are missing.
    let report = play_through(&path("800kbit/s,0bit/s@20s,800kbit/s@60s"), secs(60));
    assert!(report.network.interruptions.reconnects >= 1);
    assert_eq!(report.playback.underflow_events, 1);
    assert_within(report.playback.stalled_time, 19..26);
    assert_eq!(report.playback.frames_remaining(), 0);
}

/// Plays 80 s from a server that crashes after 20 s and is replaced after 3 s, with these endpoint keys.
fn play_over_a_restart(keys: [&EndpointKey; 2]) -> QualityReport {
    let (rig, title) = (Rig::new(Seed::new(1), &steady()), title(secs(80)));
    let first = start(&rig, &title, settings(), keys[0]);
    let happen = async {
        sleep(&rig, secs(20)).await;
        rig.crash();
        sleep(&rig, secs(3)).await;
        let _second = start(&rig, &title, settings(), keys[1]);
        sleep(&rig, secs(60)).await;
    };
    let report = play_whole(&rig, &title, happen);
    drop(first);
    report
}

#[test]
fn a_server_that_is_restarted_with_its_key_is_known_to_have_been_by_the_next_packet() {
    let key = EndpointKey::generate().unwrap();
    let report = play_over_a_restart([&key, &key]);
    let interruption = interruption(&report);
    assert!(interruption.reason.contains("restarted"), "{interruption:?}");
    // The client's keep-alive is its next packet, 10 s after the last one.
    assert!(interruption.began < secs(31), "{interruption:?}");
    assert!(report.network.interruptions.disconnected < secs(1));
    assert_eq!(report.playback.underflow_events, 0);
}

#[test]
fn a_server_that_is_restarted_with_another_key_is_missed_after_the_idle_timeout() {
    let [one, two] = [(); 2].map(|()| EndpointKey::generate().unwrap());
    let report = play_over_a_restart([&one, &two]);
    let interruption = interruption(&report);
    assert_within(interruption.began, 49..62);
    assert!(report.network.interruptions.disconnected < secs(1));
    assert_eq!(report.playback.underflow_events, 1, "the buffer held 20 s");
}

#[test]
fn a_server_that_shuts_down_in_order_and_is_replaced_is_not_missed() {
    let (rig, title) = (Rig::new(Seed::new(1), &steady()), title(secs(60)));
    let first = rig.start(library(&title), settings(), |_| {});
    let happen = async {
        sleep(&rig, secs(10)).await;
        first.shutdown(secs(5)).await;
        let _second = rig.start(library(&title), settings(), |_| {});
        sleep(&rig, secs(30)).await;
    };
    let report = &play_whole(&rig, &title, happen);
    let interruption = interruption(report);
    assert_within(interruption.began, 15..16);
    assert_within(report.network.interruptions.disconnected, 0..3);
    assert_eq!(report.playback.underflow_events, 0);
}

/// Settings of a full server that tells clients to retry after `retry_after`.
fn full(retry_after: Duration) -> Settings {
    let mut full = settings();
    full.limits.sessions = Some(0);
    full.limits.retry_after = retry_after;
    full
}

#[test]
fn a_restarted_server_without_room_is_asked_again_when_it_says() {
    let (rig, title) = (Rig::new(Seed::new(1), &steady()), title(secs(60)));
    let key = EndpointKey::generate().unwrap();
    let _first = start(&rig, &title, settings(), &key);
    let mut full = full(secs(8));
    let summaries = Summaries::of(&mut full);
    let happen = async {
        sleep(&rig, secs(20)).await;
        let second = start(&rig, &title, full, &key);
        sleep(&rig, secs(35)).await;
        second.shutdown(secs(1)).await;
        let _third = start(&rig, &title, settings(), &key);
        sleep(&rig, secs(40)).await;
    };
    let report = &play_whole(&rig, &title, happen);
    assert_eq!(report.network.interruptions.reconnects, 2);
    let interruption = interruption(report);
    // The client notices the restart by its keep-alive, 10 s after the last packet, and retries every 8 s from then on.
    assert!(interruption.began < secs(31), "{interruption:?}");
    assert!(interruption.resumed.unwrap() > secs(55), "{interruption:?}");
    let summaries = summaries.0.lock().unwrap();
    let asked: u64 = summaries.iter().map(|it| it.state.requests).sum();
    assert!((3..=4).contains(&asked), "asked {asked} times");
}

#[test]
fn a_session_whose_first_request_gets_no_answer_connects_again() {
    let (rig, title) = (Rig::new(Seed::new(1), &path("4Mbit/s")), title(secs(30)));
    let _first = rig.start(library(&title), settings(), |_| {});
    let happen = async {
        // The handshake takes a little over 40 ms, and the first answer 40 ms more.
        sleep(&rig, Duration::from_millis(70)).await;
        rig.crash();
        sleep(&rig, secs(5)).await;
        let _second = rig.start(library(&title), settings(), |_| {});
        sleep(&rig, secs(60)).await;
    };
    let report = &play_whole(&rig, &title, happen);
    assert!(report.network.connected.unwrap() < Duration::from_millis(70));
    interruption(report);
    assert!(report.network.first_byte.unwrap() > secs(5));
}

#[test]
fn a_refusal_as_the_first_answer_ends_a_session_at_once() {
    let (rig, title) = (Rig::new(Seed::new(1), &steady()), title(secs(30)));
    let _server = rig.start(library(&title), full(secs(1)), |_| {});
    let (played, _) = play(&rig, &title, options(&title, secs(60)), async {});
    let error = played.result.unwrap_err();
    let is_refused = matches!(&error, PlayError::Status { status, .. } if status.as_u16() == 503);
    assert!(is_refused, "{error}");
    assert!(played.report.network.ended < secs(1));
    assert_eq!(played.report.network.interruptions, Interruptions::default());
}

#[test]
fn a_server_that_does_not_come_back_is_given_up_with_a_report_of_what_was_seen() {
    let (rig, title) = (Rig::new(Seed::new(1), &steady()), title(secs(120)));
    let _server = rig.start(library(&title), settings(), |_| {});
    let happen = async {
        sleep(&rig, secs(20)).await;
        rig.crash();
    };
    let (played, bytes) = play(&rig, &title, options(&title, secs(45)), happen);
    let error = played.result.unwrap_err();
    let (tried, last) = given_up(&error);
    let is_unanswered = matches!(last, PlayError::Connect(ConnectError::NoAnswer { .. }));
    assert!(is_unanswered, "{error}");
    assert!((secs(40)..=secs(45)).contains(&tried), "{error}");
    let report = &played.report;
    let interruption = interruption(report);
    assert_eq!((interruption.connected, interruption.resumed), (None, None));
    let disconnected = report.network.ended.saturating_sub(interruption.began);
    assert_eq!(report.network.interruptions.disconnected, disconnected);
    assert!(bytes.len() > 1_500_000, "{} bytes", bytes.len());
    assert!(report.playback.frames_shown > 0 && report.playback.frames_remaining() > 0);
}

#[test]
fn bytes_of_two_versions_of_a_file_are_never_mixed() {
    let (rig, first) = (Rig::new(Seed::new(1), &steady()), title(secs(60)));
    let key = EndpointKey::generate().unwrap();
    let _server = start(&rig, &first, settings(), &key);
    let happen = async {
        sleep(&rig, secs(10)).await;
        let _other = start(&rig, &title(secs(61)), settings(), &key);
        sleep(&rig, secs(30)).await;
    };
    let (played, bytes) = play(&rig, &first, options(&first, secs(60)), happen);
    let error = played.result.unwrap_err();
    let PlayError::Changed { received, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*received, Bytes::from(bytes.len()));
}

#[test]
fn another_servers_certificate_ends_the_session_at_once() {
    let (rig, title) = (Rig::new(Seed::new(1), &steady()), title(secs(60)));
    let key = EndpointKey::generate().unwrap();
    let _server = start(&rig, &title, settings(), &key);
    let happen = async {
        sleep(&rig, secs(10)).await;
        let _other = rig.start(library(&title), settings(), |options| {
            options.endpoint_key = Some(key.clone());
            options.certificates = Identity::development(&[]).unwrap().into();
        });
        sleep(&rig, secs(30)).await;
    };
    let (played, _) = play(&rig, &title, options(&title, secs(60)), happen);
    let error = played.result.unwrap_err();
    let (tried, last) = given_up(&error);
    let is_wrong_pin = matches!(last, PlayError::Connect(ConnectError::WrongPin { .. }));
    assert!(is_wrong_pin, "{error}");
    assert!(tried < secs(1), "{error}");
}

#[test]
fn the_attempts_to_reconnect_follow_from_the_seed() {
    let digest = |seed| {
        let (rig, title) = (Rig::new(Seed::new(1), &steady()), title(secs(30)));
        let start = || rig.start(library(&title), settings(), |_| {});
        let _server = start();
        let happen = async {
            sleep(&rig, secs(10)).await;
            rig.crash();
            sleep(&rig, secs(40)).await;
            let _second = start();
            sleep(&rig, secs(30)).await;
        };
        let mut options = options(&title, secs(60));
        let mut reconnect = ReconnectOptions::default();
        reconnect.seed = seed;
        options.session.reconnect = Some(reconnect);
        let (played, _) = play(&rig, &title, options, happen);
        played.result.unwrap();
        (rig.sim.digest(), played.report.network.interruptions)
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1).1, digest(2).1);
}

/// Keeps the summaries of connections.
#[derive(Debug, Default)]
struct Summaries(Mutex<Vec<SessionSummary>>);

impl Summaries {
    /// Keeps those of a server with `settings`.
    fn of(settings: &mut Settings) -> Arc<Self> {
        let summaries = Arc::new(Self::default());
        settings.observers.push(Arc::clone(&summaries) as Arc<_>);
        summaries
    }
}

impl Observer for Summaries {
    fn finished(&self, summary: &SessionSummary) {
        self.0.lock().unwrap().push(summary.clone());
    }
}
