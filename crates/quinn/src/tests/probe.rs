//! Probes of an application that sends little, over links with known rates.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use playrate_cc::Estimate;
use playrate_netsim::{LinkConfig, Pair, PathConfig, QueueLimit, Quinn, Rate, Seed, Side};
use playrate_units::{Bitrate, Bytes};
use quinn::{Runtime, SendStream};

use crate::{ConnectionController, Probe};

/// 30 frames per second of 3 Mbit/s in all.
const FRAME: Duration = Duration::from_nanos(33_333_333);
const FRAME_BYTES: usize = 12_500;
const FRAMES: usize = 1_800;
const TARGET: Bitrate = Bitrate::from_mbps(20);
/// First byte of padding; that of a frame, which begins with its time, is zero.
const PADDING: u8 = 0xff;

/// A run of a minute.
#[derive(Debug)]
struct Outcome {
    /// The first estimate that a probe found, and the padding until then.
    found: Option<(Estimate, Bytes)>,
    padding: Bytes,
    /// Latencies of the frames that arrived, in ascending order.
    latencies: Vec<Duration>,
}

/// Sends frames and padding; returns the padding and what the first probe found.
async fn send(side: Side<Quinn>, control: &ConnectionController, mut probe: Option<Probe>) -> Outcome {
    let runtime = side.simulation.runtime();
    let mut stream: Option<SendStream> = None;
    let (mut found, mut padding) = (None, Bytes::ZERO);
    for _ in 0..FRAMES {
        let mut frame = side.now().as_nanos().to_be_bytes().to_vec();
        frame.resize(FRAME_BYTES, 0);
        let mut frames = side.connection.open_uni().await.unwrap();
        runtime.spawn(Box::pin(async move { frames.write_all(&frame).await.unwrap() }));
        if let Some(probe) = &mut probe {
            let now = runtime.now();
            let due = probe.bytes_due(now, Bytes::from(FRAME_BYTES), control.estimate(now));
            if !probe.is_active() {
                if let Some(mut ended) = stream.take() {
                    ended.reset(0_u32.into()).unwrap();
                }
                let first = probe.found(now).map(|estimate| (estimate, padding));
                found = found.or(first);
            } else if due > Bytes::ZERO {
                if stream.is_none() {
                    let opened = side.connection.open_uni().await.unwrap();
                    opened.set_priority(-1).unwrap();
                    stream = Some(opened);
                }
                // Padding that the stream has no room for is dropped.
                let bytes = vec![PADDING; due.as_usize()];
                let written = stream.as_mut().unwrap().write(&bytes).now_or_never();
                padding += Bytes::from(written.map_or(0, Result::unwrap));
            }
        }
        side.sleep(FRAME).await;
    }
    side.sleep(Duration::from_secs(2)).await;
    Outcome {
        found,
        padding,
        latencies: Vec::new(),
    }
}

/// Reads frames and padding until the server closes the connection; returns the frames' latencies.
async fn receive(side: Side<Quinn>) -> Vec<Duration> {
    let latencies = Arc::new(Mutex::new(Vec::new()));
    while let Ok(mut stream) = side.connection.accept_uni().await {
        let (simulation, latencies) = (Arc::clone(&side.simulation), Arc::clone(&latencies));
        side.simulation.runtime().spawn(Box::pin(async move {
            let mut first = [0; 8];
            if stream.read_exact(&mut first).await.is_err() {
                return;
            }
            while let Ok(Some(_)) = stream.read_chunk(usize::MAX, true).await {}
            if first[0] != PADDING {
                let made = u64::from_be_bytes(first);
                let latency = Duration::from_nanos(simulation.now().as_nanos() - made);
                latencies.lock().unwrap().push(latency);
            }
        }));
    }
    let mut latencies = std::mem::take(&mut *latencies.lock().unwrap());
    latencies.sort();
    latencies
}

/// Runs the application over a link of `rate` with a round trip of 50 ms and a queue of 100 ms.
fn run(controller: &str, rate: Bitrate, probe: Option<Probe>) -> Outcome {
    let delay = Duration::from_millis(25);
    let queue = QueueLimit::Bytes(rate * Duration::from_millis(100));
    let forward = LinkConfig::new(Rate::from(rate), delay).with_queue(queue);
    let path = PathConfig::new(forward, LinkConfig::new(Rate::Unlimited, delay));
    let control = ConnectionController::new(controller.parse().unwrap());
    let pair = Pair::quinn(path)
        .server_transport(|transport| {
            control.install(transport);
            control.request_acks(transport);
        })
        .client_transport(|transport| {
            transport.max_concurrent_uni_streams(1_000_u32.into());
        });
    let sending = |side| send(side, &control, probe);
    let ended = pair.run(Seed::new(7), sending, receive).unwrap();
    Outcome {
        latencies: ended.client,
        ..ended.server
    }
}

/// The largest latency of 99 % of the frames.
fn percentile(outcome: &Outcome) -> Duration {
    outcome.latencies[FRAMES * 99 / 100 - 1]
}

#[test]
fn a_probe_finds_what_the_link_carries_and_delays_99_percent_of_frames_by_at_most_its_queue() {
    let cost = Bitrate::from_kbps(300);
    for controller in ["cubic", "video", "bbr"] {
        // The queue holds 100 ms. A link as fast as the target, or faster, hardly needs it.
        for (link, longest_delay) in [(4, 100), (8, 100), (20, 12), (50, 1)] {
            let (link, longest_delay) = (Bitrate::from_mbps(link), Duration::from_millis(longest_delay));
            let plain = run(controller, link, None);
            let probed = run(controller, link, Some(Probe::new(TARGET, cost)));
            let (found, padding) = probed.found.expect("a probe ended");
            let [usual, delayed] = [&plain, &probed].map(percentile);
            let shown = format!(
                "{controller} on {link}: {} ({}) for {padding}, {} in all; 99 % of frames within {delayed:?} \
                 instead of {usual:?}, all within {:?}",
                found.rate,
                found.source,
                probed.padding,
                probed.latencies.last().unwrap()
            );
            println!("{shown}");
            let carried = link.scaled(1_452, 1_480);
            assert!(found.rate <= carried.scaled(102, 100), "{shown}");
            assert!(found.rate >= carried.min(TARGET).scaled(88, 100), "{shown}");
            assert!(padding <= Bytes::from_mib(6), "{shown}");
            assert!(
                probed.padding <= padding + cost * Duration::from_secs(60),
                "{shown}"
            );
            assert_eq!((plain.latencies.len(), probed.latencies.len()), (FRAMES, FRAMES));
            assert!(delayed <= usual + longest_delay, "{shown}");
        }
    }
}
