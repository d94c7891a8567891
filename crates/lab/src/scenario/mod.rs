//! Scenarios as data: what is played, over which path, to whom, under which controllers, how often.
//!
//! A scenario is a TOML file; `docs/scenarios.md` lists its keys. Quantities are texts with their unit. What is wrong in
//! a file is said with file, line, key and mend ([`ScenarioError`]).

mod built_in;
mod cases;
mod changes;
mod claims;
mod error;
mod figures;
mod file;
mod flows;
mod ladder;
mod text;
mod titles;
mod words;

use std::path::Path;

use playrate_netsim::{LinkConfig, PathConfig, QueueLimit, Rate, Seed};
use playrate_transport::ControllerChoice;
use playrate_units::{Bitrate, Bytes};
use sha2::{Digest, Sha256};
use toml::Spanned;
use video_client::dash::DashOptions;
use video_client::playout::{
    CatchUp, Clock, ClockKind, Fill, PLAYOUT_BUFFER_448, PlayoutConfig, RECEIVE_BUFFER_PAPERS, Rebuffer,
    Start,
};

pub use built_in::{BUILT_IN, PAPERS, claims, groups, named, open};
pub use changes::{Setting, SettingError};
pub use claims::{ScenarioClaims, parse_claims};
pub use error::{Origin, ScenarioError};
pub use figures::{CURVES, ESTIMATES, FigureKind, FigureSpec, figures_of};
pub use flows::{BulkFlows, Flows};
pub use ladder::LADDERS;
pub use text::Times;
pub use titles::TRACES;
pub use words::explain;

use crate::sim::{Played, Setup, Viewer, Window};
use cases::Case;
use error::Blame;
use file::{File, PathTable, TitleTable, ViewerTable};

/// 32 packets of 1,500 bytes: the smallest queue that a multiple of the bandwidth-delay product comes to.
const LEAST_QUEUE: Bytes = Bytes::new(48_000);
/// Trials of `--quick`, if a scenario has more and does not say how many.
const QUICK_TRIALS: u32 = 2;

/// An experiment, or one case of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Scenario {
    /// Its name: the file's, without `.toml`.
    pub name: String,
    /// Which of the scenario's cases it is; empty if it has none.
    pub case: String,
    /// What this case is about.
    pub case_about: Option<String>,
    /// What this case sets, such as `path.rate = "10Mbit/s"`.
    pub case_sets: Vec<Setting>,
    /// What it is about.
    pub about: String,
    /// Where it comes from.
    pub source: Option<String>,
    /// The claims it decides.
    pub claims: Vec<String>,
    /// The controllers to compare.
    pub controllers: Vec<ControllerChoice>,
    /// Runs of each controller.
    pub trials: u32,
    /// Seed of the first trial; trial *n* has `seed + n - 1`, the same for all controllers.
    pub seed: u64,
    /// Whether there is a row for the best that any sender could do.
    pub ideal: bool,
    /// What is played.
    pub title: Played,
    /// What lies between.
    pub path: PathConfig,
    /// The modelled player.
    pub playout: PlayoutConfig,
    /// The player of a ladder.
    pub dash: DashOptions,
    /// Who watches.
    pub viewers: Flows,
    /// Who else downloads.
    pub bulk: Option<BulkFlows>,
    /// How far both ends of each flow are from the path, each way.
    pub access_delay: Times,
    /// The parts of a run in which flows are counted apart.
    pub windows: Vec<Window>,
    /// Whether the servers are told the size of the playout buffer.
    pub server_knows_buffer: bool,
    /// What is drawn of its results; if empty, what suits them.
    pub figures: Vec<FigureSpec>,
    /// The file as it was written, all cases in it.
    pub text: std::sync::Arc<str>,
    /// Tells what a run depends on besides controller and seed; comments, controllers and trials left out.
    pub hash: String,
}

/// What of a scenario is changed from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Fewer trials and a shorter title, as the scenario's `quick` table says.
    pub quick: bool,
    /// So many trials.
    pub trials: Option<u32>,
    /// Another first seed.
    pub seed: Option<u64>,
    /// Other values for its keys, after those of its cases.
    pub settings: Vec<Setting>,
}

