//! Requests of players with and without reports.

use super::*;
use quinn::TokioRuntime;
use std::path::Path;

struct Fixture {
    tracker: Arc<PlaybackTracker>,
    knowledge: Arc<VideoKnowledge>,
    began: Instant,
}

impl Fixture {
    fn new() -> Self {
        Self::knowing(VideoKnowledge::new())
    }

    fn knowing(knowledge: VideoKnowledge) -> Self {
        let (knowledge, runtime) = (Arc::new(knowledge), Arc::new(TokioRuntime));
        Self {
            began: runtime.now(),
            tracker: Arc::new(PlaybackTracker::new(Arc::clone(&knowledge), runtime)),
            knowledge,
        }
    }

    /// A request of a player without reports.
    fn silent(&self, title: &str, set: usize, kbps: u64) -> ResponseGuard {
        let request = MediaRequest {
            title: name(title),
            set,
            rate: Some(Bitrate::from_kbps(kbps)),
            cmcd: None,
        };
        self.tracker.begin(&request).unwrap()
    }

    /// A request after `after` seconds with the CMCD `text`, and its whole response.
    fn reports(&self, after: u64, text: &str) {
        let headers = [("cmcd-request", text)];
        let headers =
            headers.map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
        let request = MediaRequest {
            title: name("film.mpd"),
            set: 0,
            rate: Some(Bitrate::from_kbps(77)),
            cmcd: Cmcd::read(&headers.into_iter().collect(), &"/".parse().unwrap()),
        };
        assert!(request.cmcd.is_some());
        let _ = self
            .tracker
            .begin_at(&request, self.began + Duration::from_secs(after));
    }

    fn kbps(&self) -> Option<u64> {
        self.knowledge
            .average_rate()
            .map(|rate| rate.as_bits_per_second() / 1_000)
    }

    fn buffered_ms(&self) -> Option<u128> {
        self.knowledge.buffered().map(|time| time.as_millis())
    }
}

fn name(text: &str) -> ResourceName {
    ResourceName::from_relative(Path::new(text)).unwrap()
}

#[test]
fn the_rate_is_that_of_the_titles_being_fetched_each_counted_once() {
    let fixture = Fixture::new();
    assert_eq!(fixture.kbps(), None);
    let film = fixture.silent("film.mp4", 0, 4_000);
    let same = fixture.silent("film.mp4", 0, 4_000);
    assert_eq!(fixture.kbps(), Some(4_000));
    let sound = fixture.silent("sound.mp4", 0, 128);
    assert_eq!(fixture.kbps(), Some(4_128));
    drop(film);
    assert_eq!(fixture.kbps(), Some(4_128), "a second range goes on");
    drop(sound);
    assert_eq!(fixture.kbps(), Some(4_000));
    drop(same);
    assert_eq!(fixture.kbps(), Some(4_000), "playback goes on");
    let other = fixture.silent("other.mp4", 0, 500);
    assert_eq!(fixture.kbps(), Some(500));
    drop(other);
    assert_eq!(
        (fixture.buffered_ms(), fixture.knowledge.playback()),
        (None, None)
    );
}

#[test]
fn video_and_audio_of_a_packaged_title_add_up_and_a_switch_replaces() {
    let fixture = Fixture::new();
    drop(fixture.silent("film.mpd", 0, 4_800));
    drop(fixture.silent("film.mpd", 1, 128));
    assert_eq!(fixture.kbps(), Some(4_928));
    drop(fixture.silent("film.mpd", 0, 440));
    assert_eq!(
        fixture.kbps(),
        Some(568),
        "fetched one after the other, played together"
    );
    drop(fixture.silent("other.mpd", 0, 900));
    assert_eq!(fixture.kbps(), Some(900));
}

#[test]
fn requests_other_than_media_report_only_a_first_start() {
    let fixture = Fixture::new();
    fixture.reports(0, "sid=\"a\",ot=m");
    assert_eq!(fixture.knowledge.playback(), None);
    fixture.reports(0, "sid=\"a\",ot=i,su");
    assert_eq!(fixture.knowledge.playback(), Some(Playback::Starting));
    fixture.reports(1, "sid=\"a\",ot=v,br=4820,bl=4000,dl=3900");
    fixture.reports(2, "sid=\"a\",ot=i,su");
    assert_eq!(
        fixture.knowledge.playback(),
        Some(Playback::Playing),
        "it switched"
    );
    assert_eq!(fixture.knowledge.deadline(), Some(Duration::from_millis(3_900)));
}

