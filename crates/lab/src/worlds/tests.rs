//! Files of test beds, worlds and what they do to runs.

mod outcome;

use std::path::Path;

use rstest::rstest;

use super::file::{BUILT_IN, read_text};
use super::runs::{Instances, Ledger, WorldRun};
use super::stages::{Length, Stage, Stages, Trials};
use super::unknown::World;
use super::*;
use crate::result::IDEAL;

const BED: &str = r#"
about = "A test."
scenarios = ["p13-6", "p13-9"]

[fit]
rows = ["P13-6"]

[judge]
rows = ["P13-9"]

[search]
worlds = 20
judged = 5

[quick]
worlds = 4
judged = 9

[[unknown]]
name = "queue"
why = "Not given."
key = "path.queue"
nominal = "1bdp"
choices = ["50packets", "1bdp", "200packets"]

[[unknown]]
name = "start"
why = "Not given."
component = "start"
of = ["cubic"]
nominal = "standard"
choices = ["standard", "hystartpp"]

[[unknown]]
name = "floor"
why = "Ours."
argument = "floor"
of = ["ccp"]
only = ["p13-9"]
choices = [1, 3]

[found]
seed = 1
worlds = 20
choices = { queue = "200packets", start = "standard" }
"#;

const SHORT: Length = Length {
    quick: true,
    trials: Trials::Exactly(1),
    seed: None,
};

fn bed(text: &str) -> TestBed {
    read_text(text, Path::new(".")).unwrap()
}

/// The world of [`BED`] with these choices.
fn world(bed: &TestBed, choices: [Option<usize>; 3]) -> World {
    let nominal = World::nominal(&bed.unknowns);
    let places = choices.into_iter().enumerate();
    places.fold(nominal, |world, (place, choice)| world.with(place, choice))
}

fn all_runs(bed: &TestBed, world: &World) -> Vec<WorldRun> {
    let needs = Needs::of(bed.claims());
    Instances::default().runs(bed, world, &needs, SHORT).unwrap()
}

/// The runs as scenario, controller in claims, controller that is run.
fn names(runs: &[WorldRun]) -> Vec<(&str, &str, &str)> {
    let mut names = Vec::new();
    for WorldRun { label, job } in runs {
        names.push((job.key.scenario.as_str(), &**label, job.key.controller.as_str()));
    }
    names
}

