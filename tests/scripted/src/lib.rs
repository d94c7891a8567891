//! Controllers for tests: one records its events, and its window is set by the test; one shows what it knows.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use playrate_cc::events::{AckFrame, Acked, Congestion, Sent};
use playrate_cc::registry::Entry;
use playrate_cc::{CongestionController, ControllerSpec, Registry, Timestamp, VideoKnowledge};
use playrate_units::{Bytes, Probability};

/// An event that a scripted controller received.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// It was built for packets of this many bytes.
    Built(u64),
    /// A burst of packets left.
    Sent(Sent),
    /// An [`AckFrame`] was read.
    Acked {
        /// Time of the frame.
        now: Timestamp,
        /// Runs of packets that it acknowledges.
        runs: Vec<Acked>,
        /// Bytes in flight after it.
        in_flight: Bytes,
        /// Smoothed RTT, once it has been measured.
        smoothed_rtt: Option<Duration>,
    },
    /// Packets were lost or marked.
    Congestion(Congestion),
    /// The last loss was spurious.
    Spurious,
    /// The path delivered this share of the connection's data, which is less than all of it.
    Share(Probability),
    /// The packet size changed.
    Mtu(Bytes),
}

fn registry_with(entry: Entry) -> Registry {
    let mut registry = Registry::builtin();
    let registered = registry.register(entry);
    registered.expect("no other controller has this name");
    registry
}

/// Knowledge of each controller that was built, in order.
pub type Known = Arc<Mutex<Vec<Arc<VideoKnowledge>>>>;

/// A registry with the controller `watched`, which is CUBIC, and the knowledge of each one that is built.
///
/// # Panics
/// Never: `cubic` is a spec.
pub fn watched() -> (Registry, Known) {
    let known = Known::default();
    let kept = Arc::clone(&known);
    let cubic: ControllerSpec = "cubic".parse().expect("a spec");
    let registry = registry_with(Entry::custom("watched", move |path, _, knowledge| {
        kept.lock().push(Arc::clone(&knowledge));
        cubic.build(path, knowledge)
    }));
    (registry, known)
}

/// The events and the window of the controllers of one script.
#[derive(Clone, Debug)]
pub struct Script {
    events: Arc<Mutex<Vec<Event>>>,
    window: Arc<Mutex<Bytes>>,
    /// True if its controllers require every burst.
    pub every_burst: bool,
}

impl Script {
    /// A script whose controllers require every burst and have a window of `window` bytes.
    pub fn new(window: u64) -> Self {
        Self {
            events: Arc::default(),
            window: Arc::new(Mutex::new(Bytes::new(window))),
            every_burst: true,
        }
    }

    /// A registry with the controller `scripted`, which follows this script.
    pub fn registry(&self) -> Registry {
        let script = self.clone();
        registry_with(Entry::custom("scripted", move |path, _, _| {
            script.push(Event::Built(path.mtu.as_u64()));
            Box::new(Scripted(script.clone()))
        }))
    }

    /// Sets the window of its controllers to `window` bytes.
    pub fn set_window(&self, window: u64) {
        *self.window.lock() = Bytes::new(window);
    }

    /// Takes the events so far.
    pub fn drain(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock())
    }

    fn push(&self, event: Event) {
        self.events.lock().push(event);
    }
}

#[derive(Clone, Debug)]
struct Scripted(Script);

impl CongestionController for Scripted {
    fn on_sent(&mut self, event: &Sent) {
        self.0.push(Event::Sent(*event));
    }
    fn on_ack_frame(&mut self, event: &AckFrame<'_>) -> Bytes {
        self.0.push(Event::Acked {
            now: event.now,
            runs: event.acked.to_vec(),
            in_flight: event.in_flight,
            smoothed_rtt: event.smoothed_rtt,
        });
        self.window()
    }
    fn on_congestion(&mut self, event: &Congestion) {
        self.0.push(Event::Congestion(*event));
    }
    fn on_spurious_congestion(&mut self) {
        self.0.push(Event::Spurious);
    }
    fn on_path_share(&mut self, share: Probability) {
        if share != Probability::ONE {
            self.0.push(Event::Share(share));
        }
    }
    fn on_mtu_change(&mut self, mtu: Bytes) {
        self.0.push(Event::Mtu(mtu));
    }
    fn window(&self) -> Bytes {
        *self.0.window.lock()
    }
    fn packets_per_ack(&self) -> Option<u32> {
        Some(1)
    }
    fn requires_every_burst(&self) -> bool {
        self.0.every_burst
    }
    fn clone_box(&self) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}
