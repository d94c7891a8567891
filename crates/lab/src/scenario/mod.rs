//! Scenarios: title, path, flows, controllers and number of trials of an experiment, read from a TOML file.
//!
//! `docs/scenarios.md` lists the keys. A file is parsed once (`document`); each of its cases becomes a
//! [`Scenario`]. Errors name file, line and key ([`ScenarioError`]).

mod document;
mod encoder;
mod error;
mod explain;
pub(crate) mod file;
pub(crate) mod generated;
mod link_rate;
mod memory;
mod path;
mod setting;
mod share;
mod titles;
mod variation;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use playrate_netsim::{Loss, PathConfig, Rate, Seed};
use playrate_transport::AckRequest;
use playrate_units::Bitrate;
use sha2::{Digest, Sha256};
use toml::Table;
use video_client::Seek;
use video_client::playout::{
    CatchUp, Clock, ClockKind, Fill, PLAYOUT_BUFFER_448, Playout, PlayoutConfig, RECEIVE_BUFFER_PAPERS, Start,
};

pub use document::ScenarioSource;
pub(crate) use document::{BUILT_IN, groups, named};
pub use error::ScenarioError;
pub(crate) use explain::explain;
pub(crate) use file::Vary;
pub(crate) use path::UPLINK_QUEUE;
pub use setting::Setting;
pub(crate) use variation::TrialValues;

use crate::controllers::{Controller, Stack};
use crate::sim::{Access, Broadcast, Bulk, ServedTitle, Setup, TransportProfile, Viewer, Window};
use document::{Case, Document};
use encoder::FrameSource;
use error::SourceMap;
use file::{BulkController, BulkTable, Text, Time, TimeRange, ViewerTable, time};

/// Trials with `--quick`, if the scenario has more and no `quick.trials`.
const QUICK_TRIALS: u32 = 2;
/// Maximum number of flows of one kind in a run: each has its own socket.
const MOST_FLOWS: u32 = 1_000;

/// An experiment, or one case of it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name of the file without `.toml`.
    pub(crate) name: String,
    /// Name of the case; empty if the scenario has none.
    pub(crate) case: String,
    pub(crate) case_about: Option<String>,
    /// Values of the case that replace the scenario's.
    pub(crate) case_sets: Vec<Setting>,
    pub(crate) about: String,
    /// Publication of the original experiment, such as `P13, figure 9`.
    pub(crate) source: Option<String>,
    /// Controllers to compare, with the same seeds.
    pub controllers: Vec<Controller>,
    pub(crate) trials: u32,
    /// Seed of the first trial; see [`Self::seed_of`].
    pub(crate) seed: u64,
    pub(crate) vary: Vary,
    /// True if the results include a row for the best possible sender.
    pub(crate) ideal: bool,
    /// Viewer of all runs: each run sets its controller and times, and each trial its title.
    pub(crate) viewer: Viewer,
    /// Frames that are sent as they are made; `None` if viewers play a title.
    pub(crate) frames: Option<FrameSource>,
    /// Factor of the deviation of the title's rate from its mean, if the scenario has one.
    variability: Option<f64>,
    pub(crate) path: PathConfig,
    /// Factor of the path's random loss, if the scenario has one; already applied to `path`.
    loss_scale: Option<f64>,
    pub(crate) viewers: Flows,
    pub(crate) bulk: Option<BulkFlows>,
    /// Propagation delay between the bottleneck and each end of every flow, one way.
    pub(crate) access_delay: TimeRange,
    /// Time ranges of a run with separate counts of every flow's traffic.
    pub(crate) windows: Vec<Window>,
    pub(crate) transport: TransportProfile,
    /// True if a run begins with the slow start threshold left behind by an earlier connection.
    pub(crate) remembers_ssthresh: bool,
    /// The whole file, with all cases.
    pub(crate) text: Arc<str>,
    /// Identifies everything besides controller and seed that affects a run: 16 hexadecimal digits.
    pub(crate) hash: String,
}

