//! [`Window`]: a part of a run with separate counts for every flow.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use playrate_transport::telemetry::{Sample, Sink};
use playrate_units::{Bitrate, Bytes, duration};
use serde::{Deserialize, Serialize};

use super::MTU;
use crate::rounding::seconds;

/// A measurement window, in time since the run began. Text form: `50s..150s`, or `50s..` for up to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Beginning of the window.
    pub from: Duration,
    /// End of the window; `None` means the end of the run.
    pub to: Option<Duration>,
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` is not a measurement window; write 50s..150s, or 50s.. to the end of the run")
        };
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

/// Counts of one flow in a [`Window`], as in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowCounts {
    /// Text form of the window.
    pub window: String,
    /// Beginning of the window, since the run began.
    pub from_s: f64,
    /// End of the window, or of the run if that came first.
    pub to_s: f64,
    /// Bytes of content that arrived at the client.
    pub received_bytes: u64,
    /// Rate of that content; `None` for a window without length.
    pub goodput_bps: Option<u64>,
    /// Bytes of QUIC packets that the server sent.
    pub sent_bytes: u64,
    /// Bytes of packets that the server declared lost.
    pub lost_bytes: u64,
    /// Sent bytes in units of full-size packets.
    pub sent_packets: u64,
    /// Lost bytes in units of full-size packets.
    pub lost_packets: u64,
}

/// A number of bytes in units of full-size packets, rounded.
const fn full_packets(bytes: u64) -> u64 {
    let packet = MTU as u64;
    bytes.saturating_add(packet / 2) / packet
}

/// A growing count, recorded at given times.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    edges: Vec<Duration>,
    values: Vec<u64>,
    last: (Duration, u64),
}

impl Marks {
    /// A count from zero, recorded at the edges of `windows`.
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

    /// Records that the count is `value` at `now`, having grown evenly since the last call.
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

    /// The growth from one edge to another.
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

/// Counts bytes sent and lost by a server's connection, at the edges of windows.
#[derive(Debug, Default)]
pub(super) struct SentCounter {
    /// Beginning of the connection, since the run began.
    began: Duration,
    marks: Mutex<SentMarks>,
}

/// Bytes of a connection at the edges of windows.
#[derive(Debug, Default)]
struct SentMarks {
    sent: Marks,
    lost: Marks,
}

impl SentCounter {
    /// Counts of a connection that begins at `began` in the run.
    pub(super) fn new(windows: &[Window], began: Duration) -> Self {
        let mut marks = Marks::new(windows);
        marks.see(began, 0);
        Self {
            began,
            marks: Mutex::new(SentMarks {
                sent: marks.clone(),
                lost: marks,
            }),
        }
    }

    /// The flow's counts in each of `windows`, after a run of `length`.
    pub(super) fn counts(&self, windows: &[Window], length: Duration, received: &Marks) -> Vec<WindowCounts> {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = windows.iter().map(|window| {
            let between = |marks: &Marks| marks.between(window.from, window.to);
            let (received, sent, lost) = (between(received), between(&marks.sent), between(&marks.lost));
            let to = window.to.map_or(length, |to| to.min(length));
            let goodput = Bytes::new(received).per(to.saturating_sub(window.from));
            WindowCounts {
                window: window.to_string(),
                from_s: seconds(window.from),
                to_s: seconds(to),
                received_bytes: received,
                goodput_bps: goodput.map(Bitrate::as_bits_per_second),
                sent_bytes: sent,
                lost_bytes: lost,
                sent_packets: full_packets(sent),
                lost_packets: full_packets(lost),
            }
        });
        counts.collect()
    }
}

impl Sink for SentCounter {
    fn take(&self, sample: &Sample) {
        let now = self.began.saturating_add(sample.at);
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.sent.see(now, sample.sent.as_u64());
        marks.lost.see(now, sample.lost.as_u64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn windows_are_read_and_written() {
        let window: Window = "50s..150s".parse().unwrap();
        assert_eq!((window.from, window.to), (after(50), Some(after(150))));
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
        marks.see(after(5), 0);
        marks.see(after(15), 1_000);
        marks.see(after(25), 3_000);
        let grown: Vec<u64> = windows
            .iter()
            .map(|window| marks.between(window.from, window.to))
            .collect();
        assert_eq!(grown, [1_500, 2_000, 1_000, 0]);
    }

    #[test]
    fn bytes_are_counted_in_full_packets() {
        assert_eq!([14_520, 14_600, 0].map(full_packets), [10, 10, 0]);
    }
}
