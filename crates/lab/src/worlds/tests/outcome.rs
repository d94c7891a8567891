//! Choices of a search, and the numbers of its outcome.

use super::super::figures::Figures;
use super::super::outcome::{Evaluation, NOMINAL, Outcome, Score, Verdicts};
use super::super::search::step;
use super::super::stages::Stage;
use super::super::unknown::World;
use super::super::{figures, text};
use super::{BED, bed, world};
use crate::claims::Verdict;

#[test]
fn a_step_needs_a_fitted_part_that_holds_and_undecided_ones_decide_between_equal_steps() {
    let score = |holds, undecided| Score { holds, undecided };
    let taken = |scores: &[Score]| step(score(5, 1), scores.iter().copied().zip(1..));
    assert_eq!(taken(&[score(5, 3), score(4, 9)]), None);
    assert_eq!(taken(&[score(5, 3), score(6, 0), score(6, 0)]), Some(2));
    assert_eq!(
        taken(&[score(6, 0), score(6, 1), score(7, 0), score(7, 0)]),
        Some(3)
    );
}

#[test]
fn the_world_of_best_choices_takes_what_does_best_on_average_in_the_sample_and_else_the_nominal_value() {
    let bed = bed(BED);
    let worlds = vec![
        World::nominal(&bed.unknowns),
        world(&bed, [Some(0), None, Some(1)]),
        world(&bed, [Some(0), Some(1), Some(0)]),
        world(&bed, [Some(2), None, Some(1)]),
        world(&bed, [Some(2), Some(1), Some(0)]),
    ];
    let scores = [4, 1, 2, 3, 2];
    let numbered = scores.iter().enumerate();
    let outcome = Outcome {
        worlds,
        sample: 1..=4,
        evaluations: numbered
            .map(|(number, holds)| evaluation(number, Stage::Sample, *holds))
            .collect(),
        best_choices: None,
        fitted: NOMINAL,
    };
    // Queues: 1.5 and 2.5 parts, the nominal one was not drawn. Starts: 2 each. The floor acts on no fitted row.
    let best = figures::best_choices(&bed, &outcome);
    assert_eq!(best, world(&bed, [Some(2), None, None]));
}

/// An evaluation in which the first `holds` of four fitted parts hold.
fn evaluation(world: usize, stage: Stage, holds: usize) -> Evaluation {
    let verdict = |place| {
        if place < holds {
            Verdict::Holds
        } else {
            Verdict::Fails
        }
    };
    let verdicts = Verdicts {
        fit: (0..4).map(verdict).collect(),
        judged: vec![Verdict::Undecided; 3],
    };
    Evaluation {
        world,
        stage,
        trials: 1,
        intervals: (stage == Stage::Last).then(|| verdicts.clone()),
        means: verdicts,
    }
}

#[test]
fn robustness_and_landscape_are_counted_in_the_random_sample_alone() {
    let bed = bed(BED);
    assert_eq!((bed.fit.len(), bed.judged.len()), (4, 3));
    let worlds = vec![
        World::nominal(&bed.unknowns),
        world(&bed, [Some(0), None, None]),
        world(&bed, [Some(2), None, None]),
        world(&bed, [Some(2), Some(1), None]),
    ];
    let outcome = Outcome {
        worlds,
        sample: 1..=2,
        evaluations: vec![
            evaluation(NOMINAL, Stage::Sample, 0),
            evaluation(1, Stage::Sample, 1),
            evaluation(2, Stage::Sample, 2),
            evaluation(2, Stage::Refined, 2),
            evaluation(3, Stage::Refined, 4),
            evaluation(3, Stage::Compared, 4),
            evaluation(NOMINAL, Stage::Last, 1),
            evaluation(3, Stage::Last, 3),
        ],
        best_choices: None,
        fitted: 3,
    };
    let figures = Figures::of(&bed, &outcome);
    let robustness: Vec<_> = figures
        .parts
        .iter()
        .map(figures::PartFigures::robustness)
        .collect();
    assert_eq!(
        robustness,
        [
            Some(1.0),
            Some(0.5),
            Some(0.0),
            Some(0.0),
            Some(0.0),
            Some(0.0),
            Some(0.0)
        ]
    );
    assert_eq!(figures.sample, [1, 2]);
    assert_eq!((figures.nominal.fit.holds, figures.fitted.fit.holds), (1, 3));
    let means: Vec<_> = figures.unknowns[0]
        .iter()
        .map(|choice| (choice.worlds, choice.mean))
        .collect();
    assert_eq!(means, [(1, Some(1.0)), (0, None), (1, Some(2.0))]);
    // Three parts of four would do as well.
    assert_eq!((figures.as_good.sample.holds, figures.as_good.sample.of), (0, 2));
    assert_eq!(
        (figures.as_good.refined.holds, figures.as_good.refined.of),
        (1, 2)
    );
    let text = text::summary(&bed, &outcome, &figures);
    assert!(
        text.contains("nominal world   1 of 4 fitted, 0 of 3 judged; 1 trial"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_world_is_named_after_the_way_in_which_the_search_came_to_it() {
    let bed = bed(BED);
    let outcome = |sample, best_choices| Outcome {
        worlds: vec![World::nominal(&bed.unknowns); 5],
        sample,
        evaluations: Vec::new(),
        best_choices,
        fitted: NOMINAL,
    };
    let searched = outcome(1..=2, Some(3));
    assert_eq!(
        [0, 1, 2, 3, 4].map(|world| searched.origin(world)),
        ["nominal", "sample", "sample", "best choices", "step"]
    );
    // A world of the sample that has the best choices is one of the sample.
    assert_eq!(outcome(1..=2, Some(2)).origin(2), "sample");
    #[expect(clippy::reversed_empty_ranges, reason = "an empty sample")]
    let found = outcome(1..=0, None);
    assert_eq!([0, 1].map(|world| found.origin(world)), ["nominal", "found"]);
}

#[test]
fn a_world_whose_runs_failed_stays_in_the_robustness_of_the_parts_that_it_misses() {
    let bed = bed(BED);
    let failed = |world, part: usize| {
        let mut one = evaluation(world, Stage::Sample, 4);
        one.means.fit[part] = Verdict::NotRun;
        one
    };
    let mut judged = evaluation(3, Stage::Sample, 4);
    judged.means.judged = Vec::new();
    let outcome = Outcome {
        worlds: vec![World::nominal(&bed.unknowns); 5],
        sample: 1..=4,
        evaluations: vec![
            failed(1, 0),
            failed(2, 0),
            judged,
            evaluation(4, Stage::Sample, 4),
        ],
        best_choices: None,
        fitted: NOMINAL,
    };
    let figures = Figures::of(&bed, &outcome);
    let of_part = |part: usize| {
        let part = &figures.parts[part];
        (part.holds, part.not_run, part.worlds, part.robustness())
    };
    assert_eq!(of_part(0), (2, 2, 4, Some(0.5)));
    assert_eq!(of_part(1), (4, 0, 4, Some(1.0)));
    // Judged rows were not to be run in one world.
    assert_eq!(of_part(4), (0, 0, 3, Some(0.0)));
    let text = text::summary(&bed, &outcome, &figures);
    let missed = format!("{}: runs failed in 2 of 4 random worlds", figures.parts[0].id);
    assert!(text.contains(&missed), "{text}");
}
