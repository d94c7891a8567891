//! [`ArmTotals`]: sums over the sessions of each arm that have ended, for the dashboard.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use playrate_units::Bitrate;
use serde_json::{Value, json};
use video_server::serve::SessionSummary;
use video_server::serve::arms::{Arms, DEFAULT};

/// Sums over sessions that have ended, by arm.
#[derive(Debug, Default)]
pub(super) struct ArmTotals(Mutex<BTreeMap<String, SessionSums>>);

#[derive(Debug, Default)]
struct SessionSums {
    sessions: u64,
    sent_packets: u64,
    lost_packets: u64,
    stalls: u64,
    rtt: Mean,
    bitrate: Mean,
    buffer: Mean,
}

/// Mean over the sessions for which the value is known.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    fn get(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

impl ArmTotals {
    /// Adds a session if it had an arm.
    pub(super) fn add(&self, session: &SessionSummary) {
        let Some(arm) = &session.state.arm else { return };
        let mut all = self.0.lock();
        let sums = all.entry(arm.clone()).or_default();
        sums.sessions += 1;
        sums.sent_packets += session.transport.path.sent_packets;
        sums.lost_packets += session.transport.path.lost_packets;
        sums.rtt.add(Some(session.transport.path.rtt.as_secs_f64() * 1e3));
        if let Some(player) = &session.state.player {
            sums.stalls += player.stalls;
            let bits = |rate: Bitrate| rate.as_bits_per_second() as f64;
            sums.bitrate.add(player.mean_bitrate().map(bits));
            sums.buffer
                .add(player.mean_buffer().as_ref().map(Duration::as_secs_f64));
        }
    }

    /// One row for each of `arms`, and one for `--controller`.
    pub(super) fn rows(&self, arms: &Arms, default: &str) -> Vec<Value> {
        let all = self.0.lock();
        let named = arms.arms().iter();
        let named = named.map(|arm| (arm.name.as_str(), arm.controller.to_string()));
        named
            .chain([(DEFAULT, default.to_owned())])
            .map(|(name, controller)| {
                let nothing = SessionSums::default();
                let sums = all.get(name).unwrap_or(&nothing);
                let share = sums.lost_packets as f64 / sums.sent_packets as f64;
                json!({
                    "arm": name,
                    "controller": controller,
                    "sessions": sums.sessions,
                    "loss": share.is_finite().then_some(share),
                    "rtt_ms": sums.rtt.get(),
                    "bitrate": sums.bitrate.get(),
                    "buffer_s": sums.buffer.get(),
                    "starvations": sums.stalls,
                })
            })
            .collect()
    }
}