#[test]
fn a_test_bed_is_what_its_file_says() {
    let bed = bed(BED);
    assert_eq!((bed.name.as_str(), bed.about.as_str()), ("bed", "A test."));
    let rows = |claims: &[Claim]| {
        claims
            .iter()
            .map(|claim| claim.row().to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(rows(&bed.fit), BTreeSet::from(["P13-6".to_owned()]));
    assert_eq!(rows(&bed.judged), BTreeSet::from(["P13-9".to_owned()]));
    assert_eq!(
        bed.search,
        Effort {
            worlds: 20,
            judged: 5
        }
    );
    assert_eq!(bed.quick, Effort { worlds: 4, judged: 4 });
    let fitted: Vec<bool> = bed.unknowns.iter().map(|unknown| unknown.fitted).collect();
    assert_eq!(fitted, [true, true, false]);
    assert_eq!(bed.unknowns[0].choices_text(), "50packets, 1bdp, 200packets");
}

#[rstest]
#[case("[search]\n", "[serach]\n", "line 11", "serach")]
#[case("\"p13-9\"]", "\"p13-99\"]", "line 3", "p13-9,")]
#[case("\"p13-9\"]", "\"p13-6\"]", "line 3", "duplicate scenario `p13-6`")]
#[case(
    "[\"P13-9\"]",
    "[\"P13-8\"]",
    "line 9",
    "no scenario of this file decides row `P13-8`; expected one of: P13-6, P13-9"
)]
#[case("[\"P13-9\"]", "[\"P13-6\"]", "line 9", "named twice")]
#[case(
    "scenarios = [\"p13-6\", ",
    "scenarios = [",
    "line 6",
    "expected one of: P13-9"
)]
#[case("worlds = 20", "worlds = 0", "line 12", "at least 1")]
#[case("\"path.queue\"", "\"path.qeue\"", "line 24", "qeue")]
#[case("\"200packets\"]", "\"200\"]", "line 24", "in p13-6: ")]
#[case("\"200packets\"]", "\"1bdp\"]", "line 24", "duplicate choice")]
#[case(
    "[\"50packets\", \"1bdp\", \"200packets\"]",
    "[\"50packets\"]",
    "line 24",
    "at least two"
)]
#[case("nominal = \"1bdp\"", "nominal = \"2bdp\"", "line 23", "p13-6 has 1bdp")]
#[case(
    "nominal = \"standard\"",
    "nominal = \"hystartpp\"",
    "line 31",
    "p13-6 has cubic"
)]
#[case(
    "key = \"path.queue\"",
    "key = \"path.queue\"\nof = [\"reno\"]",
    "line 23",
    "leave `of` out"
)]
#[case(
    "key = \"path.queue\"",
    "",
    "line 20",
    "exactly one of `key`, `argument` and `component`"
)]
#[case(
    "component = \"start\"",
    "component = \"strat\"",
    "line 29",
    "expected one of: start, shape"
)]
#[case("of = [\"cubic\"]", "of = [\"qubic\"]", "line 30", "reno, cubic")]
#[case("of = [\"cubic\"]", "of = [\"vegas\"]", "line 27", "acts on no controller")]
#[case("of = [\"cubic\"]", "", "line 27", "`of` is missing")]
#[case(
    "\"hystartpp\"]",
    "\"fast\"]",
    "line 32",
    "expected one of: standard, hystartpp"
)]
#[case(
    "argument = \"floor\"",
    "argument = \"flor\"",
    "line 40",
    "did you mean `floor`"
)]
#[case("choices = [1, 3]", "choices = [1, 0]", "line 40", "a number from 1 to 100")]
#[case(
    "only = [\"p13-9\"]",
    "only = [\"p13-8\"]",
    "line 39",
    "expected one of: p13-6, p13-9"
)]
#[case(
    "name = \"floor\"",
    "name = \"start\"",
    "line 35",
    "duplicate unknown `start`"
)]
#[case(
    "queue = \"200packets\"",
    "qeue = \"200packets\"",
    "line 45",
    "no [[unknown]] is called `qeue`; expected one of: queue, start, floor"
)]
#[case(
    "queue = \"200packets\"",
    "queue = \"2packets\"",
    "line 45",
    "is not a candidate of `queue`; expected one of: \"50packets\", \"1bdp\", \"200packets\""
)]
#[case("seed = 1", "sed = 1", "line 43", "seed")]
fn a_mistake_is_reported_with_file_line_and_correction(
    #[case] right: &str,
    #[case] wrong: &str,
    #[case] line: &str,
    #[case] correction: &str,
) {
    assert!(BED.contains(right), "{right}");
    let error = read_text(&BED.replacen(right, wrong, 1), Path::new("."))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with(&format!("bed.toml, {line}")), "{error}");
    assert!(error.contains(correction), "{error}");
}

#[test]
fn every_file_of_the_directory_is_built_in_and_can_be_read_and_described() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/worlds");
    let files = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = files
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    let mut known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    known.sort_unstable();
    assert_eq!(names, known);
    for name in known {
        let bed = file::open(name).unwrap();
        let text = text::describe(&bed);
        for unknown in &bed.unknowns {
            assert!(text.contains(&format!("\n{}\n", unknown.name)), "{text}");
        }
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
    }
}

#[test]
fn the_table_of_a_found_world_is_read_as_it_was_printed() {
    let own = bed(BED);
    let found = own.found.clone().unwrap();
    assert_eq!((found.seed, found.worlds), (1, 20));
    assert_eq!(found.world, world(&own, [Some(2), None, None]));
    let table = found.table(&own);
    assert_eq!(
        table,
        "[found]\nseed = 1\nworlds = 20\n\n[found.choices]\nqueue = \"200packets\"\nstart = \"standard\"\n"
    );
    let (declaration, _) = BED.split_once("[found]").unwrap();
    assert_eq!(bed(&format!("{declaration}{table}")).found, Some(found));
    assert_eq!(bed(declaration).found, None);
}

