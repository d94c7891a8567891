//! Who is on the path: viewers and other downloads, when they come, how far away they are.

use std::time::Duration;

use playrate_netsim::Seed;
use playrate_transport::ControllerChoice;
use toml::Spanned;

use super::ScenarioError;
use super::error::Blame;
use super::file::{BulkTable, ViewerTable};
use super::text::{SameOr, Times};
use crate::sim::{Access, Bulk};

/// Flows of one run at most; beyond that a run has more sockets than ports are worth.
const MOST_FLOWS: u32 = 1_000;

/// Flows of one kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Flows {
    /// How many.
    pub count: u32,
    /// When each comes, from the beginning of the run: at random between these times, drawn from the run's seed.
    pub joins: Times,
    /// How long after each other they come, besides.
    pub join_every: Duration,
    /// How long each stays at most.
    pub leaves_after: Option<Duration>,
}

/// Downloads beside the viewers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BulkFlows {
    /// How many, when, for how long.
    pub flows: Flows,
    /// Their controller; `None` is that of the viewers.
    pub controller: Option<ControllerChoice>,
}

impl Flows {
    pub(super) fn viewers(blame: Blame<'_>, table: &ViewerTable) -> Result<Self, ScenarioError> {
        let none = table.count.as_ref().filter(|count| *count.get_ref() == 0);
        if let Some(none) = none {
            let problem = format!("nobody watches: write 1 to {MOST_FLOWS} viewers");
            return Err(blame.at(none.span(), problem));
        }
        Ok(Self {
            count: count(blame, table.count.as_ref())?,
            joins: table.joins.as_ref().map_or(Times::ZERO, |joins| joins.0),
            join_every: table.join_every.as_ref().map_or(Duration::ZERO, |time| time.0.0),
            leaves_after: table.leaves_after.as_ref().map(|time| time.0.0),
        })
    }

    /// When flow `number` comes, in the run that has this seed.
    pub fn joins(&self, number: u32, seed: Seed) -> Duration {
        let drawn = self.joins.draw(seed.child("joins"));
        drawn.saturating_add(self.join_every.saturating_mul(number))
    }

    /// When the last of them may come.
    pub fn last_joins(&self) -> Duration {
        let spread = self.join_every.saturating_mul(self.count.saturating_sub(1));
        self.joins.to.saturating_add(spread)
    }
}

impl BulkFlows {
    pub(super) fn new(blame: Blame<'_>, table: &BulkTable) -> Result<Self, ScenarioError> {
        let flows = Flows {
            count: count(blame, table.count.as_ref())?,
            joins: table.joins.as_ref().map_or(Times::ZERO, |joins| joins.0),
            join_every: table.join_every.as_ref().map_or(Duration::ZERO, |time| time.0.0),
            leaves_after: table.leaves_after.as_ref().map(|time| time.0.0),
        };
        let controller = match &table.controller.0 {
            SameOr::Same => None,
            SameOr::Other(controller) => Some(controller.clone()),
        };
        Ok(Self { flows, controller })
    }

    /// Flow `number` beside viewers under `controller`, in the run that has this seed.
    pub(super) fn bulk(
        &self,
        controller: &ControllerChoice,
        number: u32,
        seed: Seed,
        access_delay: Times,
    ) -> Bulk {
        let seed = seed.child(&format!("bulk {number}"));
        let mut bulk = Bulk::new(self.controller.as_ref().unwrap_or(controller).clone());
        bulk.joins = self.flows.joins(number, seed);
        bulk.leaves_after = self.flows.leaves_after;
        bulk.access = access(access_delay, seed);
        bulk
    }
}

/// How far the ends of a flow are from the bottleneck, each drawn for itself.
pub(super) fn access(delay: Times, seed: Seed) -> Access {
    Access {
        server: delay.draw(seed.child("server's access")),
        client: delay.draw(seed.child("client's access")),
    }
}

fn count(blame: Blame<'_>, count: Option<&Spanned<u32>>) -> Result<u32, ScenarioError> {
    let Some(count) = count else { return Ok(1) };
    if *count.get_ref() <= MOST_FLOWS {
        return Ok(*count.get_ref());
    }
    let problem = format!("{} flows cannot be: write at most {MOST_FLOWS}", count.get_ref());
    Err(blame.at(count.span(), problem))
}
