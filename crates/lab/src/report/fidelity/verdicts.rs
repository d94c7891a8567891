//! [`Fidelity`]: the verdicts on all rows of the papers' claims in the nominal and the fitted world of each test bed,
//! as `fidelity.json` has them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::random::RandomWorlds;
use crate::claims::{self, Claim, ClaimResult, Verdict, numbers};
use crate::error::CommandError;
use crate::rounding::ratio;
use crate::worlds::{AsGood, Declared, Finished, FinishedPart, WorldOutcome};

const FORMAT: &str = "lab-fidelity";
/// Version of the format: within one, fields are added, never renamed or removed.
const VERSION: u32 = 1;

/// The content of `fidelity.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Fidelity {
    format: String,
    version: u32,
    program: String,
    pub(super) test_beds: Vec<BedVerdicts>,
    pub(super) rows: Vec<RowVerdicts>,
}

/// A test bed and its two worlds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BedVerdicts {
    pub(super) name: String,
    pub(super) about: String,
    /// `None` if there is no finished search of it.
    pub(super) search: Option<BedSearch>,
}

/// A finished search of a test bed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BedSearch {
    pub(super) quick: bool,
    pub(super) seed: Option<u64>,
    pub(super) nominal: WorldChoices,
    pub(super) fitted: WorldChoices,
    /// `None` if the worlds were found before, so that no sample was drawn.
    pub(super) sample: Option<RandomCounts>,
    /// The nominal and the fitted world in the sample's one short trial; `None` without a sample.
    pub(super) short_trial: Option<ShortTrial>,
    /// Worlds in which at most one fitted part less holds than in the fitted world.
    pub(super) as_good: Option<AsGood>,
}

/// Value of each unknown, and most trials of a controller in the last stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WorldChoices {
    pub(super) trials: u32,
    pub(super) choices: BTreeMap<String, String>,
}

/// Size of a random sample, and what holds in the median world of it, by the means of one short trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RandomCounts {
    pub(super) worlds: usize,
    /// Number of them for which all rows were run.
    pub(super) with_judged: usize,
    pub(super) median_rows: usize,
    pub(super) median_parts: usize,
    pub(super) median_searched_parts: usize,
    pub(super) median_judged_parts: usize,
}

/// Numbers of rows and parts that were run in the sample's one short trial, and that hold in it by the means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShortTrial {
    pub(super) run: ShortCounts,
    pub(super) nominal: ShortCounts,
    pub(super) fitted: ShortCounts,
}

/// Rows all of whose parts, and parts, that were run or hold in a short trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShortCounts {
    pub(super) rows: usize,
    pub(super) parts: usize,
    pub(super) searched_parts: usize,
    pub(super) judged_parts: usize,
}

/// A row of the papers' claims.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RowVerdicts {
    pub(super) id: String,
    /// Short name of the paper: `P13`.
    pub(super) paper: String,
    pub(super) says: String,
    /// Name of the test bed whose search decides it.
    pub(super) test_bed: Option<String>,
    pub(super) nominal: Verdict,
    pub(super) fitted: Verdict,
    /// The same by the means alone, as random worlds are decided.
    pub(super) nominal_means: Verdict,
    pub(super) fitted_means: Verdict,
    /// Share of the random worlds in which all parts hold; `None` if one of them was run in none.
    pub(super) robustness: Option<f64>,
    /// True if no search has looked at it.
    pub(super) judged: bool,
    /// Most trials of a controller in the fitted world; 0 if it was not run.
    #[serde(default)]
    pub(super) trials: u32,
    pub(super) parts: Vec<PartVerdicts>,
}

/// A part of a row: one claim.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PartVerdicts {
    pub(super) id: String,
    pub(super) says: String,
    /// The paper's own words.
    pub(super) paper: Option<String>,
    pub(super) nominal: Verdict,
    pub(super) fitted: Verdict,
    /// The same by the means alone, as random worlds are decided.
    pub(super) nominal_means: Verdict,
    pub(super) fitted_means: Verdict,
    /// Share of the random worlds in which it holds by the means; `None` if it was not run there.
    pub(super) robustness: Option<f64>,
    /// Number of random worlds in which it was run.
    pub(super) worlds: usize,
    pub(super) judged: bool,
    /// Source of the checks' thresholds.
    pub(super) why: Option<String>,
    /// Advice on reading the verdict.
    pub(super) note: Option<String>,
    pub(super) nominal_check: Option<DecidingCheck>,
    pub(super) fitted_check: Option<DecidingCheck>,
}

