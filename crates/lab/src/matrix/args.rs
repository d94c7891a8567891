//! The command line of `lab matrix`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::Args;
use playrate_cc::Registry;
use playrate_transport::{Baseline, ControllerChoice};

use super::candidates::SearchSpace;
use crate::error::CommandError;
use crate::scenario::generated::{BLOCK, FORM, Half, PathSet};
use crate::scenario::{PAPERS, Setting};

/// Arguments of `lab matrix`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MatrixArgs {
    /// Controllers, separated by commas, in place of all known ones; or after a `+` in addition to them, such as
    /// `+vegas+ceiling=pace`
    #[arg(long, value_name = "LIST")]
    pub(super) controllers: Option<String>,

    /// Scenarios or groups of scenarios, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = PAPERS)]
    pub(crate) scenarios: Vec<String>,

    /// Run on generated paths instead: `generated:SEED:N` is N paths drawn from a seed
    #[arg(long, value_name = "SET", value_parser = path_set, conflicts_with = "scenarios")]
    pub(super) paths: Option<PathSet>,

    /// Run only one half of the paths: parameters are fitted on one and judged on the other
    #[arg(long, value_name = "HALF", value_enum, requires = "paths")]
    pub(super) half: Option<Half>,

    /// Value for a key of every scenario, such as `viewer.ack_packets=10`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) settings: Vec<Setting>,

    /// Rank candidates for the parameters of a controller, such as `video(pace=1..4,queue=2ms..10ms)`: drawn
    /// log-uniformly from the ranges, beside the controller itself and the list of --controllers
    #[arg(long, value_name = "SPEC", value_parser = SearchSpace::parse)]
    pub(super) search: Option<SearchSpace>,

    /// Number of candidates that are drawn
    #[arg(long, value_name = "N", default_value_t = BLOCK, requires = "search",
        value_parser = clap::value_parser!(u32).range(1..=999))]
    pub(super) candidates: u32,

    /// Seed of the candidates
    #[arg(long, value_name = "N", default_value_t = 1, requires = "search")]
    pub(super) seed: u64,

    /// Run one trial instead of three; of generated paths it is one
    #[arg(long)]
    pub(super) quick: bool,

    /// Runs of each controller in each scenario
    #[arg(long, value_name = "N")]
    pub(super) trials: Option<NonZeroU32>,

    /// Runs at the same time [default: number of cores]
    #[arg(long, value_name = "N")]
    pub(super) jobs: Option<NonZeroUsize>,

    /// Directory for the results; results that are already there are not run again
    #[arg(long, value_name = "DIR", default_value = "lab-matrix")]
    pub(super) out: PathBuf,
}

/// Reads the value of `--paths`.
fn path_set(text: &str) -> Result<PathSet, String> {
    PathSet::parse(text)
        .ok_or_else(|| format!("expected {FORM}, such as generated:1:96, with N from 1 to 999"))
}

/// Combinations in addition to the algorithms, aliases and baselines, each with its reason.
const COMBINATIONS: [&str; 5] = [
    // The papers' second CCPD.
    "ccpd(kd=4ms)",
    // The papers' CCP, which does not respond to losses.
    "ccp+loss=ignore",
    // The underbooking of P15.
    "ccp-lb(2)",
    // Shows the effect of leaving slow start before the queue is full, for the most widely used algorithm.
    "cubic+start=hystartpp",
    // Shows the effect of sending not much faster than the player plays.
    "cubic+ceiling=pace",
];

/// Every algorithm, alias and baseline under its own name, and some combinations.
fn default_controllers() -> Vec<ControllerChoice> {
    let registry = Registry::installed();
    let algorithms = registry.controllers().map(|entry| entry.name().to_owned());
    let baselines = Baseline::ALL.map(|baseline| baseline.name().to_owned());
    let aliases = registry.aliases().map(|alias| alias.name.to_owned());
    let names: Vec<String> = algorithms
        .chain(baselines)
        .chain(aliases)
        .chain(COMBINATIONS.map(str::to_owned))
        .collect();
    // An algorithm that needs arguments does not fit every path; a test makes sure that the combinations are read.
    unique(names.iter().filter_map(|name| name.parse().ok()))
}