/// Flows of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flows {
    pub(crate) count: u32,
    /// Time when the first flow joins, since the beginning of the run; each flow draws its own from a range.
    joins: TimeRange,
    /// Additional time between one flow and the next.
    join_every: Duration,
    /// Maximum stay of each flow, since its request.
    pub(crate) leaves_after: Option<Duration>,
}

/// Downloads that share the bottleneck with the viewers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BulkFlows {
    pub(crate) flows: Flows,
    /// Controller of these flows; `None` for the viewers' controller.
    controller: Option<Controller>,
    /// Minimum duration of the run, over which these flows are compared.
    pub(crate) stays: Option<Duration>,
}

impl BulkFlows {
    /// The window from the beginning of the run to [`Self::stays`].
    pub(crate) fn window(&self) -> Option<Window> {
        self.stays.map(|to| Window {
            from: Duration::ZERO,
            to: Some(to),
        })
    }
}

/// Maximum time for which a browser delays an acknowledgement (RFC 9000 §18.2); if the path's RTT is less than four
/// times that, it is a quarter of the RTT.
const LONGEST_ACK_DELAY: Duration = Duration::from_millis(25);

/// Changes to a scenario requested by a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Applies the scenario's `quick` table: fewer trials of a shorter title.
    pub quick: bool,
    /// Number of trials that overrides the scenario's and `quick`'s.
    pub trials: Option<u32>,
    /// Seed of the first trial that overrides the scenario's.
    pub seed: Option<u64>,
    /// Values for keys of the scenario that override its cases' and `quick`'s.
    pub settings: Vec<Setting>,
}

/// The scenario called `name` with all its cases ([`ScenarioSource::find`]).
///
/// # Errors
/// If the name is unknown or the file is wrong.
pub fn open(name: &str, changes: &Changes) -> Result<Vec<Scenario>, ScenarioError> {
    ScenarioSource::find(name)?.scenarios(changes)
}

impl Scenario {
    /// The scenario for a case of a document.
    fn of_case(document: &Document<'_>, case: &Case<'_>, changes: &Changes) -> Result<Self, ScenarioError> {
        let map = document.case_map(case, &changes.settings);
        let table = document.values(case, map)?;
        let values = table.get_ref();
        let map = SourceMap { values, ..map };
        let (file, hashed) = document::read(map, &table)?;
        let mut trials = file.trials.unwrap_or(1);
        if trials == 0 {
            return Err(map.at_key("trials", "`trials` must be at least 1 (got 0)"));
        }
        if changes.quick {
            trials = case.quick_trials.unwrap_or(trials.min(QUICK_TRIALS)).max(1);
        }
        let base = &document.source.base;
        let frames = file.encoder.as_ref();
        let frames = frames
            .map(|table| FrameSource::new(map, table, &file.title))
            .transpose()?;
        let title = match &frames {
            Some(frames) => frames
                .title(None)
                .map_err(|error| map.at_key("title", error.to_string()))?,
            None => titles::title(map, &file.title, base)?,
        };
        let path = path::path(map, &file.path, title.source().title().average_rate(), base)?;
        let table = &file.viewer;
        let declared = file.title.declared_rate_factor;
        let declared_rate_factor = titles::within(map, declared, "title.declared_rate_factor", 1e-6..=1e6)?;
        let playout = playout(map, table)?;
        let dash = titles::player(map, table, &title)?;
        let may_be_ideal = title.representations().is_none() && frames.is_none();
        if !may_be_ideal && file.ideal == Some(true) {
            let problem = "`ideal` must be left out: the ideal row is of a title in one representation";
            return Err(map.at_key("title", problem));
        }
        if title.representations().is_some() && table.receive_autotuning {
            let problem = "`viewer.receive_autotuning` must be left out: a player of several representations pauses \
                           between segments";
            return Err(map.at_key("title", problem));
        }
        let titles_per_connection = titles::per_connection(map, table, &title)?;
        let mut seeks: Vec<Seek> = table.seeks.iter().map(|seek| seek.0.0).collect();
        seeks.sort_by_key(|seek| seek.at);
        let viewers = Flows::viewers(map, table)?;
        let bulk = file.bulk.map(|table| BulkFlows::new(map, table)).transpose()?;
        let bulk = bulk.filter(|bulk| bulk.flows.count > 0);
        let controllers = file.controllers.into_iter();
        let controllers: Vec<Controller> = controllers.map(|text| text.0).collect();
        let Some(first) = controllers.first() else {
            let problem = "`controllers` must name at least one controller, such as [\"cubic\"]";
            return Err(map.at_key("controllers", problem));
        };
        check_stacks(map, &controllers, frames.as_ref(), bulk.as_ref())?;
        memory::check(map, table.remembers_ssthresh, &controllers)?;
        let longest = LONGEST_ACK_DELAY.min(path.round_trip() / 4);
        let request = |packets: NonZeroU32| AckRequest::new(packets.get()).within(longest);
        let viewer = Viewer {
            playout,
            dash,
            server_knows_buffer: table.server_knows_buffer.unwrap_or(true),
            ack_request: table.ack_packets.map(request),
            receive_autotuning: table.receive_autotuning,
            titles_per_connection,
            seeks,
            reports_speed: table.reports_speed,
            declared_rate_factor,
            leaves_after: viewers.leaves_after,
            ..Viewer::new(first.clone(), title)
        };
        let title = &viewer.title;
        let transport = file.transport.profile();
        Ok(Self {
            name: document.name().to_owned(),
            case: case.name.clone(),
            case_about: case.about.clone(),
            case_sets: case.sets.clone(),
            about: file.about.trim().to_owned(),
            source: file.source,
            controllers,
            remembers_ssthresh: table.remembers_ssthresh,
            trials: changes.trials.unwrap_or(trials),
            seed: changes.seed.or(file.seed).unwrap_or(1),
            vary: file.vary,
            ideal: file.ideal.unwrap_or(may_be_ideal),
            text: Arc::from(&*document.source.text),
            hash: hash(hashed, title, &path, (file.vary, transport)),
            viewer,
            frames,
            variability: file.title.variability,
            path,
            loss_scale: file.path.loss_scale,
            viewers,
            bulk,
            access_delay: file.path.access_delay.map_or(TimeRange::ZERO, |times| times.0),
            windows: file.measure.windows.into_iter().map(|window| window.0).collect(),
            transport,
        })
    }