/// The check that decides a part: the first that has the part's verdict.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DecidingCheck {
    pub(super) check: String,
    pub(super) outcome: Verdict,
    pub(super) numbers: String,
    /// Number of the part's checks that hold, of all its checks.
    pub(super) holds: usize,
    pub(super) of: usize,
}

impl Fidelity {
    /// The verdicts of finished searches on all rows. A row is of the first of `beds` that has claims on it.
    ///
    /// # Errors
    /// If a built-in scenario cannot be read.
    pub(super) fn of(beds: &[Declared], searches: &[Finished]) -> Result<Self, CommandError> {
        let search_of = |bed: &str| searches.iter().find(|search| search.outcome.test_bed == bed);
        let of_row = |row: claims::RowReport| {
            let mine = |claim: &Claim| claim.row() == row.row.id;
            let bed = beds.iter().find(|bed| bed.claims().any(|(claim, _)| mine(claim)));
            let search = bed.and_then(|bed| search_of(bed.name()));
            let parts: Vec<PartVerdicts> = match (search, bed) {
                (Some(search), _) => {
                    let parts = search.parts.iter().filter(|part| mine(&part.claim));
                    parts.map(PartVerdicts::decided).collect()
                }
                (None, Some(bed)) => {
                    let declared = bed.claims().filter(|(claim, _)| mine(claim));
                    declared
                        .map(|(claim, judged)| PartVerdicts::not_run(claim, judged))
                        .collect()
                }
                (None, None) => row
                    .claims
                    .iter()
                    .map(|one| PartVerdicts::not_run(&one.claim, true))
                    .collect(),
            };
            let ids: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
            let random = search.map(RandomWorlds::of);
            RowVerdicts {
                id: row.row.id.to_owned(),
                paper: row.row.paper().to_owned(),
                says: row.row.says.to_owned(),
                test_bed: bed.map(|bed| bed.name().to_owned()),
                nominal: Verdict::of_all(parts.iter().map(|part| part.nominal)),
                fitted: Verdict::of_all(parts.iter().map(|part| part.fitted)),
                nominal_means: Verdict::of_all(parts.iter().map(|part| part.nominal_means)),
                fitted_means: Verdict::of_all(parts.iter().map(|part| part.fitted_means)),
                robustness: random
                    .and_then(|random| random.robustness_of_row(&ids))
                    .map(ratio),
                judged: parts.iter().all(|part| part.judged),
                trials: search.map_or(0, |search| trials(search, mine)),
                parts,
            }
        };
        let rows = claims::report(&[], &[])?.rows.into_iter().map(of_row);
        let of_bed = |bed: &Declared| BedVerdicts {
            name: bed.name().to_owned(),
            about: bed.about().replace('\n', " "),
            search: search_of(bed.name()).map(BedSearch::of),
        };
        Ok(Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            test_beds: beds.iter().map(of_bed).collect(),
            rows: rows.collect(),
        })
    }

    /// The text of `fidelity.json`.
    pub(super) fn json(&self) -> Result<String, serde_json::Error> {
        Ok(format!("{}\n", serde_json::to_string_pretty(self)?))
    }

    /// All parts of all rows.
    pub(super) fn parts(&self) -> impl Iterator<Item = &PartVerdicts> {
        self.rows.iter().flat_map(|row| &row.parts)
    }
}

impl RandomCounts {
    /// The medians as counts of one trial.
    pub(super) const fn median(&self) -> ShortCounts {
        ShortCounts {
            rows: self.median_rows,
            parts: self.median_parts,
            searched_parts: self.median_searched_parts,
            judged_parts: self.median_judged_parts,
        }
    }
}