fn unique(all: impl IntoIterator<Item = ControllerChoice>) -> Vec<ControllerChoice> {
    let mut kept: Vec<ControllerChoice> = Vec::new();
    for one in all {
        if kept.iter().all(|known| known.to_string() != one.to_string()) {
            kept.push(one);
        }
    }
    kept
}

impl MatrixArgs {
    /// Names of the scenarios or generated paths that are run.
    pub(super) fn scenario_names(&self) -> Vec<String> {
        let generated = self.paths.map(|set| set.names(self.half));
        generated.unwrap_or_else(|| self.scenarios.clone())
    }

    pub(super) fn controllers(&self) -> Result<Vec<ControllerChoice>, CommandError> {
        let candidates = match &self.search {
            Some(space) => space
                .candidates(self.seed, self.candidates)
                .map_err(|error| CommandError::BadInput(format!("invalid candidate: {error}")))?,
            None => Vec::new(),
        };
        let Some(list) = &self.controllers else {
            return Ok(match self.search {
                Some(_) => unique(candidates),
                None => default_controllers(),
            });
        };
        let (others, names) = match list.strip_prefix('+') {
            Some(names) => (default_controllers(), names),
            None => (Vec::new(), list.as_str()),
        };
        let added = ControllerChoice::list(names).map_err(|error| {
            CommandError::BadInput(format!("invalid list of controllers `{list}`: {error}"))
        })?;
        Ok(unique(others.into_iter().chain(added).chain(candidates)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(controllers: Option<&str>) -> MatrixArgs {
        MatrixArgs {
            controllers: controllers.map(str::to_owned),
            scenarios: Vec::new(),
            paths: None,
            half: None,
            settings: Vec::new(),
            search: None,
            candidates: BLOCK,
            seed: 1,
            quick: true,
            trials: None,
            jobs: None,
            out: PathBuf::new(),
        }
    }

    fn names(list: Option<&str>) -> Vec<String> {
        let controllers = args(list).controllers().unwrap();
        controllers.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_algorithm_alias_baseline_and_combination_is_among_the_controllers_once() {
        let all = names(None);
        let registry = Registry::installed();
        let wanted = registry
            .controllers()
            .map(playrate_cc::registry::Entry::name)
            .chain(COMBINATIONS)
            .chain(["quinn-cubic", "quinn-newreno", "quinn-bbr", "ccp-lb"]);
        for name in wanted {
            let spec = name.parse::<ControllerChoice>().unwrap().to_string();
            assert_eq!(all.iter().filter(|known| **known == spec).count(), 1, "{name}");
        }
    }

    #[test]
    fn a_list_replaces_all_others_or_is_added_to_them_after_a_plus() {
        assert_eq!(names(Some("reno,ccpd(1,4000)")), ["reno", "ccpd(kd=4ms)"]);
        let more = names(Some("+vegas+ceiling=pace"));
        assert_eq!(more.len(), names(None).len() + 1);
        assert_eq!(more.last().map(String::as_str), Some("vegas+ceiling=pace"));
        assert_eq!(names(Some("+cubic")), names(None));
        let error = args(Some("renoo")).controllers().unwrap_err().to_string();
        assert!(error.contains("invalid list of controllers `renoo`"), "{error}");
    }

    #[test]
    fn candidates_stand_alone_or_beside_a_list_of_controllers() {
        let mut args = args(None);
        args.search = Some(SearchSpace::parse("video(pace=2..6)").unwrap());
        args.candidates = 4;
        let names = |args: &MatrixArgs| -> Vec<String> {
            let controllers = args.controllers().unwrap();
            controllers.iter().map(ToString::to_string).collect()
        };
        let alone = names(&args);
        assert_eq!((alone[0].as_str(), alone.len()), ("video", 5));
        args.controllers = Some("vegas,cubic".to_owned());
        assert_eq!(names(&args)[..2], ["vegas", "cubic"]);
        assert_eq!(names(&args)[2..], alone);
    }
}