impl Scenario {
    /// Reads the text of a scenario called `name`: its cases, or the one that it is itself. `file` stands in errors, and
    /// files that it names are looked for from `base`.
    ///
    /// # Errors
    /// If something in it is wrong.
    pub fn parse(
        name: &str,
        file: &str,
        text: &str,
        base: &Path,
        changes: &Changes,
    ) -> Result<Vec<Self>, ScenarioError> {
        parse_claims(name, file, text)?;
        let blame = Blame::new(file, text);
        let read = |case: &Case| {
            if case.applied.is_empty() {
                return Self::parse_case(name, blame, case, base, changes);
            }
            let effective = cases::effective(blame, case)?;
            let blame = Blame {
                text: &effective,
                written: Some(text),
                applied: &case.applied,
                case: &case.name,
                ..blame
            };
            Self::parse_case(name, blame, case, base, changes)
        };
        cases::cases(blame, changes)?.iter().map(read).collect()
    }

    fn parse_case(
        name: &str,
        blame: Blame<'_>,
        case: &Case,
        base: &Path,
        changes: &Changes,
    ) -> Result<Self, ScenarioError> {
        let read: File = toml::from_str(blame.text).map_err(|error| blame.toml(&error))?;
        let mut table: toml::Table = toml::from_str(blame.text).map_err(|error| blame.toml(&error))?;
        let title_span = read.title.span();
        let title_table = read.title.into_inner();
        let mut trials = read.trials.as_ref().map_or(1, |trials| *trials.get_ref());
        if let Some(asked) = &read.trials
            && *asked.get_ref() == 0
        {
            return Err(blame.at(asked.span(), "no trial has no result: write at least 1"));
        }
        if changes.quick {
            trials = case.quick_trials.unwrap_or(trials.min(QUICK_TRIALS)).max(1);
        }
        let title = title(blame, title_span.clone(), &title_table, base)?;
        let path = path(blame, &read.path, title.source().title().average_rate())?;
        let default_viewer = Spanned::new(0..0, ViewerTable::default());
        let viewer = read.viewer.as_ref().unwrap_or(&default_viewer);
        let playout = playout(blame, viewer)?;
        let dash = ladder::player(blame, viewer.get_ref(), &title)?;
        if let (Some(_), Some(true)) = (title.representations(), read.ideal) {
            let problem = "what is best for a player that chooses is not known: leave `ideal` out";
            return Err(blame.at(title_span, problem));
        }
        let viewers = Flows::viewers(blame, viewer.get_ref())?;
        let bulk = match &read.bulk {
            Some(table) => Some(BulkFlows::new(blame, table)?).filter(|bulk| bulk.flows.count > 0),
            None => None,
        };
        let access_delay = read.path.get_ref().access_delay.as_ref();
        let access_delay = access_delay.map_or(Times::ZERO, |times| times.0);
        let (span, controllers) = (read.controllers.span(), read.controllers.into_inner());
        if controllers.is_empty() {
            return Err(blame.at(
                span,
                "a scenario compares at least one controller, such as [\"cubic\"]",
            ));
        }
        for key in [
            "about",
            "source",
            "claims",
            "controllers",
            "trials",
            "seed",
            "ideal",
            "case",
            "quick",
            "figure",
            "claim",
            "groups",
            "beside",
        ] {
            table.remove(key);
        }
        let viewer = viewer.get_ref();
        let sets = case.applied.iter();
        let sets = sets.filter(|one| matches!(one.origin, Origin::Case(_)));
        Ok(Self {
            name: name.to_owned(),
            case: case.name.clone(),
            case_about: case.about.clone(),
            case_sets: sets.map(|one| one.setting.clone()).collect(),
            about: read.about.trim().to_owned(),
            source: read.source,
            claims: read.claims,
            controllers: controllers.into_iter().map(|text| text.0).collect(),
            trials: changes.trials.unwrap_or(trials),
            seed: changes.seed.or(read.seed).unwrap_or(1),
            ideal: read.ideal.unwrap_or(title.representations().is_none()),
            figures: figures::figures(Blame::new(blame.file, blame.written.unwrap_or(blame.text)))?,
            text: blame.written.unwrap_or(blame.text).into(),
            hash: hash(&table, &title),
            title,
            path,
            playout,
            dash,
            viewers,
            bulk,
            access_delay,
            windows: read.measure.windows.into_iter().map(|window| window.0).collect(),
            server_knows_buffer: viewer.server_knows_buffer.unwrap_or(true),
        })
    }

