//! [`SessionsDisplay`]: the running sessions on stderr, as bars on a terminal and plain lines elsewhere.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use playrate_units::Bitrate;
use playrate_units::rounded::{rate, size};

use crate::run::bar_style;
use crate::sim::{LiveStatus, StatusCell, ViewerState};
use crate::words::count;

/// Interval of plain lines if stderr is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Playing time ahead that fills the whole bar.
const BAR: Duration = Duration::from_secs(8);

/// Maximum length of a spec shown in full, so that a line fits a terminal.
const SPEC: usize = 11;

/// Interval over which a bar's rate is measured.
const RATE_OVER: Duration = Duration::from_millis(700);

/// Shows all sessions. The owner calls [`SessionsDisplay::refresh`] several times a second.
pub(super) struct SessionsDisplay(Vec<ShownSession>);

struct ShownSession {
    spec: String,
    status: StatusCell,
    /// The status at the end of the last interval, and the rate in that interval.
    before: LiveStatus,
    rate: Bitrate,
    /// `None` for plain lines.
    bar: Option<ProgressBar>,
}

impl SessionsDisplay {
    /// A display of sessions named by their specs; `quiet` hides everything.
    pub(super) fn new(mut sessions: Vec<(String, StatusCell)>, quiet: bool) -> Self {
        if quiet {
            sessions.clear();
        }
        let bars = stderr().is_terminal().then(|| bars(&sessions));
        let mut bars = bars.into_iter().flatten();
        let shown = |(spec, status): (String, StatusCell)| ShownSession {
            spec: shortened(&spec),
            status,
            before: LiveStatus::default(),
            rate: Bitrate::ZERO,
            bar: bars.next(),
        };
        Self(sessions.into_iter().map(shown).collect())
    }

    /// Shows the latest status of every session.
    pub(super) fn refresh(&mut self) {
        for shown in &mut self.0 {
            let now = *shown.status.borrow();
            let span = now.at.saturating_sub(shown.before.at);
            let interval = shown.bar.as_ref().map_or(LINE_EVERY, |_| RATE_OVER);
            let is_due = span >= interval;
            if is_due {
                let bytes = now.received - shown.before.received;
                shown.rate = bytes.per(span).unwrap_or(Bitrate::ZERO);
                shown.before = now;
            }
            let text = describe(&now, shown.rate, shown.bar.is_none());
            if let Some(bar) = &shown.bar {
                bar.set_position(u64::try_from(now.ahead.min(BAR).as_millis()).unwrap_or(0));
                bar.set_message(text);
            } else if is_due {
                // A closed stderr is not an error.
                let _ = writeln!(stderr(), "{:>3.0} s {}: {text}", now.at.as_secs_f64(), shown.spec);
            }
        }
    }

    /// Shows the last status and keeps it on the screen.
    pub(super) fn finish(mut self) {
        self.refresh();
        for bar in self.0.iter().filter_map(|shown| shown.bar.as_ref()) {
            bar.abandon();
        }
    }
}

fn bars(sessions: &[(String, StatusCell)]) -> Vec<ProgressBar> {
    let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8));
    let widths = sessions.iter().map(|(spec, _)| spec.chars().count());
    let width = widths.max().unwrap_or(0).min(SPEC);
    let full = u64::try_from(BAR.as_millis()).unwrap_or(1);
    let style = bar_style("{prefix} ▕{bar:8.cyan/dim}▏ {msg}");
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

/// The status of a session in one line; `ahead` includes the buffered time, which a bar shows separately.
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

    fn stalled() -> LiveStatus {
        LiveStatus {
            state: ViewerState::Stalled,
            window: Some(Bytes::from_kb(42)),
            underflows: 1,
            ..LiveStatus::default()
        }
    }

    #[test]
    fn a_line_has_the_viewers_state_and_the_underflows_so_far() {
        let status = stalled();
        let rate = Bitrate::from_kbps(1_250);
        let rest = "1.25 Mbit/s, cwnd 42 kB, 1 underflow";
        let line = format!("STALLED  0.0 s ahead, {rest}");
        assert_eq!(describe(&status, rate, true), line);
        assert_eq!(describe(&status, rate, false), format!("STALLED {rest}"));
    }

    #[test]
    fn a_line_of_progress_fits_a_terminal() {
        let status = LiveStatus {
            ahead: Duration::from_secs(42),
            window: Some(Bytes::from_kb(142)),
            underflows: 12,
            ..stalled()
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
