//! [`FaultPlan`]: everything that a seed determines about one session.

use std::sync::LazyLock;
use std::time::Duration;

use lab::sim::ServedTitle;
use playrate_cc::Registry;
use playrate_media::{FrameTrace, Ladder, MediaError, SegmentSizes, TraceSource};
use playrate_netsim::{LinkConfig, PathConfig, QueueLimit, Rate, Seed};
use playrate_transport::{Baseline, ControllerChoice};
use playrate_units::rounded::{percent, rate, size, time};
use playrate_units::{Bitrate, Bytes, Probability};

use crate::draw::Draws;
use crate::kind::{Fault, FaultKind, Impairment, Ways};
use crate::words::wrapped;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Frames of a title in one file, and frame pattern of segments.
const TRACE: &str = include_str!("../../../assets/traces/film-1080p.csv");
/// Sizes of a title's segments.
const LADDER: &str = include_str!("../../../assets/ladders/bbb.csv");

/// Idle timeout of the connections (`TransportOptions::idle_timeout`).
const IDLE: Duration = seconds(30);

/// The bottleneck of a session's path; the return direction is unlimited.
#[derive(Clone, Debug)]
pub(crate) struct PathPlan {
    pub(crate) rate: Bitrate,
    pub(crate) rtt: Duration,
    pub(crate) queue: Bytes,
    /// Random loss in each direction.
    pub(crate) loss: Probability,
    pub(crate) jitter: Duration,
}

impl PathPlan {
    fn draw(draws: &mut Draws) -> Self {
        let rate = Bitrate::from_kbps(draws.spread(1_000, 40_000));
        let rtt = draws.time(millis(5), millis(300));
        let bdp = (rate * rtt).as_u64();
        let loss = if draws.chance(0.5) {
            0
        } else {
            draws.spread(100_000, 10_000_000)
        };
        let jitter = if draws.chance(0.7) {
            Duration::ZERO
        } else {
            draws.time(millis(1), millis(15))
        };
        Self {
            rate,
            rtt,
            queue: Bytes::new(draws.spread(bdp / 3, bdp * 3).max(15_000)),
            loss: Probability::from_parts_per_billion(u32::try_from(loss).unwrap_or_default()),
            jitter,
        }
    }

    /// The path, with the link faults among `faults`.
    pub(crate) fn config(&self, faults: &[Fault]) -> PathConfig {
        let link = |rate: Rate, delay| {
            LinkConfig::new(rate, delay)
                .with_loss(self.loss)
                .with_jitter(self.jitter)
        };
        let half = self.rtt / 2;
        let mut path = PathConfig::new(
            link(self.rate.into(), self.rtt.saturating_sub(half)).with_queue(QueueLimit::Bytes(self.queue)),
            link(Rate::Unlimited, half),
        );
        for [down, up] in faults.iter().map(Fault::of_links) {
            path.forward.faults.extend(down);
            path.backward.faults.extend(up);
        }
        path
    }
}

/// The title of a session, of generated payload.
#[derive(Clone, Debug)]
pub(crate) struct TitlePlan {
    /// True if an adaptive player fetches it in segments; otherwise it is one response.
    pub(crate) in_segments: bool,
    /// Rate of the title, or of its lowest representation.
    pub(crate) rate: Bitrate,
    pub(crate) duration: Duration,
}

impl TitlePlan {
    fn draw(draws: &mut Draws, link: Bitrate) -> Self {
        let in_segments = draws.chance(0.4);
        let most = (link.as_bits_per_second() / 1_000 * 2 / 3).min(3_000);
        let duration = if in_segments {
            seconds(3 * draws.spread(2, 4))
        } else {
            draws.time(seconds(2), seconds(10))
        };
        Self {
            in_segments,
            rate: Bitrate::from_kbps(draws.spread(200, if in_segments { most / 2 } else { most })),
            duration,
        }
    }

