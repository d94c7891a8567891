//! The command line of `lab demo`, and what it asks for once it is read.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use playrate_cc::SpecError;
use playrate_netsim::QueueLimit;
use playrate_transport::ControllerChoice;
use playrate_units::{Bitrate, Bytes, Probability, duration};

/// What `lab demo` is told.
///
/// The default path is a little faster than the title and has a short queue, as cheap routers have: a window cut to
/// half leaves it idle for long, one cut less deep does not. It loses nothing at random, so that what is shown is the
/// controllers' doing and not luck.
#[derive(Args, Clone, Debug)]
pub struct DemoArgs {
    /// Controllers to compare: specs separated by commas, each gets a server, a path and a viewer of its own
    #[arg(long, value_name = "SPECS", default_value = "reno,cubic")]
    pub controllers: Controllers,

    /// Rate of the bottleneck
    #[arg(long, value_name = "RATE", default_value = "3.2Mbit/s")]
    pub rate: Bitrate,

    /// Propagation delay there and back, without queueing
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = duration::parse)]
    pub rtt: Duration,

    /// What the queue before the bottleneck holds: bytes, packets, or a multiple of rate × RTT
    #[arg(long, value_name = "SIZE", default_value = "0.25bdp")]
    pub queue: QueueLimit,

    /// How likely a packet towards the viewer is lost at random
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub loss: Probability,

    /// Playout buffer of the viewers; they play when it is full
    #[arg(long, value_name = "SIZE", default_value = "655.872kB")]
    pub playout_buffer: Bytes,

    /// Seed of the random losses; the same for every controller
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Where report, figures and records go; made if need be
    #[arg(long, value_name = "DIR", default_value = "playrate-demo")]
    pub out: PathBuf,

    /// Print the results as one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Controllers to compare, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Controllers(pub Vec<ControllerChoice>);

impl FromStr for Controllers {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        ControllerChoice::list(text).map(Self)
    }
}
