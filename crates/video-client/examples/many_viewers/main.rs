//! Loads a server with many concurrent viewers, and measures at the viewers.
//!
//! ```sh
//! taskset -c 0 video-server serve --media assets --max-connections 4096 --max-connections-per-address 4096 \
//!   --no-tcp --listen 127.0.0.1:4433 &
//! taskset -c 1 target/release/examples/many_viewers https://127.0.0.1:4433/title-720p.mp4 --pin PIN --server-process $! \
//!     --sessions 250,500,1000,1400,1700,2000 --json load.jsonl
//! ```
//!
//! Each viewer has a connection and fetches a segment's worth of bytes (the title's rate times 3 s, from the beginning
//! of the title) every 3 s. The lateness of a segment is the time from when it was due until it is complete. If it is
//! incomplete when the next one is due, the player is left without media. Refused viewers (503) are counted; patient
//! ones return after the time in `Retry-After`. Viewers arrive evenly over the first part of a stage, and counting
//! begins once all have arrived. Everything runs on one thread: check its own share of a processor before blaming the
//! server.
#![expect(
    clippy::unwrap_used,
    reason = "a measurement ends when it lacks something it needs"
)]

mod far_away;
mod report;
mod viewer;

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use http::HeaderMap;
use indicatif::{ProgressBar, ProgressStyle};
use playrate_media::{Limits, StreamParser};
use playrate_test_support::Process;
use playrate_transport::{Client, ClientOptions, Pin, Target, Trust, time, udp_socket};
use playrate_units::{Bitrate, Bytes, duration};
use quinn::{Runtime, TokioRuntime};
use tokio::task::LocalSet;
use video_client::TitleUrl;

use far_away::FarAway;
use report::{Row, Usage};
use viewer::{Seen, Viewer, sleep_until};

#[derive(Parser)]
struct Arguments {
    /// A title of at least a segment's size
    url: TitleUrl,
    /// Pin of the server's certificate
    #[arg(long)]
    pin: Pin,
    /// Number of viewers in each stage
    #[arg(long, value_delimiter = ',', default_value = "100")]
    sessions: Vec<u32>,
    /// Rate at which each viewer fetches; by default the title's own. At a higher one, `video` may starve the viewers
    #[arg(long)]
    rate: Option<Bitrate>,
    /// Playing time of a segment
    #[arg(long, default_value = "3s", value_parser = duration::parse)]
    segment: Duration,
    /// Time over which the viewers of a stage arrive
    #[arg(long, default_value = "9s", value_parser = duration::parse)]
    arrive: Duration,
    /// Duration of a stage, including the arrivals
    #[arg(long, default_value = "30s", value_parser = duration::parse)]
    lasts: Duration,
    /// Number of viewers that share a socket, small enough that the kernel's socket buffer is not the limit. A server
    /// with several workers serves them all on one
    #[arg(long, value_name = "N", default_value = "50")]
    per_socket: NonZeroU32,
    /// Propagation RTT: received datagrams are held for this long
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "rebind")]
    rtt: Option<Duration>,
    /// Interval at which every socket changes its port
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    rebind: Option<Duration>,
    /// Retry after a refusal
    #[arg(long)]
    patient: bool,
    /// Process ID of the server, to measure its memory and processor time (Linux)
    #[arg(long)]
    server_process: Option<u32>,
    /// Also write each stage as a line of JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Shows the progress of a stage until it is dropped.
async fn show(bar: ProgressBar, sessions: u32, lasts: Duration, seen: Rc<RefCell<Seen>>) {
    bar.set_style(ProgressStyle::with_template("{bar:20} {msg}").unwrap());
    bar.set_length(lasts.as_secs());
    let mut before = 0;
    loop {
        time::sleep(&TokioRuntime, Duration::from_secs(1)).await;
        bar.inc(1);
        let seen = seen.borrow();
        let rate = (seen.bytes - before) as f64 * 8e-6;
        before = seen.bytes;
        let (watching, refusals) = (seen.watched, seen.refusals);
        bar.set_message(format!(
            "{watching} of {sessions} watch, {rate:.0} Mbit/s, {refusals} × 503"
        ));
    }
}

/// Resource usage of two processes, the server and this one, between two times.
async fn measure(arguments: &Arguments, idle: Option<Process>, from: Duration, to: Duration) -> [Usage; 2] {
    let own = Some(std::process::id());
    let look = || [arguments.server_process, own].map(|process| process.and_then(Process::read));
    let (runtime, began) = (TokioRuntime, TokioRuntime.now());
    sleep_until(began + from).await;
    let (at, before) = (runtime.now(), look());
    sleep_until(began + to).await;
    let passed = runtime.now().saturating_duration_since(at);
    let [server, viewers] = look();
    [
        Usage::between(before[0], server, idle, passed),
        Usage::between(before[1], viewers, None, passed),
    ]
}

