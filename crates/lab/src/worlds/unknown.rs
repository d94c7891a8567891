//! [`Unknown`]: one parameter that papers leave open, and how a choice for it acts; [`World`]: a choice for each.

use std::collections::BTreeSet;

use playrate_cc::ControllerSpec;
use playrate_cc::registry::{Key, Registry};
use playrate_netsim::Seed;
use playrate_transport::ControllerChoice;
use toml::{Table, Value};

use super::BedScenario;
use crate::scenario::{Changes, Scenario, ScenarioError, Setting};

/// A parameter of a test bed that its papers do not give.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unknown {
    pub(super) name: String,
    /// Source of the candidates, or the reason for them.
    pub(super) why: String,
    pub(super) effect: Effect,
    /// Names of the only scenarios on which it acts; `None` is all.
    pub(super) only: Option<BTreeSet<String>>,
    /// The value that scenarios have without a choice, if it can be written down.
    pub(super) nominal: Option<Value>,
    pub(super) choices: Vec<Value>,
    /// True if it acts on a run that decides a fitted row.
    pub(super) fitted: bool,
}

/// The place at which a choice is put.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    /// A key of the scenario.
    Key(String),
    /// An argument of the controllers whose algorithm or alias is in `of`.
    Argument { name: String, of: Vec<String> },
    /// A component of the controllers whose algorithm or alias is in `of`.
    Component { key: Key, of: Vec<String> },
}

impl Unknown {
    /// Returns true if a choice changes runs of `scenario`.
    pub(super) fn acts_on(&self, scenario: &BedScenario) -> bool {
        let mut controllers = scenario.controllers.iter();
        self.includes(&scenario.name)
            && match &self.effect {
                Effect::Key(_) => true,
                _ => self.acts_on_bulk(scenario) || controllers.any(|one| self.acts_on_controller(one)),
            }
    }

    /// Returns true if a choice changes the controller that `scenario` names for its downloads.
    pub(super) fn acts_on_bulk(&self, scenario: &BedScenario) -> bool {
        let own = scenario.bulk.as_ref().and_then(|name| name.parse().ok());
        own.is_some_and(|controller| self.acts_on_controller(&controller))
    }

