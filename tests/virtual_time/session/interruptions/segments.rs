//! The same for players that fetch a title in segments.

use video_client::dash::{Abr, DashOptions, MediaSegment, Presentation, Representation};

use super::*;

/// The title in segments of 8 s, as ranges of its file.
fn segments(title: &TraceSource) -> Arc<Presentation> {
    let (length, count) = (title.len(), title.title().duration().as_secs() / 8);
    let segment = |number| MediaSegment {
        path: "/title.mp4".to_owned(),
        bytes: Some(length * number / count..length * (number + 1) / count),
        duration: secs(8),
        frames: 200,
        hidden: Duration::ZERO,
        is_gap: false,
    };
    let all = Representation {
        name: "all".to_owned(),
        rate: RATE,
        initializations: Vec::new(),
        segments: (0..count).map(segment).collect(),
    };
    Arc::new(Presentation::new(vec![all]).unwrap())
}

/// Plays `title` in segments while `happen` acts on the server.
fn play_segments(rig: &Rig, title: &TraceSource, happen: impl Future<Output = ()>) -> QualityReport {
    let (client, target) = rig.client("client", |_| {});
    let mut options = DashOptions::default();
    options.presentation = Some(segments(title));
    options.session = reconnecting(secs(60));
    options.abr = Abr::Throughput;
    let session = Session::new(client, target, "/title.mpd", options);
    let (mut bytes, mut observer) = (Vec::new(), ());
    let playing = session.play(&mut bytes, &mut observer, std::future::pending());
    let (played, ()) = rig.run(async { tokio::join!(playing, happen) });
    let played = played.unwrap();
    played.result.unwrap();
    assert!(bytes == bytes_of(title), "the bytes are the title's");
    played.report
}

#[test]
fn a_player_with_a_full_buffer_returns_after_the_idle_limit_and_nothing_is_seen_of_it() {
    let (rig, title) = (Rig::new(Seed::new(1), &path("4Mbit/s")), title(secs(80)));
    let mut settings = settings();
    let summaries = Summaries::of(&mut settings);
    let server = rig.start(library(&title), settings, |options| {
        options.idle_limit = Some(secs(4));
    });
    let report = play_segments(&rig, &title, async {});
    rig.run(async { server.shutdown(secs(1)).await });
    let seen = &report.network.interruptions;
    // The buffer of 30 s is full after five segments.
    assert!(seen.reconnects >= 4, "{seen:?}");
    assert!(seen.disconnected < secs(1), "{seen:?}");
    assert_eq!(report.playback.underflow_events, 0);
    let summaries = summaries.0.lock().unwrap();
    assert_eq!(summaries.len() as u64, seen.reconnects + 1);
    for summary in &*summaries {
        assert_eq!(summary.state.player.as_ref().unwrap().sessions, ["6e2fb550"]);
    }
}

#[test]
fn an_interrupted_segment_is_continued_where_it_broke_off() {
    // A segment takes 4 s of these 800 kbit/s.
    let (rig, title) = (Rig::new(Seed::new(1), &steady()), title(secs(80)));
    let key = EndpointKey::generate().unwrap();
    let _first = start(&rig, &title, settings(), &key);
    let mut observed = settings();
    let summaries = Summaries::of(&mut observed);
    let happen = async {
        sleep(&rig, secs(14)).await;
        rig.crash();
        sleep(&rig, secs(3)).await;
        let second = start(&rig, &title, observed, &key);
        sleep(&rig, secs(80)).await;
        second.shutdown(secs(1)).await;
    };
    let report = play_segments(&rig, &title, happen);
    let fetched = &report.dash.as_ref().unwrap().segments;
    let bytes: Bytes = fetched.iter().map(|segment| segment.transfer.bytes).sum();
    assert_eq!(bytes, Bytes::new(title.len()));
    assert_eq!(report.network.received, bytes, "nothing was received twice");
    interruption(&report);
    // When the segment was first requested, the buffer held 20 s; a keep-alive later, it holds 8 s.
    let summaries = summaries.0.lock().unwrap();
    let player = summaries[0].state.player.as_ref().unwrap();
    let lowest = player.lowest_buffer.unwrap();
    assert!((secs(6)..secs(11)).contains(&lowest), "{lowest:?}");
}
