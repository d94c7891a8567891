//! Checks the service to good clients during an attack.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use playrate_test_support::{PATIENCE, program, until};
use playrate_units::Bytes;
use rstest::rstest;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::attacks::{Attack, Scale};
use crate::good::{Over, fetch, fetch_and_stay};
use crate::rig::{Attacking, Rig};

/// Maximum memory that an attack of this size may make a server use: twelve connections with 100 unread responses each
/// take 14 MB per connection.
const MEMORY: Bytes = Bytes::from_mib(192);
/// A good client may take this many times as long as without an attack, in addition to [`SLACK`].
const FACTOR: u32 = 20;
/// Time differences that are meaningless on a machine with other work.
const SLACK: Duration = Duration::from_secs(20);

/// Maximum time for an attack to reach the state that a test needs.
const UNDER_WAY: Duration = Duration::from_secs(120);

/// Deadline for a test that waits for an attack from now on.
fn deadline() -> Instant {
    Instant::now() + UNDER_WAY
}

/// Duration of each attack in seconds: `PLAYRATE_ATTACK_SECONDS`, or 2.
fn lasts() -> Duration {
    let seconds = std::env::var("PLAYRATE_ATTACK_SECONDS").map_or(2, |text| {
        text.parse().expect("PLAYRATE_ATTACK_SECONDS is a whole number")
    });
    Duration::from_secs(seconds)
}

/// A server of this build, with metrics.
fn start(options: &[&str]) -> Rig {
    let options = [&["--metrics", "127.0.0.1:0"], options].concat();
    Rig::start(&program("video-server"), &options).unwrap()
}

/// Stops a server, which must end in order once all connections are gone. A connection whose client could not announce
/// its departure stays for its idle timeout of 30 s.
async fn assert_ends_in_order(rig: Rig) {
    until("no connection is left", async || {
        let open = ["playrate_connections", "playrate_tcp_connections"].map(|name| rig.server.metric(name));
        open == [0, 0]
    })
    .await;
    let end = rig.end();
    assert!(end.in_order(), "{end:?}");
}

/// Time of the slowest of these good clients.
async fn slowest(rig: &Rig, limit: Duration) -> Duration {
    let mut slowest = Duration::ZERO;
    for over in [Over::Quic, Over::Tcp] {
        let service = fetch(&rig.victim, over, limit).await.unwrap();
        slowest = slowest.max(service.connected + service.fetched);
    }
    slowest
}

/// Attacks a server. Meanwhile it must serve good clients over QUIC and TCP, stay small, and end in order.
#[rstest]
#[case::endless_heads(Attack::EndlessHeads, 12, 12, 300.0)]
#[case::endless_content(Attack::EndlessContent, 12, 12, 300.0)]
#[case::idle_tcp(Attack::IdleTcp, 200, 20, 500.0)]
#[case::idle_tls(Attack::IdleTls, 100, 20, 100.0)]
#[case::pings(Attack::Pings, 100, 20, 100.0)]
#[case::paths(Attack::Paths, 6, 6, 100.0)]
#[case::migration(Attack::Migration, 4, 40, 100.0)]
#[case::tiny_windows(Attack::TinyWindows, 20, 12, 400.0)]
#[case::ranges(Attack::Ranges, 6, 6, 300.0)]
#[case::false_cmcd(Attack::FalseCmcd, 6, 6, 300.0)]
#[case::reset_http_2(Attack::ResetHttp2, 4, 4, 1_000.0)]
#[case::reset_http_3(Attack::ResetHttp3, 4, 4, 1_000.0)]
#[case::slow_heads(Attack::SlowHeads, 60, 12, 200.0)]
#[case::stalled_http_3(Attack::StalledHttp3, 12, 12, 1_000.0)]
#[case::stalled_http_2(Attack::StalledHttp2, 12, 12, 1_000.0)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attack_leaves_service_to_others_and_opens_no_other_file(
    #[case] attack: Attack,
    #[case] connections: usize,
    #[case] addresses: usize,
    #[case] rate: f64,
) {
    let scale = Scale {
        connections,
        addresses,
        rate,
    };
    let rig = start(&[]);
    let mut idle = Duration::ZERO;
    for _ in 0..3 {
        idle = idle.max(slowest(&rig, PATIENCE).await);
    }
    let limit = SLACK + idle * FACTOR;
    let before = rig.process().unwrap().resident;
    let attacking = Attacking::begin(&rig.victim, attack, scale);
    let ends = Instant::now() + lasts();
    let latest = deadline() + lasts();
    let mut most = before;
    while Instant::now() < ends || attacking.tally.actions.load(Relaxed) == 0 {
        assert!(Instant::now() < latest, "the attack did not act");
        let time = slowest(&rig, PATIENCE).await;
        assert!(time <= limit, "{time:?} beside the attack, {idle:?} without it");
        most = most.max(rig.process().unwrap().resident);
        sleep(Duration::from_millis(100)).await;
    }
    let leaks = attacking.tally.leaks.load(Relaxed);
    attacking.stop().await.unwrap();
    assert!(most - before <= MEMORY, "{} more memory", most - before);
    assert_eq!(leaks, 0, "a file outside of the media directory was served");
    slowest(&rig, PATIENCE).await;
    assert_ends_in_order(rig).await;
}

