//! What is drawn of a scenario that asks for nothing.

use super::load::Experiment;
use crate::scenario::{FigureKind, FigureSpec};

/// More cases than this are shown side by side instead of one after the other.
const FEW_CASES: usize = 3;

/// The figures of `experiment`: its own, or those that suit its results.
pub(super) fn figures(experiment: &Experiment) -> Vec<FigureSpec> {
    if !experiment.figures.is_empty() {
        return experiment.figures.clone();
    }
    let spec = |kind, show: &[&str]| FigureSpec::new(kind, show);
    let seen = ["frames_discarded", "underflow_events", "lost_packets"];
    if experiment.cases.len() > FEW_CASES {
        return vec![spec(FigureKind::Cases, &seen)];
    }
    let mut figures = vec![spec(FigureKind::Bars, &seen)];
    if experiment.cases.len() > 1 {
        figures.push(spec(FigureKind::Cases, &seen));
    }
    figures.push(spec(FigureKind::OverTime, &["window", "rtt", "buffer"]));
    figures
}
