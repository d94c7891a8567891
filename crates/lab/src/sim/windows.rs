//! What flows did in parts of a run.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use playrate_transport::telemetry::Sample;
use playrate_units::{Bytes, duration};

use super::ends::MTU;

/// A part of a run, in time since the run began. Text form: `50s..150s`, or `50s..` to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// When it begins.
    pub from: Duration,
    /// When it ends; `None` is with the run.
    pub to: Option<Duration>,
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no part of a run: write it such as 50s..150s, or 50s.. to the end");
        let (from, to) = text.split_once("..").ok_or_else(wrong)?;
        let time = |text: &str| duration::parse(text.trim()).map_err(|error| format!("{}: {error}", wrong()));
        let from = time(from)?;
        let to = if to.trim().is_empty() {
            None
        } else {
            Some(time(to)?)
        };
        if to.is_some_and(|to| to <= from) {
            return Err(wrong());
        }
        Ok(Self { from, to })
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", duration::display(self.from))?;
        self.to
            .map_or(Ok(()), |to| write!(f, "{}", duration::display(to)))
    }
}

/// What one flow did in a [`Window`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowCounts {
    /// Which.
    pub window: Window,
    /// When it began.
    pub from: Duration,
    /// When it ended, or the run did.
    pub to: Duration,
    /// Bytes of content that came to the client.
    pub received: Bytes,
    /// Bytes that the server handed to the path, in QUIC packets.
    pub sent: Bytes,
    /// Bytes of packets that it declared lost.
    pub lost: Bytes,
}

impl WindowCounts {
    /// A number of bytes in packets of full size, rounded.
    pub fn packets(bytes: Bytes) -> u64 {
        let packet = u64::from(MTU);
        bytes.as_u64().saturating_add(packet / 2) / packet
    }
}

/// A growing count as it was at given times.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    edges: Vec<Duration>,
    values: Vec<u64>,
    last: (Duration, u64),
}

impl Marks {
    /// At the edges of `windows`.
    pub(super) fn new(windows: &[Window]) -> Self {
        let mut edges: Vec<_> = windows
            .iter()
            .flat_map(|window| [Some(window.from), window.to])
            .flatten()
            .collect();
        edges.sort_unstable();
        edges.dedup();
        Self {
            edges,
            ..Self::default()
        }
    }

    /// The count is `value` at `now`. In between it grew evenly.
    pub(super) fn see(&mut self, now: Duration, value: u64) {
        let (before, from) = self.last;
        while let Some(edge) = self.edges.get(self.values.len())
            && *edge <= now
        {
            let grown = u128::from(value.saturating_sub(from));
            let part = edge.saturating_sub(before).as_nanos();
            let whole = now.saturating_sub(before).as_nanos();
            let share = (grown * part).checked_div(whole).unwrap_or(0);
            self.values
                .push(from.saturating_add(u64::try_from(share).unwrap_or(u64::MAX)));
        }
        self.last = (now, value);
    }

    /// How much it grew from `from` to `to`.
    fn between(&self, from: Duration, to: Option<Duration>) -> u64 {
        let at = |time: Duration| {
            let index = self.edges.binary_search(&time).ok();
            index
                .and_then(|index| self.values.get(index))
                .copied()
                .unwrap_or(self.last.1)
        };
        to.map_or(self.last.1, at).saturating_sub(at(from))
    }
}

/// What a server's connection sent and lost, at the edges of windows.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    sent: Marks,
    lost: Marks,
}

impl Sent {
    /// Of a connection that begins at `began` in the run.
    pub(super) fn new(windows: &[Window], began: Duration) -> Self {
        let mut marks = Marks::new(windows);
        marks.see(began, 0);
        Self {
            sent: marks.clone(),
            lost: marks,
        }
    }

    /// Counts a sample of that connection.
    pub(super) fn see(&mut self, began: Duration, sample: &Sample) {
        let now = began.saturating_add(sample.at);
        self.sent.see(now, sample.sent.as_u64());
        self.lost.see(now, sample.lost.as_u64());
    }
}

/// The counts of one flow in each of `windows`, in a run of length `length`.
pub(super) fn counts(
    windows: &[Window],
    length: Duration,
    received: &Marks,
    sent: &Sent,
) -> Vec<WindowCounts> {
    windows
        .iter()
        .map(|window| {
            let between = |marks: &Marks| Bytes::new(marks.between(window.from, window.to));
            WindowCounts {
                window: *window,
                from: window.from,
                to: window.to.map_or(length, |to| to.min(length)),
                received: between(received),
                sent: between(&sent.sent),
                lost: between(&sent.lost),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn windows_are_read_and_written() {
        let window: Window = "50s..150s".parse().unwrap();
        assert_eq!((window.from, window.to), (seconds(50), Some(seconds(150))));
        assert_eq!(window.to_string(), "50s..150s");
        assert_eq!("50s..".parse::<Window>().unwrap().to_string(), "50s..");
        for wrong in ["50s", "50..60", "60s..50s", "..50s"] {
            let error = wrong.parse::<Window>().unwrap_err();
            assert!(error.contains(wrong) && error.contains("50s..150s"), "{error}");
        }
    }

    #[test]
    fn a_count_is_taken_at_the_edges_and_grows_evenly_in_between() {
        let windows: Vec<Window> = ["10s..20s", "15s..", "0s..15s", "40s..50s"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let mut marks = Marks::new(&windows);
        marks.see(seconds(5), 0);
        marks.see(seconds(15), 1_000);
        marks.see(seconds(25), 3_000);
        let grown: Vec<u64> = windows
            .iter()
            .map(|window| marks.between(window.from, window.to))
            .collect();
        assert_eq!(grown, [1_500, 2_000, 1_000, 0]);
    }

    #[test]
    fn bytes_are_told_in_full_packets() {
        assert_eq!(WindowCounts::packets(Bytes::new(14_520)), 10);
        assert_eq!(WindowCounts::packets(Bytes::new(14_600)), 10);
        assert_eq!(WindowCounts::packets(Bytes::ZERO), 0);
    }
}