#[test]
fn an_unknown_test_bed_is_answered_with_the_known_ones() {
    let error = file::open("kyoto").unwrap_err();
    assert!(error.is_bad_input());
    assert!(error.to_string().contains("kyutech, ns2, mininet"), "{error}");
}

#[test]
fn a_choice_acts_on_the_scenarios_and_controllers_that_the_file_names() {
    let bed = bed(BED);
    let nominal = all_runs(&bed, &World::nominal(&bed.unknowns));
    let other = all_runs(&bed, &world(&bed, [None, Some(1), Some(1)]));
    let changed: Vec<_> = names(&other)
        .into_iter()
        .filter(|(_, label, own)| label != own)
        .collect();
    assert_eq!(
        changed,
        [
            ("p13-6", "cubic", "cubic+start=hystartpp"),
            ("p13-9", "cubic", "cubic+start=hystartpp"),
            ("p13-9", "ccp+loss=ignore", "ccp(floor=3)+loss=ignore"),
        ]
    );
    let hashes = |runs: &[WorldRun]| -> BTreeSet<String> {
        runs.iter().map(|run| run.job.key.scenario_hash.clone()).collect()
    };
    assert_eq!(hashes(&other), hashes(&nominal));
    let queue = all_runs(&bed, &world(&bed, [Some(0), None, None]));
    assert!(hashes(&queue).is_disjoint(&hashes(&nominal)));
    assert!(names(&queue).iter().all(|(_, label, own)| label == own));
}

#[test]
fn only_what_claims_read_is_run() {
    let bed = bed(BED);
    let runs = all_runs(&bed, &World::nominal(&bed.unknowns));
    // Six controllers and the ideal sender in both scenarios; those with the loss guard are beside the claims.
    assert_eq!(runs.len(), 14);
    assert!(runs.iter().any(|run| run.job.key.controller == IDEAL));
    assert!(
        names(&runs)
            .iter()
            .all(|(_, label, _)| !label.contains("guard") && label.len() < 30)
    );
    let fitted = Instances::default().runs(&bed, &World::nominal(&bed.unknowns), &Needs::of(&bed.fit), SHORT);
    assert!(fitted.unwrap().iter().all(|run| run.job.key.scenario == "p13-6"));
}

#[test]
fn runs_that_worlds_share_are_made_once() {
    let bed = bed(BED);
    let mut ledger = Ledger::default();
    let mut fresh = |choices| ledger.fresh(&all_runs(&bed, &world(&bed, choices))).len();
    assert_eq!(fresh([None, None, None]), 14);
    assert_eq!(fresh([None, None, None]), 0);
    assert_eq!(fresh([None, Some(1), None]), 2);
    assert_eq!(fresh([None, Some(1), Some(1)]), 1);
    assert_eq!(fresh([Some(2), Some(1), Some(1)]), 14);
    assert_eq!(ledger.order.len(), 31);
}

/// A test bed whose scenario has downloads beside the viewers, and cases.
const DOWNLOADS: &str = r#"
about = "A test."
scenarios = ["p12-3"]
[fit]
rows = ["P12-3b"]
[search]
worlds = 1
judged = 1
[quick]
worlds = 1
judged = 1
[[unknown]]
name = "growth"
why = "Not given."
argument = "growth"
of = ["reno"]
choices = ["credit", "ratelimited"]
"#;

#[test]
fn checks_of_cases_that_quick_leaves_out_are_left_out() {
    let bed = bed(DOWNLOADS);
    let cases = bed.cases(true).unwrap();
    let has = |scenario: &str, case: &str| cases.contains(&(scenario.to_owned(), case.to_owned()));
    let claim = &bed.fit[0];
    let checks = [claim.clone(), claim.limited_to(has).unwrap()].map(|claim| claim.checks.len());
    assert_eq!(checks, [4, 2]);
    assert!(claim.limited_to(|_, _| false).is_none());
}

