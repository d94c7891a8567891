//! [`StartQueue`]: starts bodies one after another, so that an overloaded server finishes those in progress.

use std::future::poll_fn;
use std::task::Poll;

use tokio::sync::Mutex;

/// Bytes per turn of the task queue. A connection with much to send sends a fifth of this in one turn, so
/// about five bodies are in progress when the processors are the limit.
const BYTES_PER_TURN: u64 = 128 << 10;
/// Maximum number of turns. Longer bodies occupy no more of the processors' caches than the bytes of this many turns.
const MAX_TURNS: u64 = 16;

/// Bodies that wait to start, in the order of their requests.
///
/// The first body waits for some turns of the runtime's task queue; longer bodies wait for more turns. On an idle
/// server a turn takes no time. When the processors are the limit, a turn takes as long as sending everything that is
/// ready; bodies then start as fast as others end, and few are in progress. Otherwise all bodies would be in progress,
/// all late, and their data would not fit the processors' caches. Bodies that wait for the network are not in the task
/// queue, so they delay no others.
///
/// `docs/flow-control.md` describes it among the other mechanisms, with its measurements.
#[derive(Debug, Default)]
pub(super) struct StartQueue(Mutex<()>);

impl StartQueue {
    /// Waits until a body of `length` bytes may start.
    pub(super) async fn wait(&self, length: u64) {
        let _first = self.0.lock().await;
        for _ in 0..length.div_ceil(BYTES_PER_TURN).clamp(1, MAX_TURNS) {
            turn_of_the_queue().await;
        }
    }
}

/// Yields to all tasks now in the runtime's task queue. (tokio's `yield_now` uses another queue, which the scheduler
/// visits only when the task queue is empty.)
async fn turn_of_the_queue() {
    let mut over = false;
    poll_fn(|context| {
        if over {
            return Poll::Ready(());
        }
        over = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use tokio::task::JoinSet;

    use super::*;

    /// Counts the turns of the task queue until it is dropped.
    async fn count(turns: Arc<AtomicUsize>) {
        loop {
            turns.fetch_add(1, Relaxed);
            turn_of_the_queue().await;
        }
    }

    #[tokio::test]
    async fn one_begins_after_the_other_and_long_ones_take_longer() {
        let (queue, turns) = (Arc::new(StartQueue::default()), Arc::new(AtomicUsize::new(0)));
        let mut counting = JoinSet::new();
        counting.spawn(count(Arc::clone(&turns)));
        let mut bodies = JoinSet::new();
        let lengths = [1_000, 2_000_000, 0, 300_000, 1_000_000_000, 131_072];
        for (number, length) in lengths.into_iter().enumerate() {
            let (queue, turns) = (Arc::clone(&queue), Arc::clone(&turns));
            bodies.spawn(async move {
                queue.wait(length).await;
                (number, turns.load(Relaxed))
            });
        }
        let began = bodies.join_all().await;
        counting.abort_all();
        let mut order = began.clone();
        order.sort_by_key(|&(_, turn)| turn);
        assert!(order.iter().map(|&(number, _)| number).eq(0..6), "{order:?}");
        // The lock's next owner takes it one turn after the previous owner left.
        let turns: Vec<_> = order.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
        for (turns, wanted) in turns.into_iter().zip([16, 1, 3, 16, 1]) {
            assert!((wanted..=wanted + 1).contains(&turns), "{order:?}");
        }
    }

    #[tokio::test]
    async fn a_body_that_is_given_up_while_it_waits_delays_no_other() {
        let queue = Arc::new(StartQueue::default());
        let first = queue.0.lock().await;
        let (mut given_up, mut next) = (JoinSet::new(), JoinSet::new());
        for bodies in [&mut given_up, &mut next] {
            let queue = Arc::clone(&queue);
            bodies.spawn(async move { queue.wait(0).await });
        }
        tokio::task::yield_now().await;
        given_up.abort_all();
        drop(first);
        next.join_next().await.unwrap().unwrap();
    }
}
