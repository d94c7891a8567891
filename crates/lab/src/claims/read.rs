//! The claims of a scenario file, read from its `[[claim]]`, `[groups]` and `[[beside]]` tables.

use std::collections::BTreeMap;

use playrate_cc::registry::split_list;
use playrate_transport::ControllerChoice;

use super::check::{Check, Claim, Comparison, DEVIATION, Flow, Reading, Substitution, Superlative, Term};
use super::syntax::{NamedCheck, NamedReading, NamedSuperlative, parse};
use crate::metric::{EXCESS, METRICS, Measure};
use crate::result::{ALL_ROLES, BULK, IDEAL, VIEWER};
use crate::scenario::file::{BesideTable, ClaimTable};
use crate::scenario::{BUILT_IN, Document, ScenarioError};
use crate::sim::Window;

/// Roles of flows besides that of viewers.
const OTHER_ROLES: [&str; 2] = [BULK, ALL_ROLES];

#[derive(Clone, Debug, Default)]
pub(crate) struct ScenarioClaims {
    pub(crate) scenario: String,
    pub(crate) claims: Vec<Claim>,
    /// Controllers with which all claims are reported once more.
    pub(crate) beside: Vec<Substitution>,
}

/// Reads the claims of a scenario.
///
/// # Errors
/// If a claim has no row, a check cannot be read, or a name in it is unknown.
pub(crate) fn read(document: &Document<'_>) -> Result<ScenarioClaims, ScenarioError> {
    let map = document.source_map();
    let file = document.first_file()?;
    let controllers = file.controllers.get_ref().iter();
    let groups = document.annotations.groups.iter();
    let scope = Scope {
        controllers: controllers.map(|text| text.0.to_string()).collect(),
        ideal: file.ideal.unwrap_or(true),
        cases: document.case_names().map(str::to_owned).collect(),
        groups: groups
            .map(|(name, list)| (name.clone(), list.get_ref().clone()))
            .collect(),
        windows: file.measure.windows.iter().map(|window| window.0).collect(),
    };
    for (name, list) in &document.annotations.groups {
        if name.parse::<ControllerChoice>().is_ok() {
            let problem = format!("the group `{name}` has the name of a controller: choose another name");
            return Err(map.at(list.span(), problem));
        }
    }
    let mut claims: Vec<Claim> = Vec::new();
    for table in &document.annotations.claim {
        let id = table.id.get_ref();
        if claims.iter().any(|known| known.id == *id) {
            let problem =
                format!("duplicate claim `{id}`: every claim needs an id of its own, such as {id}/more");
            return Err(map.at(table.id.span(), problem));
        }
        let row = id.split_once('/').map_or(id.as_str(), |(row, _)| row);
        if !file.claims.iter().any(|known| known == row) {
            let problem =
                format!("`{row}` is not in the list `claims` at the top of this scenario: add it there");
            return Err(map.at(table.id.span(), problem));
        }
        claims.push(Claim {
            id: id.clone(),
            scenario: document.name().to_owned(),
            says: table.says.trim().to_owned(),
            paper: table.paper.clone(),
            why: table.why.clone(),
            note: table.note.clone(),
            checks: checks(document, table, &scope)?,
            any: table.any,
            decides: table.decides.unwrap_or(true),
        });
    }
    let beside = document.annotations.beside.iter();
    Ok(ScenarioClaims {
        scenario: document.name().to_owned(),
        claims,
        beside: beside
            .map(|table| substitution(document, table, &scope))
            .collect::<Result<_, _>>()?,
    })
}