impl BedSearch {
    fn of(search: &Finished) -> Self {
        let outcome = &search.outcome;
        let world = |world: &WorldOutcome| WorldChoices {
            trials: world.trials,
            choices: world.choices.clone(),
        };
        Self {
            quick: outcome.quick,
            seed: outcome.seed,
            nominal: world(&outcome.nominal),
            fitted: world(&outcome.fitted),
            sample: outcome.sample.map(|_| RandomWorlds::of(search).counts()),
            short_trial: ShortTrial::of(search),
            as_good: outcome.as_good,
        }
    }

    /// The command that makes it again below the directory `lab-worlds`, for the test bed `name`.
    pub(super) fn command(&self, name: &str) -> String {
        let mut command = format!("lab worlds {name}");
        match &self.sample {
            Some(sample) => {
                command.push_str(if self.quick { " --quick" } else { "" });
                let _ = write!(command, " --worlds {}", sample.worlds);
                // The default seed is 1.
                if let Some(seed) = self.seed.filter(|seed| *seed != 1) {
                    let _ = write!(command, " --seed {seed}");
                }
            }
            None => command.push_str(" --found"),
        }
        format!("{command} --out lab-worlds/{name}")
    }
}

/// Most trials of a controller in the fitted world, in the scenarios of the claims that are `wanted`.
fn trials(search: &Finished, wanted: impl Fn(&Claim) -> bool) -> u32 {
    let claims = search.parts.iter().map(|part| &part.claim);
    let scenarios: BTreeSet<&str> = claims
        .filter(|claim| wanted(claim))
        .map(|claim| claim.scenario.as_str())
        .collect();
    let runs = search.fitted.runs.iter().map(|run| &run.row.key);
    let mine = runs.filter(|key| scenarios.contains(key.scenario.as_str()));
    mine.map(|key| key.trial).max().unwrap_or(0)
}

impl PartVerdicts {
    fn decided(part: &FinishedPart) -> Self {
        let verdict =
            |result: &Option<ClaimResult>| result.as_ref().map_or(Verdict::NotRun, |one| one.verdict);
        let means =
            |result: &Option<ClaimResult>| result.as_ref().map_or(Verdict::NotRun, |one| one.by_means);
        let check = |result: &Option<ClaimResult>| result.as_ref().and_then(DecidingCheck::of);
        Self {
            nominal: verdict(&part.nominal),
            nominal_means: means(&part.nominal),
            fitted_means: means(&part.fitted),
            fitted: verdict(&part.fitted),
            robustness: part.robustness,
            worlds: part.worlds,
            nominal_check: check(&part.nominal),
            fitted_check: check(&part.fitted),
            ..Self::not_run(&part.claim, part.judged)
        }
    }

    fn not_run(claim: &Claim, judged: bool) -> Self {
        Self {
            id: claim.id.clone(),
            says: claim.says.clone(),
            paper: claim.paper.clone(),
            nominal: Verdict::NotRun,
            fitted: Verdict::NotRun,
            nominal_means: Verdict::NotRun,
            fitted_means: Verdict::NotRun,
            robustness: None,
            worlds: 0,
            judged,
            why: claim.why.clone(),
            note: claim.note.clone(),
            nominal_check: None,
            fitted_check: None,
        }
    }

    /// Returns true if it holds in the nominal, the fitted or a random world, by the means or by intervals.
    pub(super) fn holds_somewhere(&self) -> bool {
        let verdicts = [self.nominal, self.fitted, self.nominal_means, self.fitted_means];
        let holds = verdicts.contains(&Verdict::Holds);
        holds || self.robustness.is_some_and(|share| share > 0.0)
    }

    /// Returns true if it was run in random worlds and holds in no world of any kind.
    pub(super) fn holds_nowhere(&self) -> bool {
        self.robustness.is_some() && !self.holds_somewhere()
    }
}

impl DecidingCheck {
    fn of(result: &ClaimResult) -> Option<Self> {
        let holds = |verdict: Verdict| verdict == Verdict::Holds;
        // Of a claim for which one check is enough, one that holds decides.
        let decides = |verdict: Verdict| verdict == result.verdict;
        let check = result.checks.iter().find(|check| decides(check.verdict));
        let check = check.or(result.checks.first())?;
        Some(Self {
            check: check.check.to_string(),
            outcome: check.verdict,
            numbers: numbers(check),
            holds: result.checks.iter().filter(|check| holds(check.verdict)).count(),
            of: result.checks.len(),
        })
    }
}