#[test]
fn reports_of_the_player_take_precedence_over_the_library() {
    let fixture = Fixture::new();
    fixture.reports(0, "sid=\"a\",ot=m,su");
    assert_eq!(
        (fixture.kbps(), fixture.knowledge.playback()),
        (None, Some(Playback::Starting))
    );
    fixture.reports(0, "sid=\"a\",ot=i,br=4820,su");
    assert_eq!(fixture.kbps(), None, "an initialisation segment has no rate");
    fixture.reports(1, "sid=\"a\",ot=v,br=4820,bl=0,su");
    fixture.reports(1, "sid=\"a\",ot=a,br=128,bl=100,su");
    assert_eq!((fixture.kbps(), fixture.buffered_ms()), (Some(4_948), Some(0)));
    fixture.reports(3, "sid=\"a\",ot=v,br=440,bl=5200,dl=4100");
    assert_eq!(fixture.kbps(), Some(568));
    assert_eq!(fixture.buffered_ms(), Some(100), "the lowest buffer counts");
    assert_eq!(fixture.knowledge.playback(), Some(Playback::Playing));
    assert_eq!(fixture.knowledge.deadline(), Some(Duration::from_millis(4_100)));
    fixture.reports(4, "sid=\"a\",ot=v,br=440,bs");
    assert_eq!(
        (fixture.buffered_ms(), fixture.knowledge.playback()),
        (Some(0), Some(Playback::Starved))
    );
    let report = fixture.tracker.report().unwrap();
    assert_eq!((report.requests, report.viewings, report.stalls), (6, 1, 1));
}

#[test]
fn without_a_reported_rate_the_rate_of_the_library_counts() {
    let fixture = Fixture::new();
    fixture.reports(0, "sid=\"a\",ot=v,bl=2000");
    assert_eq!((fixture.kbps(), fixture.buffered_ms()), (Some(77), Some(2_000)));
}

#[test]
fn two_sessions_add_up_until_one_is_silent_for_longer_than_its_buffer_lasts() {
    let fixture = Fixture::new();
    fixture.reports(0, "sid=\"a\",ot=v,br=3000,bl=20000");
    fixture.reports(0, "sid=\"b\",ot=v,br=1000,bl=4000");
    assert_eq!(
        (fixture.kbps(), fixture.buffered_ms()),
        (Some(4_000), Some(4_000))
    );
    fixture.reports(13, "sid=\"a\",ot=v,br=3000,bl=20000");
    assert_eq!(fixture.kbps(), Some(4_000), "b has 4 s and is given 10 s");
    fixture.reports(15, "sid=\"a\",ot=v,br=3000,bl=20000");
    assert_eq!(
        (fixture.kbps(), fixture.buffered_ms()),
        (Some(3_000), Some(20_000))
    );
}

#[test]
fn a_buffer_that_stops_growing_counts_as_full() {
    let fixture = Fixture::new();
    for (at, level) in [4_000, 8_000, 12_000, 12_300, 11_500].into_iter().enumerate() {
        fixture.reports(at as u64, &format!("sid=\"a\",ot=v,br=4000,bl={level}"));
        assert_eq!(fixture.knowledge.playout_buffer(), None);
    }
    fixture.reports(5, "sid=\"a\",ot=v,br=4000,bl=12000");
    // 12.3 s of 4 Mbit/s.
    assert_eq!(fixture.knowledge.playout_buffer(), Some(Bytes::new(6_150_000)));
}

#[test]
fn a_buffer_that_drains_does_not_count_as_full() {
    let fixture = Fixture::new();
    // dash.js on a path that is too slow for what it tried.
    for (at, level) in [2_900, 2_700, 0, 900, 0, 2_600, 1_700, 2_600, 2_700]
        .into_iter()
        .enumerate()
    {
        fixture.reports(at as u64, &format!("sid=\"a\",ot=v,br=300,bl={level}"));
        assert_eq!(fixture.knowledge.playout_buffer(), None, "{level}");
    }
    // The lower of two buffers counts.
    for (at, level) in [(9, 14_400), (10, 14_500), (11, 14_400), (12, 14_500)] {
        fixture.reports(at, &format!("sid=\"a\",ot=a,br=100,bl={}", level + 2_500));
        fixture.reports(at, &format!("sid=\"a\",ot=v,br=300,bl={level}"));
    }
    assert_eq!(fixture.knowledge.playout_buffer(), Some(Bytes::new(725_000)));
}

#[test]
fn the_configured_buffer_size_is_kept() {
    let known = VideoKnowledge::new();
    known.set_playout_buffer(Some(Bytes::from_kb(656)));
    let fixture = Fixture::knowing(known);
    for at in 0..9 {
        fixture.reports(at, "sid=\"a\",ot=v,br=4000,bl=12000");
    }
    assert_eq!(fixture.knowledge.playout_buffer(), Some(Bytes::from_kb(656)));
}

#[test]
fn the_number_of_sessions_is_bounded() {
    let fixture = Fixture::new();
    for number in 0..1_000 {
        fixture.reports(0, &format!("sid=\"{number}\",ot=v,br=1"));
    }
    assert_eq!(fixture.tracker.state().sessions.len(), MAX_SESSIONS);
    assert_eq!(fixture.kbps(), Some(MAX_SESSIONS as u64));
}
