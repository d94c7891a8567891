//! Scenarios described in words, with a small diagram.

use std::fmt::Write as _;

use playrate_netsim::{Loss, QueueLimit, Rate};
use playrate_units::rounded::{grouped, rate, size, time};
use video_client::playout::{Clock, Fill, Start};

use super::file::TimeRange;
use super::{Flows, Scenario, Vary, titles};
use crate::words::count;

/// Describes a scenario for people: first the lines common to all cases, then those of each case.
pub(crate) fn explain(cases: &[Scenario]) -> String {
    let Some(first) = cases.first() else {
        return String::new();
    };
    let mut text = format!("{}\n\n{}\n\n", first.name, first.about);
    let all: Vec<Vec<LabelledLine>> = cases.iter().map(Scenario::lines).collect();
    let common = |line: &LabelledLine| all.iter().all(|lines| lines.contains(line));
    // Writing to a String cannot fail, here and below.
    let put = |text: &mut String, (label, value): &LabelledLine| {
        let _ = writeln!(text, "{label:<12}{value}");
    };
    let shared = all[0].iter().filter(|line| common(line));
    shared.for_each(|line| put(&mut text, line));
    if first.case.is_empty() {
        return format!("{text}\n{}", first.diagram());
    }
    for (case, lines) in cases.iter().zip(&all) {
        let about = case.case_about.as_deref().unwrap_or_default();
        let _ = writeln!(text, "\nCase {}: {about}", case.case);
        for setting in &case.case_sets {
            let line = ("Sets", format!("{} = {}", setting.key, setting.value));
            put(&mut text, &line);
        }
        let own = lines.iter().filter(|line| !common(line));
        own.for_each(|line| put(&mut text, line));
        let _ = write!(text, "\n{}", case.diagram());
    }
    text
}

fn flows_words(flows: &Flows) -> String {
    let mut text = if flows.joins.from < flows.joins.to {
        format!("joining at a random time in {}", flows.joins)
    } else {
        format!("joining at {}", time(flows.joins.from))
    };
    if flows.count > 1 && !flows.join_every.is_zero() {
        let _ = write!(text, ", one more every {}", time(flows.join_every));
    }
    if let Some(after) = flows.leaves_after {
        let _ = write!(text, ", leaving after {}", time(after));
    }
    text
}

