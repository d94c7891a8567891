//! [`LogLimit`]: a limit on the rate of a log line.

use std::time::{Duration, Instant};

/// Limits a log line on frequent events to one line per [`INTERVAL`](Self::INTERVAL), so that clients that keep
/// retrying do not fill the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogLimit {
    /// Time of the last line, and the number of events by then.
    last: Option<(Instant, u64)>,
}

impl LogLimit {
    /// Minimum time between two lines.
    pub const INTERVAL: Duration = Duration::from_secs(10);

    /// Number of events since the last line, if a line is due at `now`; the line then counts as written. `total` is the
    /// number of events so far.
    pub fn due(&mut self, total: u64, now: Instant) -> Option<u64> {
        let before = match self.last {
            Some((at, _)) if now.saturating_duration_since(at) < Self::INTERVAL => return None,
            Some((_, before)) => before,
            None => 0,
        };
        self.last = Some((now, total));
        Some(total.saturating_sub(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn::{Runtime, TokioRuntime};

    #[test]
    fn a_line_stands_for_the_events_since_the_line_before() {
        let mut limit = LogLimit::default();
        let start = TokioRuntime.now();
        assert_eq!(limit.due(1, start), Some(1));
        let early = start + LogLimit::INTERVAL.saturating_sub(Duration::from_nanos(1));
        assert_eq!(limit.due(500, early), None);
        assert_eq!(limit.due(501, start + LogLimit::INTERVAL), Some(500));
    }
}
