//! Pairs of endpoints: what a run returns, and how it fails.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::future::{pending, poll_fn};
use std::task::Poll;
use std::time::Duration;

use playrate_netsim::{
    HostConfig, Loss, Pair, PairError, PairOutcome, PathConfig, QueueLimit, Quinn, RunError, Seed, Side, Time,
};
use playrate_units::{Bitrate, Probability};
use quinn::ConnectionError;

fn path() -> PathConfig {
    let loss: Loss = Probability::from_parts_per_billion(2_000_000).into();
    let (rate, rtt) = (Bitrate::from_mbps(20), Duration::from_millis(100));
    PathConfig::bottleneck(rate, rtt, QueueLimit::ONE_BDP, loss)
}

async fn send(server: Side<Quinn>) -> ConnectionError {
    let mut stream = server.connection.open_uni().await.unwrap();
    stream.write_all(&vec![7; 5_000_000]).await.unwrap();
    stream.finish().unwrap();
    server.connection.closed().await
}

async fn read(client: Side<Quinn>) -> (usize, Time) {
    let mut stream = client.connection.accept_uni().await.unwrap();
    let read = stream.read_to_end(usize::MAX).await.unwrap();
    (read.len(), client.now())
}

fn download(seed: u64) -> PairOutcome<ConnectionError, (usize, Time)> {
    Pair::quinn(path()).run(Seed::new(seed), send, read).unwrap()
}

#[test]
fn a_run_returns_both_results_and_what_happened_on_the_path() {
    let outcome = download(1);
    assert_eq!(outcome.client.0, 5_000_000);
    assert!(matches!(outcome.server, ConnectionError::ApplicationClosed(_)));
    // The server learns of the end half a round trip after the client.
    assert!(outcome.ended >= outcome.client.1 + Duration::from_millis(50));
    let link = &outcome.paths[0].forward;
    assert!(link.stats.is_conserved() && link.stats.dropped.total().packets > 0);
    let bins = link.series.bins();
    assert_eq!(
        bins.iter().map(|bin| bin.offered).sum::<u64>(),
        link.stats.offered.packets
    );
    assert_eq!(
        bins.iter().map(|bin| bin.max_queue).max(),
        Some(link.stats.max_queue)
    );
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    assert_eq!(download(1), download(1));
    assert_ne!(download(1).digest, download(2).digest);
}

#[test]
fn a_program_that_cannot_end_is_named_with_the_reason_and_the_time() {
    let idle = |transport: &mut quinn::TransportConfig| {
        transport.max_idle_timeout(None);
    };
    let pair = || Pair::quinn(path()).server_transport(idle).client_transport(idle);
    let stuck = pair().run(Seed::new(1), |_| async {}, |_| pending::<()>());
    let Err(
        error @ PairError::Run {
            source: RunError::Deadlock { .. },
            ..
        },
    ) = stuck
    else {
        panic!("{stuck:?}");
    };
    let text = error.to_string();
    assert!(
        text.starts_with("deadlock at ") && text.ends_with("the server has ended, the client has not"),
        "{text}"
    );

    let slow = pair().with_deadline(Duration::from_secs(5)).run(
        Seed::new(1),
        |server| async move { server.sleep(Duration::from_secs(6)).await },
        |_| async {},
    );
    assert_eq!(
        slow.unwrap_err().to_string(),
        "not done by the deadline of 5s; the client has ended, the server has not"
    );
}

#[test]
fn a_failed_handshake_is_an_error() {
    let unreachable = PathConfig::of_rate(
        Bitrate::from_mbps(20),
        "100ms,down@1ms"
            .parse::<playrate_netsim::DelaySchedule>()
            .unwrap(),
    );
    let outcome = Pair::quinn(unreachable).run(Seed::new(1), |_| async {}, |_| async {});
    assert_eq!(outcome.unwrap_err().to_string(), "handshake failed: timed out");
}

#[test]
fn a_program_that_waits_on_another_thread_is_detected() {
    let outcome = Pair::quinn(path()).run(Seed::new(1), send, |client| async move {
        // Virtual time goes on meanwhile, as the server sends.
        let mut thread = None;
        poll_fn(|cx| match &thread {
            None => {
                let waker = cx.waker().clone();
                thread = Some(std::thread::spawn(move || waker.wake()));
                while !thread.as_ref().is_some_and(std::thread::JoinHandle::is_finished) {
                    std::thread::yield_now();
                }
                Poll::Pending
            }
            Some(_) => Poll::Ready(()),
        })
        .await;
        read(client).await
    });
    assert!(
        matches!(outcome, Err(PairError::NotReproducible { wakes: 1 })),
        "{outcome:?}"
    );
}

#[test]
fn a_path_that_does_not_exist_is_refused_with_their_number() {
    let outcome = Pair::quinn(path())
        .with_path(path())
        .with_hosts(
            HostConfig::default(),
            HostConfig::default().with_access_delay(Duration::from_millis(1)),
        )
        .run(
            Seed::new(1),
            |server| async move { server.address(1) },
            |mut client| async move { (client.address(1), client.migrate(2).unwrap_err().to_string()) },
        )
        .unwrap();
    assert_eq!(outcome.server, None);
    assert!(outcome.client.0.is_some());
    assert_eq!(
        outcome.client.1,
        "no path 2: expected a number below 2, the number of paths"
    );
}