    /// Its name with that of the case, for people: `p12-3 n10`.
    pub fn full_name(&self) -> String {
        full_name(&self.name, &self.case)
    }

    /// The seed of trial `trial`, from 1.
    pub fn seed_of(&self, trial: u32) -> u64 {
        self.seed.wrapping_add(u64::from(trial)).wrapping_sub(1)
    }

    /// How many flows a run has: viewers and other downloads.
    pub fn flows(&self) -> u32 {
        let bulk = self.bulk.as_ref().map_or(0, |bulk| bulk.flows.count);
        self.viewers.count.saturating_add(bulk)
    }

    /// The run of `controller` with this seed.
    pub fn setup(&self, controller: &ControllerChoice, seed: u64) -> Setup {
        let seed = Seed::new(seed);
        let mut setup = Setup::new(self.path.clone(), seed);
        setup.windows.clone_from(&self.windows);
        for number in 0..self.viewers.count {
            let seed = seed.child(&format!("viewer {number}"));
            let mut viewer = Viewer::new(controller.clone(), self.title.clone());
            viewer.playout = self.playout.clone();
            viewer.dash = self.dash.clone();
            viewer.server_knows_buffer = self.server_knows_buffer;
            viewer.joins = self.viewers.joins(number, seed);
            viewer.leaves_after = self.viewers.leaves_after;
            viewer.access = flows::access(self.access_delay, seed);
            setup.viewers.push(viewer);
        }
        if let Some(bulk) = &self.bulk {
            let all = 0..bulk.flows.count;
            setup.bulk = all
                .map(|number| bulk.bulk(controller, number, seed, self.access_delay))
                .collect();
        }
        setup
    }

    /// Average rate of the title.
    pub fn title_rate(&self) -> Bitrate {
        self.title.source().title().average_rate()
    }
}

/// The name of a scenario and of its case, if it has any.
pub fn full_name(scenario: &str, case: &str) -> String {
    if case.is_empty() {
        scenario.to_owned()
    } else {
        format!("{scenario} {case}")
    }
}

fn title(
    blame: Blame<'_>,
    span: std::ops::Range<usize>,
    table: &TitleTable,
    base: &Path,
) -> Result<Played, ScenarioError> {
    if let (None, Some(rates)) = (&table.ladder, &table.rates) {
        return Err(blame.at(
            rates.span(),
            "only a ladder has several rates: write ladder = \"bbb\"",
        ));
    }
    match (&table.trace, &table.file, &table.ladder) {
        (None, None, Some(name)) => ladder::title(blame, name, table, base),
        (Some(name), None, None) => {
            let rate = table.rate.as_ref().map(|rate| rate.get_ref().0);
            let duration = table.duration.as_ref().map(|time| time.get_ref().0.0);
            let wrong = |error: playrate_media::MediaError| {
                let known: Vec<_> = TRACES.iter().map(|(name, ..)| *name).collect();
                let known = known.join(", ");
                blame.at(
                    name.span(),
                    format!("{error}; a trace is a file, or one that comes with the lab: {known}"),
                )
            };
            let trace = titles::trace(name.get_ref(), base).map_err(wrong)?;
            let asked = table.rate.as_ref().map(Spanned::span);
            let asked = asked.or(table.duration.as_ref().map(Spanned::span)).unwrap_or(span);
            titles::generated(name.get_ref(), trace, rate, duration)
                .map_err(|error| blame.at(asked, error.to_string()))
        }
        (None, Some(name), None) => {
            let extra = table.rate.as_ref().map(Spanned::span);
            if let Some(extra) = extra.or(table.duration.as_ref().map(Spanned::span)) {
                let problem = "an MP4 has the rate and duration it has: leave this out, or play a `trace`";
                return Err(blame.at(extra, problem));
            }
            titles::mp4(name.get_ref(), base).map_err(|error| blame.at(name.span(), error.to_string()))
        }
        _ => Err(blame.at(
            span,
            "a title is a `trace`, a `file` or a `ladder`: name one of them, such as trace = \"film-1080p\", file = \"embedded\" or ladder = \"bbb\"",
        )),
    }
}

