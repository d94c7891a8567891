//! Requests of players with and without reports.

use super::*;
use proptest::prelude::*;
use proptest::sample::select;
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

    fn now(&self) -> Instant {
        self.tracker.runtime.now()
    }

    /// A request of a player without reports.
    fn silent(&self, title: &str, set: usize, kbps: u64) -> ResponseGuard {
        self.tracker
            .begin(&request(title, set, Some(kbps), None), self.now())
            .unwrap()
    }

    /// A request after `after` seconds with the CMCD `text`, and its whole response.
    fn reports(&self, after: u64, text: &str) {
        drop(self.requests(after, text));
    }

    /// A request after `after` seconds with the CMCD `text`, for a title named after the session: its video is set 0,
    /// its sound set 1. The library knows the reported rate, or else 77 kbit/s; it knows none for manifests.
    fn requests(&self, after: u64, text: &str) -> Option<ResponseGuard> {
        let cmcd = cmcd(text);
        let (title, is) = (cmcd.session.as_ref().unwrap(), |object| {
            cmcd.object_type == Some(object)
        });
        let mut request = request(title, usize::from(is(ObjectType::Audio)), Some(77), Some(text));
        request.rate = cmcd
            .bitrate
            .or(request.rate)
            .filter(|_| !is(ObjectType::Manifest));
        self.tracker
            .begin(&request, self.began + Duration::from_secs(after))
    }

    fn kbps(&self) -> Option<u64> {
        self.knowledge
            .average_rate()
            .map(|rate| rate.as_bits_per_second() / 1_000)
    }

    fn playback(&self) -> Option<Playback> {
        self.knowledge.playback()
    }

    fn buffered_ms(&self) -> Option<u128> {
        self.knowledge.buffered().map(|time| time.as_millis())
    }
}

fn cmcd(text: &str) -> Cmcd {
    let headers = crate::http::headers(&[("cmcd-request", text)]);
    Cmcd::read(&headers, &"/".parse().unwrap()).unwrap()
}

/// A request for a set of `title` whose rate is `kbps`, with the CMCD `report`.
fn request(title: &str, set: usize, kbps: Option<u64>, report: Option<&str>) -> MediaRequest {
    MediaRequest {
        title: ResourceName::from_relative(Path::new(title)).unwrap(),
        set,
        rate: kbps.map(Bitrate::from_kbps),
        highest_rate: None,
        cmcd: report.map(cmcd),
    }
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
    assert_eq!((fixture.buffered_ms(), fixture.playback()), (None, None));
}

#[test]
fn video_and_audio_of_a_packaged_title_add_up_and_a_switch_replaces() {
    let fixture = Fixture::new();
    drop(fixture.silent("film.mpd", 0, 4_800));
    drop(fixture.silent("film.mpd", 1, 128));
    assert_eq!(fixture.kbps(), Some(4_928));
    drop(fixture.silent("film.mpd", 0, 440));
    assert_eq!(fixture.kbps(), Some(568), "they play together");
    drop(fixture.silent("other.mpd", 0, 900));
    assert_eq!(fixture.kbps(), Some(900));
}

#[test]
fn requests_other_than_media_report_only_a_first_start() {
    let fixture = Fixture::new();
    fixture.reports(0, "sid=\"a\",ot=m");
    assert_eq!(fixture.playback(), None);
    fixture.reports(0, "sid=\"a\",ot=i,su");
    assert_eq!(fixture.playback(), Some(Playback::Starting));
    fixture.reports(1, "sid=\"a\",ot=v,br=4820,bl=4000,dl=3900");
    fixture.reports(2, "sid=\"a\",ot=i,su");
    assert_eq!(fixture.playback(), Some(Playback::Playing), "it switched");
    assert_eq!(fixture.knowledge.deadline(), Some(Duration::from_millis(3_900)));
}

