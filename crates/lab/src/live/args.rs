//! The command line of `lab live`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use playrate_units::duration;

use crate::demo::Controllers;

/// How long viewers watch with `--quick`.
const QUICK: Duration = Duration::from_secs(15);
/// The shortest time that shows anything: a viewer's start alone takes a second or so.
const SHORTEST: Duration = Duration::from_secs(2);
/// The longest. It passes in real time, once for each controller.
const LONGEST: Duration = Duration::from_secs(3_600);

/// What `lab live` is told.
#[derive(Args, Clone, Debug)]
pub struct LiveArgs {
    /// The scenario: a name from `lab list`, or the path of a file of your own
    #[arg(value_name = "SCENARIO")]
    pub scenario: String,

    /// Which of its cases, if it has several
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,

    /// Controllers to run, specs separated by commas; the scenario's if not given
    #[arg(long, value_name = "SPECS")]
    pub controllers: Option<Controllers>,

    /// How long viewers watch at most. It passes in real time for each controller
    #[arg(long, value_name = "TIME", default_value = "45s", value_parser = watching)]
    pub duration: Duration,

    /// Watch for 15 s
    #[arg(long, conflicts_with = "duration")]
    pub quick: bool,

    /// Virtual runs to compare with, each with a seed of its own. Of n runs that are alike, one is outside the range of
    /// the others with probability 2 / n
    #[arg(long, value_name = "N", default_value = "40")]
    pub trials: NonZeroU32,

    /// Seed of the live run and of the first virtual one, instead of what the scenario says
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
    /// How long viewers watch at most.
    pub fn watching(&self) -> Duration {
        if self.quick { QUICK } else { self.duration }
    }
}

fn watching(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text).map_err(|error| error.to_string())?;
    if (SHORTEST..=LONGEST).contains(&time) {
        return Ok(time);
    }
    Err(format!(
        "`{text}` is not between {} and {}, and it passes in real time: write such as 45s",
        duration::display(SHORTEST),
        duration::display(LONGEST)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use rstest::rstest;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        live: LiveArgs,
    }

    fn read(line: &str) -> Result<LiveArgs, String> {
        let words = std::iter::once("live").chain(line.split_whitespace());
        Line::try_parse_from(words)
            .map(|line| line.live)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn quick_is_fifteen_seconds_and_the_default_no_minute() {
        assert_eq!(read("p13-9").unwrap().watching(), Duration::from_secs(45));
        assert_eq!(read("p13-9 --quick").unwrap().watching(), Duration::from_secs(15));
        assert_eq!(
            read("p13-9 --duration 2min").unwrap().watching(),
            Duration::from_secs(120)
        );
    }

    #[rstest]
    #[case("", "SCENARIO")]
    #[case("x --duration soon", "`soon`")]
    #[case("x --duration 1s", "`1s` is not between 2s and")]
    #[case("x --duration 2h", "`2h`")]
    #[case("x --duration 9s --quick", "--quick")]
    #[case("x --trials 0", "--trials")]
    #[case("x --controllers reno,qubic", "qubic")]
    #[case("x --seed one", "--seed")]
    fn what_cannot_be_is_named(#[case] line: &str, #[case] named: &str) {
        let error = read(line).unwrap_err();
        assert!(error.contains(named), "{error}");
    }
}
