//! A plain quinn program in virtual time: ten megabytes over 20 Mbit/s and 100 ms, within milliseconds of
//! real time.

use std::time::Duration;

use anyhow::Result;
use playrate_netsim::{Pair, PathConfig, QueueLimit, Quinn, Seed, Side};
use playrate_units::{Bitrate, Probability};

async fn serve(server: Side<Quinn>) -> Result<()> {
    let mut stream = server.connection.open_uni().await?;
    for _ in 0..1_000 {
        stream.write_all(&[7; 10_000]).await?;
    }
    stream.finish()?;
    server.connection.closed().await;
    Ok(())
}

async fn download(client: Side<Quinn>) -> Result<usize> {
    let mut stream = client.connection.accept_uni().await?;
    Ok(stream.read_to_end(20_000_000).await?.len())
}

fn main() -> Result<()> {
    let (rate, rtt) = (Bitrate::from_mbps(20), Duration::from_millis(100));
    let path = PathConfig::bottleneck(rate, rtt, QueueLimit::ONE_BDP, "0.01%".parse::<Probability>()?);
    let outcome = Pair::quinn(path).run(Seed::new(7), serve, download)?;
    outcome.server?;
    println!(
        "{} bytes in {:.3} s, {} packets dropped",
        outcome.client?,
        outcome.ended.as_secs_f64(),
        outcome.paths[0].forward.stats.dropped.total().packets
    );
    Ok(())
}
