//! The command line of `lab matrix`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::Args;
use playrate_cc::SpecError;
use playrate_transport::ControllerChoice;
use playrate_transport::controllers::registry;
use thiserror::Error;

use crate::scenario::PAPERS;

/// What `lab matrix` is told.
#[derive(Args, Clone, Debug)]
pub struct MatrixArgs {
    /// Controllers, separated by commas: those of a list of your own, or after a `+` in front of it besides all that there are, such as
    /// `+vegas+ceiling=pace`
    #[arg(long, value_name = "LIST")]
    pub controllers: Option<String>,

    /// Scenarios or groups of them, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = PAPERS)]
    pub scenarios: Vec<String>,

    /// One trial instead of three
    #[arg(long)]
    pub quick: bool,

    /// Runs of each controller in each scenario
    #[arg(long, value_name = "N")]
    pub trials: Option<NonZeroU32>,

    /// Runs at once; all cores if not given
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,

    /// Directory for the results; what it holds already is not run again
    #[arg(long, value_name = "DIR", default_value = "lab-matrix")]
    pub out: PathBuf,
}

/// A list of controllers that is none.
#[derive(Debug, Error)]
#[error("`{list}` is no list of controllers: {error}")]
pub struct ControllersError {
    list: String,
    error: Box<SpecError>,
}

/// Combinations beside the laws, aliases and baselines, each with what it adds to the map.
const COMBINATIONS: [&str; 5] = [
    // The papers' second CCPD.
    "ccpd(kd=4ms)",
    // The papers' CCP, which does not answer losses.
    "ccp+loss=ignore",
    // The underbooking of P15.
    "ccp-lb(2)",
    // What a slow start that ends before the queue is full is worth to the law that most senders have.
    "cubic+start=hystartpp",
    // What not sending much faster than the player plays is worth to it.
    "cubic+ceiling=pace",
];

/// Every law, alias and baseline under its own name, and some combinations.
pub fn default_controllers() -> Vec<ControllerChoice> {
    let registry = registry();
    let laws = registry.controllers().map(|entry| entry.name().to_owned());
    let aliases = registry.aliases().map(|alias| alias.name.to_owned());
    let names: Vec<String> = laws
        .chain(aliases)
        .chain(COMBINATIONS.map(str::to_owned))
        .collect();
    // A law that cannot be without arguments is none for every path; a test sees to it that the combinations are read.
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
    pub(super) fn controllers(&self) -> Result<Vec<ControllerChoice>, ControllersError> {
        let Some(list) = &self.controllers else {
            return Ok(default_controllers());
        };
        let (others, names) = match list.strip_prefix('+') {
            Some(names) => (default_controllers(), names),
            None => (Vec::new(), list.as_str()),
        };
        let added = ControllerChoice::list(names).map_err(|error| ControllersError {
            list: list.clone(),
            error: Box::new(error),
        })?;
        Ok(unique(others.into_iter().chain(added)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(controllers: Option<&str>) -> MatrixArgs {
        MatrixArgs {
            controllers: controllers.map(str::to_owned),
            scenarios: Vec::new(),
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
    fn every_law_alias_baseline_and_combination_is_among_the_controllers_once() {
        let all = names(None);
        let wanted = registry();
        let wanted = wanted
            .controllers()
            .map(playrate_cc::registry::Entry::name)
            .chain(COMBINATIONS)
            .chain(["quinn-cubic", "quinn-newreno", "ccp-lb"]);
        for name in wanted {
            let spec = name.parse::<ControllerChoice>().unwrap().to_string();
            assert_eq!(all.iter().filter(|known| **known == spec).count(), 1, "{name}");
        }
    }

    #[test]
    fn a_list_stands_alone_or_after_a_plus_beside_all_others() {
        assert_eq!(names(Some("reno,ccpd(1,4000)")), ["reno", "ccpd(kd=4ms)"]);
        let more = names(Some("+vegas+ceiling=pace"));
        assert_eq!(more.len(), names(None).len() + 1);
        assert_eq!(more.last().map(String::as_str), Some("vegas+ceiling=pace"));
        assert_eq!(names(Some("+cubic")), names(None));
        let error = args(Some("renoo")).controllers().unwrap_err().to_string();
        assert!(error.contains("`renoo` is no list of controllers"), "{error}");
    }
}
