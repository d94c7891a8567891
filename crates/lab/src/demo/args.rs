//! The command line of `lab demo`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use playrate_netsim::{QueueLimit, Rate};
use playrate_units::{Bitrate, Bytes, Probability, duration};

use crate::controllers::Controllers;

/// Command line of `lab demo`.
///
/// The default path is a weak radio link with twice the title's rate. One packet in 100 is lost at random, so a
/// controller that takes every loss for congestion keeps its window below what the title needs. The uplink is too slow
/// for an ACK frame per two packets, so a controller that measures the path by its ACK frames sends too slowly. Only
/// `video` asks for one per six.
#[derive(Args, Clone, Debug)]
pub struct DemoArgs {
    /// Controllers to compare: specs separated by commas, each with a server, a path and a viewer of its own
    #[arg(long, value_name = "SPECS", default_value = "cubic,bbr,video")]
    pub controllers: Controllers,

    /// Rate of the bottleneck
    #[arg(long, value_name = "RATE", default_value = "6Mbit/s")]
    pub rate: Bitrate,

    /// Propagation RTT, without queueing
    #[arg(long, value_name = "TIME", default_value = "60ms", value_parser = duration::parse)]
    pub rtt: Duration,

    /// Size of the queue before the bottleneck: bytes, packets, or a multiple of rate × RTT (such as 0.5bdp)
    #[arg(long, value_name = "SIZE", default_value = "1bdp")]
    pub queue: QueueLimit,

    /// Probability that a packet towards the viewer is lost at random
    #[arg(long, value_name = "SHARE", default_value = "1%")]
    pub loss: Probability,

    /// Rate from the viewer to the server, or `unlimited`
    #[arg(long, value_name = "RATE", default_value = "50kbit/s")]
    pub uplink: Rate,

    /// Size of the viewers' playout buffer; playback begins when it is full
    #[arg(long, value_name = "SIZE", default_value = "655.872kB")]
    pub playout_buffer: Bytes,

    /// Seed of the random losses; the same for every controller
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Directory for results and report
    #[arg(long, value_name = "DIR", default_value = "playrate-demo")]
    pub out: PathBuf,

    /// Print the results as one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::arguments;
    use rstest::rstest;

    #[test]
    fn the_defaults_compare_the_usual_controllers_with_the_one_for_video() {
        let args: DemoArgs = arguments("").unwrap();
        let specs: Vec<String> = args.controllers.0.iter().map(ToString::to_string).collect();
        assert_eq!(specs, ["cubic", "bbr", "video"]);
        assert_eq!(args.rate, Bitrate::from_mbps(6));
        assert_eq!(args.loss, "1%".parse().unwrap());
        assert_eq!(args.playout_buffer, video_client::playout::PLAYOUT_BUFFER_448);
    }

    #[test]
    fn commas_in_parentheses_belong_to_their_spec() {
        let line = "--controllers reno,cubic(fast_convergence=off)+start=hystartpp,quinn-cubic";
        let args: DemoArgs = arguments(line).unwrap();
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
    #[case("--uplink slow", "`slow`")]
    fn an_invalid_argument_is_named(#[case] line: &str, #[case] named: &str) {
        let error = arguments::<DemoArgs>(line).unwrap_err();
        assert!(error.contains(named), "{error}");
    }
}