fn checks(document: &Document<'_>, table: &ClaimTable, scope: &Scope) -> Result<Vec<Check>, ScenarioError> {
    let map = document.source_map();
    if let Some(unknown) = table
        .cases
        .iter()
        .flatten()
        .find(|case| !scope.cases.contains(case.get_ref()))
    {
        return Err(document.unknown_case(unknown));
    }
    let cases: Vec<String> = match &table.cases {
        Some(cases) => cases.iter().map(|case| case.get_ref().clone()).collect(),
        None => scope.cases.clone(),
    };
    let mut checks = Vec::new();
    for text in table.check.get_ref() {
        let more = scope.checks(text.get_ref(), &cases);
        checks.extend(
            more.map_err(|problem| map.at(text.span(), format!("in `{}`: {problem}", text.get_ref())))?,
        );
    }
    if checks.is_empty() {
        let problem = "a claim needs at least one check, such as \
                       check = [\"lost_packets[cubic] > lost_packets[reno]\"]";
        return Err(map.at(table.check.span(), problem));
    }
    Ok(checks)
}

fn substitution(
    document: &Document<'_>,
    table: &BesideTable,
    scope: &Scope,
) -> Result<Substitution, ScenarioError> {
    let replaced = table.replace.get_ref();
    if !scope
        .controllers
        .iter()
        .any(|spec| spec.contains(replaced.as_str()))
    {
        let problem = format!(
            "`{replaced}` occurs in no controller of this scenario; expected a piece of one of: {}",
            scope.controllers.join(", ")
        );
        return Err(document.source_map().at(table.replace.span(), problem));
    }
    Ok(Substitution {
        name: table.name.clone(),
        replace: replaced.clone(),
        by: table.by.clone(),
    })
}

/// Names that a check may use.
#[derive(Clone, Debug, Default)]
struct Scope {
    /// Canonical specs of the scenario's controllers.
    controllers: Vec<String>,
    /// True if the scenario has an ideal row.
    ideal: bool,
    cases: Vec<String>,
    /// Names for lists of controllers.
    groups: BTreeMap<String, Vec<String>>,
    windows: Vec<Window>,
}

/// A flow, and true if its case is left open: it then stands for each of the claim's cases.
type CaselessFlow = (Flow, bool);

/// The text between brackets without blanks: equal keys are the same list.
fn list_key(reading: &NamedReading<'_>) -> String {
    reading.flows.split_whitespace().collect()
}

/// The cases that a check is about: all of `cases` if it leaves one open, otherwise a single one without a name.
fn cases_of(cases: &[String], caseless: bool) -> impl Iterator<Item = &str> {
    let named = cases.iter().filter(move |_| caseless).map(String::as_str);
    named.chain((!caseless).then_some(""))
}

fn expected<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
    if names.is_empty() {
        "the scenario has none".to_owned()
    } else {
        format!("expected one of: {}", names.join(", "))
    }
}

/// One flow out of each list of a check, in one case.
struct Choice<'a> {
    flows: BTreeMap<&'a str, &'a CaselessFlow>,
    case: &'a str,
}

impl Scope {
    /// The checks that `text` stands for, in each of `cases` (those of the claim).
    fn checks(&self, text: &str, cases: &[String]) -> Result<Vec<Check>, String> {
        match parse(text)? {
            NamedCheck::Comparison(named) => self.comparisons(&named, cases),
            NamedCheck::Superlative(named) => self.superlatives(&named, cases),
        }
    }

    /// The superlatives that a named one stands for: one in each of `cases`.
    fn superlatives(&self, named: &NamedSuperlative<'_>, cases: &[String]) -> Result<Vec<Check>, String> {
        let (members, among) = (self.flows(named.reading.flows)?, self.flows(named.among)?);
        let is_among = |member: &Flow| among.iter().any(|(one, _)| one.is_of(member));
        if let Some((stranger, _)) = members.iter().find(|(member, _)| !is_among(member)) {
            return Err(format!(
                "`{stranger}` is not among those that are compared: add it to the list after `among`"
            ));
        }
        let is_member = |one: &Flow| members.iter().any(|(member, _)| member.is_of(one));
        if among.iter().all(|(one, _)| is_member(one)) {
            return Err(
                "the members are compared with no other: add a controller to the list after `among`"
                    .to_owned(),
            );
        }
        let in_case = |flows: &[CaselessFlow], case: &str| -> Result<Vec<Reading>, String> {
            let readings = flows.iter().map(|flow| self.reading(&named.reading, flow, case));
            readings.collect()
        };
        let caseless = among.iter().any(|(_, caseless)| *caseless);
        let cases = cases_of(cases, caseless);
        let checks = cases.map(|case| {
            Ok(Check::Superlative(Superlative {
                extreme: named.extreme,
                members: in_case(&members, case)?,
                among: in_case(&among, case)?,
            }))
        });
        checks.collect()
    }

