//! [`Aqm`]: dropping or marking before the queue is full.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use playrate_units::duration;

use super::draw::scale;
use super::parts_of;
use crate::{ConfigError, Time};

/// Queue management: actions on packets before the queue is full.
///
/// Text form: `none`, `codel`, `codel(5ms,100ms)`, and `codel(5ms,100ms,ecn)` or `codel(ecn)` to mark instead
/// of drop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Aqm {
    /// No queue management: the queue drops at its limit only.
    #[default]
    None,
    /// Controlled delay, `CoDel` (RFC 8289).
    Codel(Codel),
}

/// Controlled delay (RFC 8289 §4): once packets have waited longer than `target` for an `interval`, one is dropped.
/// Drops become more and more frequent until the wait is below `target` again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Codel {
    /// Tolerated wait. At least the transmission time of one full packet applies, since one packet is not a queue.
    pub target: Duration,
    /// Time for which `target` may be exceeded: a worst-case round trip.
    pub interval: Duration,
    /// Marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Codel {
    /// 5 ms and 100 ms (RFC 8289 §4.2, §4.3), dropping.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: false,
        }
    }
}

impl FromStr for Aqm {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let error = || ConfigError::AqmText(text.to_owned());
        let mut codel = Codel::default();
        match text.trim() {
            "none" => return Ok(Self::None),
            "codel" => return Ok(Self::Codel(codel)),
            _ => {}
        }
        let mut parts = parts_of(text, "codel").ok_or_else(error)?;
        if parts.last() == Some(&"ecn") {
            codel.ecn = true;
            parts.pop();
        }
        match *parts.as_slice() {
            [] if codel.ecn => {}
            [target, interval] => {
                codel.target = duration::parse(target).map_err(|_| error())?;
                codel.interval = duration::parse(interval).map_err(|_| error())?;
            }
            _ => return Err(error()),
        }
        if codel.interval.is_zero() {
            Err(error())
        } else {
            Ok(Self::Codel(codel))
        }
    }
}

impl fmt::Display for Aqm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Codel(Codel {
                target,
                interval,
                ecn,
            }) => {
                let (target, interval) = (duration::display(*target), duration::display(*interval));
                let ecn = if *ecn { ",ecn" } else { "" };
                f.pad(&format!("codel({target},{interval}{ecn})"))
            }
        }
    }
}

/// Action on a packet that reaches the head of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AqmAction {
    Pass,
    Mark,
    Drop,
}

/// The state of RFC 8289 §5. It decides on each packet for the time when the packet leaves the queue. Packets leave in
/// order, so that time is known when a packet arrives.
#[derive(Clone, Debug)]
pub(crate) struct CodelState {
    config: Codel,
    target: Duration,
    first_above: Option<Time>,
    dropping: Option<Dropping>,
    drop_next: Time,
    count: u32,
    last_count: u32,
}

/// Treatment of the packet after a dropped one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropping {
    /// It passes however long it waited: a drop state begins with one drop.
    Entered,
    /// It sets the time of the next drop, if the queue is still too long.
    Dropped,
    /// It is dropped if the time for a drop has come.
    Waiting,
}

impl CodelState {
    /// `packet_time` is the transmission time of one full packet.
    pub(crate) fn new(config: Codel, packet_time: Duration) -> Self {
        Self {
            config,
            target: config.target.max(packet_time),
            first_above: None,
            dropping: None,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// Decides on a packet that leaves the queue at `now` after waiting for `sojourn`.
    pub(crate) fn decide(&mut self, now: Time, sojourn: Duration, markable: bool) -> AqmAction {
        let act = if markable && self.config.ecn {
            AqmAction::Mark
        } else {
            AqmAction::Drop
        };
        let too_long = self.too_long(now, sojourn);
        match self.dropping {
            Some(Dropping::Entered) => {
                self.dropping = Some(Dropping::Waiting);
                AqmAction::Pass
            }
            Some(_) if !too_long => {
                self.dropping = None;
                AqmAction::Pass
            }
            Some(state) => {
                if state == Dropping::Dropped {
                    self.drop_next = self.control(self.drop_next);
                    self.dropping = Some(Dropping::Waiting);
                }
                if now < self.drop_next {
                    return AqmAction::Pass;
                }
                self.count += 1;
                if act == AqmAction::Mark {
                    // A marked packet stays, so it sets the next time itself.
                    self.drop_next = self.control(self.drop_next);
                } else {
                    self.dropping = Some(Dropping::Dropped);
                }
                act
            }
            None if too_long => {
                self.enter(now, act);
                act
            }
            None => AqmAction::Pass,
        }
    }

    fn too_long(&mut self, now: Time, sojourn: Duration) -> bool {
        if sojourn < self.target {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.config.interval);
                false
            }
            Some(first) => now >= first,
        }
    }

