//! [`FetchOrder`]: the next segment, considering that a switch may go back to buffered ones.

use std::time::Duration;

/// The segments so far and the next one.
#[derive(Clone, Debug)]
pub(super) struct FetchOrder {
    /// Index of the first segment.
    pub(super) first: usize,
    /// Representation and playing time of each segment when it was first fetched, from the first segment on. A segment
    /// that was passed over has no playing time.
    past: Vec<(usize, Duration)>,
    pub(super) next: usize,
}

impl FetchOrder {
    /// Begins with the segment `first`.
    pub(super) const fn from(first: usize) -> Self {
        Self {
            first,
            past: Vec::new(),
            next: first,
        }
    }

    /// Index of the first segment that has been neither fetched nor passed over.
    pub(super) fn end(&self) -> usize {
        self.first.saturating_add(self.past.len())
    }

    /// Number of different segments that were fetched.
    pub(super) fn count(&self) -> usize {
        self.past.iter().filter(|(_, shown)| !shown.is_zero()).count()
    }

    /// Continues after the segment, which was fetched in `representation` and plays for `shown`, or was passed over and
    /// plays for no time. Returns true if it was a new one. A segment that was passed over is not tried again.
    pub(super) fn advance(&mut self, representation: usize, shown: Duration) -> bool {
        let is_new = self.next == self.end();
        if is_new {
            self.past.push((representation, shown));
        }
        self.next += 1;
        let later = self.past.get(self.next - self.first..).unwrap_or_default();
        self.next += later.iter().take_while(|(_, shown)| shown.is_zero()).count();
        is_new
    }

    /// Continues with the first segment not yet fetched, or with the last buffered segment `again`.
    pub(super) fn append(&mut self, again: bool) {
        let is_buffered = self.past.last().is_some_and(|(_, shown)| !shown.is_zero());
        self.next = self.end() - usize::from(again && is_buffered);
    }

    /// Goes back to the segment that plays after this playing `time`, counted from the first segment on, if it was
    /// fetched in a representation lower than `representation`.
    pub(super) fn replace(&mut self, time: Duration, representation: usize) {
        let mut end = Duration::ZERO;
        let mut past = self.past.iter().enumerate();
        let found = past.find(|(_, (_, shown))| {
            end = end.saturating_add(*shown);
            time < end
        });
        if let Some((at, (fetched, _))) = found
            && *fetched < representation
        {
            self.next = self.first + at;
        }
    }
}
