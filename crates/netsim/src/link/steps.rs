//! [`Steps`]: values with start times that may repeat.

use core::fmt::Display;
use core::time::Duration;

use playrate_units::duration;

use crate::Time;
use crate::time::nanos;

/// Values and the times from which they apply. The last one applies for ever, or the steps repeat.
///
/// Text form: `A,B@30s,repeat@60s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Steps<T> {
    pub(super) steps: Vec<(Duration, T)>,
    pub(super) repeat: Option<Duration>,
}

impl<T: Copy> Steps<T> {
    /// Reads `text`, each value with `read`; `None` if it is malformed.
    pub(super) fn read(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<Self> {
        let mut all = Self {
            steps: Vec::new(),
            repeat: None,
        };
        for part in text.split(',') {
            let (what, from) = part.split_once('@').unwrap_or((part, "0s"));
            let from = duration::parse(from).ok()?;
            if all.repeat.is_some() {
                return None;
            }
            if what.trim() == "repeat" {
                all.repeat = Some(from);
            } else {
                all.steps.push((from, read(what.trim())?));
            }
        }
        Some(all)
    }

    /// Text form; `value` gives the text of each value.
    pub(super) fn show<S: Display>(&self, value: impl Fn(T) -> S) -> String {
        let steps = self.steps.iter().map(|(from, step)| {
            let step = value(*step);
            if from.is_zero() {
                step.to_string()
            } else {
                format!("{step}@{}", duration::display(*from))
            }
        });
        let repeat = self
            .repeat
            .map(|repeat| format!("repeat@{}", duration::display(repeat)));
        steps.chain(repeat).collect::<Vec<_>>().join(",")
    }

    /// The violated rule of the times, if any.
    pub(super) fn broken_rule(&self) -> Option<&'static str> {
        let last = self.steps.last().map(|(from, _)| *from);
        if self.steps.first().is_none_or(|(from, _)| !from.is_zero()) {
            return Some("its first step must apply from the beginning");
        }
        if self
            .steps
            .windows(2)
            .any(|pair| matches!(pair, [(one, _), (two, _)] if one >= two))
        {
            return Some("its times must increase");
        }
        (self.repeat.is_some() && last >= self.repeat).then_some("it repeats before its last step")
    }

    /// The step at `now`: its value, its start, and its end, which is [`Time::MAX`] if it never ends. `None` without
    /// steps.
    pub(super) fn at(&self, now: Time) -> Option<(T, Time, Time)> {
        let within = match self.repeat.map(nanos) {
            Some(repeat) => now.as_nanos().checked_rem(repeat)?,
            None => now.as_nanos(),
        };
        let start = Time::from_nanos(now.as_nanos() - within);
        let within = Duration::from_nanos(within);
        let next = self.steps.partition_point(|(from, _)| *from <= within);
        let (from, value) = self.steps.get(next.checked_sub(1)?)?;
        let end = self.steps.get(next).map(|(from, _)| *from).or(self.repeat);
        Some((*value, start + *from, end.map_or(Time::MAX, |end| start + end)))
    }
}