    /// Returns true if it acts on scenarios of this name.
    fn includes(&self, scenario: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(scenario))
    }

    /// Returns true if a choice changes `controller`.
    pub(super) fn acts_on_controller(&self, controller: &ControllerChoice) -> bool {
        let ControllerChoice::Spec(spec) = controller else {
            return false;
        };
        match &self.effect {
            Effect::Key(_) => false,
            Effect::Argument { of, .. } | Effect::Component { of, .. } => {
                of.iter().any(|name| is_called(spec, name))
            }
        }
    }

    /// The text of choice `choice`; that of the nominal value for `None`.
    pub(super) fn text(&self, choice: Option<usize>) -> String {
        self.value(choice).map_or_else(|| AS_IT_IS.to_owned(), text)
    }

    /// The value of choice `choice`; for `None` the nominal one, if it can be written down.
    pub(super) fn value(&self, choice: Option<usize>) -> Option<&Value> {
        match choice {
            Some(choice) => self.choices.get(choice),
            None => self.nominal.as_ref(),
        }
    }

    /// The choice that has this value, with `None` for the nominal one.
    ///
    /// # Errors
    /// If it is not a candidate.
    pub(super) fn choice_of(&self, value: &Value) -> Result<Option<usize>, String> {
        if self.nominal.as_ref() == Some(value) {
            return Ok(None);
        }
        let place = self.choices.iter().position(|choice| choice == value);
        place.map(Some).ok_or_else(|| {
            let nominal = self
                .nominal
                .iter()
                .filter(|nominal| !self.choices.contains(nominal));
            let known: Vec<String> = self.choices.iter().chain(nominal).map(Value::to_string).collect();
            format!(
                "{value} is not a candidate of `{}`; expected one of: {}",
                self.name,
                known.join(", ")
            )
        })
    }

    /// Choices that a search may take, with `None` for the one that is the nominal value.
    pub(super) fn candidates(&self) -> impl Iterator<Item = Option<usize>> {
        (0..self.choices.len()).map(|choice| self.canonical(choice))
    }

    /// `None` if the choice is the nominal value, which changes nothing.
    fn canonical(&self, choice: usize) -> Option<usize> {
        let is_nominal = self.nominal.is_some() && self.choices.get(choice) == self.nominal.as_ref();
        (!is_nominal).then_some(choice)
    }

    /// The value that `scenario` has in place of the nominal one, if the two differ and can be compared.
    pub(super) fn differs_from_nominal(&self, scenario: &BedScenario) -> Option<String> {
        let nominal = self.nominal.as_ref()?;
        if let Effect::Key(key) = &self.effect {
            let cases = scenario.source.scenarios(&Changes::default()).ok()?;
            let has = value_in_file(cases.first()?, key)?;
            return (has != *nominal).then(|| text(&has));
        }
        let mut mine = scenario
            .controllers
            .iter()
            .filter(|one| self.acts_on_controller(one));
        let differs =
            |one: &&ControllerChoice| self.changed_to(one, nominal).is_ok_and(|other| other != **one);
        mine.find(differs).map(ToString::to_string)
    }

    /// Checks that `scenario` can be read, and its controllers made, with a choice.
    pub(super) fn try_choice(&self, choice: usize, scenario: &BedScenario) -> Result<(), String> {
        let Some(value) = self.choices.get(choice) else {
            return Ok(());
        };
        if let Effect::Key(key) = &self.effect {
            let changes = Changes {
                quick: true,
                settings: vec![Setting::new(key.clone(), value.clone())],
                ..Changes::default()
            };
            let read = scenario.source.scenarios(&changes);
            return read.map(|_| ()).map_err(|error| match error {
                ScenarioError::At {
                    key: Some(key),
                    problem,
                    ..
                } => format!("`{key}`: {problem}"),
                error => error.to_string(),
            });
        }
        let mine = scenario
            .controllers
            .iter()
            .filter(|one| self.acts_on_controller(one));
        mine.map(|one| self.changed_to(one, value))
            .try_for_each(|made| made.map(|_| ()))
    }

    /// `controller` with `value`, if the unknown acts on it.
    fn changed_to(&self, controller: &ControllerChoice, value: &Value) -> Result<ControllerChoice, String> {
        let ControllerChoice::Spec(spec) = controller else {
            return Ok(controller.clone());
        };
        let changed = match &self.effect {
            Effect::Key(_) => return Ok(controller.clone()),
            Effect::Argument { name, .. } => spec.with_argument(name, &text(value)),
            Effect::Component { key, .. } => spec.with_component(*key, &text(value)),
        };
        changed
            .map(ControllerChoice::Spec)
            .map_err(|error| error.to_string())
    }

    /// All values in words: `50packets, 100packets`.
    pub(super) fn choices_text(&self) -> String {
        texts(&self.choices).join(", ")
    }
}

/// The values of a scenario's keys, as its file writes them; without those that cases set.
fn value_in_file(scenario: &Scenario, key: &str) -> Option<Value> {
    if scenario.case_sets.iter().any(|setting| setting.key == key) {
        return None;
    }
    let table: Table = toml::from_str(&scenario.text).ok()?;
    let mut parts = key.split('.');
    let mut value = table.get(parts.next()?)?.clone();
    for part in parts {
        value = value.get(part)?.clone();
    }
    Some(value)
}

/// Names of unknowns and the texts of their choices, for listings.
fn texts(values: &[Value]) -> Vec<String> {
    values.iter().map(text).collect()
}

/// A choice as people write it: strings without quotes, lists with commas.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => texts(list).join(", "),
        other => other.to_string(),
    }
}

/// Text of a nominal value that the file does not give.
const AS_IT_IS: &str = "as it is";

/// Returns true if `spec` is of the algorithm or alias `name`: it has the components that the alias names.
fn is_called(spec: &ControllerSpec, name: &str) -> bool {
    let registry = Registry::installed();
    if spec.algorithm().name() == name {
        return true;
    }
    let Some(alias) = registry.aliases().find(|alias| alias.name == name) else {
        return false;
    };
    let Ok(named) = registry.parse(alias.expansion) else {
        return false;
    };
    let algorithm = named.algorithm();
    let has = |key: Key| {
        let of = |spec: &ControllerSpec| spec.component(key).map(|(component, _)| component.name());
        of(&named) == Some(algorithm.default_component(key)) || of(&named) == of(spec)
    };
    spec.algorithm().name() == algorithm.name() && Key::ALL.into_iter().all(has)
}

/// A choice for each unknown of a test bed, in the order of its file; `None` leaves the nominal value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct World(Vec<Option<usize>>);