    /// Names of scenario and case, for people: `p12-3 n10`.
    pub(crate) fn full_name(&self) -> String {
        full_name(&self.name, &self.case)
    }

    /// The seed of trial `trial`, counted from 1: the same for all controllers.
    pub(crate) fn seed_of(&self, trial: u32) -> u64 {
        self.seed.wrapping_add(u64::from(trial)).wrapping_sub(1)
    }

    /// Number of flows of a run: viewers and other downloads.
    pub(crate) fn flows(&self) -> u32 {
        let bulk = self.bulk.as_ref().map_or(0, |bulk| bulk.flows.count);
        self.viewers.count.saturating_add(bulk)
    }

    /// The run of `controller` with this seed.
    pub fn setup(&self, controller: &Controller, seed: u64) -> Setup {
        let values = self.trial_values(seed);
        let seed = Seed::new(seed);
        let mut setup = Setup::new(values.path.clone(), seed);
        setup.windows.clone_from(&self.windows);
        setup.transport = self.transport;
        for number in 0..self.viewers.count {
            let seed = seed.child(&format!("viewer {number}"));
            let joins = self.viewers.joins(number, seed);
            if let Some(frames) = &self.frames {
                setup.broadcasts.push(Broadcast {
                    controller: controller.clone(),
                    stack: frames.stack,
                    title: values.title.clone(),
                    encoder: frames.encoder,
                    joins: joins.saturating_add(values.late_start(seed)),
                    leaves_after: self.viewers.leaves_after,
                    access: access(self.access_delay, seed),
                });
                continue;
            }
            setup.viewers.push(Viewer {
                controller: controller.clone(),
                title: values.title.clone(),
                joins: joins.saturating_add(values.late_start(seed)),
                access: access(self.access_delay, seed),
                ..self.viewer.clone()
            });
        }
        if let Some(bulk) = &self.bulk {
            setup.least_length = bulk.stays.unwrap_or_default();
            setup.windows.extend(bulk.window());
            for number in 0..bulk.flows.count {
                let seed = seed.child(&format!("bulk {number}"));
                let joins = bulk.flows.joins(number, seed);
                setup.bulk.push(Bulk {
                    controller: bulk.controller.as_ref().unwrap_or(controller).clone(),
                    joins: joins.saturating_add(values.late_start(seed)),
                    leaves_after: bulk.flows.leaves_after,
                    access: access(self.access_delay, seed),
                });
            }
        }
        setup
    }

