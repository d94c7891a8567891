//! [`ProgressDisplay`]: a bar with the remaining time on a terminal, plain lines elsewhere.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use playrate_units::rounded::time;

/// Interval of plain lines if stderr is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows the progress of runs on stderr.
pub(crate) struct ProgressDisplay {
    /// `None` for plain lines.
    bar: Option<ProgressBar>,
    began: Instant,
    next_line: Duration,
    total: u64,
    runs: usize,
}

impl ProgressDisplay {
    /// A display of `runs` runs with the total weight `total`.
    pub(crate) fn new(runs: usize, total: u64) -> Self {
        let total = total.max(1);
        let bar = || {
            let target = ProgressDrawTarget::stderr_with_hz(8);
            ProgressBar::with_draw_target(Some(total), target)
                .with_style(bar_style("▕{bar:30.cyan/dim}▏ {percent:>3} %  {msg}"))
        };
        Self {
            bar: stderr().is_terminal().then(bar),
            began: Instant::now(),
            next_line: LINE_EVERY,
            total,
            runs,
        }
    }

    /// Shows that `done` runs and the weight `weight` are finished.
    pub(crate) fn show(&mut self, done: usize, weight: u64) {
        let weight = weight.min(self.total);
        let elapsed = self.began.elapsed();
        let remaining = eta(elapsed, weight, self.total);
        let text = match remaining {
            Some(remaining) => format!("{done} of {} runs, about {} to go", self.runs, time(remaining)),
            None => format!("{done} of {} runs", self.runs),
        };
        if let Some(bar) = &self.bar {
            bar.set_position(weight);
            bar.set_message(text);
        } else if elapsed >= self.next_line {
            self.next_line = elapsed + LINE_EVERY;
            self.note(&text);
        }
    }

    /// Prints a line above the progress.
    pub(crate) fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => {
                // A closed stderr is not an error.
                let _ = writeln!(stderr(), "{text}");
            }
        }
    }

    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The style of bars with this template.
pub(crate) fn bar_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▉▊▋▌▍▎▏ ")
}

/// Remaining time at the pace so far; `None` in the first second.
fn eta(elapsed: Duration, done: u64, total: u64) -> Option<Duration> {
    if done == 0 || elapsed < Duration::from_secs(1) {
        return None;
    }
    let rest = total.saturating_sub(done) as f64 / done as f64;
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * rest).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_in_proportion_as_what_is_done() {
        let second = Duration::from_secs(1);
        assert_eq!(eta(second * 10, 25, 100), Some(second * 30));
        assert_eq!(eta(second * 10, 100, 100), Some(Duration::ZERO));
        assert_eq!(eta(second * 10, 0, 100), None);
    }
}