    fn enter(&mut self, now: Time, act: AqmAction) {
        // If it dropped packets recently, the rate that controlled the queue then is a good start (§5.4).
        let delta = self.count.saturating_sub(self.last_count);
        let recently = now.since(self.drop_next) < self.config.interval.saturating_mul(16);
        self.count = if delta > 1 && recently { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control(now);
        self.dropping = Some(if act == AqmAction::Mark {
            Dropping::Waiting
        } else {
            Dropping::Entered
        });
    }

    /// `t + interval / √count` (§5.3).
    fn control(&self, from: Time) -> Time {
        from + scale(
            self.config.interval,
            1.0 / libm::sqrt(f64::from(self.count.max(1))),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Packets leave every millisecond after waiting 20 ms; returns the times of drops or marks.
    fn actions(codel: Codel, markable: bool, until: u64) -> Vec<(u64, AqmAction)> {
        let mut state = CodelState::new(codel, Duration::ZERO);
        (0..until)
            .map(|ms| (ms, state.decide(Time::from_millis(ms), 20 * MS, markable)))
            .filter(|(_, decision)| *decision != AqmAction::Pass)
            .collect()
    }

    #[test]
    fn drops_begin_after_an_interval_and_come_at_its_inverse_square_roots() {
        let at: Vec<u64> = actions(Codel::default(), true, 400)
            .into_iter()
            .map(|(ms, _)| ms)
            .collect();
        // Above the target from 0 on: the first drop at 100 ms, then 100/√1, 100/√2, 100/√3, … later.
        assert_eq!(at[..4], [100, 200, 271, 329]);
    }

    #[test]
    fn ecn_capable_packets_are_marked_if_configured() {
        let codel = Codel {
            ecn: true,
            ..Codel::default()
        };
        assert!(
            actions(codel, true, 400)
                .iter()
                .all(|(_, decision)| *decision == AqmAction::Mark)
        );
        assert!(
            actions(codel, false, 400)
                .iter()
                .all(|(_, decision)| *decision == AqmAction::Drop)
        );
    }

    #[test]
    fn a_short_wait_ends_it() {
        let mut state = CodelState::new(Codel::default(), Duration::ZERO);
        for ms in 0..=100 {
            state.decide(Time::from_millis(ms), 20 * MS, false);
        }
        for ms in 101..1_000 {
            assert_eq!(state.decide(Time::from_millis(ms), MS, false), AqmAction::Pass);
        }
    }

    #[test]
    fn text_round_trips() {
        for text in ["none", "codel(5ms,100ms)", "codel(10ms,200ms,ecn)"] {
            assert_eq!(text.parse::<Aqm>().unwrap().to_string(), text);
        }
        assert_eq!("codel".parse(), Ok(Aqm::Codel(Codel::default())));
        assert_eq!(
            "codel(ecn)".parse(),
            Ok(Aqm::Codel(Codel {
                ecn: true,
                ..Codel::default()
            }))
        );
        for text in [
            "red",
            "codel()",
            "codel(5ms)",
            "codel(5ms,0ms)",
            "codel(ecn,5ms,1ms)",
        ] {
            assert_eq!(text.parse::<Aqm>(), Err(ConfigError::AqmText(text.into())));
        }
    }
}