    /// Average rate λ of the title.
    pub(crate) fn title_rate(&self) -> Bitrate {
        self.viewer.title.source().title().average_rate()
    }

    /// Playing time of the title at the viewer's speed.
    pub(crate) fn viewing_time(&self) -> Duration {
        self.viewer
            .playout
            .viewing_time(self.viewer.title.source().title().duration())
    }

    /// First sentence of the description of the scenario and its case, with the publication in parentheses.
    pub(crate) fn summary(&self) -> String {
        let about = self.about.replace('\n', " ");
        let first = about.split_inclusive(". ").next().unwrap_or_default();
        let source = self.source.as_ref().map(|source| format!("({source})"));
        let case = self.case_about.as_deref().unwrap_or_default().trim();
        let parts = [first.trim(), source.as_deref().unwrap_or_default(), case];
        parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Checks that all controllers run over the stack of their flows: viewers and downloads over quinn, frames over that of
/// the encoder.
fn check_stacks(
    map: SourceMap<'_>,
    controllers: &[Controller],
    frames: Option<&FrameSource>,
    bulk: Option<&BulkFlows>,
) -> Result<(), ScenarioError> {
    let over = |stack, key, controllers: &[Controller]| {
        let checked = controllers
            .iter()
            .try_for_each(|controller| controller.check(stack));
        checked.map_err(|problem| map.at_key(key, problem))
    };
    let stack = frames.map_or(Stack::Quinn, |frames| frames.stack);
    over(stack, "controllers", controllers)?;
    match bulk.map(|bulk| &bulk.controller) {
        None => Ok(()),
        Some(None) => over(Stack::Quinn, "controllers", controllers),
        Some(Some(own)) => over(Stack::Quinn, "bulk.controller", std::slice::from_ref(own)),
    }
}

fn playout(map: SourceMap<'_>, table: &ViewerTable) -> Result<PlayoutConfig, ScenarioError> {
    let buffer = table.playout_buffer.map_or(PLAYOUT_BUFFER_448, |size| size.0);
    let kind = table.clock.map_or(ClockKind::CatchUp, |clock| clock.0);
    let defaults = CatchUp::default();
    let clock = match kind {
        ClockKind::CatchUp => Clock::CatchUp(CatchUp {
            late: time(table.late).unwrap_or(defaults.late),
            max_jitter: time(table.max_jitter).unwrap_or(defaults.max_jitter),
            speed_percent: table.catch_up_percent.unwrap_or(defaults.speed_percent),
        }),
        ClockKind::Rebuffer => {
            Clock::Rebuffer(time(table.resume).map_or(Fill::Bytes(buffer), Fill::PlayingTime))
        }
    };
    let mut config = PlayoutConfig::new(buffer, clock);
    config.receive_buffer = table.receive_buffer.map_or(RECEIVE_BUFFER_PAPERS, |size| size.0);
    let speed = titles::within(map, table.speed, "viewer.speed", 0.25..=4.0)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 25 to 400"
    )]
    let percent = (speed * 100.0).round() as u32;
    config.speed_percent = percent;
    if let Some(after) = time(table.start_after) {
        config.start = Start::After(after);
    }
    match Playout::new(config.clone()) {
        Ok(_) => Ok(config),
        Err(error) => Err(map.at_key("viewer", error.to_string())),
    }
}

