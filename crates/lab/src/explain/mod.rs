//! Why the viewers' experience differs, said in words that are computed from the records alone.
//!
//! Every sentence states measured quantities; which sentences appear depends on what was measured. Where the
//! records do not tell, the text says that rather than guessing.

use std::time::Duration;

use playrate_units::Bytes;

use crate::facts::{Facts, needed_window, path_suffices, spoiled, whole_bytes};
use crate::record::{Comparison, Outcome, PathFacts, RunRecord};
use crate::words::{count, percent, rate, size, time};

/// What came out and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// One sentence: who saw what.
    pub headline: String,
    /// The reasons, one thought each.
    pub reasons: Vec<String>,
    /// Why this comparison is not to be believed, if so.
    pub warning: Option<String>,
}

/// Sessions spoiled for less time than this apart count as the same.
const SAME: Duration = Duration::from_millis(250);

impl Explanation {
    /// Reads the records.
    pub fn of(comparison: &Comparison) -> Self {
        let facts: Vec<Facts> = comparison
            .runs
            .iter()
            .map(|run| Facts::of(run, comparison))
            .collect();
        let mut reasons = vec![demand(comparison)];
        reasons.extend(bridge(comparison, &facts));
        reasons.extend(
            comparison
                .runs
                .iter()
                .zip(&facts)
                .map(|(run, facts)| account(run, facts, &comparison.path)),
        );
        reasons.extend(difference(comparison, &facts));
        if comparison.runs.len() > 1 && comparison.runs.iter().any(|run| run.link.lost > 0) {
            reasons.push(
                "One session each is an anecdote: random losses hit every run at other moments. Another --seed gives \
                 another draw."
                    .to_owned(),
            );
        }
        Self {
            headline: headline(comparison),
            reasons,
            warning: warning(comparison),
        }
    }
}

/// The runs with the best and the worst experience, if they differ.
fn extremes(comparison: &Comparison) -> Option<(usize, usize)> {
    let badness = |index: &usize| {
        let run = &comparison.runs[*index];
        let failed = matches!(run.viewer.outcome, Outcome::Failed(_)) || run.viewer.startup.is_none();
        (failed, spoiled(run, comparison))
    };
    let best = (0..comparison.runs.len()).min_by_key(badness)?;
    let worst = (0..comparison.runs.len()).max_by_key(badness)?;
    let (good, bad) = (badness(&best), badness(&worst));
    (good.0 != bad.0 || bad.1.saturating_sub(good.1) >= SAME).then_some((best, worst))
}

fn headline(comparison: &Comparison) -> String {
    let saw = |run: &RunRecord| format!("{} {}", run.spec, experience(run));
    match (extremes(comparison), comparison.runs.as_slice()) {
        (Some((best, worst)), runs) => format!("{}; {}.", saw(&runs[best]), saw(&runs[worst])),
        (None, []) => "Nothing was run.".to_owned(),
        (None, [only]) => format!("{}.", saw(only)),
        (None, runs) => {
            let names: Vec<&str> = runs.iter().map(|run| run.spec.as_str()).collect();
            format!(
                "Viewers of {} saw the same, to within a quarter of a second: each {}.",
                names.join(" and "),
                experience(&runs[0])
            )
        }
    }
}

/// What one viewer saw, as the rest of a sentence.
fn experience(run: &RunRecord) -> String {
    let viewer = &run.viewer;
    if let Outcome::Failed(reason) = &viewer.outcome {
        return format!("failed ({reason})");
    }
    if viewer.startup.is_none() {
        return "never showed a picture".to_owned();
    }
    let discarded = match viewer.discarded {
        0 => String::new(),
        some => format!(" and lost {}", count(some, "picture", "pictures")),
    };
    let seen = match viewer.underflows {
        0 if viewer.discarded == 0 => "played without a freeze".to_owned(),
        0 => format!("never froze{discarded}"),
        1 => format!("froze once, for {}{discarded}", time(viewer.frozen)),
        n => format!(
            "froze {n} times, for {} altogether{discarded}",
            time(viewer.frozen)
        ),
    };
    if viewer.outcome == Outcome::Stopped {
        return format!("{seen} until it was stopped after {}", time(viewer.length));
    }
    seen
}