#[test]
fn the_controller_of_downloads_changes_with_the_viewers() {
    let bed = bed(DOWNLOADS);
    let scenario = &bed.scenarios[0];
    let other = World::nominal(&bed.unknowns).with(0, Some(1));
    let settings = other.settings(&bed.unknowns, scenario).unwrap();
    assert_eq!(settings.len(), 1);
    assert_eq!(settings[0].key, "bulk.controller");
    assert_eq!(settings[0].value, "\"reno(growth=ratelimited,max_ssthresh=0)\"");
    assert_eq!(
        World::nominal(&bed.unknowns).settings(&bed.unknowns, scenario),
        Ok(Vec::new())
    );
}

#[test]
fn a_random_world_depends_on_seed_number_and_names_alone_and_choices_are_equally_likely() {
    let bed = bed(BED);
    let draw = |seed, number| World::random(&bed.unknowns, seed, number);
    assert_eq!(draw(7, 3), draw(7, 3));
    let worlds: Vec<World> = (1..=3_000).map(|number| draw(1, number)).collect();
    for choice in [Some(0), None, Some(2)] {
        let number = worlds.iter().filter(|world| world.choice(0) == choice).count();
        assert!((900..1_100).contains(&number), "{choice:?}: {number}");
    }
    // Choice 1 of the queue is the nominal value, so it changes nothing.
    assert!(worlds.iter().all(|world| world.choice(0) != Some(1)));
    let fewer = &bed.unknowns[..2];
    let shorter = World::random(fewer, 7, 3);
    assert_eq!(
        (shorter.choice(0), shorter.choice(1)),
        (draw(7, 3).choice(0), draw(7, 3).choice(1))
    );
}

#[test]
fn a_step_takes_each_other_choice_of_one_unknown() {
    let bed = bed(BED);
    let from = world(&bed, [Some(2), None, Some(0)]);
    let beside = from.beside(0, &bed.unknowns[0]);
    assert_eq!(
        beside,
        [
            world(&bed, [Some(0), None, Some(0)]),
            world(&bed, [None, None, Some(0)])
        ]
    );
    assert_eq!(
        from.where_fitted(&bed.unknowns),
        world(&bed, [Some(2), None, None])
    );
}

#[test]
fn trials_are_capped_where_scenarios_have_more_and_fixed_where_a_stage_says_so() {
    let capped = |most| [5, 10, 20].map(|written| Trials::AtMost(most).of(written));
    assert_eq!(capped(10), [5, 10, 10]);
    assert_eq!(Trials::Exactly(3).of(2), 3);
    let bed = bed(DOWNLOADS);
    let needs = Needs::of(&bed.fit);
    let full = |trials| Length {
        quick: false,
        trials,
        seed: Some(101),
    };
    let seeds = |trials| {
        let world = World::nominal(&bed.unknowns);
        let runs = Instances::default()
            .runs(&bed, &world, &needs, full(trials))
            .unwrap();
        let seeds: BTreeSet<u64> = runs.iter().map(|run| run.job.key.seed).collect();
        (seeds.first().copied(), seeds.last().copied())
    };
    assert_eq!(seeds(Trials::AtMost(10)), (Some(101), Some(110)));
    assert_eq!(seeds(Trials::AtMost(30)), (Some(101), Some(120)));
}

#[test]
fn the_last_stage_has_ten_trials_at_most_or_as_the_file_says() {
    let last = |text: &str, quick| Stages::of(&bed(text), quick).length(Stage::Last).trials;
    assert_eq!(last(BED, false), Trials::AtMost(10));
    let five = format!("trials = 5\n{BED}");
    assert_eq!(last(&five, false), Trials::AtMost(5));
    assert_eq!(last(&five, true), Trials::Exactly(3));
    let said = read_text(&format!("trials = 0\n{BED}"), Path::new("."))
        .unwrap_err()
        .to_string();
    assert!(said.contains("line 1, `trials`"), "{said}");
}
