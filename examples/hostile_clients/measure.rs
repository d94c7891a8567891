//! The command `measure`: service, memory and processor time without and with attacks.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum as _;
use playrate_units::duration;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::attacks::{Attack, Scale};
use crate::good::{Over, fetch};
use crate::rig::Rig;
use crate::scales;
use crate::thread::AttackThread;
use crate::victim::Victim;
use playrate_test_support::program;

/// Longest time that a good client waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest time that an attacker may take to prepare.
const PREPARATION: Duration = Duration::from_secs(60);
/// Time between two good clients of one kind.
const PAUSE: Duration = Duration::from_millis(50);
/// Time between samples of the server's memory.
const SAMPLE: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub(crate) struct MeasureOptions {
    /// The `video-server` to attack; by default that of this build
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Attacks to make, all by default
    #[arg(long, value_delimiter = ',')]
    attack: Vec<Attack>,
    /// Time with the attack, in each round
    #[arg(long, default_value = "15s", value_parser = duration::parse)]
    attacked: Duration,
    /// Time without it, in each round
    #[arg(long, default_value = "5s", value_parser = duration::parse)]
    quiet: Duration,
    /// Number of rounds, each of time without and then with the attack
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Number of connections of the attack; by default its own
    #[arg(long)]
    connections: Option<usize>,
    /// Number of source addresses of the attack; by default its own
    #[arg(long)]
    addresses: Option<usize>,
    /// Number of actions of the attack per second; by default its own
    #[arg(long)]
    rate: Option<f64>,
    /// Also write each attack as a line of JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Further options of `video-server serve`
    #[arg(last = true)]
    options: Vec<String>,
}

/// Service to good clients over one transport.
#[derive(Default)]
struct Served {
    connected: Vec<Duration>,
    fetched: Vec<Duration>,
    failed: u64,
    /// Longest time without a served client.
    longest_gap: Duration,
    last_failure: Option<String>,
}

impl Served {
    /// Sends one good client after another for some time.
    async fn observe(&mut self, victim: &Victim, over: Over, lasts: Duration) {
        let began = Instant::now();
        let mut last = began;
        while began.elapsed() < lasts {
            match fetch(victim, over, PATIENCE).await {
                Ok(service) => {
                    self.connected.push(service.connected);
                    self.fetched.push(service.fetched);
                    self.longest_gap = self.longest_gap.max(last.elapsed());
                    last = Instant::now();
                }
                Err(error) => {
                    self.failed += 1;
                    self.last_failure = Some(format!("{error:#}"));
                }
            }
            sleep(PAUSE).await;
        }
        self.longest_gap = self.longest_gap.max(last.elapsed());
    }

