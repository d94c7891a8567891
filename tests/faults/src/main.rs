//! The `faults` binary: long campaigns, and the time line of one seed.

use std::io::{Write as _, stderr, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use clap::Parser as _;
use faults::{CampaignError, FaultsArgs};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Exit status that shells report for a program terminated by SIGINT.
const INTERRUPTED: i32 = 130;

fn main() -> ExitCode {
    let args = FaultsArgs::parse();
    // A campaign causes errors on purpose, so nothing is logged unless RUST_LOG requests it.
    let filter: Option<Targets> = std::env::var("RUST_LOG").ok().and_then(|text| text.parse().ok());
    let lines = tracing_subscriber::fmt::layer().with_writer(stderr);
    tracing_subscriber::registry()
        .with(filter.unwrap_or_default())
        .with(lines)
        .init();
    let runtime = tokio::runtime::Runtime::new();
    let stop = Arc::new(AtomicBool::new(false));
    if let Ok(runtime) = &runtime {
        runtime.spawn(interruption(Arc::clone(&stop)));
    }
    let Err(error) = faults::run(&args, &stop, &mut stdout()) else {
        return ExitCode::SUCCESS;
    };
    // If stderr is closed, the error cannot be reported anywhere.
    let _ = writeln!(stderr(), "error: {error}");
    ExitCode::from(if matches!(error, CampaignError::BadInput(_)) {
        2
    } else {
        1
    })
}

/// Sets `stop` on SIGINT. A second SIGINT ends the process immediately.
async fn interruption(stop: Arc<AtomicBool>) {
    while tokio::signal::ctrl_c().await.is_ok() {
        if stop.swap(true, Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    }
}
