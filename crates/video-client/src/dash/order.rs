//! [`FetchOrder`]: the next segment, considering that a switch may go back to buffered ones.

use std::time::Duration;

/// Playing time ahead of playback that is never replaced (dash.js 4.0.0, `StreamProcessor.js`).
const KEPT: Duration = Duration::from_millis(1_500);

/// The fetched segments and the next one.
#[derive(Clone, Debug)]
pub(super) struct FetchOrder {
    /// Index of the first segment.
    first: usize,
    /// Representation of each segment when it was first fetched, from the first segment on.
    fetched: Vec<usize>,
    next: usize,
}

impl FetchOrder {
    /// Begins with the segment `first`.
    pub(super) const fn from(first: usize) -> Self {
        Self {
            first,
            fetched: Vec::new(),
            next: first,
        }
    }

    pub(super) const fn first(&self) -> usize {
        self.first
    }

    pub(super) const fn next(&self) -> usize {
        self.next
    }

    /// Index of the first segment that has not been fetched at all.
    pub(super) fn end(&self) -> usize {
        self.first.saturating_add(self.fetched.len())
    }

    /// Number of different segments that were fetched.
    pub(super) const fn count(&self) -> usize {
        self.fetched.len()
    }

    /// Continues after the segment, which was fetched in `representation`. Returns true if it had not been fetched
    /// before.
    pub(super) fn advance(&mut self, representation: usize) -> bool {
        let is_new = self.next == self.end();
        if is_new {
            self.fetched.push(representation);
        }
        self.next = self.next.saturating_add(1);
        is_new
    }

    /// Continues with the first segment not yet fetched, or with the last buffered segment `again`.
    pub(super) fn append(&mut self, again: bool) {
        let back = usize::from(again && !self.fetched.is_empty());
        self.next = self.end() - back;
    }

    /// Goes back to segment `there` if it was fetched in a representation lower than `representation`.
    pub(super) fn replace(&mut self, there: usize, representation: usize) {
        let place = there.checked_sub(self.first);
        let fetched = place.and_then(|place| self.fetched.get(place));
        if fetched.is_some_and(|fetched| *fetched < representation) {
            self.next = there;
        }
    }

    /// The position from which to replace a buffer that has `held` beyond `shown`; `None` if the buffer is too short.
    pub(super) fn replaced_from(shown: Duration, held: Duration) -> Option<Duration> {
        (held >= KEPT).then(|| shown.saturating_add(KEPT))
    }
}
