//! [`MahimahiTrace`]: a recorded link, as delivery opportunities.

use std::sync::Arc;

use playrate_units::{Bitrate, Bytes};

use crate::{ConfigError, Time};

/// Bytes per delivery opportunity: a full Ethernet payload.
const OPPORTUNITY: u64 = 1_500;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// A trace in the format of Mahimahi (Netravali et al., USENIX ATC 2015, §4.2): each line is the time in milliseconds
/// of one opportunity to deliver 1500 bytes. The trace repeats after its last line. A packet may use the rest of an
/// opportunity, or several opportunities; an unused rest is lost if the queue becomes empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MahimahiTrace {
    /// Times of the opportunities in milliseconds, in order.
    opportunities: Arc<[u64]>,
    period: u64,
}

impl MahimahiTrace {
    /// Parses a trace. An error names the line.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let error = |line: usize, what: &str| ConfigError::Trace {
            line,
            what: what.to_owned(),
        };
        let mut opportunities = Vec::new();
        let mut last = 0;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let milli: u64 = line
                .parse()
                .map_err(|_| error(number, &format!("`{line}` is not a whole number of milliseconds")))?;
            if milli < last {
                return Err(error(
                    number,
                    &format!("{milli} comes after {last}; times must not run backwards"),
                ));
            }
            last = milli;
            opportunities.push(milli);
        }
        if last == 0 {
            return Err(error(
                text.lines().count(),
                "the trace ends at 0 ms: at least one time must be above zero",
            ));
        }
        Ok(Self {
            opportunities: opportunities.into(),
            period: last,
        })
    }

    /// Times of the opportunities in milliseconds, in order; the last is the trace's length.
    pub fn opportunities(&self) -> &[u64] {
        &self.opportunities
    }

    /// Mean rate over the trace.
    pub fn mean(&self) -> Bitrate {
        let bytes = Bytes::new(self.opportunities.len() as u64) * OPPORTUNITY;
        bytes
            .per(core::time::Duration::from_millis(self.period))
            .unwrap_or_default()
    }

    fn time(&self, index: u64) -> Time {
        let count = self.opportunities.len() as u64;
        let within = usize::try_from(index % count)
            .ok()
            .and_then(|n| self.opportunities.get(n))
            .unwrap_or(&0);
        let millis = (index / count)
            .saturating_mul(self.period)
            .saturating_add(*within);
        Time::from_nanos(millis.saturating_mul(NANOS_PER_MILLI))
    }

    /// The first opportunity at or after `now`.
    fn first_from(&self, now: Time) -> u64 {
        let count = self.opportunities.len() as u64;
        let millis = now.as_nanos().div_ceil(NANOS_PER_MILLI);
        // A trace ends with its period's last millisecond, so the previous repetition may still have an opportunity at
        // exactly this time.
        let turn = millis.saturating_sub(1) / self.period;
        let within = millis - turn * self.period;
        turn * count + self.opportunities.partition_point(|&at| at < within) as u64
    }
}

/// Position of a link within its trace.
#[derive(Clone, Debug)]
pub(crate) struct TraceCursor {
    trace: MahimahiTrace,
    /// Opportunity in use; `left` is its unused bytes.
    index: u64,
    left: u64,
}

impl TraceCursor {
    pub(super) fn new(trace: MahimahiTrace) -> Self {
        Self {
            trace,
            index: 0,
            left: OPPORTUNITY,
        }
    }

    /// First time from `start` on when bytes can leave.
    pub(super) fn begin(&mut self, start: Time) -> Time {
        if self.trace.time(self.index) < start {
            self.index = self.trace.first_from(start);
            self.left = OPPORTUNITY;
        }
        self.trace.time(self.index)
    }

    /// Departure time of the last of `bytes`, if the first may leave at `start`.
    pub(super) fn finish(&mut self, start: Time, bytes: u64) -> Time {
        self.begin(start);
        let mut bytes = bytes;
        while bytes > self.left {
            bytes -= self.left;
            self.next();
        }
        self.left -= bytes;
        let at = self.trace.time(self.index);
        if self.left == 0 {
            self.next();
        }
        at
    }

    fn next(&mut self) {
        self.index += 1;
        self.left = OPPORTUNITY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> TraceCursor {
        TraceCursor::new(MahimahiTrace::parse(text).unwrap())
    }

    #[test]
    fn opportunities_are_shared_and_spanned_by_packets() {
        let mut link = trace("1\n1\n3\n10\n");
        for (start, bytes, departs, case) in [
            (0, 1_000, 1, "most of the first"),
            (1, 500, 1, "the rest of the first"),
            (1, 2_000, 3, "the second and part of the third"),
            (4, 100, 10, "what was left at 3 ms is gone"),
            (10, 1_500, 11, "the next turn"),
        ] {
            let at = link.finish(Time::from_millis(start), bytes);
            assert_eq!(at, Time::from_millis(departs), "{case}");
        }
    }

    #[test]
    fn a_long_idle_time_is_skipped_in_one_step() {
        let mut link = trace("2\n5\n10\n");
        assert_eq!(link.begin(Time::from_secs(86_400)), Time::from_secs(86_400));
        assert_eq!(
            link.begin(Time::from_nanos(86_400_000_000_001)),
            Time::from_millis(86_400_002)
        );
    }

    #[test]
    fn the_mean_is_opportunities_by_period() {
        assert_eq!(
            MahimahiTrace::parse("1\n2\n3\n4\n").unwrap().mean(),
            Bitrate::from_mbps(12)
        );
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = |text| MahimahiTrace::parse(text).unwrap_err().to_string();
        assert!(error("1\ntwo\n").contains("line 2: `two`"));
        assert!(error("5\n4\n").contains("line 2: 4 comes after 5"));
        assert!(error("").contains("ends at 0 ms"));
    }
}
