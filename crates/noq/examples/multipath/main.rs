//! Controllers over two paths of one noq connection. Prints three tables: the share of a link that both paths use, in
//! virtual time; the rate over two separate links, in virtual time; and the same live, with UDP sockets on loopback.
//!
//! ```sh
//! cargo run --release -p playrate-noq --example multipath -- 180 60   # seconds of virtual and of real time per row
//! ```
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot be set up ends the program"
)]

mod configs;
mod live;
mod virtual_time;

use std::time::Duration;

use playrate_noq::ConnectionController;
use virtual_time::{Flow, separate_links, share_of_link};

const SEEDS: [u64; 3] = [1, 2, 3];
const RTTS_MS: [[u64; 2]; 6] = [[20, 20], [60, 60], [120, 120], [20, 60], [20, 120], [60, 120]];
/// The controller of two paths, and that of the other flow.
const PAIRS: [[&str; 2]; 5] = [
    ["reno", "reno"],
    ["lia", "reno"],
    ["olia", "reno"],
    ["video", "video"],
    ["video", "cubic"],
];
const SEPARATE_MS: [u64; 2] = [60, 120];
/// Real time before the measurement.
const WARM_UP: Duration = Duration::from_secs(20);

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let mut seconds = |default| words.next().map_or(Ok(default), |word| word.parse());
    let (virtually, live) = (
        Duration::from_secs(seconds(180)?),
        Duration::from_secs(seconds(60)?),
    );

    println!(
        "share of one link: two paths beside one flow, mean and largest of {} seeds",
        SEEDS.len()
    );
    print!("{:<18}", "RTTs, ms");
    for [first, second] in RTTS_MS {
        print!("{:>14}", format!("{first}/{second}"));
    }
    println!();
    for names in PAIRS {
        print!("{:<18}", names.join(" beside "));
        for rtts in RTTS_MS {
            let shares = SEEDS.map(|seed| share_of_link(seed, virtually, rtts, names));
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            let most = shares.into_iter().fold(0.0, f64::max);
            print!("{:>14}", format!("{mean:.2} {most:.2}"));
        }
        println!();
    }

    let links = separate_links(SEPARATE_MS);
    println!("two links of 4 Mbit/s, {SEPARATE_MS:?} ms: Mbit/s and packets dropped per minute");
    println!("{:<12}{:>16}{:>16}  packets per link", "", "virtual", "live");
    for controller in ["lia", "olia", "cubic", "noq-cubic", "video"] {
        let flow = Flow {
            controller,
            paths: &[&[0], &[1]],
        };
        let outcome = virtual_time::download(1, virtually, &links, &[flow]);
        let dropped = |packets: u64, time: Duration| packets as f64 * 60.0 / time.as_secs_f64();
        let cell = |mbps: f64, dropped: f64| format!("{mbps:.2} {dropped:.0}");
        let in_virtual_time = cell(outcome.mbps[0], dropped(outcome.dropped, virtually));
        // The simulation must not run inside tokio, whose channels make a task yield now and then.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let outcome = runtime.block_on(live::download(controller, &links, (WARM_UP, live)));
        let in_real_time = cell(outcome.mbps, dropped(outcome.dropped, live));
        println!(
            "{controller:<12}{in_virtual_time:>16}{in_real_time:>16}  {:?}",
            outcome.delivered
        );
        for flaw in outcome.flaws {
            println!("    {flaw}");
        }
    }
    Ok(())
}
