//! Attacks on `video-server` over loopback, measured at well-behaved clients.
//!
//! ```sh
//! cargo build --release --bin video-server
//! cargo run --example hostile_clients -- measure --server target/release/video-server --json attacks.jsonl
//! cargo run --example hostile_clients -- soak --server target/release/video-server --out target/soak
//! ```
//!
//! `measure` starts a server for each attack, and alternates between time without and time with the attack. Throughout,
//! one good client after another connects, fetches 100 kB of the title and leaves, over HTTP/3 (the product's client)
//! and over HTTP/1.1. `soak` makes many viewers play the title, compares every byte, and runs the attacks in turn.
//! Attackers use addresses in 127.64.0.0/10, which only Linux has on loopback by default; they run on one thread.

#[path = "../../tests/hostile/attacks/mod.rs"]
mod attacks;
#[path = "../../tests/hostile/good.rs"]
mod good;
mod measure;
#[path = "../../tests/hostile/rig.rs"]
mod rig;
mod samples;
mod scales;
mod soak;
mod thread;
#[path = "../../tests/hostile/victim.rs"]
mod victim;
mod viewers;
#[path = "../../tests/hostile/wire.rs"]
mod wire;

use clap::Parser;

/// Attacks on `video-server` over loopback, measured at clients that behave
#[derive(Parser)]
enum Command {
    /// Service, memory and processor time without and with attacks
    Measure(measure::MeasureOptions),
    /// Many viewers for a long time, with one attack after another
    Soak(soak::SoakOptions),
}

fn main() -> anyhow::Result<()> {
    let command = Command::parse();
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match command {
        Command::Measure(options) => tokio.block_on(measure::run(&options)),
        Command::Soak(options) => tokio.block_on(soak::run(&options)),
    }
}
