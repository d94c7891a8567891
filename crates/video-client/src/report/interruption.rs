//! [`Interruption`] and [`Interruptions`]: times without a connection, or without data on a new one.

use std::time::Duration;

use playrate_units::seconds;
use serde::Serialize;

/// A time without data, beginning when a connection was lost or a response was abandoned. Times are since the session
/// began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Interruption {
    /// Time at which the client noticed.
    #[serde(rename = "began_s", with = "seconds")]
    pub began: Duration,
    /// End of the last handshake during it, if any.
    #[serde(rename = "connected_s", with = "seconds::optional")]
    pub connected: Option<Duration>,
    /// Arrival of the first data after it; `None` if the session ended first.
    #[serde(rename = "resumed_s", with = "seconds::optional")]
    pub resumed: Option<Duration>,
    /// The error that began it.
    pub reason: String,
}

/// The interruptions of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Interruptions {
    /// Connections made after the first.
    pub reconnects: u64,
    /// Sum of the times without a connection, from the loss of one to the end of the handshake of the next.
    #[serde(rename = "disconnected_s", with = "seconds")]
    pub disconnected: Duration,
    /// Number of interruptions, including unrecorded ones.
    #[serde(rename = "interruption_count")]
    pub count: u64,
    /// The interruptions in order, the first [`MAX_RECORDED`](Self::MAX_RECORDED) of them.
    #[serde(rename = "interruptions")]
    pub recorded: Vec<Interruption>,
}

impl Interruptions {
    /// Maximum number of recorded interruptions; further ones are only counted.
    pub const MAX_RECORDED: usize = 1_000;
}

/// Records [`Interruptions`] as they happen.
#[derive(Debug, Default)]
pub(crate) struct InterruptionLog {
    total: Interruptions,
    /// The interruption in progress, if any.
    pub(crate) present: Option<Interruption>,
    /// Start of the present time without a connection.
    pub(crate) disconnected_since: Option<Duration>,
    /// End of the last interruption; zero before the first.
    pub(crate) last_end: Duration,
}

impl InterruptionLog {
    /// Begins an interruption unless one is in progress. Returns it.
    pub(crate) fn begin(&mut self, now: Duration, reason: &dyn ToString) -> &Interruption {
        self.present.get_or_insert_with(|| Interruption {
            began: now,
            connected: None,
            resumed: None,
            reason: reason.to_string(),
        })
    }

    /// Records that the connection is lost.
    pub(crate) fn disconnected(&mut self, now: Duration) {
        self.disconnected_since.get_or_insert(now);
    }

    /// Records a new connection.
    pub(crate) fn connected(&mut self, now: Duration) {
        self.total.reconnects += 1;
        self.count_disconnected(now);
        if let Some(present) = &mut self.present {
            present.connected = Some(now);
        }
    }

    /// Records that data has arrived, which ends an interruption.
    pub(crate) fn resumed(&mut self, now: Duration) {
        if let Some(mut interruption) = self.present.take() {
            interruption.resumed = Some(now);
            self.last_end = now;
            self.keep(interruption);
        }
    }

    /// All interruptions of a session that ended at `ended`.
    pub(crate) fn finish(mut self, ended: Duration) -> Interruptions {
        self.count_disconnected(ended);
        if let Some(interruption) = self.present.take() {
            self.keep(interruption);
        }
        self.total
    }

    fn count_disconnected(&mut self, until: Duration) {
        if let Some(since) = self.disconnected_since.take() {
            self.total.disconnected += until.saturating_sub(since);
        }
    }

    fn keep(&mut self, interruption: Interruption) {
        self.total.count += 1;
        if self.total.recorded.len() < Interruptions::MAX_RECORDED {
            self.total.recorded.push(interruption);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn several_losses_without_data_between_them_are_one_interruption() {
        let mut log = InterruptionLog::default();
        for began in [10, 14] {
            log.begin(secs(began), &"lost");
            log.disconnected(secs(began));
            log.connected(secs(began + 2));
        }
        log.resumed(secs(17));
        log.begin(secs(20), &"503");
        log.resumed(secs(30));
        let seen = log.finish(secs(40));
        assert_eq!((seen.reconnects, seen.disconnected), (2, secs(4)));
        let times: Vec<_> = seen
            .recorded
            .iter()
            .map(|it| (it.began, it.connected, it.resumed))
            .collect();
        let expected = [
            (secs(10), Some(secs(16)), Some(secs(17))),
            (secs(20), None, Some(secs(30))),
        ];
        assert_eq!(times, expected);
    }

    #[test]
    fn an_interruption_that_never_ended_lasts_to_the_end() {
        let mut log = InterruptionLog::default();
        log.begin(secs(10), &"lost");
        log.disconnected(secs(10));
        assert!(log.disconnected_since.is_some() && log.present.is_some());
        let seen = log.finish(secs(70));
        assert_eq!((seen.reconnects, seen.disconnected), (0, secs(60)));
        assert_eq!(seen.recorded[0].resumed, None);
    }

    #[test]
    fn all_interruptions_are_counted_and_the_first_thousand_recorded() {
        let mut log = InterruptionLog::default();
        for began in 0..1_500 {
            log.begin(secs(began), &"cancelled");
            log.resumed(secs(began));
        }
        let seen = log.finish(secs(1_500));
        assert_eq!(seen.count, 1_500);
        assert_eq!(seen.recorded.len(), Interruptions::MAX_RECORDED);
        assert_eq!(seen.recorded.last().unwrap().began, secs(999));
    }
}