    /// The comparisons that a named one stands for: one for each of `cases` and each choice out of its lists of
    /// controllers. Equal lists go together.
    fn comparisons(
        &self,
        syntax: &Comparison<NamedReading<'_>>,
        cases: &[String],
    ) -> Result<Vec<Check>, String> {
        let mut lists: Vec<(String, Vec<CaselessFlow>)> = Vec::new();
        for reading in syntax.readings() {
            let (measure, _) = measure(reading)?;
            self.window(reading, measure)?;
            scenario(reading)?;
            let key = list_key(reading);
            if lists.iter().all(|(known, _)| *known != key) {
                lists.push((key, self.flows(reading.flows)?));
            }
        }
        if lists.is_empty() {
            return Err(
                "the check compares constants: write at least one metric, such as rebases[cubic]".to_owned(),
            );
        }
        let mut flows = lists.iter().flat_map(|(_, flows)| flows);
        let caseless = flows.any(|(_, caseless)| *caseless);
        let choices: usize = lists.iter().map(|(_, flows)| flows.len()).product();
        let mut checks = Vec::new();
        for case in cases_of(cases, caseless) {
            for mut number in 0..choices {
                let mut flows = BTreeMap::new();
                // The last list runs fastest.
                for (key, list) in lists.iter().rev() {
                    flows.insert(key.as_str(), &list[number % list.len()]);
                    number /= list.len();
                }
                checks.push(Check::Comparison(
                    self.comparison(syntax, &Choice { flows, case })?,
                ));
            }
        }
        Ok(checks)
    }

    /// The comparison of one choice of flows.
    fn comparison(
        &self,
        syntax: &Comparison<NamedReading<'_>>,
        choice: &Choice<'_>,
    ) -> Result<Comparison, String> {
        let sum = |terms: &[Term<NamedReading<'_>>]| {
            let read = terms.iter().map(|term| {
                let reading = term.reading.as_ref();
                Ok(Term {
                    factor: term.factor,
                    reading: reading.map(|reading| self.chosen(reading, choice)).transpose()?,
                })
            });
            read.collect::<Result<Vec<Term>, String>>()
        };
        let comparison = Comparison {
            left: sum(&syntax.left)?,
            relation: syntax.relation,
            right: sum(&syntax.right)?,
        };
        if comparison.sides_are_equal() {
            return Err(format!("`{comparison}` compares something with itself"));
        }
        Ok(comparison)
    }

    fn chosen(&self, syntax: &NamedReading<'_>, choice: &Choice<'_>) -> Result<Reading, String> {
        match choice.flows.get(list_key(syntax).as_str()) {
            Some(flow) => self.reading(syntax, flow, choice.case),
            None => Err(format!("`{}` has no controller", syntax.metric)),
        }
    }

    /// The reading of one flow, which is that in `case` if its own is left open.
    fn reading(
        &self,
        syntax: &NamedReading<'_>,
        (flow, caseless): &CaselessFlow,
        case: &str,
    ) -> Result<Reading, String> {
        let (measure, deviation) = measure(syntax)?;
        let scenario = scenario(syntax)?;
        let mut flow = flow.clone();
        if *caseless && scenario.is_none() {
            case.clone_into(&mut flow.case);
        }
        Ok(Reading {
            measure,
            deviation,
            flow,
            window: self.window(syntax, measure)?,
            scenario,
        })
    }

