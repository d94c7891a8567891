//! Players that differ from the server's information: another playback speed, a wrong declared rate, a full buffer.

use std::time::Duration;

use lab::sim::{self, Simulated, Viewer};
use playrate_units::Bytes;
use video_client::Seek;

use super::{alone, short_film, viewer};

/// 20 s of video at 2 Mbit/s over 40 Mbit/s. The controller sends at most three times the rate that it knows.
fn paced(change: impl FnOnce(&mut Viewer)) -> Simulated {
    let mut viewer = viewer("cubic+ceiling=pace", &short_film(2, 20));
    change(&mut viewer);
    sim::run(&alone(viewer, 40, "none", 5)).unwrap()
}

/// Mbit/s over the whole download.
fn mbps(run: &Simulated) -> f64 {
    let network = &run.viewers[0].report.network;
    network.received.as_u64() as f64 * 8e-6 / network.ended.as_secs_f64()
}

#[test]
fn a_viewer_at_twice_the_speed_sees_the_title_in_half_the_time() {
    let play = |percent, mbps| {
        let mut viewer = viewer("cubic", &short_film(4, 20));
        viewer.playout.speed_percent = percent;
        let run = sim::run(&alone(viewer, mbps, "none", 1)).unwrap();
        run.viewers[0].clone()
    };
    let (normal, fast) = (play(100, 20), play(200, 20));
    let length = |seen: &sim::SimulatedViewer| {
        let playback = &seen.report.playback;
        playback
            .ended
            .unwrap()
            .saturating_sub(playback.startup_delay.unwrap())
    };
    let of_a_second = |time: Duration, seconds| time.abs_diff(Duration::from_secs(seconds)).as_millis() < 100;
    assert!(of_a_second(length(&normal), 20) && of_a_second(length(&fast), 10));
    assert_eq!(fast.report.playback.frames_discarded, 0);
    // 5 Mbit/s are enough for 4 but not for 8.
    let (normal, fast) = (play(100, 5), play(200, 5));
    assert!(normal.delivery.unwrap().waiting_share < 0.001);
    let waited = fast.delivery.unwrap().waiting_share;
    assert!((0.2..0.4).contains(&waited), "{waited}");
}

#[test]
fn a_controller_learns_the_speed_only_of_a_player_that_reports_it() {
    let normal = mbps(&paced(|_| {}));
    let silent = paced(|viewer| viewer.playout.speed_percent = 200);
    let reported = paced(|viewer| {
        viewer.playout.speed_percent = 200;
        viewer.reports_speed = true;
    });
    assert!((4.0..6.5).contains(&normal), "{normal}");
    assert!((mbps(&silent) / normal - 1.0).abs() < 0.01, "{}", mbps(&silent));
    assert!(mbps(&reported) / normal > 1.6, "{}", mbps(&reported));
}

#[test]
fn a_declared_rate_is_what_the_controller_knows_and_changes_no_byte() {
    let normal = paced(|_| {});
    let high = paced(|viewer| viewer.declared_rate_factor = 3.0);
    let low = paced(|viewer| viewer.declared_rate_factor = 0.25);
    assert!(mbps(&high) / mbps(&normal) > 1.8, "{}", mbps(&high));
    assert!(mbps(&low) / mbps(&normal) < 0.4, "{}", mbps(&low));
    for run in [&high, &low] {
        let report = &run.viewers[0].report;
        assert_eq!(report.network.received, normal.viewers[0].report.network.received);
        assert_eq!(report.average_rate, normal.viewers[0].report.average_rate);
    }
}

#[test]
fn a_player_whose_buffer_is_full_holds_the_sender_back() {
    let received = |percent| {
        let mut viewer = viewer("cubic", &short_film(2, 60));
        viewer.playout.receive_buffer = Bytes::from_kb(2_000);
        viewer.playout.speed_percent = percent;
        let mut setup = alone(viewer, 40, "none", 1);
        setup.windows = vec!["0s..5s".parse().unwrap(), "5s..20s".parse().unwrap()];
        let run = sim::run(&setup).unwrap();
        let (windows, playback) = (&run.viewers[0].windows, &run.viewers[0].report.playback);
        assert_eq!(playback.frames_discarded + playback.underflow_events, 0);
        [windows[0].received_bytes, windows[1].received_bytes]
    };
    // 40 Mbit/s fill it within a second; from then on the player reads as it shows, 250 kB/s at normal speed.
    let [filling, playing] = received(100);
    assert!((2_500_000..3_500_000).contains(&filling), "{filling}");
    assert!((3_500_000..4_000_000).contains(&playing), "{playing}");
    let [_, faster] = received(177);
    let ratio = faster as f64 / playing as f64;
    // Other seconds of the title have other sizes.
    assert!((1.5..2.1).contains(&ratio), "{ratio}");
}

#[test]
fn a_viewer_who_jumps_fetches_from_there_on_over_the_same_connection() {
    let seek = |at, to| Seek {
        at: Duration::from_secs(at),
        to: Duration::from_secs(to),
    };
    let play = |seeks: Vec<Seek>| {
        let mut viewer = viewer("cubic", &short_film(4, 60));
        viewer.playout.receive_buffer = Bytes::from_kb(4_000);
        viewer.seeks = seeks;
        sim::run(&alone(viewer, 20, "none", 1)).unwrap().viewers.remove(0)
    };
    let straight = play(Vec::new());
    let jumped = play(vec![seek(10, 40)]);
    let (whole, partial) = (&straight.report, &jumped.report);
    // 10 s of it, and the last 20.
    let ended = partial.playback.ended.unwrap();
    assert!(ended < Duration::from_secs(33), "{partial:?}");
    let shown = partial.playback.frames_shown as f64 / whole.playback.frames_shown as f64;
    assert!((0.45..0.6).contains(&shown), "{shown}");
    // Data buffered at the jump is lost: 4 MB, and whatever was in flight.
    let needed = whole.network.received.as_u64() as f64 * shown;
    let received = partial.network.received.as_u64() as f64;
    assert!(received > needed + 3e6, "{received}");
    let waited = jumped.delivery.unwrap().waiting_share;
    assert!(waited < 0.001, "{waited}");
    // The new position must arrive first.
    assert!(partial.playback.stalled_time > Duration::ZERO);
    // Back again, after everything has arrived.
    let again = play(vec![seek(59, 0)]);
    assert!(again.report.playback.ended.unwrap() > Duration::from_secs(118));
    let [twice, once] = [&again.report, whole].map(|report| report.network.received.as_u64());
    assert_eq!(twice, 2 * once);
}

#[test]
fn titles_on_one_connection_share_its_throughput_and_the_controller_knows_their_sum() {
    let play = |titles| paced(|viewer| viewer.titles_per_connection = titles);
    let (one, three) = (play(1), play(3));
    let received = one.viewers[0].report.network.received;
    assert_eq!(three.viewers[0].report.network.received, received);
    let sent = |run: &Simulated| run.viewers[0].totals.unwrap().udp_tx.bytes as f64;
    let times = sent(&three) / sent(&one);
    assert!((2.8..3.1).contains(&times), "{times}");
    // The ceiling is three times the sum of their rates, so each is as fast as one alone.
    let faster = mbps(&three) / mbps(&one);
    assert!((faster - 1.0).abs() < 0.15, "{faster}");
}
