//! A scenario in words, with a small diagram.

use std::fmt::Write as _;

use playrate_netsim::{Loss, QueueLimit};
use video_client::playout::{Clock, Fill, Start};

use super::Scenario;
use crate::words::{count, grouped, rate, size, time};

impl Scenario {
    /// What the scenario does, for people.
    pub fn explain(&self) -> String {
        let mut text = format!("{}\n\n{}\n", self.name, self.about);
        let mut line = |label: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{label:<12}{value}");
        };
        line("", "");
        if let Some(source) = &self.source {
            line("Source", source);
        }
        if !self.claims.is_empty() {
            line("Claims", &self.claims.join(", "));
        }
        let names: Vec<_> = self.controllers.iter().map(ToString::to_string).collect();
        line("Controllers", &names.join(", "));
        let extra = if self.ideal {
            ", and once the best that any sender could do"
        } else {
            ""
        };
        let trials = format!(
            "{} of each controller, seeds {} to {}{extra}",
            count(self.trials.into(), "run", "runs"),
            self.seed,
            self.seed_of(self.trials)
        );
        line("Trials", &trials);
        line("Title", &self.title_words());
        line("Player", &self.player_words());
        if self.viewers > 1 {
            let every = time(self.join_every);
            line(
                "Viewers",
                &format!("{} at one bottleneck, one more every {every}", self.viewers),
            );
        }
        if let Some(after) = self.leaves_after {
            line("Ends", &format!("after {}", time(after)));
        }
        line("Hash", &self.hash);
        text.push('\n');
        text.push_str(&self.diagram());
        text
    }

    fn title_words(&self) -> String {
        let title = self.title.source().title();
        format!(
            "{}: {}, {}, {} on average (λ), {} pictures",
            self.title.name(),
            time(title.duration()),
            size(title.file_size()),
            rate(title.average_rate()),
            grouped(title.frames().len() as u64)
        )
    }

    fn player_words(&self) -> String {
        let config = &self.playout;
        let start = match config.start {
            Start::After(after) => format!("starts after {}", time(after)),
            Start::Filled(Fill::Bytes(bytes)) => format!("starts when {} are in", size(bytes)),
            Start::Filled(Fill::PlayingTime(playing)) => {
                format!("starts when {} of playing time are in", time(playing))
            }
            Start::Filled(Fill::Segments(number)) => {
                format!(
                    "starts when {} are in",
                    count(number.into(), "segment", "segments")
                )
            }
        };
        let clock = match &config.clock {
            Clock::CatchUp(clock) => format!(
                "keeps its clock, shows late pictures at {} % of the frame rate, discards them when {} late, \
                 starts its clock anew after {}",
                clock.speed_percent,
                time(clock.late),
                time(clock.max_jitter)
            ),
            Clock::Rebuffer(_) => "stalls when nothing is left and goes on when enough is in".to_owned(),
        };
        let buffers = format!(
            "playout buffer {}, receive buffer {}",
            size(config.playout_buffer),
            size(config.receive_buffer)
        );
        format!("{buffers}; {start}; {clock}")
    }

    /// Server, bottleneck and viewer, with what is between them.
    fn diagram(&self) -> String {
        let link = &self.path.forward;
        let round_trip = self.path.round_trip();
        let queue = match link.queue {
            QueueLimit::Packets(packets) => count(packets.into(), "packet", "packets"),
            _ => link
                .build(round_trip, playrate_netsim::Seed::new(0))
                .ok()
                .and_then(|link| link.queue_limit())
                .map_or_else(|| "unlimited".to_owned(), size),
        };
        let speed = link.rate.mean().map_or_else(|| link.rate.to_string(), rate);
        let times = link.rate.mean().map_or_else(String::new, |mean| {
            let lambda = self.title_rate().as_mbps();
            format!(" = {:.2} λ", mean.as_mbps() / lambda)
        });
        let loss = match link.loss {
            Loss::None => "no random loss".to_owned(),
            loss => format!("{loss} random loss"),
        };
        let who = if self.viewers == 1 {
            "viewer".to_owned()
        } else {
            format!("{} viewers", self.viewers)
        };
        format!(
            "server ──▶ [ queue {queue} ]──▶ {speed}{times}, {loss} ──▶ {who}\n       ◀──────── {} there and back, \
             acknowledgements unhindered ────────\n",
            time(round_trip)
        )
    }
}
