//! [`AttackThread`]: an attack on a separate thread, concurrent with the good clients.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::attacks::{Attack, Scale, Tally};
use crate::rig::Attacking;
use crate::victim::Victim;

/// An attack on a separate thread.
pub(crate) struct AttackThread {
    pub(crate) tally: Arc<Tally>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<anyhow::Result<Duration>>,
}

impl AttackThread {
    pub(crate) fn start(victim: Victim, attack: Attack, scale: Scale) -> anyhow::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (started, tally) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let tokio = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            tokio.block_on(async {
                let attacking = Attacking::begin(&victim, attack, scale);
                started.send(Arc::clone(&attacking.tally))?;
                let _ = stopped.await;
                attacking.stop().await
            })?;
            Ok(Duration::try_from(clock_gettime(ClockId::ThreadCPUTime))?)
        });
        let tally = tally.recv().context("the thread of the attack")?;
        Ok(Self { tally, stop, thread })
    }

    /// Waits until the attack has begun.
    ///
    /// # Errors
    /// It has not begun after `limit`.
    pub(crate) async fn under_way(&self, limit: Duration) -> anyhow::Result<()> {
        let latest = Instant::now() + limit;
        while self.tally.actions.load(Relaxed) == 0 {
            ensure!(
                Instant::now() < latest,
                "the attack did not begin within {limit:?}"
            );
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Ends the attack; returns the processor time that it took.
    pub(crate) async fn stop(self) -> anyhow::Result<Duration> {
        let _ = self.stop.send(());
        let joined = tokio::task::spawn_blocking(move || self.thread.join()).await?;
        joined.map_err(|_| anyhow!("the attack panicked"))?
    }
}
