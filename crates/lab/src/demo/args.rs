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
    #[arg(long, value_name = "RATE", default_value = "3.1Mbit/s")]
    pub rate: Bitrate,

    /// Propagation delay there and back, without queueing
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = duration::parse)]
    pub rtt: Duration,

    /// What the queue before the bottleneck holds: bytes, packets, or a multiple of rate × RTT
    #[arg(long, value_name = "SIZE", default_value = "0.3bdp")]
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use rstest::rstest;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        demo: DemoArgs,
    }

    fn read(line: &str) -> Result<DemoArgs, String> {
        let words = std::iter::once("demo").chain(line.split_whitespace());
        Line::try_parse_from(words)
            .map(|line| line.demo)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_compare_reno_and_cubic() {
        let args = read("").unwrap();
        let specs: Vec<String> = args.controllers.0.iter().map(ToString::to_string).collect();
        assert_eq!(specs, ["reno", "cubic"]);
        assert_eq!(
            (args.rate, args.loss),
            (Bitrate::from_kbps(3_100), Probability::ZERO)
        );
        assert_eq!(args.playout_buffer, video_client::playout::PLAYOUT_BUFFER_448);
    }

    #[test]
    fn commas_in_parentheses_belong_to_their_spec() {
        let args =
            read("--controllers reno,cubic(fast_convergence=off)+start=hystartpp,quinn-cubic").unwrap();
        assert_eq!(args.controllers.0.len(), 3);
    }

    #[rstest]
    #[case("--rate 20", "`20` is not a bit rate")]
    #[case("--rtt soon", "`soon` is not a time")]
    #[case("--loss 101%", "`101%` is not a probability")]
    #[case("--queue much", "`much`")]
    #[case("--playout-buffer 656", "`656` is not a")]
    #[case("--controllers reno,qubic", "qubic")]
    #[case("--seed x", "--seed")]
    fn what_cannot_be_read_is_named(#[case] line: &str, #[case] named: &str) {
        let error = read(line).unwrap_err();
        assert!(error.contains(named), "{error}");
    }
}