#[test]
fn the_controller_knows_what_an_honest_player_reports() {
    let fixture = Fixture::new();
    fixture.reports(0, "sid=\"a\",ot=m,su");
    assert_eq!(fixture.kbps(), None);
    assert_eq!(fixture.playback(), Some(Playback::Starting));
    fixture.reports(1, "sid=\"a\",ot=v,br=4820,bl=0,su");
    fixture.reports(1, "sid=\"a\",ot=a,br=128,bl=100,su");
    assert_eq!((fixture.kbps(), fixture.buffered_ms()), (Some(4_948), Some(0)));
    fixture.reports(3, "sid=\"a\",ot=v,br=440,bl=5200,dl=4100");
    assert_eq!(fixture.kbps(), Some(568));
    assert_eq!(fixture.buffered_ms(), Some(100), "the lowest buffer counts");
    assert_eq!(fixture.playback(), Some(Playback::Playing));
    assert_eq!(fixture.knowledge.deadline(), Some(Duration::from_millis(4_100)));
    fixture.reports(4, "sid=\"a\",ot=v,br=440,bs");
    assert_eq!(fixture.buffered_ms(), Some(0));
    assert_eq!(fixture.playback(), Some(Playback::Starved));
    let report = fixture.tracker.report().unwrap();
    assert_eq!((report.requests, report.viewings, report.stalls), (5, 1, 1));
}

#[test]
fn an_empty_buffer_of_a_player_that_starts_up_is_no_stall() {
    let fixture = Fixture::new();
    let stalls = || fixture.tracker.report().unwrap().stalls;
    // A report of dash.js 5.2.1, which began to play 3 ms before it had counted its first segment.
    fixture.reports(0, "sid=\"a\",ot=v,br=900,bl=0,dl=0,su");
    fixture.reports(0, "sid=\"a\",ot=a,br=96,bl=2700,dl=2700");
    fixture.reports(0, "sid=\"a\",ot=v,br=2400,bl=2900,dl=2900,bs,su");
    assert_eq!((stalls(), fixture.playback()), (0, Some(Playback::Starting)));
    assert_eq!(fixture.buffered_ms(), Some(2_700));
    fixture.reports(1, "sid=\"a\",ot=v,br=2400,bl=2600,dl=2600");
    fixture.reports(4, "sid=\"a\",ot=v,br=2400,bl=0,bs,su");
    assert_eq!((stalls(), fixture.playback()), (1, Some(Playback::Starved)));
    fixture.reports(4, "sid=\"b\",ot=v,br=2400,bl=0,bs,su");
    assert_eq!(stalls(), 2, "it may have played on another connection");
}

#[test]
fn without_a_reported_rate_the_rate_of_the_library_counts() {
    let fixture = Fixture::new();
    fixture.reports(0, "sid=\"a\",ot=v,bl=2000");
    assert_eq!((fixture.kbps(), fixture.buffered_ms()), (Some(77), Some(2_000)));
}

#[test]
fn two_sessions_add_up_while_both_are_fetched() {
    let fixture = Fixture::new();
    let one = fixture.requests(0, "sid=\"a\",ot=v,br=3000");
    let two = fixture.requests(0, "sid=\"b\",ot=v,br=1000");
    assert_eq!(fixture.kbps(), Some(4_000));
    drop(one);
    assert_eq!(fixture.kbps(), Some(1_000));
    drop(two);
    assert_eq!(fixture.kbps(), Some(1_000), "playback goes on");
}

#[test]
fn the_lowest_buffer_counts_until_its_session_is_silent_for_longer_than_it_lasts() {
    let fixture = Fixture::new();
    fixture.reports(0, "sid=\"a\",ot=v,br=3000,bl=20000");
    fixture.reports(0, "sid=\"b\",ot=v,br=1000,bl=4000");
    assert_eq!(fixture.buffered_ms(), Some(4_000));
    fixture.reports(13, "sid=\"a\",ot=v,br=3000,bl=20000");
    assert_eq!(fixture.buffered_ms(), Some(4_000), "b has 4 s and is given 10 s");
    fixture.reports(15, "sid=\"a\",ot=v,br=3000,bl=20000");
    assert_eq!(fixture.buffered_ms(), Some(20_000));
}

#[test]
fn a_buffer_that_stops_growing_counts_as_full() {
    let fixture = Fixture::new();
    for (at, level) in [4_000, 8_000, 12_000, 12_300, 11_500].into_iter().enumerate() {
        fixture.reports(at as u64, &format!("sid=\"a\",ot=v,br=4000,bl={level}"));
        assert_eq!(fixture.knowledge.reported_buffer(), None);
    }
    fixture.reports(5, "sid=\"a\",ot=v,br=4000,bl=12000");
    // 12.3 s of 4 Mbit/s.
    assert_eq!(fixture.knowledge.reported_buffer(), Some(Bytes::new(6_150_000)));
    assert_eq!(fixture.knowledge.playout_buffer(), None, "no operator has set it");
}

