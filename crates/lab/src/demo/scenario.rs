//! The scenario described by the demo's arguments.

use std::path::Path;

use playrate_netsim::{PathConfig, QueueLimit, Seed};
use playrate_units::{Bytes, duration};
use video_client::playout::{CatchUp, Clock, PlayoutConfig};

use super::{DemoArgs, LONGEST};
use crate::error::CommandError;
use crate::scenario::{Changes, Scenario, ScenarioSource};
use crate::sim::SimError;

/// Name of the demo's scenario.
const NAME: &str = "demo";

/// Size of the drop-tail queue of the path described by `args`.
///
/// # Errors
/// If the path's parameters are inconsistent.
pub(super) fn queue(args: &DemoArgs) -> Result<Bytes, CommandError> {
    let config = PathConfig::bottleneck(args.rate, args.rtt, args.queue, args.loss);
    config.build(Seed::new(args.seed)).map_err(SimError::from)?;
    Ok(match args.queue {
        QueueLimit::Packets(packets) => config.forward.mtu * u64::from(packets),
        _ => config.forward.queue_limit(args.rtt).unwrap_or(Bytes::MAX),
    })
}

/// The scenario with one viewer of the embedded title per controller.
///
/// # Errors
/// If the arguments do not form a valid scenario.
pub(super) fn scenario(args: &DemoArgs) -> Result<Scenario, CommandError> {
    let mut specs: Vec<String> = Vec::new();
    for spec in args.controllers.0.iter().map(ToString::to_string) {
        if specs.contains(&spec) {
            let problem = format!("controller `{spec}` is given more than once; name each controller once");
            return Err(CommandError::BadInput(problem));
        }
        specs.push(spec);
    }
    let text = text(args, &specs);
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
         [path]\nrate = \"{}\"\nrtt = \"{}\"\nqueue = \"{}\"\nloss = \"{}\"\n\n\
         [viewer]\nplayout_buffer = \"{}\"\nreceive_buffer = \"{}\"\nleaves_after = \"{}\"\n",
        args.rate,
        duration::display(args.rtt),
        args.queue,
        args.loss,
        player.playout_buffer,
        player.receive_buffer,
        duration::display(LONGEST),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
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
            "--rtt 33ms --rate 750kbit/s --playout-buffer 1MB --queue 0.6bdp",
        ] {
            let args: DemoArgs = arguments(line).unwrap();
            let scenario = scenario(&args).unwrap();
            let path = PathConfig::bottleneck(args.rate, args.rtt, args.queue, args.loss);
            assert_eq!(format!("{:?}", scenario.path), format!("{path:?}"));
            let player = PlayoutConfig::new(args.playout_buffer, Clock::CatchUp(CatchUp::default()));
            assert_eq!(scenario.viewer.playout, player);
            assert_eq!((scenario.seed, scenario.trials), (args.seed, 1));
            let requested: Vec<_> = args.controllers.0.iter().map(ToString::to_string).collect();
            let controllers: Vec<_> = scenario.controllers.iter().map(ToString::to_string).collect();
            assert_eq!(controllers, requested);
        }
    }
}
