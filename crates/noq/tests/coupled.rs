//! Congestion control over several paths of a noq connection, in virtual time and live.
#![expect(clippy::unwrap_used, reason = "test code panics on failure")]

use std::time::Duration;

use playrate_noq::ConnectionController;
use rstest::rstest;

#[path = "../examples/multipath/configs.rs"]
mod configs;
#[path = "../examples/multipath/live.rs"]
mod live;
#[path = "../examples/multipath/virtual_time.rs"]
mod virtual_time;

use live::LiveOutcome;
use virtual_time::{Flow, Outcome, download, separate_links, share_of_link};

const MEASURED: Duration = Duration::from_secs(60);

/// A download over both of these links.
fn over_separate_links(rtts_ms: [u64; 2], controller: &str) -> Outcome {
    let flow = Flow {
        controller,
        paths: &[&[0], &[1]],
    };
    download(7, MEASURED, &separate_links(rtts_ms), &[flow])
}

// Of 8 Mbit/s, 7.7 are left without headers.
#[rstest]
fn coupled_paths_fill_separate_links_with_fewer_losses_than_cubic(
    #[values([60, 60], [60, 120])] rtts_ms: [u64; 2],
) {
    let cubic = over_separate_links(rtts_ms, "cubic");
    for (name, least) in [("lia", 7.3), ("olia", 7.3), ("video", 7.4)] {
        let coupled = over_separate_links(rtts_ms, name);
        assert!(coupled.mbps[0] >= least, "{name}: {coupled:?}");
        assert!(
            2 * coupled.dropped < cubic.dropped,
            "{name}: {coupled:?}, {cubic:?}"
        );
    }
}

#[test]
fn uncoupled_paths_through_one_link_take_the_shares_of_two_flows() {
    let share = share_of_link(7, MEASURED, [60, 60], ["reno", "reno"]);
    assert!(
        (1.2..1.45).contains(&share),
        "two of three flows take 1.33: {share}"
    );
}

#[rstest]
fn coupled_paths_through_one_link_take_about_the_share_of_one_flow(
    #[values("lia", "olia")] name: &str,
    #[values([60, 60], [20, 120])] rtts_ms: [u64; 2],
) {
    let shares = [1, 2].map(|seed| share_of_link(seed, MEASURED, rtts_ms, [name, "reno"]));
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((0.8..1.1).contains(&mean), "{shares:?}");
}

// Uncoupled, the two paths of three flows take 1.31 to 1.33.
#[rstest]
fn video_over_two_paths_through_one_link_takes_less_than_two_flows(
    #[values([60, 60], [120, 120])] rtts_ms: [u64; 2],
) {
    let shares = [1, 2].map(|seed| share_of_link(seed, MEASURED, rtts_ms, ["video", "video"]));
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((0.8..1.25).contains(&mean), "{shares:?}");
}

/// The rate depends on the machine; that both paths carry data does not.
#[tokio::test]
async fn a_live_connection_uses_both_of_its_paths() {
    let links = separate_links([20, 40]);
    let times = (Duration::from_millis(500), Duration::from_secs(2));
    let downloading = live::download("video", &links, times);
    let timeout = tokio::time::timeout(Duration::from_secs(60), downloading);
    let LiveOutcome {
        mbps,
        delivered,
        dropped,
        flaws,
    } = timeout.await.unwrap();
    let both = delivered.iter().all(|&packets| packets > 5);
    assert!(
        both && mbps > 0.0,
        "{mbps} Mbit/s, {delivered:?}, {dropped}, {flaws:?}"
    );
}
