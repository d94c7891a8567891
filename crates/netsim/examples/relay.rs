//! An impaired path in front of any UDP server, such as a QUIC server, in real time:
//!
//! ```sh
//! cargo run --release -p playrate-netsim --example relay -- \
//!     127.0.0.1:4433 rate=6Mbit/s,1Mbit/s@20s rtt=80ms queue=1bdp loss=1% seed=3
//! ```
//!
//! `late=5%,10ms` delays one data packet in twenty by 10 ms, so that others overtake it. The first line printed is the
//! server's new address for clients. At the end of stdin it prints the traffic that passed.

use std::io::{Read as _, stdin};
use std::time::Duration;

use anyhow::Context as _;
use playrate_netsim::{LinkConfig, PathConfig, QueueLimit, Rate, Relay, RelayConfig, Seed};
use playrate_units::{Probability, duration};

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let server = words
        .next()
        .context("the first argument must be the server's ADDRESS:PORT")?;
    let (mut rate, mut rtt) = (Rate::Unlimited, Duration::from_millis(40));
    let (mut queue, mut loss, mut seed) = (QueueLimit::ONE_BDP, Probability::ZERO, 1);
    let mut late = None;
    for word in words {
        match word.split_once('=') {
            Some(("rate", text)) => rate = text.parse()?,
            Some(("rtt", text)) => rtt = duration::parse(text)?,
            Some(("queue", text)) => queue = text.parse()?,
            Some(("loss", text)) => loss = text.parse()?,
            Some(("late", text)) => late = Some(text.parse()?),
            Some(("seed", text)) => seed = text.parse()?,
            _ => {
                anyhow::bail!(
                    "unknown argument `{word}`; expected one of: rate=, rtt=, queue=, loss=, late=, seed="
                );
            }
        }
    }
    // The data direction is the bottleneck.
    let mut forward = LinkConfig::new(rate, rtt.saturating_sub(rtt / 2));
    forward.reordering = late;
    let path = PathConfig::new(
        forward.with_queue(queue).with_loss(loss),
        LinkConfig::new(Rate::Unlimited, rtt / 2),
    );
    let relay = Relay::start(&RelayConfig::new(server.parse()?, path).with_seed(Seed::new(seed)))?;
    println!("{}", relay.local_addr());
    stdin().read_to_end(&mut Vec::new())?;
    println!("{}", relay.stop()?);
    Ok(())
}