#[test]
fn a_buffer_that_drains_does_not_count_as_full() {
    let fixture = Fixture::new();
    // dash.js on a path too slow for the representation that it tried.
    for (at, level) in [2_900, 2_700, 0, 900, 0, 2_600, 1_700, 2_600, 2_700]
        .into_iter()
        .enumerate()
    {
        fixture.reports(at as u64, &format!("sid=\"a\",ot=v,br=300,bl={level}"));
        assert_eq!(fixture.knowledge.reported_buffer(), None, "{level}");
    }
    // The emptier of two buffers counts.
    for (at, level) in [(9, 14_400), (10, 14_500), (11, 14_400), (12, 14_500)] {
        fixture.reports(at, &format!("sid=\"a\",ot=a,br=100,bl={}", level + 2_500));
        fixture.reports(at, &format!("sid=\"a\",ot=v,br=300,bl={level}"));
    }
    assert_eq!(fixture.knowledge.reported_buffer(), Some(Bytes::new(725_000)));
}

#[test]
fn the_configured_buffer_size_is_kept() {
    let known = VideoKnowledge::new();
    known.set_playout_buffer(Some(Bytes::from_kb(656)));
    let fixture = Fixture::knowing(known);
    for at in 0..9 {
        fixture.reports(at, "sid=\"a\",ot=v,br=4000,bl=12000");
    }
    assert_eq!(fixture.knowledge.buffer_size(), Some(Bytes::from_kb(656)));
}

#[test]
fn the_number_of_sessions_is_bounded() {
    let fixture = Fixture::new();
    let responses: Vec<_> = (0..1_000)
        .map(|number| fixture.requests(0, &format!("sid=\"{number}\",ot=v,br=1")))
        .collect();
    assert_eq!(fixture.tracker.state.lock().sessions.len(), MAX_SESSIONS);
    assert_eq!(fixture.kbps(), Some(MAX_SESSIONS as u64));
    drop(responses);
    assert_eq!(fixture.kbps(), Some(1));
}

#[test]
fn many_sessions_of_one_title_count_once() {
    let fixture = Fixture::new();
    let mut responses = Vec::new();
    for number in 0..8 {
        let report = format!("sid=\"{number}\",ot=v,br=4000");
        let request = request("film.mp4", 0, Some(4_000), Some(&report));
        responses.push(fixture.tracker.begin(&request, fixture.now()));
        assert_eq!(fixture.kbps(), Some(4_000), "{number}");
    }
}

#[test]
fn a_rate_that_the_library_does_not_know_is_not_believed() {
    let fixture = Fixture::new();
    let request = request("film.bin", 0, None, Some("sid=\"a\",ot=v,br=8000,bl=2000"));
    drop(fixture.tracker.begin(&request, fixture.now()));
    assert_eq!((fixture.kbps(), fixture.buffered_ms()), (None, Some(2_000)));
}

#[test]
fn a_player_that_was_delivered_seconds_ahead_is_not_believed_to_need_media_urgently() {
    for urgent in ["su", "bs"] {
        let fixture = Fixture::new();
        let playback = |after: u64, kilobytes: u64| {
            let now = fixture.began + Duration::from_secs(after);
            fixture.tracker.delivered(Bytes::from_kb(kilobytes), now);
            fixture.playback().unwrap()
        };
        let report = format!("sid=\"a\",ot=v,br=8000,{urgent}");
        fixture.reports(0, &report);
        let reported = fixture.tracker.reported().unwrap();
        assert!(reported > Playback::Playing);
        // 4.9 s and then 5 s of 8 Mbit/s, within one response.
        assert_eq!(playback(0, 4_900), reported);
        assert_eq!(playback(0, 100), Playback::Playing);
        fixture.reports(0, &report);
        assert_eq!(fixture.playback(), Some(Playback::Playing));
        assert_eq!(fixture.tracker.reported(), Some(reported), "dashboards show it");
        assert_eq!(playback(2, 0), reported, "3 s are left");
        // 100 s at twice the rate.
        let later = (3..103).map(|after| playback(after, 2_000)).collect::<Vec<_>>();
        assert_eq!(later.last(), Some(&Playback::Playing));
    }
}

