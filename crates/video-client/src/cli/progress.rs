//! The progress bar on stderr, if that is a terminal.

use std::collections::VecDeque;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use playrate_units::{Bitrate, Bytes};
use video_client::{Observer, Progress};

/// Number of reports over which the displayed rate is computed, about two seconds.
const WINDOW: usize = 20;

/// Draws the progress of a session.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    recent: VecDeque<(Duration, Bytes)>,
}

impl Bar {
    /// Creates a bar on stderr, which `indicatif` hides if that is not a terminal.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::no_length();
        // The template is a constant; if it were wrong, the default bar would do.
        if let Ok(style) = ProgressStyle::with_template("{bar:30.cyan/blue} {percent:>3} % {msg}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_message("connecting");
        Self {
            bar,
            recent: VecDeque::with_capacity(WINDOW + 1),
        }
    }

    /// Removes the bar from the screen.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn rate(&mut self, at: Duration, received: Bytes) -> Option<Bitrate> {
        self.recent.push_back((at, received));
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
        let &(since, before) = self.recent.front()?;
        (received - before).per(at.saturating_sub(since))
    }
}

impl Observer for Bar {
    fn progress(&mut self, progress: &Progress) {
        let rate = self.rate(progress.at, progress.received);
        if let Some(promised) = progress.promised {
            self.bar.set_length(promised.as_u64());
        }
        let position = match progress.segments {
            Some((fetched, all)) => {
                self.bar.set_length(all as u64);
                fetched as u64
            }
            None => progress.received.as_u64(),
        };
        self.bar.set_position(position);
        let left = self.bar.length().map(|_| self.bar.eta());
        let left = left.filter(|left| !left.is_zero());
        let left = left.map_or(String::new(), |left| format!("  {:#} left", HumanDuration(left)));
        self.bar.set_message(message(progress, rate) + &left);
    }
}

fn message(progress: &Progress, rate: Option<Bitrate>) -> String {
    let seen = &progress.playback;
    let state = match (progress.connected, seen.startup_delay, progress.reading_paused) {
        (false, ..) => "reconnecting",
        (true, None, _) => "buffering",
        (true, Some(_), true) => "buffer full",
        (true, Some(_), false) => "playing",
    };
    let place = progress.segments.map_or(String::new(), |(fetched, all)| {
        let representation = progress.representation.as_deref().unwrap_or_default();
        format!("  segment {fetched}/{all} at {representation}")
    });
    let troubles = [
        (seen.frames_discarded, "discarded"),
        (seen.underflow_events, "stalls"),
    ];
    let troubles = troubles.iter().filter(|(count, _)| *count > 0);
    let troubles = troubles.map(|(count, what)| format!("  {count} {what}"));
    let troubles = troubles.collect::<Vec<_>>().concat();
    format!(
        "{state}{place}  buffer {:.1} s  {:.1} Mbit/s{troubles}",
        progress.held_time.as_secs_f64(),
        rate.map_or(0.0, Bitrate::as_mbps),
    )
}
