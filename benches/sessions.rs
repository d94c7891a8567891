//! Speed of virtual time: complete sessions, including TLS and HTTP/3, in virtual seconds per second of CPU time.
//!
//! `cargo bench --bench sessions` prints a table; `-- --check` fails if a figure is below its bound. It measures CPU
//! time, which other work on the machine disturbs less than wall time, and takes the best of three runs, because
//! disturbances only ever make a run slower.
//!
//! `-- --instructions` counts instructions per packet with callgrind (valgrind) instead, which hardly depends on other
//! work on the machine: of the same sessions, and of 1, 10 and 100 flows at one bottleneck.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use lab::sim::{self, ServedTitle, Setup, Simulated, Viewer};
use playrate_media::{FrameTrace, TraceSource};
use playrate_netsim::{Loss, PathConfig, QueueLimit, Seed};
use playrate_units::{Bitrate, Bytes};
use rustix::time::{ClockId, clock_gettime};
use video_client::playout::{PLAYOUT_BUFFER_448, READ_AHEAD};

#[path = "common/callgrind.rs"]
mod callgrind;

/// Runs of each case.
const REPEATS: usize = 3;

/// A kind of session and its required speed.
struct Case {
    name: &'static str,
    link: Bitrate,
    title: Bitrate,
    playing: Duration,
    /// Bytes that the player holds before it stops reading.
    holds: Bytes,
    /// Required virtual seconds per CPU second, without and with time series.
    reach: (f64, f64),
}

/// More bytes than any title here has, so that the link is never idle.
const EVERYTHING: Bytes = Bytes::new(10_000_000_000);

const CASES: [Case; 3] = [
    Case {
        name: "409 MB over 20 Mbit/s, saturated",
        link: Bitrate::from_mbps(20),
        title: Bitrate::from_kbps(5_240),
        playing: Duration::from_secs(624),
        holds: EVERYTHING,
        reach: (165.0, 165.0),
    },
    Case {
        name: "409 MB over 100 Mbit/s, saturated",
        link: Bitrate::from_mbps(100),
        title: Bitrate::from_kbps(5_240),
        playing: Duration::from_secs(624),
        holds: EVERYTHING,
        reach: (33.0, 30.0),
    },
    Case {
        name: "5 Mbit/s of video over 20 Mbit/s",
        link: Bitrate::from_mbps(20),
        title: Bitrate::from_mbps(5),
        playing: Duration::from_secs(600),
        holds: Bytes::new(PLAYOUT_BUFFER_448.as_u64() + READ_AHEAD.as_u64()),
        reach: (640.0, 520.0),
    },
];

fn title(rate: Bitrate, playing: Duration) -> anyhow::Result<ServedTitle> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/traces/film-1080p.csv");
    let trace = FrameTrace::open(file)?.repeat_to(playing)?.scale_to_rate(rate)?;
    Ok(ServedTitle::trace("film", TraceSource::new(&trace)))
}