/// A report with random and mostly false values.
fn any_report() -> impl Strategy<Value = Option<String>> {
    const TYPES: &[&str] = &["m", "a", "v", "av", "i", "c", "tt", "k", "o"];
    let number = || prop_oneof![Just(0_u64), 0..20_000_u64, 0..20_000_000_u64];
    let members = (
        (0..20_u8, select(TYPES), number(), number()),
        (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
    );
    let report = members.prop_map(|((sid, ot, br, bl), (su, bs, has_rate, has_type))| {
        let mut members = vec![format!("sid=\"{sid}\",bl={bl},dl={bl}")];
        for (has, member) in [
            (su, "su".to_owned()),
            (bs, "bs".to_owned()),
            (has_rate, format!("br={br}")),
            (has_type, format!("ot={ot}")),
        ] {
            if has {
                members.push(member);
            }
        }
        members.join(",")
    });
    proptest::option::weighted(0.9, report)
}

proptest! {
    // Each request: its delay in seconds, its report, its object, and whether its response stays open.
    #[test]
    fn whatever_players_report_no_fact_that_raises_a_window_exceeds_that_of_the_same_requests_without_reports(
        requests in proptest::collection::vec(
            (0..20_u64, any_report(), 0..4_u64, 0..3_usize, any::<bool>(), 0..20_000_u64),
            1..60,
        ),
    ) {
        let (reporting, silent) = (Fixture::new(), Fixture::new());
        let (mut seconds, mut ahead, mut open) = (0, 0.0_f64, Vec::new());
        for (after, report, title, set, stays, kilobytes) in requests {
            seconds += after;
            ahead = (ahead - after as f64).max(0.0);
            let now = |fixture: &Fixture| fixture.began + Duration::from_secs(seconds);
            // The library knows nothing of the last title.
            let kbps = (title < 3).then(|| 1_000 * (title + 1) + set as u64);
            let request = request(&format!("{title}.mpd"), set, kbps, report.as_deref());
            let unreported = MediaRequest { cmcd: None, ..request.clone() };
            let responses = (
                reporting.tracker.begin(&request, now(&reporting)),
                silent.tracker.begin(&unreported, now(&silent)),
            );
            if stays {
                open.push(responses);
            } else {
                drop(responses);
            }
            let (rate, without) = (reporting.knowledge.average_rate(), silent.knowledge.average_rate());
            prop_assert_eq!(rate.is_some(), without.is_some());
            prop_assert!(rate <= without, "{:?} above {:?}", rate, without);
            prop_assert_eq!(reporting.knowledge.playout_buffer(), None);
            reporting.tracker.delivered(Bytes::from_kb(kilobytes), now(&reporting));
            ahead += rate.map_or(0.0, |rate| kilobytes as f64 * 8e3 / rate.as_bits_per_second() as f64);
            if ahead > URGENT.as_secs_f64() + 0.001 {
                prop_assert!(reporting.knowledge.playback() <= Some(Playback::Playing));
            }
        }
    }
}

#[test]
fn it_is_what_was_delivered_less_the_time_since_and_never_less_than_nothing() {
    let began = TokioRuntime.now();
    let at = |seconds| began + Duration::from_secs(seconds);
    let mut ahead = DeliveredAhead::default();
    let mut add = |megabytes: u64, now| {
        ahead.add(Bytes::new(megabytes * 1_000_000), Bitrate::from_mbps(8), now);
        ahead.level(now).as_secs()
    };
    assert_eq!(add(6, at(0)), 6);
    assert_eq!(add(1, at(2)), 5);
    assert_eq!(add(1, at(60)), 1, "the level does not fall below zero");
    assert_eq!(add(1, at(60)), 2);
}

/// Rates of titles, without times.
mod titles {
    use super::*;

    /// A request for a set of `film.mpd` whose rate and highest rate are these in kbit/s.
    fn request((set, rate, highest): (usize, u64, u64), report: impl Into<Option<Cmcd>>) -> MediaRequest {
        MediaRequest {
            title: ResourceName::from_relative(Path::new("film.mpd")).unwrap(),
            set,
            rate: Some(Bitrate::from_kbps(rate)),
            highest_rate: Some(Bitrate::from_kbps(highest)),
            cmcd: report.into(),
        }
    }

    fn report(object_type: ObjectType, kbps: Option<u64>) -> Cmcd {
        let mut report = Cmcd::default();
        report.object_type = Some(object_type);
        report.bitrate = kbps.map(Bitrate::from_kbps);
        report
    }

    /// The rate in kbit/s after a request for a 4 Mbit/s set of `film.mpd`, with `report`.
    fn kbps(titles: &mut FetchedTitles, set: usize, report: impl Into<Option<Cmcd>>) -> u64 {
        assert!(titles.begin(&request((set, 4_000, 4_000), report)));
        titles.rate().unwrap().as_bits_per_second() / 1_000
    }

    #[test]
    fn the_highest_rates_of_all_objects_add_up_whatever_is_reported() {
        let mut titles = FetchedTitles::default();
        assert_eq!(titles.highest_rate(), None);
        titles.begin(&request((0, 1_000, 6_000), report(ObjectType::Video, Some(500))));
        titles.begin(&request((1, 128, 128), None::<Cmcd>));
        assert_eq!(titles.highest_rate(), Some(Bitrate::from_kbps(6_128)));
        titles.begin(&request((0, 6_000, 1_000), None::<Cmcd>));
        // It is never below the rate.
        assert_eq!(titles.highest_rate(), Some(Bitrate::from_kbps(6_128)));
    }

    #[test]
    fn a_report_lowers_the_rate_and_never_raises_it() {
        for (reported, expected) in [
            (None, 4_000),
            (Some(3_000), 3_000),
            (Some(4_001), 4_000),
            (Some(10_000_000), 4_000),
            (Some(0), 4_000),
        ] {
            let report = report(ObjectType::Video, reported);
            let mut titles = FetchedTitles::default();
            assert_eq!(kbps(&mut titles, 0, report), expected, "{reported:?}");
        }
    }

    #[test]
    fn a_reported_speed_above_one_counts_as_consumption_up_to_four() {
        for (speed, expected) in [
            (None, 4_000),
            (Some(1.77), 7_080),
            (Some(3.0), 12_000),
            (Some(100.0), 16_000),
            (Some(0.5), 4_000),
            (Some(0.0), 4_000),
        ] {
            let mut report = report(ObjectType::Video, None);
            report.playback_rate = speed;
            let mut titles = FetchedTitles::default();
            assert_eq!(kbps(&mut titles, 0, report), expected, "{speed:?}");
            assert_eq!(titles.highest_rate(), Some(Bitrate::from_kbps(expected)));
        }
    }

    #[test]
    fn no_label_of_an_object_adds_to_its_rate_or_withholds_it() {
        use ObjectType as Type;
        let mut titles = FetchedTitles::default();
        let labels = [
            Type::Manifest,
            Type::Initialization,
            Type::Video,
            Type::Audio,
            Type::Caption,
        ];
        for label in labels.into_iter().chain([Type::Key, Type::Other, Type::Muxed]) {
            assert_eq!(kbps(&mut titles, 0, report(label, None)), 4_000, "{label:?}");
        }
    }

    #[test]
    fn an_object_that_replaces_another_according_to_its_player_takes_its_place() {
        let [english, french] = [128, 96].map(|kbps| report(ObjectType::Audio, Some(kbps)));
        let mut titles = FetchedTitles::default();
        assert_eq!(kbps(&mut titles, 0, report(ObjectType::Video, None)), 4_000);
        assert_eq!(kbps(&mut titles, 1, english.clone()), 4_128);
        assert_eq!(kbps(&mut titles, 2, french), 4_096);
        assert_eq!(
            kbps(&mut titles, 3, None::<Cmcd>),
            8_096,
            "unreported sets play together"
        );
        assert_eq!(kbps(&mut titles, 4, report(ObjectType::Muxed, None)), 4_000);
        assert_eq!(kbps(&mut titles, 1, english), 128);
    }
}
