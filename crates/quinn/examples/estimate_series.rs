//! Writes the data for the figure of `docs/live.md`: the estimate of what a connection carries, and the rate of its
//! link, in virtual time.
//!
//! `cargo run --release -p playrate-quinn --example estimate_series > docs/live/estimates.jsonl` writes it, and
//! `python docs/draw.py` draws the figure from it.

use std::time::Duration;

use playrate_cc::Estimate;
use playrate_netsim::{LinkConfig, Pair, PathConfig, QueueLimit, Quinn, Rate, RateSchedule, Seed, Side};
use playrate_quinn::ConnectionController;
use playrate_units::{Bitrate, Bytes};
use quinn::Runtime;

const LENGTH: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(100);
const DELAY: Duration = Duration::from_millis(25);

/// A link of 3 to 13 Mbit/s that changes every 200 ms, one wave in 8 s: the milliseconds from which rates apply, and
/// the rates in kbit/s.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive rate"
)]
fn fading() -> Vec<(u64, u64)> {
    let rate = |at: u64| {
        let wave = (at as f64 / 8_000.0 * std::f64::consts::TAU).sin();
        (at, (8_000.0 + 5_000.0 * wave).round() as u64)
    };
    (0..150).map(|step| rate(200 * step)).collect()
}

/// Sends without a pause; returns the estimate after each step of time.
async fn send(side: Side<Quinn>, control: &ConnectionController) -> Vec<Option<Estimate>> {
    let runtime = side.simulation.runtime();
    let mut stream = side.connection.open_uni().await.expect("a new connection");
    runtime.spawn(Box::pin(async move {
        let chunk = vec![0; 1 << 16];
        while stream.write_all(&chunk).await.is_ok() {}
    }));
    let mut estimates = Vec::new();
    while side.now().elapsed() < LENGTH {
        side.sleep(STEP).await;
        estimates.push(control.estimate(runtime.now()));
    }
    side.connection.close(0_u32.into(), b"");
    estimates
}

/// Reads until the connection ends.
async fn receive(side: Side<Quinn>) {
    let mut stream = side.connection.accept_uni().await.expect("the server's stream");
    while let Ok(Some(_)) = stream.read_chunk(usize::MAX, true).await {}
}

fn estimates(controller: &str, steps: &[(u64, u64)]) -> anyhow::Result<Vec<String>> {
    let rates: Vec<_> = steps
        .iter()
        .map(|&(at, kbps)| (Duration::from_millis(at), Bitrate::from_kbps(kbps)))
        .collect();
    let rate = Rate::Schedule(RateSchedule::new(&rates, None)?);
    let forward = LinkConfig::new(rate, DELAY).with_queue(QueueLimit::Bytes(Bytes::from_kb(100)));
    let path = PathConfig::new(forward, LinkConfig::new(Rate::Unlimited, DELAY));
    let control = ConnectionController::new(controller.parse()?);
    let pair = Pair::quinn(path).server_transport(|transport| {
        control.install(transport);
        control.request_acks(transport);
    });
    let outcome = pair.run(Seed::new(7), |side| send(side, &control), receive)?;
    let kbps = |estimate: &Estimate| (estimate.rate.as_bits_per_second() / 1_000).to_string();
    let shown = |estimate: &Option<Estimate>| estimate.as_ref().map_or("null".to_owned(), kbps);
    Ok(outcome.server.iter().map(shown).collect())
}

fn main() -> anyhow::Result<()> {
    let stepped = vec![(0, 20_000), (10_000, 5_000), (20_000, 12_000)];
    for (link, steps) in [("steps", stepped), ("fades", fading())] {
        let rates: Vec<_> = steps.iter().map(|(at, kbps)| format!("[{at},{kbps}]")).collect();
        for controller in ["cubic", "bbr", "video"] {
            println!(
                "{{\"link\":\"{link}\",\"ms_kbps\":[{}],\"controller\":\"{controller}\",\"estimates_kbps\":[{}]}}",
                rates.join(","),
                estimates(controller, &steps)?.join(",")
            );
        }
    }
    Ok(())
}