/// What the path asks of a sender.
fn demand(comparison: &Comparison) -> String {
    let (title, path) = (&comparison.title, &comparison.path);
    let capable = if path_suffices(path, title.average_rate) {
        format!("The bottleneck's {} would be enough", rate(path.rate))
    } else {
        format!(
            "The bottleneck's {} is not enough for that, whoever sends",
            rate(path.rate)
        )
    };
    let depth = path.queue.as_u64() as f64 / path.bdp().as_u64().max(1) as f64;
    let depth = format!("{depth:.2}");
    let depth = depth.trim_end_matches('0').trim_end_matches('.');
    format!(
        "The title needs {} on average, which at {} of RTT is {} in flight. {capable}; its queue holds {}, \
         {depth} × the bandwidth-delay product of {}.",
        rate(title.average_rate),
        time(path.rtt),
        size(needed_window(comparison)),
        size(path.queue),
        size(path.bdp()),
    )
}

/// Where queue overflow makes the cuts: what rate is left right after one. At an overflow, bandwidth-delay product and
/// queue are in flight, and the queue is empty again once what is left has been sent.
fn bridge(comparison: &Comparison, facts: &[Facts]) -> Option<String> {
    let (path, title) = (&comparison.path, &comparison.title);
    let overflowed: u64 = comparison.runs.iter().map(|run| run.link.overflowed).sum();
    let random: u64 = comparison.runs.iter().map(|run| run.link.lost).sum();
    if overflowed <= random {
        return None;
    }
    let full = path.bdp() + path.queue;
    let left: Vec<String> = comparison
        .runs
        .iter()
        .zip(facts)
        .filter_map(|(run, facts)| {
            let kept = facts.kept?;
            let left = whole_bytes(full.as_u64() as f64 * kept)
                .per(path.rtt)?
                .min(path.rate);
            Some(format!(
                "{} keeps {} and sends at {}",
                run.spec,
                percent(kept),
                rate(left)
            ))
        })
        .collect();
    (!left.is_empty()).then(|| {
        format!(
            "Losses came mostly from the full queue, when {} are in flight. Right after a cut from there {}; the title \
             needs {}.",
            size(full),
            left.join(", "),
            rate(title.average_rate)
        )
    })
}

/// What happened to one run.
fn account(run: &RunRecord, facts: &Facts, path: &PathFacts) -> String {
    let cause = if facts.cuts == 0 {
        "nothing ever made it cut its window".to_owned()
    } else {
        let kept = facts.kept.map_or_else(String::new, |kept| {
            format!(", to {} of its size on average", percent(kept))
        });
        format!(
            "{} ({}, {}) made it cut its window {}{kept}{}",
            count(run.link.overflowed + run.link.lost, "lost packet", "lost packets"),
            count(
                run.link.overflowed,
                "overflow of the queue",
                "overflows of the queue"
            ),
            count(run.link.lost, "random loss", "random losses"),
            times(facts.cuts),
            recovery(facts)
        )
    };
    let queueing = facts.queueing.map_or_else(String::new, |queueing| {
        format!(", with {} of queueing at the median", time(queueing))
    });
    format!(
        "{}: {cause}. The window averaged {} and was smaller than what the title needs for {} of the time. Data \
         arrived at {}, {} of the bottleneck's rate{queueing}.",
        run.spec,
        size(facts.mean_window),
        percent(facts.starved),
        rate(facts.throughput),
        percent(facts.throughput.as_mbps() / path.rate.as_mbps().max(1e-9)),
    )
}

fn times(number: usize) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

fn recovery(facts: &Facts) -> String {
    match (facts.recovery, facts.cuts - facts.recovered.min(facts.cuts)) {
        (None, _) => "; it never came back to its size before the cut".to_owned(),
        (Some(mean), 0) => format!("; coming back to the former size took {} on average", time(mean)),
        (Some(mean), missed) => format!(
            "; coming back to the former size took {} on average where it did, and {missed} of {} times it did not",
            time(mean),
            facts.cuts
        ),
    }
}