    /// Place and name of the measurement window in which a metric is read.
    fn window(
        &self,
        reading: &NamedReading<'_>,
        measure: Measure,
    ) -> Result<Option<(usize, String)>, String> {
        let Some(name) = reading.window else {
            return Ok(None);
        };
        if measure.over_ideal || !measure.metric.has_windows() {
            return Err(format!(
                "`{}` is counted over whole sessions, not in windows: leave `@{name}` out",
                reading.metric
            ));
        }
        let window: Option<Window> = name.parse().ok();
        let place = self.windows.iter().position(|known| Some(*known) == window);
        let found = place.map(|place| Some((place, name.to_owned())));
        found.ok_or_else(|| {
            let known = self.windows.iter().map(ToString::to_string);
            format!("unknown measurement window `{name}`; {}", expected(known))
        })
    }

    /// The flows of a list such as `reno@n5, timid#bulk`.
    fn flows(&self, list: &str) -> Result<Vec<CaselessFlow>, String> {
        let mut flows = Vec::new();
        for text in split_list(list) {
            let text = text.trim();
            let (text, role) = text.split_once('#').unwrap_or((text, VIEWER));
            let (name, case) = match text.split_once('@') {
                Some((name, case)) => (name.trim(), Some(case.trim())),
                None => (text.trim(), None),
            };
            let role = role.trim();
            if role != VIEWER && !OTHER_ROLES.contains(&role) {
                return Err(format!("unknown role `{role}`; {}", expected(OTHER_ROLES)));
            }
            if let Some(case) = case.filter(|case| self.cases.iter().all(|known| known != case)) {
                return Err(format!("unknown case `{case}`; {}", expected(&self.cases)));
            }
            let one = [name.to_owned()];
            let names = self.groups.get(name).map_or(one.as_slice(), Vec::as_slice);
            for name in names {
                let flow = Flow {
                    controller: self.controller(name)?,
                    name: name.clone(),
                    case: case.unwrap_or_default().to_owned(),
                    role: role.to_owned(),
                };
                flows.push((flow, case.is_none() && !self.cases.is_empty()));
            }
        }
        Ok(flows)
    }

    /// The canonical spec of a controller of the scenario.
    fn controller(&self, name: &str) -> Result<String, String> {
        if name == IDEAL && self.ideal {
            return Ok(IDEAL.to_owned());
        }
        let spec = name
            .parse::<ControllerChoice>()
            .map_err(|error| error.to_string())?;
        let spec = spec.to_string();
        if self.controllers.contains(&spec) {
            Ok(spec)
        } else {
            Err(format!(
                "`{name}` is not a controller of this scenario; {}",
                expected(&self.controllers)
            ))
        }
    }
}

/// The measure of a reading, and whether its distance from the median over the seeds is meant.
fn measure(reading: &NamedReading<'_>) -> Result<(Measure, bool), String> {
    let name = reading.metric;
    let (deviation, measured) = match name.strip_prefix(DEVIATION) {
        Some(measured) => (true, measured),
        None => (false, name),
    };
    let measure = Measure::find(measured).ok_or_else(|| {
        let known: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        format!(
            "unknown metric `{name}`; expected one of: {}, with or without `{EXCESS}` or `{DEVIATION}` before it",
            known.join(", ")
        )
    })?;
    Ok((measure, deviation))
}

/// The other scenario that a reading names, which must be built in.
fn scenario(reading: &NamedReading<'_>) -> Result<Option<String>, String> {
    let known = || BUILT_IN.iter().map(|(name, _)| *name);
    match reading.scenario {
        Some(name) if known().all(|one| one != name) => {
            Err(format!("unknown scenario `{name}`; {}", expected(known())))
        }
        name => Ok(name.map(str::to_owned)),
    }
}