fn path(blame: Blame<'_>, table: &Spanned<PathTable>, title: Bitrate) -> Result<PathConfig, ScenarioError> {
    let (span, table) = (table.span(), table.get_ref());
    let rate = table.rate.0.resolve(title);
    let rtt = table.rtt.0.0;
    let usual = match &rate {
        Rate::Wifi(wifi) => wifi.queue,
        _ => QueueLimit::ONE_BDP,
    };
    let mut queue = table.queue.as_ref().map_or(usual, |queue| queue.get_ref().0);
    if let (QueueLimit::Bdp(thousandths), Some(mean)) = (queue, rate.mean()) {
        let bytes = (mean * rtt).as_u64();
        let bytes = u128::from(bytes) * u128::from(thousandths) / 1_000;
        let least = table.least_queue.as_ref().map_or(LEAST_QUEUE, |least| least.0);
        if bytes < u128::from(least.as_u64()) {
            queue = QueueLimit::Bytes(least);
        }
    }
    let PathConfig { forward, backward } = match &rate {
        Rate::Wifi(wifi) => PathConfig::wifi(wifi, rtt),
        _ => PathConfig {
            forward: LinkConfig::new(rate, rtt.saturating_sub(rtt / 2)),
            backward: LinkConfig::new(Rate::Unlimited, rtt / 2),
        },
    };
    let mut forward = forward.with_queue(queue);
    if let Some(loss) = &table.loss {
        forward = forward.with_loss(loss.0);
    }
    if let Some(aqm) = &table.aqm {
        forward = forward.with_aqm(aqm.0);
    }
    if let Some(jitter) = &table.jitter {
        forward = forward.with_jitter(jitter.0.0);
    }
    for traffic in &table.cross_traffic {
        forward = forward.with_cross_traffic(traffic.0);
    }
    let config = PathConfig { forward, backward };
    match config.build(Seed::new(0)) {
        Ok(_) => Ok(config),
        Err(error) => {
            let queue = table.queue.as_ref().map(Spanned::span);
            let about_queue = matches!(error, playrate_netsim::ConfigError::Queue { .. });
            let place = queue.filter(|_| about_queue).unwrap_or(span);
            Err(blame.at(place, error.to_string()))
        }
    }
}

fn playout(blame: Blame<'_>, table: &Spanned<ViewerTable>) -> Result<PlayoutConfig, ScenarioError> {
    let (span, table) = (table.span(), table.get_ref());
    let buffer = table
        .playout_buffer
        .as_ref()
        .map_or(PLAYOUT_BUFFER_448, |size| size.0);
    let kind = table.clock.as_ref().map_or(ClockKind::CatchUp, |clock| clock.0);
    let defaults = CatchUp::default();
    let clock = match kind {
        ClockKind::CatchUp => Clock::CatchUp(CatchUp {
            late: table.late.as_ref().map_or(defaults.late, |time| time.0.0),
            max_jitter: table
                .max_jitter
                .as_ref()
                .map_or(defaults.max_jitter, |time| time.0.0),
            speed_percent: table.catch_up_percent.unwrap_or(defaults.speed_percent),
        }),
        ClockKind::Rebuffer => Clock::Rebuffer(Rebuffer {
            resume: table
                .resume
                .as_ref()
                .map_or(Fill::Bytes(buffer), |time| Fill::PlayingTime(time.0.0)),
        }),
    };
    let mut config = PlayoutConfig::new(buffer, clock);
    config.receive_buffer = table
        .receive_buffer
        .as_ref()
        .map_or(RECEIVE_BUFFER_PAPERS, |size| size.0);
    if let Some(after) = &table.start_after {
        config.start = Start::After(after.0.0);
    }
    match video_client::playout::Playout::new(config.clone()) {
        Ok(_) => Ok(config),
        Err(error) => Err(blame.at(span, error.to_string())),
    }
}

/// The first 16 hexadecimal digits of SHA-256 over what a run depends on. TOML tables are sorted by key.
fn hash(table: &toml::Table, title: &Played) -> String {
    let mut hash = Sha256::new();
    hash.update(table.to_string());
    for (_, source) in title.resources() {
        hash.update(source.identity());
    }
    let digest = hash.finalize();
    digest.iter().take(8).fold(String::new(), |mut text, byte| {
        use std::fmt::Write as _;
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