/// Lets twice as many connections as there are places compete for them. They come from four addresses, with 16
/// connections over each of `transports` transports. A good client must soon get a place.
#[rstest]
#[case::idle_quic(Attack::IdleQuic, Over::Quic, 1)]
#[case::idle_tls(Attack::IdleTls, Over::Tcp, 1)]
#[case::few_requests_over_quic(Attack::FewRequests, Over::Quic, 2)]
#[case::few_requests_over_tcp(Attack::FewRequests, Over::Tcp, 2)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_hold_every_place_lock_no_client_out(
    #[case] attack: Attack,
    #[case] over: Over,
    #[case] transports: u32,
) {
    let rig = start(&["--max-connections", "16"]);
    let scale = Scale {
        connections: 32 * transports as usize,
        addresses: 4,
        rate: 50.0,
    };
    let attacking = Attacking::begin(&rig.victim, attack, scale);
    let latest = deadline();
    while attacking.tally.most_open.load(Relaxed) < u64::from(16 * transports) {
        assert!(Instant::now() < latest, "the attack did not fill all places");
        sleep(Duration::from_millis(100)).await;
    }
    let evicted = match over {
        Over::Quic => "playrate_evicted_connections_total",
        Over::Tcp => "playrate_evicted_tcp_connections_total",
    };
    // Each of the networks has more connections than the good client's. While an attacker reconnects, there is room
    // without an eviction, so the client retries then.
    let latest = Instant::now() + PATIENCE;
    loop {
        let served = fetch(&rig.victim, over, PATIENCE / 4).await;
        if served.is_ok() && rig.server.metric(evicted) > 0 {
            break;
        }
        assert!(Instant::now() < latest, "no place by an eviction: {served:?}");
        sleep(Duration::from_millis(200)).await;
    }
    attacking.stop().await.unwrap();
    assert_ends_in_order(rig).await;
}

/// Lets silent connections take every place, each from a network of its own. Then twelve players behind one address
/// must all be served at the same time.
#[rstest]
#[case::quic(Attack::IdleQuic, Over::Quic)]
#[case::tcp(Attack::IdleTcp, Over::Tcp)]
#[case::tls(Attack::IdleTls, Over::Tcp)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_addresses_lock_no_player_behind_a_shared_address_out(
    #[case] attack: Attack,
    #[case] over: Over,
) {
    let rig = start(&["--max-connections", "64"]);
    let scale = Scale {
        connections: 320,
        addresses: 320,
        rate: 100.0,
    };
    let attacking = Attacking::begin(&rig.victim, attack, scale);
    let latest = deadline();
    while attacking.tally.most_open.load(Relaxed) < 64 {
        assert!(Instant::now() < latest, "the attack did not fill all places");
        sleep(Duration::from_millis(100)).await;
    }
    let all_served = Arc::new(Barrier::new(12));
    let mut players = JoinSet::new();
    for _ in 0..12 {
        let (victim, all_served) = (rig.victim.clone(), Arc::clone(&all_served));
        players.spawn(async move {
            let stay = async {
                all_served.wait().await;
            };
            fetch_and_stay(&victim, over, PATIENCE, stay).await
        });
    }
    for served in players.join_all().await {
        served.unwrap();
    }
    attacking.stop().await.unwrap();
    assert_ends_in_order(rig).await;
}

/// First packets from 1,000 addresses, without any second packet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_forged_first_packets_locks_no_client_out() {
    let rig = start(&["--max-connections", "32"]);
    let scale = Scale {
        connections: 1,
        addresses: 1_000,
        rate: 500.0,
    };
    let attacking = Attacking::begin(&rig.victim, Attack::Initials, scale);
    let latest = deadline();
    let retried = || rig.server.metric("playrate_retried_handshakes_total");
    while attacking.tally.actions.load(Relaxed) < 1_000 || retried() <= 500 {
        assert!(Instant::now() < latest, "the flood is too slow");
        fetch(&rig.victim, Over::Quic, PATIENCE).await.unwrap();
    }
    attacking.stop().await.unwrap();
    fetch(&rig.victim, Over::Quic, PATIENCE).await.unwrap();
    assert_eq!(rig.server.metric("playrate_refused_connections_total"), 0);
    assert_ends_in_order(rig).await;
}
