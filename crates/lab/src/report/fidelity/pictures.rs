//! The figures of the page that are of many worlds: the heat map of all rows, and the landscape of each search.

use super::random::{RandomWorlds, share_that_holds};
use super::verdicts::{Fidelity, RowVerdicts};
use crate::claims::Verdict;
use crate::figure::{HeatCell, HeatMap, Landscape, LandscapeChoice, LandscapeUnknown};
use crate::statistics::Interval;
use crate::worlds::{Finished, SampledWorld, UnknownOutcome};

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

/// The share of each row's parts that hold: in the nominal and the fitted world, in all random worlds, and in tenths of
/// them.
pub(super) fn heat_map(fidelity: &Fidelity, searches: &[Finished]) -> String {
    let random: Vec<(&str, Vec<RandomWorlds<'_>>)> = searches
        .iter()
        .map(|search| {
            let all = RandomWorlds::of(search);
            let tenths = all.tenths();
            let groups = std::iter::once(all).chain(tenths);
            (search.outcome.test_bed.as_str(), groups.collect())
        })
        .collect();
    let tenths = random.iter().any(|(_, groups)| groups.len() > 1);
    let mut columns = vec![
        "nominal world",
        "fitted world",
        "nominal, by the means",
        "fitted, by the means",
        "all random worlds",
    ];
    columns.extend(TENTHS.iter().filter(|_| tenths));
    let cells = |row: &RowVerdicts| {
        let groups = random
            .iter()
            .find(|(bed, _)| row.test_bed.as_deref() == Some(bed));
        let groups = groups.map_or(&[][..], |(_, groups)| groups);
        let ids: Vec<&str> = row.parts.iter().map(|part| part.id.as_str()).collect();
        let of = |verdicts: Vec<Verdict>| share_that_holds(&verdicts).map(cell);
        let mut cells = vec![
            of(row.parts.iter().map(|part| part.nominal).collect()),
            of(row.parts.iter().map(|part| part.fitted).collect()),
            of(row.parts.iter().map(|part| part.nominal_means).collect()),
            of(row.parts.iter().map(|part| part.fitted_means).collect()),
        ];
        cells.extend(groups.iter().map(|group| group.share_of_parts(&ids).map(cell)));
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
    let score = |number: Option<usize>| {
        let mut all = search.sampled.iter();
        all.find(|world| Some(world.world) == number)
            .map(|world| world.fit.holds)
    };
    let marks = [("nominal", &outcome.nominal), ("fitted", &outcome.fitted)]
        .map(|(name, world)| score(world.world).map(|score| (format!("{name} world: {score}"), score)));
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
    (value, worlds): (&str, &[&SampledWorld]),
) -> LandscapeChoice {
    let has = |world: &&&SampledWorld| world.choices.get(&unknown.name).is_some_and(|own| own == value);
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
