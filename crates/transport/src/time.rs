//! Waiting on a [`quinn::Runtime`], so that the same code waits on a host's clock and in virtual time.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use quinn::Runtime;

/// The time limit was exceeded before the future was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time limit was exceeded")]
#[expect(clippy::exhaustive_structs, reason = "callers match it as a value")]
pub struct Elapsed;

/// Waits for `time` on `runtime`'s clock.
pub async fn sleep(runtime: &dyn Runtime, time: Duration) {
    let mut timer = runtime.new_timer(runtime.now() + time);
    poll_fn(|cx| timer.as_mut().poll(cx)).await;
}

/// Waits for `future`, at most for `limit` on `runtime`'s clock. The future is polled before the timer, so a future
/// that is ready in time wins.
pub async fn timeout<F: Future>(
    runtime: &dyn Runtime,
    limit: Duration,
    future: F,
) -> Result<F::Output, Elapsed> {
    let mut timer = runtime.new_timer(runtime.now() + limit);
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        timer.as_mut().poll(cx).map(|()| Err(Elapsed))
    })
    .await
}
