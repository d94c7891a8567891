//! [`Found`]: the world that a search found, kept in the test bed's file (`[found]`) so that it can be judged without
//! the search.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use toml::{Spanned, Value};

use super::TestBed;
use super::unknown::{Unknown, World};
use crate::scenario::{ScenarioError, SourceMap};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FoundTable {
    seed: u64,
    worlds: usize,
    choices: BTreeMap<Spanned<String>, Spanned<Value>>,
}

/// A world and the search that found it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) world: World,
    /// Seed of the search's random sample.
    pub(super) seed: u64,
    /// Size of the search's random sample.
    pub(super) worlds: usize,
}

impl Found {
    /// Reads the table of a file that declares `unknowns`; those that it leaves out keep their nominal value.
    ///
    /// # Errors
    /// If a name or a choice is not declared.
    pub(super) fn read(
        map: SourceMap<'_>,
        table: &FoundTable,
        unknowns: &[Unknown],
    ) -> Result<Self, ScenarioError> {
        let mut world = World::nominal(unknowns);
        for (name, value) in &table.choices {
            let mut numbered = unknowns.iter().enumerate();
            let Some((place, unknown)) = numbered.find(|(_, unknown)| unknown.name == *name.get_ref()) else {
                let known: Vec<&str> = unknowns.iter().map(|unknown| unknown.name.as_str()).collect();
                let problem = format!(
                    "no [[unknown]] is called `{}`; expected one of: {}",
                    name.get_ref(),
                    known.join(", ")
                );
                return Err(map.at(name.span(), problem));
            };
            let choice = unknown.choice_of(value.get_ref());
            let choice = choice.map_err(|problem| map.at(value.span(), problem))?;
            world = world.with(place, choice);
        }
        Ok(Self {
            world,
            seed: table.seed,
            worlds: table.worlds,
        })
    }

    /// The table of this world for the file of `bed`: the choices that act on fitted rows and can be written down.
    pub(super) fn table(&self, bed: &TestBed) -> String {
        let mut text = format!(
            "[found]\nseed = {}\nworlds = {}\n\n[found.choices]\n",
            self.seed, self.worlds
        );
        for (place, unknown) in bed.unknowns.iter().enumerate() {
            if let Some(value) = unknown.value(self.world.choice(place)).filter(|_| unknown.fitted) {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{} = {value}", key(&unknown.name));
            }
        }
        text
    }
}

/// A key of a table, in quotes where TOML asks for them.
fn key(name: &str) -> String {
    let is_bare = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if is_bare {
        name.to_owned()
    } else {
        Value::from(name).to_string()
    }
}
