//! The cases of a scenario: the same experiment with some values in place of others.

use serde::Deserialize;
use toml::{Spanned, Table};

use super::changes::Setting;
use super::error::{Applied, Blame, Origin};
use super::text::{Text, Time};
use super::{Changes, ScenarioError};

/// What of a file is read before its cases are told apart; the rest is [`File`](super::file::File).
#[derive(Debug, Deserialize)]
struct Outline {
    #[serde(default)]
    case: Vec<Spanned<CaseTable>>,
    #[serde(default)]
    quick: Option<Spanned<QuickTable>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseTable {
    name: Spanned<String>,
    /// What this case is about.
    about: Option<String>,
    /// Values in place of those of the scenario.
    #[serde(default)]
    set: Table,
}

/// What `--quick` makes of a scenario.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct QuickTable {
    trials: Option<u32>,
    duration: Option<Text<Time>>,
    /// The only cases that are run.
    cases: Option<Vec<Spanned<String>>>,
    /// Values in place of those of the scenario and of its cases.
    set: Table,
}

/// A case with everything that it changes.
#[derive(Debug)]
pub(super) struct Case {
    /// Empty if the scenario has no cases.
    pub(super) name: String,
    pub(super) about: Option<String>,
    pub(super) applied: Vec<Applied>,
    /// Trials that `--quick` asks for.
    pub(super) quick_trials: Option<u32>,
}

/// The cases of a scenario in the order of the file, or the one that it is itself.
pub(super) fn cases(blame: Blame<'_>, changes: &Changes) -> Result<Vec<Case>, ScenarioError> {
    let outline: Outline = toml::from_str(blame.text).map_err(|error| blame.toml(&error))?;
    let names: Vec<&str> = outline
        .case
        .iter()
        .map(|case| case.get_ref().name.get_ref().as_str())
        .collect();
    for (index, case) in outline.case.iter().enumerate() {
        let name = &case.get_ref().name;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
            let problem = format!(
                "`{}` is no name of a case: letters, digits, `-` and `.` make one",
                name.get_ref()
            );
            return Err(blame.at(name.span(), problem));
        }
        if names[..index].contains(&name.get_ref().as_str()) {
            let problem = format!(
                "there is a case `{}` already: each has a name of its own",
                name.get_ref()
            );
            return Err(blame.at(name.span(), problem));
        }
    }
    let quick = outline.quick.as_ref().filter(|_| changes.quick);
    let chosen = outline
        .quick
        .as_ref()
        .and_then(|quick| quick.get_ref().cases.as_ref());
    for name in chosen.into_iter().flatten() {
        if !names.contains(&name.get_ref().as_str()) {
            let problem = format!(
                "there is no case `{}`; there are {}",
                name.get_ref(),
                names.join(", ")
            );
            return Err(blame.at(name.span(), problem));
        }
    }
    let wanted = |name: &str| match chosen.filter(|_| changes.quick) {
        Some(chosen) => chosen.iter().any(|one| one.get_ref() == name),
        None => true,
    };
    let mut all: Vec<Case> = outline
        .case
        .iter()
        .filter(|case| wanted(case.get_ref().name.get_ref()))
        .map(|case| {
            let line = blame.line(case.span().start);
            let table = case.get_ref();
            let origin = Origin::Case(table.name.get_ref().clone());
            Case {
                name: table.name.get_ref().clone(),
                about: table.about.clone(),
                applied: Applied::all(Setting::of_table(&table.set), &origin, Some(line)),
                quick_trials: None,
            }
        })
        .collect();
    if outline.case.is_empty() {
        all.push(Case {
            name: String::new(),
            about: None,
            applied: Vec::new(),
            quick_trials: None,
        });
    }
    for case in &mut all {
        if let Some(quick) = quick {
            let line = Some(blame.line(quick.span().start));
            let table = quick.get_ref();
            let mut settings = Vec::new();
            if let Some(duration) = &table.duration {
                let text = playrate_units::duration::display(duration.0.0).to_string();
                settings.push(Setting::new("title.duration", text));
            }
            settings.extend(Setting::of_table(&table.set));
            case.applied.extend(Applied::all(settings, &Origin::Quick, line));
            case.quick_trials = table.trials;
        }
        let asked = Applied::all(changes.settings.clone(), &Origin::CommandLine, None);
        case.applied.extend(asked);
    }
    Ok(all)
}

/// The text of the scenario with everything of `case` in place.
pub(super) fn effective(blame: Blame<'_>, case: &Case) -> Result<String, ScenarioError> {
    let mut table: Table = toml::from_str(blame.text).map_err(|error| blame.toml(&error))?;
    table.remove("case");
    table.remove("quick");
    for applied in &case.applied {
        applied
            .setting
            .apply(&mut table)
            .map_err(|error| blame.applied(applied, error.to_string()))?;
    }
    toml::to_string(&table).map_err(|error| blame.at(0..0, error.to_string()))
}
