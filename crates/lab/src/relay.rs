//! `lab relay`: a path in front of any UDP server, in real time.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use playrate_netsim::{
    DelaySchedule, Loss, PathConfig, QueueLimit, Rate, Relay, RelayConfig, Reordering, Seed,
};
use playrate_transport::address;
use playrate_units::duration;

use crate::error::CommandError;
use crate::scenario::UPLINK_QUEUE;
use crate::sim::SimError;

const EXAMPLES: &str = "\
Examples:
  A server on port 4433 behind 6 Mbit/s that fall to 1 Mbit/s after 20 s:
    lab relay 127.0.0.1:4433 --rate 6Mbit/s,1Mbit/s@20s --rtt 80ms
  The same port each time, bursts of losses, and one packet in twenty 10 ms late:
    lab relay 127.0.0.1:4433 --listen 127.0.0.1:5544 \\
      --rate 20Mbit/s --loss 'gilbert(0.1%,20%)' --late 5%,10ms
  A phone: UMTS with its fades, jitter, and acknowledgements over 100 kbit/s:
    lab relay 127.0.0.1:4433 --rate 'umts(2Mbit/s,7)' --jitter 30ms --uplink 100kbit/s

The first line on stdout is the address where clients now reach the server. When
stdin ends (Ctrl-D), the relay stops and prints what passed, what was dropped,
and whether the machine kept up. Ctrl-C ends it without that.";

/// Command line of `lab relay`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RelayArgs {
    /// Address of the server, such as 127.0.0.1:4433
    #[arg(value_name = "ADDRESS:PORT", value_parser = address::parse)]
    server: SocketAddr,

    /// Address for clients; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = address::parse)]
    listen: SocketAddr,

    /// Rate towards the clients: constant, a schedule such as 6Mbit/s,1Mbit/s@20s, or a model such as umts(2Mbit/s,7)
    #[arg(long, value_name = "RATE", default_value = "unlimited")]
    rate: Rate,

    /// Propagation RTT, without queueing, or one that changes such as 20ms,down@30s,100ms@31s
    #[arg(long, value_name = "TIME", default_value = "40ms")]
    rtt: DelaySchedule,

    /// Size of the queue before the bottleneck: bytes, packets, or a multiple of rate × RTT
    #[arg(long, value_name = "SIZE", default_value = "1bdp")]
    queue: QueueLimit,

    /// Random loss towards the clients: a share, or bursts such as gilbert(0.1%,20%)
    #[arg(long, value_name = "LOSS", default_value = "0%")]
    loss: Loss,

    /// Share of packets towards the clients that are delayed by a time and overtaken, such as 5%,10ms
    #[arg(long, value_name = "SHARE,TIME")]
    late: Option<Reordering>,

    /// Maximum random addition to the delay towards the clients
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = duration::parse)]
    jitter: Duration,

    /// Rate from the clients to the server; unlimited by default
    #[arg(long, value_name = "RATE")]
    uplink: Option<Rate>,

    /// Size of the queue before the uplink
    #[arg(long, value_name = "SIZE", default_value_t = UPLINK_QUEUE, requires = "uplink")]
    uplink_queue: QueueLimit,

    /// Random loss from the clients to the server
    #[arg(long, value_name = "LOSS", default_value = "0%")]
    ack_loss: Loss,

    /// Forward packets from the clients only at multiples of this time, as cable modems do
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = duration::parse)]
    ack_batches: Duration,

    /// Seed of the random losses and late packets
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl RelayArgs {
    fn path(&self) -> PathConfig {
        let mut path = PathConfig::of_rate(self.rate.clone(), self.rtt.clone());
        let (forward, backward) = (&mut path.forward, &mut path.backward);
        forward.queue = self.queue;
        forward.loss = self.loss;
        forward.jitter = self.jitter;
        forward.reordering = self.late;
        backward.loss = self.ack_loss;
        backward.batches = self.ack_batches;
        if let Some(rate) = &self.uplink {
            backward.rate = rate.clone();
            backward.queue = self.uplink_queue;
        }
        path
    }
}

