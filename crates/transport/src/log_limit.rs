//! [`LogLimit`]: a limit on the rate of a log line.

use std::time::{Duration, Instant};

/// Limits a log line on frequent events to one line per [`INTERVAL`](Self::INTERVAL), so that clients that keep
/// retrying do not fill the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogLimit {
    /// Time of the last line.
    last: Option<Instant>,
    /// Number of events since then.
    events: u64,
}

impl LogLimit {
    /// Minimum time between two lines.
    pub const INTERVAL: Duration = Duration::from_secs(10);

    /// Counts an event at `now`. If a line is due, returns the number of events since the last one, and takes the
    /// line as written at `now`.
    pub fn count(&mut self, now: Instant) -> Option<u64> {
        self.events = self.events.saturating_add(1);
        if self
            .last
            .is_some_and(|at| now.saturating_duration_since(at) < Self::INTERVAL)
        {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.events))
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
        assert_eq!(limit.count(start), Some(1));
        let early = start + LogLimit::INTERVAL.saturating_sub(Duration::from_nanos(1));
        for _ in 0..499 {
            assert_eq!(limit.count(early), None);
        }
        assert_eq!(limit.count(start + LogLimit::INTERVAL), Some(500));
    }
}
