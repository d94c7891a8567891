//! [`Line`]: bodies begin one after the other, so that a server with more to do than it can do finishes what it has begun.

use std::future::poll_fn;
use std::task::Poll;

use tokio::sync::Mutex;

/// A connection that has much to send sends a fifth of this when its turn comes. So a handful of bodies are under way when the processors are the limit.
const BYTES_PER_TURN: u64 = 128 << 10;
/// The longest bodies are no more to the processors' caches than this many turns.
const MOST_TURNS: u64 = 16;

/// Where bodies wait to begin, in the order in which they were asked for.
///
/// The first waits for some turns of the runtime's queue of tasks, more if it is long. When there is little to do, a turn takes no time. When the
/// processors cannot keep up, it takes as long as everything that is ready to be sent; then bodies begin as fast as others end, and few are
/// under way, instead of all of them, each one late and the processors' caches too small for what belongs to them. Bodies that wait for
/// the network are not in that queue, so nobody waits for them.
#[derive(Debug, Default)]
pub(super) struct Line(Mutex<()>);

impl Line {
    /// Waits until a body of so many bytes may begin.
    pub(super) async fn wait(&self, length: u64) {
        let _first = self.0.lock().await;
        for _ in 0..length.div_ceil(BYTES_PER_TURN).clamp(1, MOST_TURNS) {
            turn_of_the_queue().await;
        }
    }
}

/// Goes to the end of the runtime's queue and returns when its turn has come. (tokio's own `yield_now` goes to another place, which is
/// looked at when there is time.)
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

    /// Counts the turns of the queue until it is dropped.
    async fn count(turns: Arc<AtomicUsize>) {
        loop {
            turns.fetch_add(1, Relaxed);
            turn_of_the_queue().await;
        }
    }

    #[tokio::test]
    async fn one_begins_after_the_other_and_long_ones_take_longer() {
        let (line, turns) = (Arc::new(Line::default()), Arc::new(AtomicUsize::new(0)));
        let mut counting = JoinSet::new();
        counting.spawn(count(Arc::clone(&turns)));
        let mut bodies = JoinSet::new();
        let lengths = [1_000, 2_000_000, 0, 300_000, 1_000_000_000, 131_072];
        for (number, length) in lengths.into_iter().enumerate() {
            let (line, turns) = (Arc::clone(&line), Arc::clone(&turns));
            bodies.spawn(async move {
                line.wait(length).await;
                (number, turns.load(Relaxed))
            });
        }
        let began = bodies.join_all().await;
        counting.abort_all();
        let mut order = began.clone();
        order.sort_by_key(|&(_, turn)| turn);
        assert!(order.iter().map(|&(number, _)| number).eq(0..6), "{order:?}");
        // The lock's next owner takes it a turn after the last one left.
        let turns: Vec<_> = order.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
        for (turns, wanted) in turns.into_iter().zip([16, 1, 3, 16, 1]) {
            assert!((wanted..=wanted + 1).contains(&turns), "{order:?}");
        }
    }

    #[tokio::test]
    async fn a_body_that_is_given_up_while_it_waits_holds_nobody_up() {
        let line = Arc::new(Line::default());
        let first = line.0.lock().await;
        let (mut given_up, mut next) = (JoinSet::new(), JoinSet::new());
        for bodies in [&mut given_up, &mut next] {
            let line = Arc::clone(&line);
            bodies.spawn(async move { line.wait(0).await });
        }
        tokio::task::yield_now().await;
        given_up.abort_all();
        drop(first);
        next.join_next().await.unwrap().unwrap();
    }
}