    /// The title as served and played.
    ///
    /// # Errors
    /// If it cannot be generated, which would be a mistake in the plan.
    pub(crate) fn served(&self) -> anyhow::Result<ServedTitle> {
        static FRAMES: LazyLock<Result<FrameTrace, MediaError>> = LazyLock::new(|| FrameTrace::parse(TRACE));
        let frames = FRAMES.clone()?;
        if !self.in_segments {
            let trace = frames
                .repeat_to(self.duration)
                .and_then(|trace| trace.scale_to_rate(self.rate));
            return Ok(ServedTitle::trace("title", TraceSource::new(&trace?)));
        }
        let sizes: SegmentSizes = LADDER.parse()?;
        let bits = self.rate.as_bits_per_second();
        let rates = [("low", 1), ("middle", 2), ("high", 4)]
            .map(|(name, factor)| (name.to_owned(), Bitrate::from_kbps(bits / 1_000 * factor)));
        let ladder = Ladder::generate(&sizes, &frames, &rates, self.duration);
        Ok(ServedTitle::ladder("title", ladder?)?)
    }
}

/// Everything that a seed determines about one session.
#[derive(Clone, Debug)]
pub(crate) struct FaultPlan {
    pub(crate) seed: u64,
    pub(crate) path: PathPlan,
    pub(crate) title: TitlePlan,
    pub(crate) controller: ControllerChoice,
    /// True for a player with a small buffer, so that the download takes about as long as the title plays.
    pub(crate) holds_little: bool,
    pub(crate) send_window: Bytes,
    pub(crate) receive_window: Bytes,
    pub(crate) stall_timeout: Duration,
    pub(crate) idle_limit: Option<Duration>,
    /// True if the client reconnects when its connection is lost.
    pub(crate) reconnects: bool,
    /// Faults, sorted by time.
    pub(crate) faults: Vec<Fault>,
}

