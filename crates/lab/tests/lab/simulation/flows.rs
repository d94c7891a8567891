//! Several flows at one bottleneck: viewers and bulk flows, and their counts in measurement windows.

use std::time::Duration;

use lab::sim::{self, Access, Bulk, Setup, Simulated};
use playrate_netsim::{Loss, PathConfig, QueueLimit, Seed};
use playrate_units::{Bitrate, Bytes};

use super::{short_film, viewer};

const RTT: Duration = Duration::from_millis(40);

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// A viewer of 3 MB who stays for 12 s, a download from 2 s on and another for 4 s in between, at 10 Mbit/s.
fn setup() -> Setup {
    let path = PathConfig::bottleneck(Bitrate::from_mbps(10), RTT, QueueLimit::ONE_BDP, Loss::None);
    let mut viewer = viewer("stream", &short_film(2, 12));
    viewer.leaves_after = Some(seconds(12));
    viewer.playout.receive_buffer = Bytes::from_kb(200);
    viewer.playout.playout_buffer = Bytes::from_kb(100);
    let first = Bulk {
        controller: "cubic".parse().unwrap(),
        joins: seconds(2),
        leaves_after: None,
        access: Access {
            server: Duration::from_millis(5),
            client: Duration::from_millis(15),
        },
    };
    let second = Bulk {
        controller: "reno".parse().unwrap(),
        joins: seconds(4),
        leaves_after: Some(seconds(4)),
        access: Access::default(),
    };
    let mut setup = Setup::new(path, Seed::new(3)).with_viewer(viewer);
    setup.bulk = vec![first, second];
    setup.windows = ["0s..2s", "2s..8s", "8s.."]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
    setup.without_taps()
}

fn share(run: &Simulated, window: usize) -> f64 {
    let viewer = &run.viewers[0].windows[window];
    let flows = run.bulk.iter().map(|bulk| &bulk.windows[window]).chain([viewer]);
    let bytes: u64 = flows.map(|counts| counts.received_bytes).sum();
    bytes as f64 * 8.0 / (viewer.to_s - viewer.from_s)
}

#[test]
fn bulk_flows_take_the_rate_that_viewers_leave_and_end_on_time() {
    let run = sim::run(&setup()).unwrap();
    let [first, second] = &run.bulk[..] else {
        panic!("two downloads")
    };
    // Ten Mbit/s with headers are 9.6 of content.
    let used = share(&run, 1);
    assert!((8.5e6..9.7e6).contains(&used), "{used}");
    assert!(first.windows[0].received_bytes == 0 && first.windows[2].received_bytes > 1_000_000);
    assert_eq!(second.lasted, seconds(4));
    // Data in flight when it left may still have arrived.
    assert!(second.windows[2].received_bytes < 100_000, "{:?}", second.windows);
    assert_eq!((first.error.as_ref(), second.error.as_ref()), (None, None));
    // The run does not wait for the download that stays.
    assert!(run.length < seconds(16), "{:?}", run.length);
    for bulk in &run.bulk {
        let (totals, counted) = (bulk.totals.unwrap(), &bulk.windows);
        let sum = |pick: fn(&sim::WindowCounts) -> u64| counted.iter().map(pick).sum::<u64>();
        assert_eq!(sum(|counts| counts.received_bytes), bulk.received.as_u64());
        assert_eq!(sum(|counts| counts.lost_bytes), totals.path.lost_bytes);
        let sent = sum(|counts| counts.sent_bytes);
        assert!(sent <= totals.udp_tx.bytes && sent > totals.udp_tx.bytes * 98 / 100);
        assert!(bulk.control.is_some());
    }
}

#[test]
fn a_run_with_a_least_length_goes_on_for_its_downloads_when_the_viewer_has_left() {
    let mut longer = setup();
    longer.least_length = seconds(30);
    longer.windows.push("20s..30s".parse().unwrap());
    let run = sim::run(&longer).unwrap();
    assert_eq!((run.length, run.bulk[0].lasted), (seconds(30), seconds(28)));
    // Alone, it gets everything that 10 Mbit/s leave after headers.
    let received = run.bulk[0].windows[3].received_bytes;
    assert!((11_500_000..12_500_000).contains(&received), "{received}");
    let short = sim::run(&setup()).unwrap();
    assert_eq!(run.viewers[0].windows[..2], short.viewers[0].windows[..2]);
}

#[test]
fn a_flow_is_as_far_away_as_its_access_links_say() {
    let run = sim::run(&setup()).unwrap();
    let rtt = |totals: Option<quinn::ConnectionStats>| totals.unwrap().path.min_rtt;
    let (near, far) = (rtt(run.viewers[0].totals), rtt(run.bulk[0].totals));
    assert!(near >= RTT && near < RTT + Duration::from_millis(2), "{near:?}");
    // 20 ms more each way.
    assert!(far >= RTT * 2, "{far:?}");
}

#[test]
fn runs_with_several_flows_repeat_to_the_packet() {
    let (one, other) = (sim::run(&setup()).unwrap(), sim::run(&setup()).unwrap());
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
}