/// The first 16 hexadecimal digits of SHA-256 over everything that affects a run. TOML tables are sorted by key. For
/// compatibility, trials that do not vary keep the hash from before variation existed, and the papers' transport keeps
/// the hash from before there was another one.
fn hash(
    mut table: Table,
    title: &ServedTitle,
    path: &PathConfig,
    (vary, transport): (Vary, TransportProfile),
) -> String {
    let mut hash = Sha256::new();
    table.remove("transport");
    if transport != TransportProfile::PAPERS {
        hash.update(format!("{transport:?}\n"));
    }
    if vary == Vary::Trials {
        hash.update("vary = \"trials\"\n");
    }
    hash.update(table.to_string());
    for (_, source) in title.resources() {
        hash.update(source.identity());
    }
    // In earlier builds of this version, bursts had no time limit.
    let links = [&path.forward, &path.backward];
    if links
        .iter()
        .any(|link| matches!(link.loss, Loss::GilbertElliott(_)))
    {
        hash.update("bursts = \"time\"\n");
    }
    // For a recorded link, the table contains only the file's name.
    if let Rate::Trace(trace) = &path.forward.rate {
        for at in trace.opportunities() {
            hash.update(at.to_le_bytes());
        }
    }
    let digest: [u8; 32] = hash.finalize().into();
    let first = digest.first_chunk().copied().map_or(0, u64::from_be_bytes);
    format!("{first:016x}")
}

impl Flows {
    fn viewers(map: SourceMap<'_>, table: &ViewerTable) -> Result<Self, ScenarioError> {
        if table.count == Some(0) {
            let problem = format!("`viewer.count` must be 1 to {MOST_FLOWS} (got 0)");
            return Err(map.at_key("viewer.count", problem));
        }
        let count = count(map, table.count, "viewer.count")?;
        Ok(Self::new(
            count,
            table.joins,
            [table.join_every, table.leaves_after],
        ))
    }

    fn new(
        count: u32,
        joins: Option<Text<TimeRange>>,
        [join_every, leaves_after]: [Option<Text<Time>>; 2],
    ) -> Self {
        Self {
            count,
            joins: joins.map_or(TimeRange::ZERO, |joins| joins.0),
            join_every: time(join_every).unwrap_or_default(),
            leaves_after: time(leaves_after),
        }
    }

    /// Time at which flow `number` joins; `seed` is that of the flow.
    fn joins(&self, number: u32, seed: Seed) -> Duration {
        let drawn = self.joins.draw(seed.child("joins"));
        drawn.saturating_add(self.join_every.saturating_mul(number))
    }

    /// Latest possible time for the last flow to join.
    pub(crate) fn last_joins(&self) -> Duration {
        let spread = self.join_every.saturating_mul(self.count.saturating_sub(1));
        self.joins.to.saturating_add(spread)
    }
}

impl BulkFlows {
    fn new(map: SourceMap<'_>, table: BulkTable) -> Result<Self, ScenarioError> {
        let count = count(map, table.count, "bulk.count")?;
        Ok(Self {
            flows: Flows::new(count, table.joins, [table.join_every, table.leaves_after]),
            controller: match table.controller.0 {
                BulkController::Same => None,
                BulkController::Own(controller) => Some(controller),
            },
            stays: time(table.stays).filter(|stays| !stays.is_zero()),
        })
    }
}

/// Delays between the bottleneck and both ends of a flow, drawn from the flow's seed.
fn access(delay: TimeRange, seed: Seed) -> Access {
    Access {
        server: delay.draw(seed.child("server's access")),
        client: delay.draw(seed.child("client's access")),
    }
}

/// The number of flows given by `key`; 1 if the key is missing.
fn count(map: SourceMap<'_>, count: Option<u32>, key: &str) -> Result<u32, ScenarioError> {
    let count = count.unwrap_or(1);
    if count <= MOST_FLOWS {
        return Ok(count);
    }
    let problem = format!("`count` must be at most {MOST_FLOWS} (got {count})");
    Err(map.at_key(key, problem))
}

/// Names of a scenario and of its case, if it has any: `p12-3 n10`.
pub(crate) fn full_name(scenario: &str, case: &str) -> String {
    if case.is_empty() {
        scenario.to_owned()
    } else {
        format!("{scenario} {case}")
    }
}

#[cfg(test)]
mod tests;