impl FaultPlan {
    /// The plan of this seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut draws = Draws::new(Seed::new(seed).child("faults"));
        let draws = &mut draws;
        let path = PathPlan::draw(draws);
        let title = TitlePlan::draw(draws, path.rate);
        let controllers = controllers();
        let mut plan = Self {
            seed,
            controller: controllers[draws.below(controllers.len())].clone(),
            holds_little: draws.chance(0.4),
            // Small ones, so that titles of a few seconds fill them.
            send_window: Bytes::new(draws.spread(32, 1_024) << 10),
            receive_window: Bytes::new(draws.spread(32, 1_024) << 10),
            stall_timeout: draws.time(seconds(15), seconds(60)),
            idle_limit: draws.chance(0.3).then(|| draws.time(seconds(2), seconds(30))),
            reconnects: draws.chance(0.7),
            faults: Vec::new(),
            path,
            title,
        };
        let number = match draws.below(100) {
            0..3 => 0,
            3..50 => 1,
            50..82 => 2,
            _ => 3,
        };
        let horizon = plan.expected().mul_f64(1.1);
        for _ in 0..number {
            let at = draws.moment(horizon);
            plan.faults.push(Fault {
                at,
                kind: kind(draws),
            });
        }
        plan.faults.sort_by_key(|fault| fault.at);
        plan
    }

    /// The faults of exactly this kind and extent.
    pub(crate) fn of_kind(&self, kind: FaultKind) -> impl Iterator<Item = &Fault> {
        self.faults.iter().filter(move |fault| fault.kind == kind)
    }

    /// Approximate length of the download without faults.
    fn expected(&self) -> Duration {
        let bytes = self.title.rate * self.title.duration;
        let transfer = self.path.rate.time_for(bytes).unwrap_or_default();
        let at_once = transfer + self.path.rtt * 6;
        if self.holds_little {
            at_once.max(self.title.duration)
        } else {
            at_once
        }
    }

    /// Maximum number of bytes that a server may have read ahead of the viewer: both windows, two chunks of 64 KiB for
    /// the response, and the 256 KiB that may wait to be sent.
    pub(crate) fn memory(&self) -> Bytes {
        self.send_window + self.receive_window + Bytes::new((2 * 64 + 256) << 10)
    }

    /// The seed for this name in the run.
    pub(crate) fn seed_of(&self, name: &str) -> Seed {
        Seed::new(self.seed).child(name)
    }

    /// Maximum time after the end of a session (`ended`) until the last server has no connection left. The idle timeout
    /// of 30 s restarts with the first packet sent after the last one was received (RFC 9000 §10.1). That packet may be
    /// sent when almost as much time has passed, and there are 5 s to spare. A connection is idle for at least three
    /// [probe timeouts](Self::probe_timeouts); if closed in the meantime, it is kept for three more (§10.2).
    pub(crate) fn freed_within(&self, ended: Duration) -> Duration {
        IDLE * 2 + seconds(5) + self.probe_timeouts(ended) * 2
    }

    /// Three [probe timeouts](Fault::probe_timeout) after the faults, ignoring those that begin too long after `ended`
    /// to matter.
    pub(crate) fn probe_timeouts(&self, ended: Duration) -> Duration {
        let before = self.faults.iter().filter(|fault| fault.at <= ended + IDLE * 2);
        let timeouts = before.map(|fault| match fault.kind {
            // The client's timeout, after which it reconnects.
            FaultKind::NewPort | FaultKind::NewAddress if self.may_be_connecting(fault.at) => IDLE * 3,
            FaultKind::Loss(Impairment { lasts, .. }) | FaultKind::Corruption(Impairment { lasts, .. }) => {
                lasts * 3
            }
            _ => fault.probe_timeout(),
        });
        timeouts.sum::<Duration>() * 3
    }

    /// Returns true if a client may not have received the confirmation of a handshake at `at`: in the first round
    /// trips, and after faults that may have made it reconnect. Until then a change of its address may cost it the
    /// connection: the server accepts no other address (RFC 9000 §9), and the client must not send probe packets that
    /// would show the new one (RFC 9002 §6.2.1).
    pub(crate) fn may_be_connecting(&self, at: Duration) -> bool {
        let silences = |fault: &Fault| {
            let is_move = matches!(fault.kind, FaultKind::NewPort | FaultKind::NewAddress);
            let end = fault.ends().unwrap_or(Duration::MAX);
            fault.kind.silences() && !is_move && fault.at <= at && at <= end.saturating_add(seconds(60))
        };
        at <= self.path.rtt * 4 + self.path.jitter * 4 + seconds(1) || self.faults.iter().any(silences)
    }

    /// True if `fault` may keep bytes from arriving.
    pub(crate) fn silences(&self, fault: &Fault) -> bool {
        let is_move = matches!(fault.kind, FaultKind::NewPort | FaultKind::NewAddress);
        fault.kind.silences() && (!is_move || self.may_be_connecting(fault.at))
    }

    /// Time when the viewer leaves if the reader's pause never ends: after the server has had time to abandon the
    /// response, and then the connection.
    pub(crate) fn viewer_leaves(&self) -> Option<Duration> {
        let paused = self.of_kind(FaultKind::PausedReader(None)).next()?;
        Some(paused.at + self.stall_timeout * 2 + self.idle_limit.unwrap_or_default() + seconds(60))
    }

    /// The plan in words, within 80 columns.
    pub(crate) fn text(&self) -> String {
        let either = |is: bool, text: &'static str, otherwise| if is { text } else { otherwise };
        let Self { path, title, .. } = self;
        let (jitter, loss) = (time(path.jitter), percent(path.loss.as_f64()));
        let (link, rtt, queue) = (rate(path.rate), time(path.rtt), size(path.queue));
        let form = either(title.in_segments, "in segments from", "in one piece at");
        let holds = either(self.holds_little, "little", "all that comes");
        let again = either(self.reconnects, "connects again", "does not connect again");
        let [receives, sends] = [self.receive_window, self.send_window].map(size);
        let idle = self.idle_limit.map_or_else(|| "none".to_owned(), time);
        let (controller, stall) = (&self.controller, time(self.stall_timeout));
        let mut lines = vec![
            (
                "path",
                format!("{link}, {rtt} RTT, queue of {queue}, {loss} loss, {jitter} jitter"),
            ),
            (
                "title",
                format!("{} {form} {}", time(title.duration), rate(title.rate)),
            ),
            (
                "player",
                format!("holds {holds}, {again}; receive window {receives}"),
            ),
            (
                "server",
                format!("{controller}; send window {sends}, stall timeout {stall}, idle limit {idle}"),
            ),
        ];
        if self.faults.is_empty() {
            lines.push(("faults", "none".to_owned()));
        }
        let lines = lines.into_iter().map(|(mark, words)| (mark.to_owned(), words));
        let faults = self
            .faults
            .iter()
            .map(|fault| (time(fault.at), fault.kind.to_string()));
        let lines = lines
            .chain(faults)
            .map(|(mark, words)| wrapped(&format!("{mark:<12}"), &words));
        format!("seed        {}\n{}", self.seed, lines.collect::<String>())
    }
}

