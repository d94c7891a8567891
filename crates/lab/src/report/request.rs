//! [`FigureRequest`]: a figure that a scenario asks for, with the results to draw it of.

use super::results::{CaseResults, Experiment, Flows};
use super::spec::FigureSpec;
use crate::metric::Measure;
use crate::result::{ALL_ROLES, VIEWER, slug};

/// A figure of the report.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    /// File name without its ending.
    pub(crate) name: String,
    pub(crate) svg: String,
    /// The paper's figure to compare it with, and what to look for.
    pub(crate) caption: String,
}

/// One request for figures.
pub(super) struct FigureRequest<'a> {
    pub(super) experiment: &'a Experiment,
    /// The cases that the request names.
    pub(super) cases: Vec<&'a CaseResults>,
    pub(super) spec: &'a FigureSpec,
    /// Most buckets of a line over time ([`Panels::buckets`](crate::figure::Panels)).
    pub(super) buckets: usize,
}

impl FigureRequest<'_> {
    pub(super) fn flows(&self) -> Flows<'_> {
        Flows {
            role: &self.spec.role,
            total: self.spec.total,
            window: self.spec.window.as_deref(),
        }
    }

    /// Label of a measure on an axis: which flows, and when.
    pub(super) fn label(&self, measure: Measure) -> String {
        let flows = self.flows();
        let whose = match (flows.role, flows.total) {
            (VIEWER, false) => String::new(),
            (VIEWER, true) => ", all viewers together".to_owned(),
            (ALL_ROLES, _) => " of all flows".to_owned(),
            (role, false) => format!(" of {role} flows"),
            (role, true) => format!(" of all {role} flows together"),
        };
        let when = flows.window.map(|window| format!(", {window}"));
        format!("{}{whose}{}", measure.label(), when.unwrap_or_default())
    }

    /// Name of a file that tells apart figures of the same metrics of other flows.
    pub(super) fn file_name_of_flows(&self, case: &str, (kind, metrics): (&str, &str)) -> String {
        let role = (self.spec.role != Flows::VIEWERS.role).then_some(self.spec.role.as_str());
        let names = [Some(kind), role, self.spec.window.as_deref(), Some(metrics)];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        file_name(self.experiment, case, &names.join("-"))
    }

    /// Title and caption of a figure of `case` that shows `shows`.
    pub(super) fn captioned(&self, case: &str, shows: &str) -> (String, String) {
        let worlds = self.experiment.worlds();
        let paper = self.spec.paper.as_ref().filter(|_| !worlds.is_empty());
        let place = match paper {
            Some(paper) if case.is_empty() => paper.clone(),
            Some(paper) => format!("{paper}, {case}"),
            None => crate::scenario::full_name(&self.experiment.name, case),
        };
        let shows = self.spec.title.as_deref().unwrap_or(shows);
        let beside = self.spec.paper.as_deref();
        let beside = beside.map(|figure| match paper {
            Some(_) => format!("{figure}: ours in the {} world.", worlds.join(" and the ")),
            None => format!("Compare with {figure}."),
        });
        let texts: Vec<String> = beside.into_iter().chain(self.spec.note.clone()).collect();
        (format!("{place}: {shows}"), texts.join(" "))
    }
}

pub(super) fn file_name(experiment: &Experiment, case: &str, what: &str) -> String {
    let names = [experiment.name.as_str(), case, what];
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    slug(&names.join("-"))
}

/// A heading within a sentence; `RTT` stays.
pub(super) fn uncapitalised(heading: &str) -> String {
    let mut letters = heading.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            format!("{}{}", first.to_lowercase(), &heading[first.len_utf8()..])
        }
        _ => heading.to_owned(),
    }
}