impl World {
    /// The world that leaves every scenario as its file has it.
    pub(super) fn nominal(unknowns: &[Unknown]) -> Self {
        Self(vec![None; unknowns.len()])
    }

    /// World `number` of the sample with this seed: every unknown is drawn uniformly from its choices, on its own.
    pub(super) fn random(unknowns: &[Unknown], seed: u64, number: usize) -> Self {
        let seed = Seed::new(seed).child(&format!("world {number}"));
        let draw = |unknown: &Unknown| {
            // A child's number is evenly spread over 64 bits.
            let drawn = u128::from(seed.child(&unknown.name).number()) * unknown.choices.len() as u128;
            unknown.canonical(usize::try_from(drawn >> 64).unwrap_or(0))
        };
        Self(unknowns.iter().map(draw).collect())
    }

    /// The choice for the unknown at `place`.
    pub(super) fn choice(&self, place: usize) -> Option<usize> {
        self.0.get(place).copied().flatten()
    }

    /// The same world with another choice for the unknown at `place`.
    pub(super) fn with(&self, place: usize, choice: Option<usize>) -> Self {
        let mut other = self.clone();
        if let Some(slot) = other.0.get_mut(place) {
            *slot = choice;
        }
        other
    }

    /// The worlds that differ from this one in the choice for the unknown at `place`.
    pub(super) fn beside(&self, place: usize, unknown: &Unknown) -> Vec<Self> {
        let others = unknown
            .candidates()
            .filter(|choice| *choice != self.choice(place));
        others.map(|choice| self.with(place, choice)).collect()
    }

    /// The same world with the nominal value of every unknown on which no fitted row depends.
    pub(super) fn where_fitted(&self, unknowns: &[Unknown]) -> Self {
        let choices = unknowns.iter().zip(&self.0);
        Self(
            choices
                .map(|(unknown, choice)| choice.filter(|_| unknown.fitted))
                .collect(),
        )
    }

    /// Pairs of each unknown and the value chosen for it, without those that stay nominal.
    fn changes<'a>(&'a self, unknowns: &'a [Unknown]) -> impl Iterator<Item = (&'a Unknown, &'a Value)> {
        let chosen = unknowns.iter().zip(&self.0);
        chosen.filter_map(|(unknown, choice)| Some((unknown, unknown.choices.get((*choice)?)?)))
    }

    /// The settings that make `scenario` one of this world.
    ///
    /// # Errors
    /// If the controller of its downloads does not go with the choices.
    pub(super) fn settings(
        &self,
        unknowns: &[Unknown],
        scenario: &BedScenario,
    ) -> Result<Vec<Setting>, String> {
        let mine = self
            .changes(unknowns)
            .filter(|(unknown, _)| unknown.includes(&scenario.name));
        let mut settings: Vec<Setting> = mine
            .filter_map(|(unknown, value)| match &unknown.effect {
                Effect::Key(key) => Some(Setting::new(key.clone(), value.clone())),
                _ => None,
            })
            .collect();
        if let Some(bulk) = &scenario.bulk {
            let own: ControllerChoice = bulk
                .parse()
                .map_err(|error: playrate_cc::SpecError| error.to_string())?;
            let changed = self.controller(unknowns, &own, &scenario.name)?;
            if changed != own {
                settings.push(Setting::new("bulk.controller", changed.to_string()));
            }
        }
        Ok(settings)
    }

    /// The controller of this world in place of `nominal` in the scenario called `scenario`.
    ///
    /// # Errors
    /// If it does not go with the choices.
    pub(super) fn controller(
        &self,
        unknowns: &[Unknown],
        nominal: &ControllerChoice,
        scenario: &str,
    ) -> Result<ControllerChoice, String> {
        let mine = self
            .changes(unknowns)
            .filter(|(unknown, _)| unknown.includes(scenario));
        let mut mine = mine.filter(|(unknown, _)| unknown.acts_on_controller(nominal));
        mine.try_fold(nominal.clone(), |made, (unknown, value)| {
            unknown.changed_to(&made, value)
        })
    }

    /// Name of each unknown and the text of its value.
    pub(super) fn texts(&self, unknowns: &[Unknown]) -> Vec<(String, String)> {
        let chosen = unknowns.iter().zip(&self.0);
        chosen
            .map(|(unknown, choice)| (unknown.name.clone(), unknown.text(*choice)))
            .collect()
    }
}
