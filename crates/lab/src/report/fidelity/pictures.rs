//! The figures of the page that are of many worlds: the heat map of all rows, and the landscape of each search.

use super::random::{RandomWorlds, share_that_holds};
use super::verdicts::{Fidelity, RowVerdicts};
use crate::claims::Verdict;
use crate::figure::{HeatCell, HeatMap, Landscape, LandscapeChoice, LandscapeUnknown};
use crate::statistics::Interval;
use crate::worlds::{Finished, ShortWorld, UnknownOutcome};

/// Names of the tenths of the sample, from the worlds in which fewest fitted parts hold.
const TENTHS: [&str; 10] = [
    "worst tenth",
    "2nd",
    "3rd",
    "4th",
    "5th",
    "6th",
    "7th",
    "8th",
    "9th",
    "best tenth",
];

/// The share of each row's parts that hold: in the nominal and the fitted world, in all random worlds, and in tenths.
pub(super) fn heat_map(fidelity: &Fidelity, searches: &[Finished]) -> String {
    let of_search = |search| {
        let all = RandomWorlds::of(search);
        ShortColumns {
            ends: [search.nominal_short_trial(), search.fitted_short_trial()],
            tenths: all.with_all_rows().tenths(),
            all,
        }
    };
    let random: Vec<(&str, ShortColumns<'_>)> = searches
        .iter()
        .map(|search| (search.outcome.test_bed.as_str(), of_search(search)))
        .collect();
    let tenths = random.iter().any(|(_, columns)| !columns.tenths.is_empty());
    let mut columns = vec![
        "nominal world",
        "fitted world",
        "nominal, short trial",
        "fitted, short trial",
        "all random worlds",
    ];
    columns.extend(TENTHS.iter().filter(|_| tenths));
    let cells = |row: &RowVerdicts| {
        let mut random = random.iter();
        let short = random.find(|(bed, _)| row.test_bed.as_deref() == Some(bed));
        let ids: Vec<&str> = row.parts.iter().map(|part| part.id.as_str()).collect();
        let of = |verdicts: Vec<Verdict>| share_that_holds(&verdicts).map(cell);
        let mut cells = vec![
            of(row.parts.iter().map(|part| part.nominal).collect()),
            of(row.parts.iter().map(|part| part.fitted).collect()),
        ];
        cells.extend(
            short
                .into_iter()
                .flat_map(|(_, columns)| columns.shares(&ids))
                .map(|share| share.map(cell)),
        );
        cells.resize(columns.len(), None);
        cells
    };
    let name = |row: &RowVerdicts| {
        let mark = if row.judged { " (judged)" } else { "" };
        format!("{}{mark}", row.id)
    };
    let map = HeatMap {
        title: "Rows of the papers' claims in worlds".to_owned(),
        unit: "% of a row's parts that hold".to_owned(),
        rows: fidelity.rows.iter().map(name).collect(),
        cells: fidelity.rows.iter().map(cells).collect(),
        columns: columns.into_iter().map(str::to_owned).collect(),
        ends: ("all parts hold".to_owned(), "none".to_owned()),
        gap_after: 2,
    };
    map.svg()
}

/// The worlds of a search in the sample's one short trial, as columns.
struct ShortColumns<'a> {
    /// The nominal and the fitted world.
    ends: [Option<&'a ShortWorld>; 2],
    all: RandomWorlds<'a>,
    tenths: Vec<RandomWorlds<'a>>,
}

impl ShortColumns<'_> {
    /// The share of these parts that hold, by column.
    fn shares(&self, parts: &[&str]) -> Vec<Option<f64>> {
        let ends = self.ends.iter();
        let ends = ends.map(|world| RandomWorlds::only((*world)?).share_of_parts(parts));
        let groups = std::iter::once(&self.all).chain(&self.tenths);
        ends.chain(groups.map(|group| group.share_of_parts(parts)))
            .collect()
    }
}

fn cell(share: f64) -> HeatCell {
    HeatCell {
        shade: 1.0 - share,
        text: format!("{:.0}", share * 100.0),
    }
}

/// The scores of a search's random worlds, and the mean score by choice; `None` if it has no random sample.
pub(super) fn landscape(search: &Finished) -> Option<String> {
    let random = RandomWorlds::of(search);
    if random.is_empty() {
        return None;
    }
    let outcome = &search.outcome;
    let worlds = random.worlds();
    let ends = [
        ("nominal", search.nominal_short_trial()),
        ("fitted", search.fitted_short_trial()),
    ];
    let marks = ends.map(|(name, world)| {
        let score = world?.fit.holds;
        Some((format!("{name} world: {score}"), score))
    });
    let unknown = |unknown: &UnknownOutcome| LandscapeUnknown {
        name: unknown.name.clone(),
        choices: unknown
            .choices
            .iter()
            .map(|choice| choice_of(search, unknown, (&choice.value, worlds)))
            .collect(),
    };
    let landscape = Landscape {
        title: format!("Landscape of the test bed {}", outcome.test_bed),
        unit: "number of fitted parts that hold, by choice".to_owned(),
        most: worlds.iter().map(|world| world.fit.of).max().unwrap_or(0),
        scores: worlds.iter().map(|world| world.fit.holds).collect(),
        marks: marks.into_iter().flatten().collect(),
        unknowns: outcome
            .unknowns
            .iter()
            .filter(|one| one.acts_on_fitted_rows)
            .map(unknown)
            .collect(),
    };
    Some(landscape.svg())
}

/// The random worlds with one value of an unknown.
fn choice_of(
    search: &Finished,
    unknown: &UnknownOutcome,
    (value, worlds): (&str, &[&ShortWorld]),
) -> LandscapeChoice {
    let has = |world: &&&ShortWorld| world.choices.get(&unknown.name).is_some_and(|own| own == value);
    let scores: Vec<f64> = worlds
        .iter()
        .filter(has)
        .map(|world| world.fit.holds as f64)
        .collect();
    let is_of = |world: &crate::worlds::WorldOutcome| {
        world.choices.get(&unknown.name).is_some_and(|own| own == value)
    };
    LandscapeChoice {
        text: value.to_owned(),
        mean: Interval::of(&scores).map(|interval| (interval.mean, half(&interval))),
        is_nominal: is_of(&search.outcome.nominal),
        is_fitted: is_of(&search.outcome.fitted),
    }
}

/// Half of an interval; 0 if its ends are not known.
fn half(interval: &Interval) -> f64 {
    let half = (interval.high - interval.low) / 2.0;
    if half.is_finite() { half } else { 0.0 }
}