    fn to_json(&self) -> Value {
        let times = |times: &[Duration]| {
            let mut sorted = times.to_vec();
            sorted.sort_unstable();
            let at = |percent: usize| {
                let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
                sorted.get(rank).map(|time| tenths(time.as_secs_f64() * 1e3))
            };
            json!({ "p50": at(50), "p95": at(95) })
        };
        json!({
            "served": self.connected.len(),
            "failed": self.failed,
            "connect_ms": times(&self.connected),
            "fetch_ms": times(&self.fetched),
            "longest_gap_s": tenths(self.longest_gap.as_secs_f64()),
            "last_failure": self.last_failure,
        })
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Time without, or with, an attack.
#[derive(Default)]
struct Condition {
    quic: Served,
    tcp: Served,
    lasted: Duration,
    server_time: Duration,
    attacker_time: Duration,
    /// Maximum resident memory of the server in MB.
    most_resident: f64,
}

impl Condition {
    async fn observe(&mut self, rig: &Rig, lasts: Duration) -> anyhow::Result<()> {
        let (before, began) = (rig.process()?, Instant::now());
        let mut most = self.most_resident;
        let sampling = async {
            while began.elapsed() < lasts {
                let resident = rig.process()?.resident.as_u64() as f64 / 1e6;
                most = most.max(resident);
                sleep(SAMPLE).await;
            }
            anyhow::Ok(())
        };
        let ((), (), sampled) = tokio::join!(
            self.quic.observe(&rig.victim, Over::Quic, lasts),
            self.tcp.observe(&rig.victim, Over::Tcp, lasts),
            sampling
        );
        sampled?;
        self.most_resident = most;
        self.lasted += began.elapsed();
        let after = rig.process()?;
        self.server_time += after.processor_time.saturating_sub(before.processor_time);
        Ok(())
    }

    fn share(&self, time: Duration) -> f64 {
        (time.as_secs_f64() / self.lasted.as_secs_f64() * 1e3).round() / 1e3
    }

    fn to_json(&self) -> Value {
        json!({
            "quic": self.quic.to_json(),
            "tcp": self.tcp.to_json(),
            "server_cpu": self.share(self.server_time),
            "attacker_cpu": self.share(self.attacker_time),
            "server_memory_mb": tenths(self.most_resident),
        })
    }
}

pub(crate) async fn run(options: &MeasureOptions) -> anyhow::Result<()> {
    let server = options.server.clone().unwrap_or_else(|| program("video-server"));
    let attacks = if options.attack.is_empty() {
        Attack::value_variants()
    } else {
        &options.attack
    };
    let create = |path: &PathBuf| File::create(path).with_context(|| path.display().to_string());
    let mut json = options.json.as_ref().map(create).transpose()?;
    for &attack in attacks {
        let full = scales::full(attack);
        let scale = Scale {
            connections: options.connections.unwrap_or(full.connections),
            addresses: options.addresses.unwrap_or(full.addresses).clamp(1, 1 << 16),
            rate: options.rate.unwrap_or(full.rate),
        };
        let options_of_server: Vec<&str> = options.options.iter().map(String::as_str).collect();
        let rig = Rig::start(&server, &options_of_server)?;
        let result = measure(options, rig, attack, scale).await?;
        print(&result);
        if let Some(json) = &mut json {
            writeln!(json, "{result}")?;
        }
    }
    Ok(())
}

async fn measure(options: &MeasureOptions, rig: Rig, attack: Attack, scale: Scale) -> anyhow::Result<Value> {
    let (mut quiet, mut attacked) = (Condition::default(), Condition::default());
    let (mut actions, mut most_open, mut ended, mut leaks) = (0, 0, 0, 0);
    for _ in 0..options.rounds {
        quiet.observe(&rig, options.quiet).await?;
        let attacking = AttackThread::start(rig.victim.clone(), attack, scale)?;
        attacking.under_way(PREPARATION).await?;
        attacked.observe(&rig, options.attacked).await?;
        let tally = &attacking.tally;
        actions += tally.actions.load(Relaxed);
        most_open = most_open.max(tally.most_open.load(Relaxed));
        ended += tally.ended.load(Relaxed);
        leaks += tally.leaks.load(Relaxed);
        attacked.attacker_time += attacking.stop().await?;
    }
    let end = rig.end();
    let name = attack
        .to_possible_value()
        .map(|value| value.get_name().to_owned());
    Ok(json!({
        "attack": name,
        "connections": scale.connections,
        "addresses": scale.addresses,
        "rate_wanted": scale.rate,
        "rate": (actions as f64 / attacked.lasted.as_secs_f64()).round(),
        "most_open": most_open,
        "ended": ended,
        "leaks": leaks,
        "quiet": quiet.to_json(),
        "attacked": attacked.to_json(),
        "ended_in_order": end.in_order(),
        "panics": end.panics,
    }))
}

/// Prints one attack, within 80 columns.
fn print(result: &Value) {
    let number = |value: &Value| {
        value
            .as_f64()
            .map_or_else(|| "-".to_owned(), |value| value.to_string())
    };
    println!(
        "{}: {} per second (of {}) by {} connections from {} addresses",
        result["attack"].as_str().unwrap_or_default(),
        number(&result["rate"]),
        number(&result["rate_wanted"]),
        result["connections"],
        result["addresses"]
    );
    println!(
        "  at most {} open, {} ended; attacker's processor time {}",
        result["most_open"], result["ended"], result["attacked"]["attacker_cpu"]
    );
    for name in ["quiet", "attacked"] {
        let condition = &result[name];
        println!(
            "  {name:<8} server: {} MB, processor time {}",
            number(&condition["server_memory_mb"]),
            condition["server_cpu"]
        );
        for over in ["quic", "tcp"] {
            let served = &condition[over];
            let times = |what: &str| {
                let times = &served[what];
                format!("{}/{}", number(&times["p50"]), number(&times["p95"]))
            };
            println!(
                "    {over:<4} {} served, {} not; connect {} ms, 100 kB {} ms; gap {} s",
                served["served"],
                served["failed"],
                times("connect_ms"),
                times("fetch_ms"),
                number(&served["longest_gap_s"])
            );
        }
    }
    if result["ended_in_order"] != true || result["leaks"] != 0 {
        println!(
            "  the server did not shut down cleanly, or leaked: {} leaks, {}",
            result["leaks"], result["panics"]
        );
    }
}
