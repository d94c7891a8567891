//! [`SelfWaking`]: a task that reports that it yielded and must be polled again immediately.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A task that yields by waking itself.
pub(crate) struct SelfWaking {
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
    signal: Option<Arc<WakeSignal>>,
}

/// Outcome of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    /// It has ended, and must not be polled again.
    Ended,
    /// It waits; its waker will wake it.
    Waits,
    /// The task yielded. The caller must poll it again immediately or wake it.
    WokeItself,
}

impl SelfWaking {
    pub(crate) fn new(task: Pin<Box<dyn Future<Output = ()> + Send>>) -> Self {
        Self { task, signal: None }
    }

    /// Polls the task once.
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Polled {
        // quinn keeps the first waker that it gets, so the signal stays the same for the life of the task.
        let signal = self
            .signal
            .get_or_insert_with(|| Arc::new(WakeSignal::new(context.waker().clone())));
        let waker = Waker::from(Arc::clone(signal));
        signal.state.store(POLLED, Ordering::SeqCst);
        let polled = self.task.as_mut().poll(&mut Context::from_waker(&waker));
        match (polled, signal.state.swap(AT_REST, Ordering::SeqCst)) {
            (Poll::Ready(()), _) => Polled::Ended,
            (Poll::Pending, WOKEN) => Polled::WokeItself,
            (Poll::Pending, _) => Polled::Waits,
        }
    }
}

const AT_REST: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

/// Wakes the task, or notes the wake-up while the task is being polled.
struct WakeSignal {
    outer: Waker,
    state: AtomicU8,
}

impl WakeSignal {
    fn new(outer: Waker) -> Self {
        Self {
            outer,
            state: AtomicU8::new(AT_REST),
        }
    }
}

impl Wake for WakeSignal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let seen = self
            .state
            .compare_exchange(POLLED, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        if seen == Err(AT_REST) {
            self.outer.wake_by_ref();
        }
    }
}
