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
    let mut rows = experiment
        .cases
        .iter()
        .flat_map(|case| &case.controllers)
        .flat_map(|one| one.trials.iter().flatten());
    let adaptive = rows.any(|row| row.adaptive.is_some());
    let seen: &[&str] = if adaptive {
        &["rebuffer_ratio", "mean_bitrate_bps", "loss_ratio"]
    } else {
        &["frames_discarded", "underflow_events", "lost_packets"]
    };
    let mut figures = Vec::new();
    let few = experiment.cases.len() <= FEW_CASES;
    if few {
        figures.push(spec(FigureKind::Bars, seen));
    }
    if experiment.cases.len() > 1 {
        figures.push(spec(FigureKind::Cases, seen));
    }
    if adaptive {
        figures.push(spec(FigureKind::Distribution, &["instant", "smoothed"]));
    }
    if adaptive && few {
        figures.push(spec(FigureKind::Switches, &[]));
    }
    if few {
        figures.push(spec(FigureKind::OverTime, &["window", "rtt", "buffer"]));
    }
    figures
}