/// How the best and the worst run differ, the largest ratio first.
fn difference(comparison: &Comparison, facts: &[Facts]) -> Option<String> {
    let (best, worst) = match extremes(comparison) {
        Some(pair) => pair,
        None if comparison.runs.len() > 1 => {
            return Some("On this path the controllers differ too little for a viewer to notice.".to_owned());
        }
        None => return None,
    };
    let names = (&comparison.runs[best].spec, &comparison.runs[worst].spec);
    let (good, bad) = (&facts[best], &facts[worst]);
    let mut contrasts = contrasts(good, bad);
    contrasts.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    let told: Vec<String> = contrasts
        .iter()
        .filter(|contrast| contrast.ratio >= NOTABLE)
        .take(3)
        .map(|contrast| {
            format!(
                "{} ({} for {}, {} for {})",
                contrast.what, contrast.good, names.0, contrast.bad, names.1
            )
        })
        .collect();
    let outcome = format!(
        "On average {} delivered {}, {} delivered {}",
        names.0,
        rate(good.throughput),
        names.1,
        rate(bad.throughput)
    );
    Some(if told.is_empty() {
        format!(
            "None of windows, cuts, recoveries or delays differs by more than a tenth between {} and {}: the \
             difference is one of timing, and another seed may turn it round. {outcome}.",
            names.0, names.1
        )
    } else {
        format!("Where they differ most: {}. {outcome}.", told.join("; "))
    })
}

/// Ratios below this are not worth a word.
const NOTABLE: f64 = 1.1;

struct Contrast {
    what: &'static str,
    good: String,
    bad: String,
    /// The larger of the two over the smaller.
    ratio: f64,
}

fn contrasts(good: &Facts, bad: &Facts) -> Vec<Contrast> {
    let of_times = |what, good: Option<Duration>, bad: Option<Duration>| {
        let (good, bad) = (good?, bad?);
        contrast(what, good.as_secs_f64(), bad.as_secs_f64(), time(good), time(bad))
    };
    let of_sizes = |what, good: Bytes, bad: Bytes| {
        let (a, b) = (good.as_u64() as f64, bad.as_u64() as f64);
        contrast(what, a, b, size(good), size(bad))
    };
    let given_up = |facts: &Facts| facts.kept.map(|kept| 1.0 - kept);
    let cut_share = given_up(good).zip(given_up(bad)).and_then(|(a, b)| {
        contrast(
            "share of the window given up at a cut",
            a,
            b,
            percent(a),
            percent(b),
        )
    });
    let cuts = contrast(
        "number of cuts",
        good.cuts as f64,
        bad.cuts as f64,
        good.cuts.to_string(),
        bad.cuts.to_string(),
    );
    [
        of_sizes("mean window", good.mean_window, bad.mean_window),
        cut_share,
        cuts,
        of_times("time to come back after a cut", good.recovery, bad.recovery),
        of_times("time until the first cut", good.first_cut, bad.first_cut),
        of_sizes("window reached at the start", good.startup_peak, bad.startup_peak),
        of_times("median RTT", good.median_rtt, bad.median_rtt),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn contrast(what: &'static str, a: f64, b: f64, good: String, bad: String) -> Option<Contrast> {
    (a > 0.0 && b > 0.0).then(|| Contrast {
        what,
        good,
        bad,
        ratio: a.max(b) / a.min(b),
    })
}

fn warning(comparison: &Comparison) -> Option<String> {
    let flaws: Vec<String> = comparison
        .runs
        .iter()
        .flat_map(|run| {
            run.link
                .flaws
                .iter()
                .map(move |flaw| format!("{}: {flaw}", run.spec))
        })
        .collect();
    (!flaws.is_empty()).then(|| {
        format!(
            "Do not trust these numbers: this machine was too busy for the path to be all the time what it was asked to \
             be ({}). Run it again when nothing else runs, or with real-time priority (chrt -r 10).",
            flaws.join("; ")
        )
    })
}

#[cfg(test)]
mod tests;