fn client_options(arguments: &Arguments) -> ClientOptions {
    let mut options = ClientOptions::new(Trust::Pin(arguments.pin));
    options.connect_timeout = Duration::from_secs(10);
    options
}

/// The title's average rate, from the head of its file.
async fn title_rate(arguments: &Arguments) -> Bitrate {
    let client = Client::bind(Arc::new(TokioRuntime), client_options(arguments)).unwrap();
    let TitleUrl { host, port, path } = &arguments.url;
    let target = Target::resolve(host, *port).unwrap();
    let connection = client.connect(&target).await.unwrap();
    let (_, mut body) = connection.get(path, HeaderMap::new()).await.unwrap();
    let mut parser = StreamParser::new(Limits::default());
    while parser.info().is_none() {
        let chunk = body.chunk().await.unwrap();
        parser.push(&chunk.expect("the title has a `moov` box")).unwrap();
    }
    let rate = parser.info().and_then(|title| title.average_rate);
    connection.close();
    rate.expect("the title's head has its rate; for a fragmented one use `--rate`")
}

async fn stage(arguments: &Arguments, rate: Bitrate, sessions: u32, idle: Option<Process>) -> Row {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let mut options = client_options(arguments);
    // Thousands of them fit into memory even if this process falls behind.
    options.transport.stream_receive_window = Bytes::from_mib(2);
    options.transport.receive_window = Bytes::from_mib(2);
    let target = Target::resolve(&arguments.url.host, arguments.url.port).unwrap();
    let seen = Rc::new(RefCell::new(Seen::default()));
    let per_socket = arguments.per_socket.get();
    let clients: Vec<_> = (0..sessions.div_ceil(per_socket))
        .map(|_| match arguments.rtt {
            Some(rtt) => {
                let socket = udp_socket((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
                let socket = runtime.wrap_udp_socket(socket).unwrap();
                let socket = FarAway::new(socket, Arc::clone(&runtime), rtt);
                Client::new(Arc::clone(&runtime), socket, options.clone()).unwrap()
            }
            None => Client::bind(Arc::clone(&runtime), options.clone()).unwrap(),
        })
        .collect();
    let now = runtime.now();
    let local = LocalSet::new();
    for number in 0..sessions {
        let viewer = Viewer {
            client: clients[(number / per_socket) as usize].clone(),
            target: target.clone(),
            path: arguments.url.path.clone(),
            segment: arguments.segment,
            size: (rate * arguments.segment).as_u64(),
            patient: arguments.patient,
            counts_from: now + arguments.arrive,
            ends: now + arguments.lasts,
            seen: Rc::clone(&seen),
        };
        let begins = now + arguments.arrive.mul_f64(f64::from(number) / f64::from(sessions));
        local.spawn_local(viewer.watch(begins));
    }
    let rebinding = arguments.rebind.map(|pause| {
        let clients = clients.clone();
        local.spawn_local(async move {
            loop {
                for client in &clients {
                    time::sleep(&TokioRuntime, pause / u32::try_from(clients.len()).unwrap()).await;
                    client.rebind().unwrap();
                }
            }
        })
    });
    let bar = ProgressBar::new(0);
    let showing = local.spawn_local(show(bar.clone(), sessions, arguments.lasts, Rc::clone(&seen)));
    // Ends before the first viewers leave.
    let until = arguments.lasts.saturating_sub(arguments.segment);
    let taken = local
        .run_until(measure(arguments, idle, arguments.arrive, until))
        .await;
    local
        .run_until(sleep_until(now + arguments.lasts + arguments.segment))
        .await;
    showing.abort();
    if let Some(rebinding) = rebinding {
        rebinding.abort();
    }
    bar.finish_and_clear();
    local.await;
    for client in clients {
        let _ = time::timeout(&*runtime, Duration::from_secs(2), client.wait_idle()).await;
    }
    let seen = Rc::try_unwrap(seen).ok().unwrap().into_inner();
    let counted = arguments.lasts.saturating_sub(arguments.arrive);
    Row::new(sessions, seen, counted, taken)
}

fn main() {
    let arguments = Arguments::parse();
    let idle = arguments.server_process.and_then(Process::read);
    let mut json = arguments.json.as_ref().map(|path| File::create(path).unwrap());
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let rate = arguments
        .rate
        .unwrap_or_else(|| tokio.block_on(title_rate(&arguments)));
    println!("{rate} for each viewer\n{}", Row::HEAD);
    for &sessions in &arguments.sessions {
        let row = tokio.block_on(stage(&arguments, rate, sessions, idle));
        println!("{row}");
        if let Some(json) = &mut json {
            writeln!(json, "{}", serde_json::to_string(&row).unwrap()).unwrap();
        }
    }
}
