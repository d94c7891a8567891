//! The command line of `lab demo scenario`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use playrate_units::duration;

use crate::controllers::Controllers;

/// Watching time with `--quick`.
const QUICK: Duration = Duration::from_secs(15);
/// Minimum watching time: the start-up delay alone is about a second.
const SHORTEST: Duration = Duration::from_secs(2);
/// Maximum watching time. It passes in real time, once per controller.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Command line of `lab demo scenario`.
#[derive(Args, Clone, Debug)]
pub struct LiveArgs {
    /// The scenario: a name from `lab list`, or the path of a scenario file
    #[arg(value_name = "SCENARIO")]
    pub scenario: String,

    /// Case of the scenario, if it has several
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,

    /// Controllers to run, specs separated by commas [default: the scenario's]
    #[arg(long, value_name = "SPECS")]
    pub controllers: Option<Controllers>,

    /// Longest time that viewers watch. It passes in real time for each controller
    #[arg(long, value_name = "TIME", default_value = "45s", value_parser = watching)]
    pub duration: Duration,

    /// Watch for 15 s
    #[arg(long, conflicts_with = "duration")]
    pub quick: bool,

    /// Number of virtual runs to compare with, each with another seed. Of n equivalent runs, one is outside the
    /// range of the others with probability 2 / n
    #[arg(long, value_name = "N", default_value = "40")]
    pub trials: NonZeroU32,

    /// Seed of the live run and of the first virtual one [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Directory for the report
    #[arg(long, value_name = "DIR", default_value = "lab-live")]
    pub out: PathBuf,

    /// Print the report as one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

impl LiveArgs {
    /// Maximum time that viewers watch.
    pub(super) fn watching(&self) -> Duration {
        if self.quick { QUICK } else { self.duration }
    }
}

fn watching(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text).map_err(|error| error.to_string())?;
    if (SHORTEST..=LONGEST).contains(&time) {
        return Ok(time);
    }
    Err(format!(
        "`{text}` is not a time between {} and {}; write such as 45s",
        duration::display(SHORTEST),
        duration::display(LONGEST)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::arguments;
    use rstest::rstest;

    #[test]
    fn quick_is_fifteen_seconds_and_the_default_no_minute() {
        for (line, seconds) in [("", 45), ("--quick", 15), ("--duration 2min", 120)] {
            let args: LiveArgs = arguments(&format!("p13-9 {line}")).unwrap();
            assert_eq!(args.watching(), Duration::from_secs(seconds), "{line}");
        }
    }

    #[rstest]
    #[case("", "SCENARIO")]
    #[case("x --duration soon", "`soon`")]
    #[case("x --duration 1s", "`1s` is not a time between 2s and")]
    #[case("x --duration 2h", "`2h`")]
    #[case("x --duration 9s --quick", "--quick")]
    #[case("x --trials 0", "--trials")]
    #[case("x --controllers reno,qubic", "qubic")]
    #[case("x --seed one", "--seed")]
    fn an_invalid_argument_is_named(#[case] line: &str, #[case] named: &str) {
        let error = arguments::<LiveArgs>(line).unwrap_err();
        assert!(error.contains(named), "{error}");
    }
}
