//! [`LinkSeries`]: time series of a link, in bounded memory.

use core::time::Duration;

use playrate_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::Time;

/// Activity of a link during one bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LinkBin {
    /// Longest queue after an arriving packet, that packet included.
    pub max_queue: Bytes,
    /// Bytes that left the queue, headers included.
    pub delivered: Bytes,
    /// Number of packets offered.
    pub offered: u64,
    /// Packets dropped for any reason.
    pub dropped: u64,
}

impl LinkBin {
    fn merge(self, later: Self) -> Self {
        Self {
            max_queue: self.max_queue.max(later.max_queue),
            delivered: self.delivered + later.delivered,
            offered: self.offered.saturating_add(later.offered),
            dropped: self.dropped.saturating_add(later.dropped),
        }
    }
}

/// Time series of a link in bins of equal width. When all bins are used, neighbours are merged and the width doubles,
/// so a run of any length fits the same memory and keeps its sums and maxima.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSeries {
    width: Duration,
    capacity: usize,
    bins: Vec<LinkBin>,
}

impl LinkSeries {
    /// Creates a series of at most `capacity` bins (at least 2), initially `width` wide (at least 1 ns).
    pub fn new(width: Duration, capacity: usize) -> Self {
        Self {
            width: width.max(Duration::from_nanos(1)),
            capacity: capacity.max(2),
            bins: Vec::new(),
        }
    }

    /// Duration of one bin; the first begins at time zero.
    pub fn width(&self) -> Duration {
        self.width
    }

    /// Bins so far, the first from time zero.
    pub fn bins(&self) -> &[LinkBin] {
        &self.bins
    }

    /// Bins with their start times.
    pub fn iter(&self) -> impl Iterator<Item = (Time, &LinkBin)> {
        let width = crate::time::nanos(self.width);
        (0_u64..)
            .map(move |n| Time::from_nanos(n.saturating_mul(width)))
            .zip(&self.bins)
    }

    pub(crate) fn at(&mut self, now: Time) -> Option<&mut LinkBin> {
        let mut index = self.index(now);
        while index >= self.capacity {
            self.halve();
            index = self.index(now);
        }
        if index >= self.bins.len() {
            self.bins.resize(index + 1, LinkBin::default());
        }
        self.bins.get_mut(index)
    }

    fn index(&self, now: Time) -> usize {
        usize::try_from(now.as_nanos() / crate::time::nanos(self.width).max(1)).unwrap_or(usize::MAX)
    }

    fn halve(&mut self) {
        let merged = self
            .bins
            .chunks(2)
            .map(|pair| pair.iter().copied().reduce(LinkBin::merge).unwrap_or_default());
        self.bins = merged.collect();
        self.width = self.width.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_fits_the_same_memory_and_keeps_its_sums_and_maxima() {
        let mut series = LinkSeries::new(Duration::from_millis(1), 16);
        for n in 0..10_000_u64 {
            let bin = series.at(Time::from_millis(n)).expect("a bin for every time");
            bin.offered += 1;
            bin.max_queue = bin.max_queue.max(Bytes::new(n % 777));
        }
        assert!(series.bins().len() <= 16);
        assert_eq!(series.width(), Duration::from_millis(1024));
        assert_eq!(series.bins().iter().map(|bin| bin.offered).sum::<u64>(), 10_000);
        assert_eq!(
            series.bins().iter().map(|bin| bin.max_queue).max(),
            Some(Bytes::new(776))
        );
        assert_eq!(
            series.iter().nth(1).map(|(start, _)| start),
            Some(Time::from_millis(1024))
        );
    }
}