fn setup(case: &Case, taps: bool) -> anyhow::Result<Setup> {
    let rtt = Duration::from_millis(100);
    let path = PathConfig::bottleneck(case.link, rtt, QueueLimit::ONE_BDP, Loss::None);
    let mut viewer = Viewer::new("cubic".parse()?, title(case.title, case.playing)?);
    viewer.playout.receive_buffer = case.holds;
    let mut setup = Setup::new(path, Seed::new(1)).with_viewer(viewer);
    setup.taps = taps;
    Ok(setup)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Result of one case.
struct Measured {
    /// Virtual seconds from the request to the last byte.
    seconds: f64,
    packets: u64,
    cpu: f64,
    /// Peak memory in MiB; `None` if the system does not report it.
    peak: Option<f64>,
}

impl Measured {
    fn speed(&self) -> f64 {
        self.seconds / self.cpu
    }
}

fn measure(setup: &Setup) -> anyhow::Result<Measured> {
    let mut best: Option<Measured> = None;
    for _ in 0..REPEATS {
        // Resets the peak (Linux).
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let before = cpu_time();
        let run: Simulated = sim::run(setup)?;
        let cpu = cpu_time().saturating_sub(before).as_secs_f64();
        let measured = Measured {
            seconds: last_byte(&run).as_secs_f64(),
            packets: run.forward.offered.packets + run.backward.offered.packets,
            cpu,
            peak: peak_memory(),
        };
        if best.as_ref().is_none_or(|best| measured.cpu < best.cpu) {
            best = Some(measured);
        }
    }
    best.context("nothing was measured")
}

fn last_byte(run: &Simulated) -> Duration {
    let ended = run.viewers.iter().map(|viewer| viewer.report.network.ended);
    ended.max().unwrap_or_default()
}

fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

/// `flows` viewers who share 100 Mbit/s and the bytes, to measure how the cost of a packet depends on the number of
/// flows.
fn crowd(flows: u64) -> anyhow::Result<Setup> {
    let rtt = Duration::from_millis(100);
    let path = PathConfig::bottleneck(Bitrate::from_mbps(100), rtt, QueueLimit::ONE_BDP, Loss::None);
    let playing = Duration::from_secs(200 / flows.max(1));
    let film = title(Bitrate::from_mbps(5), playing)?;
    let mut setup = Setup::new(path, Seed::new(1)).without_taps();
    for _ in 0..flows {
        setup.viewers.push(Viewer::new("cubic".parse()?, film.clone()));
    }
    Ok(setup)
}

/// Lengths in seconds of two sessions, whose difference excludes handshake and slow start.
const LENGTHS: [u64; 2] = [5, 7];
const CROWDS: [u64; 3] = [1, 10, 100];

/// Runs `session`, a name and a length in seconds, in the process under valgrind, and prints its number of packets.
fn child(session: &str) -> anyhow::Result<()> {
    let (name, seconds) = session.split_once('|').context("`NAME|SECONDS` expected")?;
    let mut setup = match name.parse() {
        Ok(flows) => crowd(flows)?,
        Err(_) => setup(
            CASES
                .iter()
                .find(|case| case.name == name)
                .context("unknown session")?,
            false,
        )?,
    };
    for viewer in &mut setup.viewers {
        viewer.leaves_after = Some(Duration::from_secs(seconds.parse()?));
    }
    let run = sim::run(&setup)?;
    println!("{}", run.forward.offered.packets + run.backward.offered.packets);
    Ok(())
}

/// Packets and instructions of one short run.
fn counted(name: &str, seconds: u64) -> anyhow::Result<(f64, f64)> {
    let (packets, instructions) = callgrind::count(&format!("{name}|{seconds}"), &[])?;
    Ok((packets.trim().parse()?, instructions))
}

fn instructions() -> anyhow::Result<()> {
    println!("{:<36} {:>9} {:>12}", "session", "packets", "Ir a packet");
    let crowds = CROWDS.map(|flows| (flows.to_string(), format!("100 Mbit/s, {flows} flows")));
    let cases = CASES
        .iter()
        .map(|case| (case.name.to_owned(), case.name.to_owned()));
    for (key, name) in cases.chain(crowds) {
        let [short, long] = LENGTHS.map(|seconds| counted(&key, seconds));
        let (short, long) = (short?, long?);
        let packets = long.0 - short.0;
        println!("{name:<36} {packets:>9} {:>12.0}", (long.1 - short.1) / packets);
    }
    Ok(())
}

fn main() -> anyhow::Result<ExitCode> {
    if let Ok(session) = std::env::var(callgrind::SUBJECT) {
        child(&session)?;
        return Ok(ExitCode::SUCCESS);
    }
    let has = |flag| std::env::args().any(|argument| argument == flag);
    if has("--instructions") {
        instructions()?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut below = 0;
    println!(
        "{:<36} {:>9} {:>7} {:>8} {:>10} {:>8}",
        "session", "virtual s", "CPU s", "ratio", "to reach", "peak MiB"
    );
    for case in &CASES {
        for taps in [false, true] {
            let measured = measure(&setup(case, taps)?)?;
            let reach = if taps { case.reach.1 } else { case.reach.0 };
            below += u32::from(measured.speed() < reach);
            println!(
                "{:<36} {:>9.1} {:>7.2} {:>8.0} {:>10.0} {:>8.1}",
                format!("{}{}", case.name, if taps { ", taps" } else { "" }),
                measured.seconds,
                measured.cpu,
                measured.speed(),
                reach,
                measured.peak.unwrap_or(f64::NAN)
            );
        }
    }
    println!(
        "\n{:<36} {:>9} {:>7} {:>12}",
        "125 MB over 100 Mbit/s", "packets", "CPU s", "µs a packet"
    );
    for flows in CROWDS {
        let measured = measure(&crowd(flows)?)?;
        println!(
            "{:<36} {:>9} {:>7.2} {:>12.2}",
            format!("{flows} flows"),
            measured.packets,
            measured.cpu,
            measured.cpu * 1e6 / measured.packets as f64
        );
    }
    Ok(ExitCode::from(u8::from(has("--check") && below > 0)))
}