type LabelledLine = (&'static str, String);

impl Scenario {
    fn lines(&self) -> Vec<LabelledLine> {
        let mut lines: Vec<LabelledLine> = Vec::new();
        lines.extend(self.source.clone().map(|source| ("Source", source)));
        let names: Vec<_> = self.controllers.iter().map(ToString::to_string).collect();
        lines.push(("Controllers", names.join(", ")));
        let extra = match (self.ideal, self.vary) {
            (false, _) => "",
            (true, Vary::None) => ", and one of the ideal sender",
            (true, Vary::Trials) => ", and of the ideal sender",
        };
        let trials = format!(
            "{} of each controller, seeds {} to {}{extra}",
            count(self.trials.into(), "run", "runs"),
            self.seed,
            self.seed_of(self.trials)
        );
        lines.push(("Trials", trials));
        lines.extend(self.variation_words().map(|words| ("Varied", words)));
        lines.push(("Title", self.title_words()));
        lines.push(match &self.frames {
            Some(frames) => ("Encoder", frames.words()),
            None => ("Player", self.player_words()),
        });
        lines.extend(self.viewers_words().map(|words| ("Viewers", words)));
        let titles = self.viewer.titles_per_connection;
        if titles > 1 {
            let words = format!("{titles} copies of the title at once on each connection");
            lines.push(("Titles", words));
        }
        if !self.viewer.seeks.is_empty() {
            let seeks = self.viewer.seeks.iter();
            let seeks = seeks.map(|seek| format!("after {} to {}", time(seek.at), time(seek.to)));
            lines.push(("Seeks", seeks.collect::<Vec<_>>().join(", ")));
        }
        if let Some(request) = self.viewer.ack_request {
            let packets = request.packets;
            let words = format!(
                "acknowledge {packets} packets at once, or after a quarter of the RTT (25 ms at most)"
            );
            lines.push(("Clients", words));
        }
        if self.remembers_ssthresh {
            let words = "begin with the ssthresh left behind by one viewer who played alone before them";
            lines.push(("Servers", words.to_owned()));
        }
        if let Some(bulk) = &self.bulk {
            let controller = bulk.controller.as_ref().map_or_else(
                || "the controller of the viewers".to_owned(),
                |controller| format!("{controller}, whatever controller the viewers have"),
            );
            let mut when = flows_words(&bulk.flows);
            if let Some(stays) = bulk.stays {
                let _ = write!(when, "; the run lasts {} or longer", time(stays));
            }
            let words = format!(
                "{}, each under {controller}; {when}",
                count(bulk.flows.count.into(), "endless download", "endless downloads")
            );
            lines.push(("Downloads", words));
        }
        lines.push(("Transport", self.transport_words()));
        lines.extend(self.path_lines());
        if !self.windows.is_empty() {
            let names: Vec<_> = self.windows.iter().map(ToString::to_string).collect();
            let words = format!("{} of the run, counted separately", names.join(", "));
            lines.push(("Windows", words));
        }
        lines.push(("Hash", self.hash.clone()));
        lines
    }

    fn transport_words(&self) -> String {
        let thresholds = self.transport.loss_detection;
        let mtu = if self.transport.mtu_discovery {
            "MTU discovery"
        } else {
            "MTU of 1,452 bytes without discovery"
        };
        format!(
            "a packet counts as lost {} packets or {} RTTs after it was overtaken; {mtu}",
            thresholds.packet_threshold, thresholds.time_threshold
        )
    }

    /// Lines about everything that the diagram of the path does not show.
    fn path_lines(&self) -> Vec<LabelledLine> {
        let mut lines = Vec::new();
        if self.access_delay != TimeRange::ZERO {
            let words = format!(
                "{} from each end of a flow to the bottleneck, one way, drawn for each",
                self.access_delay
            );
            lines.push(("Access", words));
        }
        let (forward, backward) = (&self.path.forward, &self.path.backward);
        if forward.rate.shared_medium().is_some() {
            lines.push(("Hop", forward.rate.to_string()));
        } else if !matches!(forward.rate, Rate::Constant(_) | Rate::Unlimited) {
            lines.push(("Rate", forward.rate.to_string()));
        }
        if forward.delay.changes() {
            let words = format!("{} from the bottleneck to the viewers", forward.delay);
            lines.push(("Routes", words));
        }
        if let Some(policer) = &forward.policer {
            let (limit, bucket) = (rate(policer.rate), size(policer.burst));
            lines.push(("Policer", format!("drops what exceeds {limit}, bucket {bucket}")));
        }
        if let Some(reordering) = &forward.reordering {
            let (share, by) = (reordering.probability, time(reordering.by));
            lines.push(("Reordering", format!("{share} of packets {by} later")));
        }
        if let Some(factor) = self.loss_scale {
            let words = format!("{factor} times as frequent as the path says: {}", forward.loss);
            lines.push(("Loss", words));
        }
        let has_own_uplink = forward.rate.shared_medium().is_none();
        if let Some(mean) = backward.rate.mean().filter(|_| has_own_uplink) {
            let (mean, queue) = (rate(mean), backward.queue);
            let words = format!("{mean}, queue {queue}, for packets back to the servers");
            lines.push(("Uplink", words));
        }
        if !backward.batches.is_zero() {
            let words = format!("sent on together, every {}", time(backward.batches));
            lines.push(("ACK batches", words));
        }
        if has_own_uplink && backward.loss != Loss::None {
            let words = format!("{} of packets back to the servers", backward.loss);
            lines.push(("ACK loss", words));
        }
        let traffic = &forward.cross_traffic;
        if !traffic.is_empty() {
            let names: Vec<_> = traffic.iter().map(ToString::to_string).collect();
            lines.push(("Cross", names.join(", ")));
        }
        lines
    }

    fn viewers_words(&self) -> Option<String> {
        let viewers = &self.viewers;
        let plain = viewers.count == 1 && viewers.last_joins().is_zero() && viewers.leaves_after.is_none();
        (!plain).then(|| {
            let number = count(viewers.count.into(), "viewer", "viewers");
            format!("{number}; {}", flows_words(viewers))
        })
    }

    fn title_words(&self) -> String {
        let title = self.viewer.title.source().title();
        if let Some(presentation) = self.viewer.title.representations() {
            let rates = presentation.representations().iter();
            let rates = rates.map(|it| format!("{} at {}", it.name, rate(it.rate)));
            let rates: Vec<_> = rates.collect();
            return format!(
                "{}: {} in {} segments, {}",
                self.viewer.title.name(),
                time(title.duration()),
                presentation.segment_count(),
                rates.join(", ")
            );
        }
        let variability = self.variability.map_or_else(String::new, |factor| {
            format!(", its rate {factor} times as variable as the trace's")
        });
        let declared = match self.viewer.declared_rate_factor {
            1.0 => String::new(),
            factor => format!(", {factor} times that according to the server's library"),
        };
        format!(
            "{}: {}, {}, {} on average (λ){declared}, {} frames{variability}",
            self.viewer.title.name(),
            time(title.duration()),
            size(title.file_size()),
            rate(title.average_rate()),
            grouped(title.frames().len() as u64)
        )
    }

    fn player_words(&self) -> String {
        let words = self.buffers_words();
        let reports = if self.viewer.reports_speed { "" } else { "not " };
        match self.viewer.playout.speed_percent {
            100 => words,
            percent => format!(
                "{words}; plays at {} times the normal speed, {reports}reported",
                f64::from(percent) / 100.0
            ),
        }
    }

    fn buffers_words(&self) -> String {
        if self.viewer.title.representations().is_some() {
            return titles::player_words(&self.viewer.dash, &self.viewer.title);
        }
        let config = &self.viewer.playout;
        let start = match config.start {
            Start::After(after) => format!("starts after {}", time(after)),
            Start::Filled(Fill::Bytes(bytes)) => format!("starts with {} buffered", size(bytes)),
            Start::Filled(Fill::PlayingTime(playing)) => {
                format!("starts with {} of playing time buffered", time(playing))
            }
            Start::Filled(Fill::Segments(number)) => {
                let number = count(number.into(), "segment", "segments");
                format!("starts with {number} buffered")
            }
        };
        let clock = match &config.clock {
            Clock::CatchUp(clock) => format!(
                "catch-up clock: shows late frames at {} % of the frame rate, discards those later than {}, \
                 restarts the clock after {}",
                clock.speed_percent,
                time(clock.late),
                time(clock.max_jitter)
            ),
            Clock::Rebuffer(_) => {
                "rebuffer clock: stalls when the buffer is empty and resumes when it is refilled".to_owned()
            }
        };
        let receive = if self.viewer.receive_autotuning {
            "window autotuned up to"
        } else {
            "buffer"
        };
        let (playout, holds) = (size(config.playout_buffer), size(config.receive_buffer));
        format!("playout buffer {playout}, receive {receive} {holds}; {start}; {clock}")
    }

    /// Server, bottleneck and receivers as a line of text.
    fn diagram(&self) -> String {
        let (queue, rate) = (self.queue_words(), self.rate_words());
        let loss = match self.path.forward.loss {
            Loss::None => "no".to_owned(),
            loss => loss.to_string(),
        };
        let back = if self.path.forward.rate.shared_medium().is_some() {
            format!("ACKs over the same hop, queue {}", self.path.backward.queue)
        } else if let Some(uplink) = self.path.backward.rate.mean() {
            format!("ACKs over {}", self::rate(uplink))
        } else if self.path.backward.loss == Loss::None {
            "ACKs unhindered".to_owned()
        } else {
            format!("{} of ACKs lost", self.path.backward.loss)
        };
        let receivers = self.receivers();
        let server = if self.flows() == 1 { "server " } else { "servers" };
        format!(
            "{server}──▶ [ queue {queue} ]──▶ {rate}, {loss} random loss ──▶ {receivers}\n       ◀──────── {} \
             round trip, {back} ────────\n",
            time(self.path.round_trip())
        )
    }

    fn receivers(&self) -> String {
        let mut text = if self.viewers.count == 1 {
            "viewer".to_owned()
        } else {
            format!("{} viewers", self.viewers.count)
        };
        if let Some(bulk) = &self.bulk {
            let downloads = count(bulk.flows.count.into(), "download", "downloads");
            let _ = write!(text, " + {downloads}");
        }
        text
    }

    fn queue_words(&self) -> String {
        let link = &self.path.forward;
        if let QueueLimit::Packets(packets) = link.queue {
            return count(packets.into(), "packet", "packets");
        }
        let limit = link.queue_limit(self.path.round_trip());
        limit.map_or_else(|| "unlimited".to_owned(), size)
    }

    fn rate_words(&self) -> String {
        let speed = &self.path.forward.rate;
        let medium = speed.shared_medium();
        let medium = medium.map_or_else(String::new, |medium| format!("{medium}, "));
        match speed.mean() {
            None => format!("{medium}{speed}"),
            Some(mean) => {
                let times = mean.as_mbps() / self.title_rate().as_mbps();
                format!("{medium}{} = {times:.2} λ", rate(mean))
            }
        }
    }
}
