//! [`SessionsDisplay`]: the running sessions on stderr, as bars on a terminal and plain lines elsewhere.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use playrate_units::Bitrate;
use playrate_units::rounded::{rate, size};

use crate::sim::{LiveStatus, StatusCell, ViewerState};
use crate::words::count;

/// Interval of plain lines if stderr is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Playing time ahead that fills the whole bar.
const BAR: Duration = Duration::from_secs(8);

/// Maximum length of a spec shown in full, so that a line fits a terminal.
const SPEC: usize = 11;

/// Shows all sessions. The owner calls [`SessionsDisplay::refresh`] several times a second.
pub(super) struct SessionsDisplay {
    sessions: Vec<ShownSession>,
    style: Style,
}

struct ShownSession {
    spec: String,
    status: StatusCell,
    before: LiveStatus,
    rate: Bitrate,
}

enum Style {
    Bars(Vec<ProgressBar>),
    Lines { next: Duration },
    Silent,
}

impl SessionsDisplay {
    /// A display of sessions named by their specs; `quiet` hides everything.
    pub(super) fn new(sessions: Vec<(String, StatusCell)>, quiet: bool) -> Self {
        let style = if quiet {
            Style::Silent
        } else if stderr().is_terminal() {
            Style::Bars(bars(&sessions))
        } else {
            Style::Lines { next: LINE_EVERY }
        };
        let shown = |(spec, status): (String, StatusCell)| ShownSession {
            spec: shortened(&spec),
            status,
            before: LiveStatus::default(),
            rate: Bitrate::ZERO,
        };
        Self {
            sessions: sessions.into_iter().map(shown).collect(),
            style,
        }
    }

    /// Shows the latest status of every session.
    pub(super) fn refresh(&mut self) {
        let due = match self.style {
            Style::Lines { next } => self.sessions.iter().any(|shown| shown.status.get().at >= next),
            _ => false,
        };
        for (i, shown) in self.sessions.iter_mut().enumerate() {
            let now = shown.status.get();
            let span = now.at.saturating_sub(shown.before.at);
            let enough = Duration::from_millis(if due { 1 } else { 700 });
            if span >= enough {
                let bytes = now.received - shown.before.received;
                shown.rate = bytes.per(span).unwrap_or(Bitrate::ZERO);
                if !matches!(self.style, Style::Lines { .. }) || due {
                    shown.before = now;
                }
            }
            let text = describe(&now, shown.rate, matches!(self.style, Style::Lines { .. }));
            match &self.style {
                Style::Bars(bars) => {
                    if let Some(bar) = bars.get(i) {
                        bar.set_position(u64::try_from(now.ahead.min(BAR).as_millis()).unwrap_or(0));
                        bar.set_message(text);
                    }
                }
                Style::Lines { .. } if due => {
                    // A closed stderr is not an error.
                    let _ = writeln!(stderr(), "{:>3.0} s {}: {text}", now.at.as_secs_f64(), shown.spec);
                }
                Style::Lines { .. } | Style::Silent => {}
            }
        }
        if let (true, Style::Lines { next }) = (due, &mut self.style) {
            *next += LINE_EVERY;
        }
    }

    /// Shows the last status and keeps it on the screen.
    pub(super) fn finish(mut self) {
        self.refresh();
        if let Style::Bars(bars) = &self.style {
            for bar in bars {
                bar.abandon();
            }
        }
    }
}

fn bars(sessions: &[(String, StatusCell)]) -> Vec<ProgressBar> {
    let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8));
    let width = sessions
        .iter()
        .map(|(spec, _)| spec.chars().count().min(SPEC))
        .max()
        .unwrap_or(0);
    let full = u64::try_from(BAR.as_millis()).unwrap_or(1);
    let template = "{prefix} ▕{bar:8.cyan/dim}▏ {msg}";
    let style = ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▉▊▋▌▍▎▏ ");
    sessions
        .iter()
        .map(|(spec, _)| {
            let bar = all.add(ProgressBar::new(full));
            bar.set_style(style.clone());
            bar.set_prefix(format!("{:>width$}", shortened(spec)));
            bar
        })
        .collect()
}

/// The status of a session in one line; `ahead` includes the buffered time, which a bar shows by itself.
fn describe(status: &LiveStatus, rate_now: Bitrate, ahead: bool) -> String {
    let state = format!("{:<7}", status.state.name());
    let seen = count(status.underflows, "underflow", "underflows");
    if status.state == ViewerState::Ended {
        return format!("{state} {seen}");
    }
    let buffered = format!(" {:>4.1} s ahead,", status.ahead.as_secs_f64());
    let buffered = if ahead { buffered } else { String::new() };
    let window = status
        .window
        .map_or_else(String::new, |window| format!(", cwnd {}", size(window)));
    format!("{state}{buffered} {:>11}{window}, {seen}", rate(rate_now))
}

/// The spec, cut to [`SPEC`] characters.
fn shortened(spec: &str) -> String {
    if spec.chars().count() <= SPEC {
        return spec.to_owned();
    }
    spec.chars().take(SPEC - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_units::Bytes;

    #[test]
    fn a_line_has_the_viewers_state_and_the_underflows_so_far() {
        let status = LiveStatus {
            at: Duration::from_secs(12),
            state: ViewerState::Stalled,
            ahead: Duration::ZERO,
            received: Bytes::from_kb(3_000),
            window: Some(Bytes::from_kb(42)),
            underflows: 1,
            discarded: 7,
        };
        let rate = Bitrate::from_kbps(1_250);
        assert_eq!(
            describe(&status, rate, true),
            "STALLED  0.0 s ahead, 1.25 Mbit/s, cwnd 42 kB, 1 underflow"
        );
        assert_eq!(
            describe(&status, rate, false),
            "STALLED 1.25 Mbit/s, cwnd 42 kB, 1 underflow"
        );
    }

    #[test]
    fn a_line_of_progress_fits_a_terminal() {
        let status = LiveStatus {
            at: Duration::from_secs(112),
            state: ViewerState::Stalled,
            ahead: Duration::from_secs(42),
            received: Bytes::from_kb(3_000),
            window: Some(Bytes::from_kb(142)),
            underflows: 12,
            discarded: 700,
        };
        let spec = shortened("cubic(fast_convergence=off)+start=hystartpp");
        assert_eq!(spec, "cubic(fast…");
        let rate = Bitrate::from_kbps(11_250);
        let line = format!("112 s {spec}: {}", describe(&status, rate, true));
        assert!(line.chars().count() <= 80, "{line}");
        let bar = format!("{spec} ▕12345678▏ {}", describe(&status, rate, false));
        assert!(bar.chars().count() <= 80, "{bar}");
    }
}