/// All controllers: the registry's, its aliases and quinn's own, except those that vary from run to run.
fn controllers() -> Vec<ControllerChoice> {
    let registry = Registry::installed();
    let names = registry.controllers().map(|entry| entry.name().to_owned());
    let aliases = registry.aliases().map(|alias| alias.name.to_owned());
    let specs = names.chain(aliases).filter_map(|name| name.parse().ok());
    let baselines = Baseline::ALL
        .into_iter()
        .filter(|baseline| baseline.is_deterministic());
    specs.chain(baselines.map(ControllerChoice::from)).collect()
}

/// A fault of any kind, all of them equally likely.
fn kind(draws: &mut Draws) -> FaultKind {
    let name = FaultKind::NAMES[draws.below(FaultKind::NAMES.len())];
    let mut impairment = |low: u64, high: u64, longest: u64| Impairment {
        ways: Ways::ALL[draws.below(3)],
        lasts: draws.time(millis(100), seconds(longest)),
        share: Probability::from_parts_per_billion(
            u32::try_from(draws.spread(low, high) * 10_000_000).unwrap_or(u32::MAX),
        ),
    };
    match name {
        "loss burst" => FaultKind::Loss(impairment(2, 90, 20)),
        "reordering" => FaultKind::Reordering(impairment(1, 50, 20), draws.time(millis(1), millis(300))),
        "duplication" => FaultKind::Duplication(impairment(1, 100, 60)),
        "corruption" => FaultKind::Corruption(impairment(1, 60, 20)),
        "outage" => FaultKind::Outage {
            ways: Ways::ALL[draws.below(3)],
            lasts: draws.time(millis(20), seconds(60)),
        },
        "MTU limit" if draws.chance(0.25) => FaultKind::MtuLimit(Bytes::new(draws.spread(600, 1_199))),
        "MTU limit" => FaultKind::MtuLimit(Bytes::new(draws.spread(1_200, 1_451))),
        "new port" => FaultKind::NewPort,
        "new address" => FaultKind::NewAddress,
        "server restart" => FaultKind::Restart {
            gap: draws.time(millis(10), seconds(40)),
            same_key: draws.chance(0.6),
        },
        "server gone" => FaultKind::ServerGone,
        "client gone" => FaultKind::ClientGone,
        "slow disk" => FaultKind::SlowDisk {
            lasts: draws.time(millis(100), seconds(20)),
            delay: draws.time(millis(2), seconds(3)),
        },
        "broken disk" => FaultKind::BrokenDisk {
            lasts: draws.time(millis(50), seconds(10)),
        },
        "paused reader" if draws.chance(0.3) => FaultKind::PausedReader(None),
        "paused reader" => FaultKind::PausedReader(Some(draws.time(millis(100), seconds(90)))),
        "server suspended" => FaultKind::ServerSuspended(draws.time(millis(20), seconds(45))),
        _ => FaultKind::ClientSuspended(draws.time(millis(20), seconds(45))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_fault_is_drawn_under_its_own_name_and_every_controller_is_used() {
        let plans: Vec<_> = (0..2_000).map(FaultPlan::of).collect();
        for name in FaultKind::NAMES {
            let faults = plans.iter().flat_map(|plan| &plan.faults);
            let number = faults.filter(|fault| fault.kind.name() == name).count();
            assert!(number > 100, "{number} of {name}");
        }
        for controller in controllers() {
            assert!(
                plans.iter().any(|plan| plan.controller == controller),
                "{controller}"
            );
        }
    }

    #[test]
    fn a_tenth_of_the_responses_would_not_fit_into_the_memory_that_a_server_may_use() {
        let plans = (0..1_000).map(FaultPlan::of);
        let large = plans.filter(|plan| {
            let bytes = plan.title.rate * plan.title.duration;
            !plan.title.in_segments && bytes > plan.memory()
        });
        let number = large.count();
        assert!(number > 100, "{number} of 1000");
    }

    #[test]
    fn a_plan_is_told_within_eighty_columns() {
        for plan in (0..500).map(FaultPlan::of) {
            let text = plan.text();
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
}