/// Relays between clients and the server of `args` until `stop` ends. Prints the address for clients and, at the end,
/// the datagrams relayed in each direction.
///
/// # Errors
/// If the path cannot be built, the address is not available, or `out` cannot be written.
pub(crate) fn run(
    args: &RelayArgs,
    mut stop: impl io::Read,
    out: &mut impl Write,
) -> Result<(), CommandError> {
    let config = RelayConfig::new(args.server, args.path());
    let config = config.with_seed(Seed::new(args.seed)).with_listen(args.listen);
    let relay = Relay::start(&config).map_err(|error| CommandError::BadInput(error.to_string()))?;
    writeln!(out, "{}", relay.local_addr())
        .and_then(|()| out.flush())
        .map_err(CommandError::Print)?;
    // An unreadable stdin counts as ended.
    let _ = stop.read_to_end(&mut Vec::new());
    let report = relay
        .stop()
        .map_err(|error| SimError::setup("the relay", &error))?;
    writeln!(out, "{report}").map_err(CommandError::Print)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::arguments;
    use playrate_test_support::assert_contains;
    use rstest::rstest;

    #[test]
    fn the_path_is_that_of_the_arguments() {
        let line =
            "127.0.0.1:9 --rate 6Mbit/s,1Mbit/s@20s --rtt 81ms,90ms@9s --queue 50kB --loss 1% --late 5%,10ms";
        let path = arguments::<RelayArgs>(line).unwrap().path();
        assert_eq!(path.round_trip(), Duration::from_millis(81));
        assert_eq!(path.longest_round_trip(), Duration::from_millis(90));
        assert_eq!(path.forward.queue, "50kB".parse().unwrap());
        assert_eq!(path.forward.reordering, Some("5%,10ms".parse().unwrap()));
        assert!((path.forward.loss.mean() - 0.01).abs() < 1e-9);
        assert!(path.forward.rate.mean().is_some() && path.backward.rate.mean().is_none());
        let line = "127.0.0.1:9 --jitter 30ms --uplink 100kbit/s --ack-loss 2% --ack-batches 25ms";
        let path = arguments::<RelayArgs>(line).unwrap().path();
        assert_eq!(path.forward.jitter, Duration::from_millis(30));
        assert_eq!(path.backward.rate, "100kbit/s".parse().unwrap());
        assert_eq!(path.backward.queue, "64packets".parse().unwrap());
        assert_eq!(path.backward.batches, Duration::from_millis(25));
        let free = arguments::<RelayArgs>("127.0.0.1:9").unwrap().path();
        assert!(free.forward.rate.mean().is_none());
    }

    #[test]
    fn it_prints_the_address_for_clients_and_at_the_end_what_passed() {
        let mut printed = Vec::new();
        let args = arguments("127.0.0.1:9 --rate 5Mbit/s").unwrap();
        run(&args, io::empty(), &mut printed).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        let address = printed.lines().next().unwrap().parse::<SocketAddr>().unwrap();
        assert!(address.ip().is_loopback() && address.port() != 0, "{printed}");
        assert_contains(&printed, &["server to clients: 0 of 0 datagrams"]);
    }

    #[rstest]
    #[case("", "ADDRESS:PORT")]
    #[case("localhost", "such as 127.0.0.1:4433")]
    #[case("127.0.0.1:9 --rate 20", "20")]
    #[case("127.0.0.1:9 --uplink-queue 20kB", "--uplink <RATE>")]
    #[case("127.0.0.1:9 --rtt down,20ms@1s", "must be a time")]
    #[case("127.0.0.1:9 --late 5%", "5%")]
    #[case("127.0.0.1:9 --loss 101%", "101%")]
    fn an_invalid_argument_is_named(#[case] line: &str, #[case] named: &str) {
        assert_contains(&arguments::<RelayArgs>(line).unwrap_err(), &[named]);
    }
}
