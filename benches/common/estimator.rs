//! quinn's `RttEstimator`, which cannot be created outside quinn-proto: a connection in virtual time measures, and a
//! controller in it copies the estimator out.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context as _;
use playrate_netsim::{LinkConfig, Pair, PathConfig, Quinn, Rate, Seed, Side};
use quinn::congestion::{Controller, ControllerFactory, NewReno, NewRenoConfig};
use quinn_proto::RttEstimator;

use super::clock::RTT;

type Copied = Arc<Mutex<Option<RttEstimator>>>;

/// quinn's NewReno, keeping the last estimator that it received.
#[derive(Clone)]
struct Copying {
    inner: NewReno,
    copied: Copied,
}

impl ControllerFactory for Copying {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Self::clone(&self))
    }
}

impl Controller for Copying {
    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        *self.copied.lock().unwrap_or_else(PoisonError::into_inner) = Some(*rtt);
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }
    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost: u64) {
        self.inner.on_congestion_event(now, sent, persistent, lost);
    }
    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }
    fn window(&self) -> u64 {
        self.inner.window()
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// An estimator that has measured [`RTT`] a few times.
pub fn measured() -> anyhow::Result<RttEstimator> {
    let link = || LinkConfig::new(Rate::Unlimited, RTT / 2);
    let copied = Copied::default();
    let copying = Arc::new(Copying {
        inner: NewReno::new(Arc::new(NewRenoConfig::default()), Instant::now(), 1_200),
        copied: Arc::clone(&copied),
    });
    let pair = Pair::quinn(PathConfig::new(link(), link())).client_transport(|transport| {
        transport.congestion_controller_factory(copying);
    });
    let receive = |server: Side<Quinn>| async move {
        let mut stream = server.connection.accept_uni().await?;
        stream.read_to_end(10_000).await?;
        server.connection.closed().await;
        anyhow::Ok(())
    };
    let send = |client: Side<Quinn>| async move {
        let mut stream = client.connection.open_uni().await?;
        stream.write_all(&[7; 10_000]).await?;
        stream.finish()?;
        // All of it has been acknowledged.
        stream.stopped().await?;
        anyhow::Ok(())
    };
    let outcome = pair.run(Seed::new(1), receive, send)?;
    outcome.server.and(outcome.client)?;
    let taken = *copied.lock().unwrap_or_else(PoisonError::into_inner);
    // Before the first sample it is quinn's guess of 333 ms.
    taken
        .filter(|seen| seen.get() < 2 * RTT)
        .context("the connection in virtual time measured no RTT")
}
