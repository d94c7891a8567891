//! [`ResponseCount`]: responses in progress, and those that a shutdown has aborted.

use parking_lot::Mutex;

/// Counts the responses of a server.
#[derive(Debug, Default)]
pub(super) struct ResponseCount(Mutex<Counts>);

/// Under one lock, so that no response is seen in both numbers or in neither.
#[derive(Debug, Default)]
struct Counts {
    /// Responses that have begun and not ended.
    running: u64,

    /// Responses that were aborted after the shutdown had begun.
    aborted: u64,
    is_stopping: bool,
}

impl ResponseCount {
    /// Begins a response, which is in progress until the returned value is dropped.
    pub(super) fn begin(&self) -> RunningResponse<'_> {
        self.0.lock().running += 1;
        RunningResponse {
            count: self,
            is_complete: false,
        }
    }

    /// From now on responses that fail are aborted by the shutdown.
    pub(super) fn stop(&self) {
        self.0.lock().is_stopping = true;
    }

    /// Responses that were aborted since [`stop`](Self::stop), and those in progress.
    pub(super) fn not_complete(&self) -> u64 {
        let counts = self.0.lock();
        counts.aborted + counts.running
    }
}

/// A response in progress.
#[derive(Debug)]
pub(super) struct RunningResponse<'a> {
    count: &'a ResponseCount,
    is_complete: bool,
}

impl RunningResponse<'_> {
    /// Ends a response that its client has received whole.
    pub(super) fn complete(mut self) {
        self.is_complete = true;
    }
}

impl Drop for RunningResponse<'_> {
    fn drop(&mut self) {
        let mut counts = self.count.0.lock();
        counts.running = counts.running.saturating_sub(1);
        counts.aborted += u64::from(counts.is_stopping && !self.is_complete);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_that_are_not_complete_after_the_stop_count_once_and_those_before_it_do_not() {
        let count = ResponseCount::default();
        drop(count.begin());
        assert_eq!(count.not_complete(), 0);
        let (complete, failed, running) = (count.begin(), count.begin(), count.begin());
        count.stop();
        complete.complete();
        assert_eq!(count.not_complete(), 2);
        drop(failed);
        assert_eq!(count.not_complete(), 2);
        running.complete();
        assert_eq!(count.not_complete(), 1);
    }
}
