//! Known values, and the share of intervals that contain the true mean.

use rstest::rstest;

use super::*;

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6 * other.abs().max(1.0)
}

#[test]
fn few_trials_have_students_interval() {
    // Tables: t(0.975) = 12.70620, 4.302653, 3.182446 with 1, 2 and 3 degrees of freedom.
    for (values, half) in [
        (vec![1.0, 3.0], 12.706_204_736),
        (vec![1.0, 2.0, 3.0], 4.302_652_730 / 3_f64.sqrt()),
        (
            vec![1.0, 1.0, 3.0, 3.0],
            3.182_446_305 * (4.0_f64 / 3.0 / 4.0).sqrt(),
        ),
    ] {
        let interval = Interval::of(&values).unwrap();
        assert_eq!(interval.method, Method::StudentT);
        assert!(close(interval.high - interval.mean, half), "{interval:?} {half}");
        assert!(close(interval.mean - interval.low, half), "{interval:?} {half}");
    }
}

#[test]
fn one_trial_has_no_interval_and_equal_trials_have_one_of_width_zero() {
    let one = Interval::of(&[3.0]).unwrap();
    assert_eq!((one.low, one.high), (f64::NEG_INFINITY, f64::INFINITY));
    // The sum of ten times 0.1 is not 1.
    let same = Interval::of(&[0.1; 10]).unwrap();
    assert_eq!((same.low, same.mean, same.high), (0.1, 0.1, 0.1));
    assert!(same.is_constant());
    assert_eq!(Interval::of(&[]), None);
    assert_eq!(Interval::of(&[1.0, f64::NAN]), None);
}

#[test]
fn the_bootstrap_is_the_same_every_time_and_as_wide_as_students_interval() {
    let values: Vec<f64> = (0..20_u32).map(|i| f64::from(i * 7 % 20)).collect();
    let interval = Interval::of(&values).unwrap();
    assert_eq!(interval.method, Method::Bootstrap);
    assert_eq!(Some(interval), Interval::of(&values));
    // sd = √35, t(0.975; 19) = 2.093024.
    let half = 2.093_024 * (35.0_f64 / 20.0).sqrt();
    let width = interval.high - interval.low;
    assert!((width / (2.0 * half) - 1.0).abs() < 0.04, "{width} {half}");
    assert!((f64::midpoint(interval.high, interval.low) - 9.5).abs() < 0.1 * half);
}

#[test]
fn percentiles_are_expanded_by_few_trials() {
    // Φ(−t(0.975; n − 1) · √(n / (n − 1))) with t from tables: 2.262, 2.093.
    for (count, share) in [(10, 0.0086), (20, 0.0159)] {
        assert!((tail(count) - share).abs() < 0.000_2, "{count}: {}", tail(count));
    }
}

#[test]
fn quantiles_lie_between_neighbours() {
    let sorted = [1.0, 2.0, 4.0, 8.0];
    for (share, value) in [(0.0, 1.0), (0.5, 3.0), (1.0, 8.0)] {
        assert!(close(quantile(&sorted, share), value), "{share}");
    }
    assert!(quantile(&[], 0.5).is_nan());
}

#[test]
fn every_trial_is_drawn_as_often_as_another() {
    let mut drawn = [0_u32; 7];
    resample(7, 10_000, 1, |indices| {
        for index in indices {
            drawn[*index] += 1;
        }
        0.0
    });
    // Binomial with mean 10,000 and standard deviation 93.
    assert!(
        drawn.iter().all(|count| (9_600..10_400).contains(count)),
        "{drawn:?}"
    );
}

/// Share of 2,000 experiments in which the interval of `count` draws contains their true mean.
fn coverage(count: usize, draw: impl Fn(f64) -> f64, mean: f64) -> f64 {
    let mut generator = Pcg32::new(1, 1);
    let mut held = 0_u32;
    for experiment in 0..2_000 {
        let values: Vec<f64> = (0..count)
            .map(|_| draw((f64::from(generator.next_u32()) + 0.5) / 4_294_967_296.0))
            .collect();
        let interval = Interval::with(&values, 500, experiment).unwrap();
        held += u32::from(interval.low <= mean && mean <= interval.high);
    }
    f64::from(held) / 2_000.0
}

