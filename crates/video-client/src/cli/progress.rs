//! The progress bar on stderr, if that is a terminal.

use std::collections::VecDeque;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
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
        self.bar.set_message(message(progress, rate));
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
    let eta = progress
        .promised
        .zip(rate)
        .and_then(|(promised, rate)| rate.time_for(promised - progress.received))
        .map_or(String::new(), |left| format!("  {} s left", left.as_secs()));
    let rate = rate.map_or(0.0, Bitrate::as_mbps);
    let troubles = if seen.frames_discarded > 0 || seen.underflow_events > 0 {
        format!(
            ", {} discarded, {} underflows",
            seen.frames_discarded, seen.underflow_events
        )
    } else {
        String::new()
    };
    if let Some((fetched, all)) = progress.segments {
        let representation = progress.representation.as_deref().unwrap_or_default();
        let stalls = match seen.underflow_events {
            0 => String::new(),
            count => format!(", {count} stalls"),
        };
        let held = progress.held_time.as_secs_f64();
        return format!(
            "{state}  segment {fetched}/{all} at {representation}  buffer {held:.1} s  {rate:.1} Mbit/s{stalls}"
        );
    }
    format!(
        "{state}  buffer {:.0} % ({:.1} s)  {rate:.1} Mbit/s  {} shown{troubles}{eta}",
        percent(progress.playout_buffer_fill, progress.playout_buffer),
        progress.held_time.as_secs_f64(),
        seen.frames_shown,
    )
}

fn percent(part: Bytes, whole: Bytes) -> f64 {
    if whole == Bytes::ZERO {
        return 100.0;
    }
    part.as_f64() / whole.as_f64() * 100.0
}
