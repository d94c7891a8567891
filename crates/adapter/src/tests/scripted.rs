//! A controller that records its events; the test sets its window. The tests of adapters use it, too.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use playrate_cc::events::{AckFrame, Acked, Congestion, Sent};
use playrate_cc::registry::Entry;
use playrate_cc::{CongestionController, Registry, Timestamp};
use playrate_units::Bytes;

/// An event that a [`Scripted`] controller received.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    Built(u64),
    Sent(Sent),
    Acked {
        now: Timestamp,
        runs: Vec<Acked>,
        in_flight: Bytes,
        smoothed_rtt: Option<Duration>,
    },
    Congestion(Congestion),
    Mtu(Bytes),
}

/// The events and the window of the controllers of one script.
#[derive(Clone, Debug)]
pub(super) struct Script {
    events: Arc<Mutex<Vec<Event>>>,
    pub(super) window: Arc<Mutex<Bytes>>,
    pub(super) every_burst: bool,
}

impl Script {
    /// A script whose controllers require every burst.
    pub(super) fn new(window: u64) -> Self {
        Self {
            events: Arc::default(),
            window: Arc::new(Mutex::new(Bytes::new(window))),
            every_burst: true,
        }
    }

    /// A registry with the controller `scripted`, which follows this script.
    pub(super) fn registry(&self) -> Registry {
        let script = self.clone();
        let mut registry = Registry::builtin();
        let entry = Entry::custom("scripted", move |path, _, _| {
            script.push(Event::Built(path.mtu.as_u64()));
            Box::new(Scripted(script.clone()))
        });
        registry.register(entry).unwrap();
        registry
    }

    /// Takes the events so far.
    pub(super) fn drain(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock().unwrap())
    }

    fn push(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }
}

#[derive(Clone, Debug)]
struct Scripted(Script);

impl CongestionController for Scripted {
    fn on_sent(&mut self, event: &Sent) {
        self.0.push(Event::Sent(*event));
    }
    fn on_ack_frame(&mut self, event: &AckFrame<'_>) {
        self.0.push(Event::Acked {
            now: event.now,
            runs: event.acked.to_vec(),
            in_flight: event.in_flight,
            smoothed_rtt: event.smoothed_rtt,
        });
    }
    fn on_congestion(&mut self, event: &Congestion) {
        self.0.push(Event::Congestion(*event));
    }
    fn on_mtu_change(&mut self, mtu: Bytes) {
        self.0.push(Event::Mtu(mtu));
    }
    fn window(&self) -> Bytes {
        *self.0.window.lock().unwrap()
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
