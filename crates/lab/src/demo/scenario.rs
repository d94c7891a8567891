//! The scenario described by the demo's arguments.

use std::path::Path;

use playrate_netsim::{QueueLimit, Rate};
use playrate_units::{Bytes, Probability, duration};
use video_client::playout::{CatchUp, Clock, PlayoutConfig};

use super::{DemoArgs, LONGEST};
use crate::error::CommandError;
use crate::scenario::{Changes, Scenario, ScenarioSource};
use crate::sim::SimError;

/// Name of the demo's scenario.
const NAME: &str = "demo";

/// Size of the drop-tail queue of `scenario`.
pub(super) fn queue(scenario: &Scenario) -> Bytes {
    let link = &scenario.path.forward;
    match link.queue {
        QueueLimit::Packets(packets) => link.mtu * u64::from(packets),
        _ => link.queue_limit(scenario.path.round_trip()).unwrap_or(Bytes::MAX),
    }
}

/// The scenario with one viewer of the embedded title per controller.
///
/// # Errors
/// If the arguments do not form a valid scenario.
pub(super) fn scenario(args: &DemoArgs) -> Result<Scenario, CommandError> {
    read(args, "")
}

/// The scenario where each viewer shares a link with a download: twice the rate of `args`, without random loss and
/// without a limit of the uplink.
///
/// # Errors
/// If the arguments do not form a valid scenario.
pub(super) fn shared(args: &DemoArgs) -> Result<Scenario, CommandError> {
    let link = DemoArgs {
        rate: args.rate.scaled(2, 1),
        loss: Probability::ZERO,
        uplink: Rate::Unlimited,
        ..args.clone()
    };
    read(&link, "\n[bulk]\ncontroller = \"cubic\"\n")
}

/// The scenario of `args`, with a further table.
fn read(args: &DemoArgs, table: &str) -> Result<Scenario, CommandError> {
    let mut specs: Vec<String> = Vec::new();
    for spec in args.controllers.0.iter().map(ToString::to_string) {
        if specs.contains(&spec) {
            let problem = format!("controller `{spec}` is given more than once; name each controller once");
            return Err(CommandError::BadInput(problem));
        }
        specs.push(spec);
    }
    let text = text(args, &specs) + table;
    let changes = Changes {
        seed: Some(args.seed),
        ..Changes::default()
    };
    let file = format!("{NAME}.toml");
    let cases = ScenarioSource::new(NAME, &file, text, Path::new(".")).scenarios(&changes)?;
    let only = cases.into_iter().next();
    only.ok_or_else(|| SimError::setup("the scenario", &"it has no case").into())
}

fn text(args: &DemoArgs, specs: &[String]) -> String {
    let player = PlayoutConfig::new(args.playout_buffer, Clock::CatchUp(CatchUp::default()));
    format!(
        "about = \"\"\"\nOne title over one path under several controllers, side by side over real UDP: the product's\n\
         server and client on loopback sockets, with a relay between them that delays and drops packets as the\n\
         path would.\n\"\"\"\ncontrollers = {specs:?}\nideal = false\nvary = \"none\"\n\n\
         [title]\nfile = \"embedded\"\n\n\
         [path]\nrate = \"{}\"\nrtt = \"{}\"\nqueue = \"{}\"\nloss = \"{}\"\nuplink = \"{}\"\n\n\
         [viewer]\nplayout_buffer = \"{}\"\nreceive_buffer = \"{}\"\nleaves_after = \"{}\"\n",
        args.rate,
        duration::display(args.rtt),
        args.queue,
        args.loss,
        args.uplink,
        player.playout_buffer,
        player.receive_buffer,
        duration::display(LONGEST),
    )
}

#[cfg(test)]
mod tests {
    use playrate_netsim::PathConfig;

    use super::*;
    use crate::scenario::UPLINK_QUEUE;
    use crate::tests::arguments;

    #[test]
    fn a_controller_given_twice_is_refused_also_by_another_name() {
        for line in [
            "--controllers reno,cubic,reno",
            "--controllers ccp-lca,ccp+shape=rate-floor",
        ] {
            let error = scenario(&arguments(line).unwrap()).unwrap_err();
            assert!(error.is_bad_input(), "{error}");
            assert!(error.to_string().contains("more than once"), "{error}");
        }
    }

    #[test]
    fn the_scenario_has_the_path_and_the_player_of_the_arguments() {
        for line in [
            "",
            "--queue 20packets --loss 0.5% --seed 18446744073709551615",
            "--rtt 33ms --rate 750kbit/s --playout-buffer 1MB --queue 0.6bdp --uplink unlimited",
        ] {
            let args: DemoArgs = arguments(line).unwrap();
            let scenario = scenario(&args).unwrap();
            let mut path = PathConfig::bottleneck(args.rate, args.rtt, args.queue, args.loss);
            (path.backward.rate, path.backward.queue) = (args.uplink.clone(), UPLINK_QUEUE);
            assert_eq!(format!("{:?}", scenario.path), format!("{path:?}"));
            let player = PlayoutConfig::new(args.playout_buffer, Clock::CatchUp(CatchUp::default()));
            assert_eq!(scenario.viewer.playout, player);
            assert_eq!((scenario.seed, scenario.trials), (args.seed, 1));
            let requested: Vec<_> = args.controllers.0.iter().map(ToString::to_string).collect();
            let controllers: Vec<_> = scenario.controllers.iter().map(ToString::to_string).collect();
            assert_eq!(controllers, requested);
        }
    }

    #[test]
    fn a_shared_link_has_twice_the_rate_and_a_download_but_neither_losses_nor_a_slow_uplink() {
        let shared = shared(&arguments("--rate 3Mbit/s --loss 2% --uplink 40kbit/s").unwrap()).unwrap();
        assert_eq!(shared.path.forward.rate, "6Mbit/s".parse().unwrap());
        assert!(shared.path.forward.loss.mean() < 1e-9 && shared.path.backward.rate.mean().is_none());
        let setup = shared.setup(&shared.controllers[0], 1);
        assert_eq!(setup.bulk.len(), 1);
    }
}
