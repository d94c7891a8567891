//! The command `soak`: many viewers for a long time, with one attack after another.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::ValueEnum as _;
use playrate::transport::{Client, ClientOptions, Target, Trust};
use playrate_units::{Bitrate, duration};
use quinn::TokioRuntime;
use tokio::task::LocalSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::attacks::Attack;
use crate::rig::Rig;
use crate::samples::{HEAD, Sample, summary};
use crate::scales;
use crate::thread::AttackThread;
use crate::viewers::{Seen, Viewer};
use playrate_test_support::{program, title};

/// Number of viewers that share a socket, so that the kernel's buffer for one is not the limit.
const VIEWERS_PER_SOCKET: u32 = 50;
/// Playing time of a segment.
const SEGMENT: Duration = Duration::from_secs(4);
/// Time over which the viewers arrive.
const ARRIVE: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub(crate) struct SoakOptions {
    /// The `video-server` to attack; by default that of this build
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Number of viewers at once
    #[arg(long, default_value_t = 200)]
    sessions: u32,
    /// Rate at which each fetches the title
    #[arg(long, default_value = "400kbit/s")]
    rate: Bitrate,
    /// Duration of the whole run
    #[arg(long, default_value = "60min", value_parser = duration::parse)]
    lasts: Duration,
    /// Duration of each attack, and of the pause after it
    #[arg(long, default_value = "30s", value_parser = duration::parse)]
    round: Duration,
    /// Attacks to make in turn; all by default
    #[arg(long, value_delimiter = ',')]
    attack: Vec<Attack>,
    /// Time between two samples of the server
    #[arg(long, default_value = "5s", value_parser = duration::parse)]
    sample: Duration,
    /// Existing or new directory for samples.csv
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Further options of `video-server serve`
    #[arg(last = true)]
    options: Vec<String>,
}

pub(crate) async fn run(options: &SoakOptions) -> anyhow::Result<()> {
    fs::create_dir_all(&options.out).with_context(|| options.out.display().to_string())?;
    let server = options.server.clone().unwrap_or_else(|| program("video-server"));
    let options_of_server: Vec<&str> = options.options.iter().map(String::as_str).collect();
    let rig = Rig::start(&server, &options_of_server)?;
    let seen = Rc::new(RefCell::new(Seen::default()));
    let ends = Instant::now() + options.lasts;
    let local = LocalSet::new();
    let clients = begin(options, &rig, &local, (&seen, ends))?;
    let now_attacking = RefCell::new(String::new());
    let ((), samples) = local
        .run_until(async {
            tokio::try_join!(
                attack_in_turns(options, &rig, &now_attacking, ends),
                sample(options, &rig, &seen, (&now_attacking, ends))
            )
        })
        .await?;
    // The viewers end by themselves.
    local.await;
    for client in clients {
        let _ = tokio::time::timeout(Duration::from_secs(2), client.wait_idle()).await;
    }
    let end = rig.end();
    let seen = seen.borrow();
    println!("{seen:#?}\n{}", summary(&samples));
    ensure!(seen.wrong == 0, "{} bytes were wrong", seen.wrong);
    ensure!(end.in_order(), "the server did not shut down cleanly: {end:?}");
    Ok(())
}

/// Makes the viewers arrive; returns their clients.
fn begin(
    options: &SoakOptions,
    rig: &Rig,
    local: &LocalSet,
    (seen, ends): (&Rc<RefCell<Seen>>, Instant),
) -> anyhow::Result<Vec<Client>> {
    let bytes: Arc<[u8]> = fs::read(title())?.into();
    let client_options = ClientOptions::new(Trust::Pin(rig.victim.pin));
    let clients: Vec<Client> = (0..options.sessions.div_ceil(VIEWERS_PER_SOCKET))
        .map(|_| Client::bind(Arc::new(TokioRuntime), client_options.clone()))
        .collect::<Result<_, _>>()?;
    let now = Instant::now();
    for number in 0..options.sessions {
        let viewer = Viewer {
            client: clients[(number / VIEWERS_PER_SOCKET) as usize].clone(),
            target: Target::at("localhost", rig.victim.address),
            path: rig.victim.title.clone(),
            title: Arc::clone(&bytes),
            segment: ((options.rate * SEGMENT).as_usize().max(1), SEGMENT),
            ends,
            seen: Rc::clone(seen),
        };
        let share = f64::from(number) / f64::from(options.sessions);
        local.spawn_local(viewer.watch(now + ARRIVE.mul_f64(share)));
    }
    Ok(clients)
}

async fn attack_in_turns(
    options: &SoakOptions,
    rig: &Rig,
    now_attacking: &RefCell<String>,
    ends: Instant,
) -> anyhow::Result<()> {
    let attacks = if options.attack.is_empty() {
        Attack::value_variants()
    } else {
        &options.attack
    };
    let values: Vec<_> = attacks.iter().filter_map(Attack::to_possible_value).collect();
    for (attack, value) in attacks.iter().zip(&values).cycle() {
        if Instant::now() + 2 * options.round > ends {
            break;
        }
        sleep(options.round).await;
        let attacking = AttackThread::start(rig.victim.clone(), *attack, scales::soak(*attack))?;
        attacking.under_way(options.round).await?;
        value.get_name().clone_into(&mut now_attacking.borrow_mut());
        sleep(options.round).await;
        attacking.stop().await?;
        now_attacking.borrow_mut().clear();
    }
    Ok(())
}

/// Writes samples until the end, and returns them.
async fn sample(
    options: &SoakOptions,
    rig: &Rig,
    seen: &RefCell<Seen>,
    (now_attacking, ends): (&RefCell<String>, Instant),
) -> anyhow::Result<Vec<Sample>> {
    let path = options.out.join("samples.csv");
    let mut file = File::create(&path).with_context(|| path.display().to_string())?;
    let mut samples = Vec::new();
    writeln!(file, "{HEAD}")?;
    let began = Instant::now();
    let mut ticks = interval(options.sample);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let (mut before, mut at) = (rig.process()?, began);
    while at < ends {
        ticks.tick().await;
        let (process, now) = (rig.process()?, Instant::now());
        let (elapsed, memory) = (
            (now - began).as_secs_f64(),
            process.resident.as_u64() as f64 / 1e6,
        );
        let descriptors = fs::read_dir(format!("/proc/{}/fd", rig.server.id()))?.count();
        let cpu = process
            .processor_time
            .saturating_sub(before.processor_time)
            .as_secs_f64()
            / (now - at).as_secs_f64();
        let seen = seen.borrow();
        writeln!(
            file,
            "{elapsed:.0},{},{memory:.1},{descriptors},{cpu:.3},{},{},{},{},{},{}",
            now_attacking.borrow(),
            seen.watching,
            seen.complete,
            seen.failed,
            seen.late,
            seen.bytes,
            seen.wrong
        )?;
        samples.push([elapsed, memory, descriptors as f64]);
        (before, at) = (process, now);
    }
    Ok(samples)
}
