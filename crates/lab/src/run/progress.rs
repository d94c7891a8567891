//! [`ProgressDisplay`]: a bar with the remaining time on a terminal, plain lines elsewhere.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use playrate_units::rounded::time;

/// Interval of plain lines if stderr is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows the progress of runs on stderr.
pub(crate) struct ProgressDisplay {
    style: Style,
    began: Instant,
    total: u64,
    runs: usize,
}

enum Style {
    Bar(ProgressBar),
    Lines { next: Duration },
}

impl ProgressDisplay {
    /// A display of `runs` runs with the total weight `total`.
    pub(crate) fn new(runs: usize, total: u64) -> Self {
        let style = if stderr().is_terminal() {
            Style::Bar(bar(total))
        } else {
            Style::Lines { next: LINE_EVERY }
        };
        Self {
            style,
            began: Instant::now(),
            total: total.max(1),
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
        match &mut self.style {
            Style::Bar(bar) => {
                bar.set_position(weight);
                bar.set_message(text);
            }
            Style::Lines { next } => {
                if elapsed >= *next {
                    *next = elapsed + LINE_EVERY;
                    // A closed stderr is not an error.
                    let _ = writeln!(stderr(), "{text}");
                }
            }
        }
    }

    /// Prints a line above the progress.
    pub(crate) fn note(&self, text: &str) {
        match &self.style {
            Style::Bar(bar) => bar.println(text),
            Style::Lines { .. } => {
                // A closed stderr is not an error.
                let _ = writeln!(stderr(), "{text}");
            }
        }
    }

    pub(crate) fn finish(self) {
        if let Style::Bar(bar) = self.style {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total.max(1)), ProgressDrawTarget::stderr_with_hz(8));
    let style = ProgressStyle::with_template("▕{bar:30.cyan/dim}▏ {percent:>3} %  {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▉▊▋▌▍▎▏ ");
    bar.set_style(style);
    bar
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