#[rstest]
#[case::two(2)]
#[case::four(4)]
#[case::five(5)]
#[case::eight(8)]
#[case::ten(10)]
#[case::twenty(20)]
fn nineteen_in_twenty_intervals_of_normal_trials_contain_the_mean(#[case] count: usize) {
    let normal = Normal::standard();
    let share = coverage(count, |uniform| normal.inverse_cdf(uniform), 0.0);
    assert!((0.92..=0.97).contains(&share), "{count} trials: {share}");
}

#[rstest]
#[case::five(5, 0.86)]
#[case::eight(8, 0.88)]
#[case::ten(10, 0.89)]
#[case::twenty(20, 0.91)]
fn nearly_as_many_intervals_of_skewed_trials_do(#[case] count: usize, #[case] least: f64) {
    let share = coverage(count, |uniform| -uniform.ln(), 1.0);
    assert!((least..=0.97).contains(&share), "{count} trials: {share}");
}

#[test]
fn controllers_are_compared_seed_by_seed() {
    // The seeds differ far more than the controllers do.
    let sample = |extra: f64| -> Sample {
        (1..=10_u32)
            .map(|seed| (u64::from(seed), f64::from(seed) * 10.0 + extra))
            .collect()
    };
    let (mut one, other) = (sample(2.0), sample(0.0));
    one.insert(99, 1e9);
    let paired = Paired::of(&one, &other).unwrap();
    assert_eq!((paired.difference.mean, paired.difference.low), (2.0, 2.0));
    assert!(paired.difference.is_constant());
    let ratio = paired.ratio.unwrap();
    assert!(close(ratio.value, 570.0 / 550.0));
    let (low, high) = ratio.ends.unwrap();
    assert!(low > 1.0 && low < ratio.value && ratio.value < high && high < 1.2);
    assert_eq!(Paired::of(&one, &Sample::new()), None);
}

#[test]
fn an_equal_difference_twice_is_chance_if_the_numbers_vary() {
    let sample = |values: [f64; 2]| -> Sample { (1..).zip(values).collect() };
    let paired = |one, other| Paired::of(&sample(one), &sample(other)).unwrap().difference;
    let chance = paired([14.0, 17.0], [11.0, 14.0]);
    assert!(
        chance.low < 0.0 && chance.high > 6.0 && !chance.is_constant(),
        "{chance:?}"
    );
    assert!(paired([14.0, 14.0], [11.0, 11.0]).is_constant());
}

#[test]
fn there_is_no_ratio_to_zero() {
    let sample = |value: f64| -> Sample { (1..=5).map(|seed| (seed, value)).collect() };
    assert!(Paired::of(&sample(1.0), &sample(0.0)).unwrap().ratio.is_none());
    let ratio = Paired::of(&sample(3.0), &sample(2.0)).unwrap().ratio.unwrap();
    assert_eq!((ratio.value, ratio.ends), (1.5, Some((1.5, 1.5))));
}

#[test]
fn an_effect_counts_pairs_in_which_one_has_more() {
    assert_eq!(cliffs_delta(&[4.0, 5.0], &[1.0, 2.0, 3.0]), Some(1.0));
    assert_eq!(cliffs_delta(&[1.0, 2.0], &[1.0, 2.0]), Some(0.0));
    // 9 pairs: 1 more, 6 less, 2 equal.
    assert_eq!(cliffs_delta(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]), Some(-5.0 / 9.0));
    assert_eq!(cliffs_delta(&[], &[1.0]), None);
    assert_eq!(
        (Effect::of(-0.2), Effect::of(0.5).name()),
        (Effect::Small, "large")
    );
}

#[test]
fn a_spread_is_that_of_a_sample() {
    let spread = Spread::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
    assert!((spread.mean - 5.0).abs() < 1e-12);
    assert!((spread.sd - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    assert_eq!((spread.min, spread.max, spread.count), (2.0, 9.0, 8));
    assert_eq!(spread.text(0), "5.0 ± 2.1 (2 to 9)");
    assert_eq!(Spread::of([3.0]).unwrap().text(2), "3.00");
    assert_eq!(Spread::of([]), None);
}
