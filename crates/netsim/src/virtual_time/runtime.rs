//! [`VirtualRuntime`] and [`VirtualSocket`]: time and sockets of a simulation.

use core::time::Duration;
use std::future::poll_fn;
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::SimulationCore;
use super::events::TimerTimes;
use super::executor::lock;
use super::network::Outgoing;
use crate::Time;

/// Virtual time, timers and tasks for QUIC stacks, and for programs written for their `Runtime` traits.
#[derive(Clone, Debug)]
pub struct VirtualRuntime {
    pub(super) shared: Arc<SimulationCore>,
    /// The host that runs its tasks.
    pub(super) host: Option<IpAddr>,
}

impl VirtualRuntime {
    /// Virtual time since the start of the simulation.
    pub fn time(&self) -> Time {
        self.shared.now()
    }

    /// Waits for this much virtual time.
    pub fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + use<> {
        let mut timer = self.timer(self.time() + time);
        poll_fn(move |cx| timer.poll_expired(cx))
    }

    /// Suspends the tasks of this runtime's host for `time`, starting with their next poll, like a stopped process or a
    /// blocking system call: timers fire late, and datagrams wait in the sockets' buffers. Overlapping suspensions end
    /// together. Without a host it does nothing.
    pub fn suspend(&self, time: Duration) {
        let Some(host) = self.host else { return };
        let shared = Arc::clone(&self.shared);
        shared.executor.suspend(host, self.time() + time);
        let mut timer = self.timer(self.time() + time);
        self.shared.executor.spawn(
            None,
            Box::pin(async move {
                poll_fn(|cx| timer.poll_expired(cx)).await;
                shared.executor.resume(host, shared.now());
            }),
        );
    }

    /// A timer that expires at `at`.
    pub(super) fn timer(&self, at: Time) -> VirtualTimer {
        let (slot, times) = lock(&self.shared.network).events.new_timer(at);
        VirtualTimer {
            shared: Arc::clone(&self.shared),
            slot,
            times,
            waker: None,
        }
    }

    /// Virtual time in the form of a stack.
    pub(super) fn instant(&self) -> Instant {
        self.shared.instant_of(self.time())
    }
}

/// quinn resets and polls a timer with nearly every packet, mostly to a later deadline and with the same waker. In that
/// case, nothing changes in the event queue, and its lock is not taken.
#[derive(Debug)]
pub(super) struct VirtualTimer {
    shared: Arc<SimulationCore>,
    slot: u32,
    times: Arc<TimerTimes>,
    /// The last registered waker.
    waker: Option<Waker>,
}

impl VirtualTimer {
    pub(super) fn set_deadline(&self, deadline: Instant) {
        if self.times.reset(self.shared.time_of(deadline)) {
            lock(&self.shared.network).events.arm(self.slot);
        }
    }

    pub(super) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.times.has_expired(self.shared.now()) {
            if self.times.is_awaited() {
                let waker = lock(&self.shared.network).events.forget_waker(self.slot);
                drop(waker);
            }
            return Poll::Ready(());
        }
        let is_known = self
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()));
        if !(is_known && self.times.is_awaited() && self.times.is_armed()) {
            if !is_known {
                self.waker = Some(cx.waker().clone());
            }
            let replaced = lock(&self.shared.network)
                .events
                .await_timer(self.slot, cx.waker());
            drop(replaced);
        }
        Poll::Pending
    }
}

impl Drop for VirtualTimer {
    fn drop(&mut self) {
        let waker = lock(&self.shared.network).events.drop_timer(self.slot);
        drop(waker);
    }
}

/// A UDP socket of a simulated host. It never blocks on sending, never fragments and carries ECN codepoints. Clones
/// share it, and it is closed with the last of them.
#[derive(Clone, Debug)]
pub struct VirtualSocket(Arc<OpenSocket>);

/// A socket that is closed when this is dropped.
#[derive(Debug)]
struct OpenSocket {
    shared: Arc<SimulationCore>,
    index: u32,
    address: SocketAddr,
}

/// Origin and size of a received datagram.
pub(super) struct ReceivedDatagram {
    pub(super) from: SocketAddr,
    pub(super) length: usize,
    /// Bits of the ECN codepoint.
    pub(super) ecn: u8,
    /// Local address to which it was sent.
    pub(super) to: IpAddr,
}

impl VirtualSocket {
    pub(super) fn new(shared: &Arc<SimulationCore>, index: u32, address: SocketAddr) -> Self {
        let shared = Arc::clone(shared);
        Self(Arc::new(OpenSocket {
            shared,
            index,
            address,
        }))
    }

    /// Local address and port. Behind a NAT ([`Simulation::rebind`](super::Simulation::rebind)) others see another.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Number of the socket in its network.
    pub(super) fn index(&self) -> u32 {
        self.0.index
    }

    pub(super) fn send(&self, outgoing: &Outgoing<'_>) {
        lock(&self.0.shared.network).send(self.0.index, outgoing);
    }

    /// Moves datagrams into `buffers` and passes the number and origin of each to `record`; returns their number.
    pub(super) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        mut record: impl FnMut(usize, ReceivedDatagram),
    ) -> Poll<usize> {
        let socket = &*self.0;
        let mut network = lock(&socket.shared.network);
        let mut count = 0;
        for buffer in buffers {
            let Some(datagram) = network.receive(socket.index) else {
                break;
            };
            // If a buffer is too small, the datagram is cut off, as with recvmsg.
            let length = datagram.data.len().min(buffer.len());
            if let (Some(to), Some(from)) = (buffer.get_mut(..length), datagram.data.get(..length)) {
                to.copy_from_slice(from);
            }
            let received = ReceivedDatagram {
                from: datagram.from,
                length,
                ecn: datagram.ecn,
                to: datagram.to.unwrap_or(socket.address.ip()),
            };
            record(count, received);
            network.give_back(datagram.data);
            count += 1;
        }
        if count > 0 {
            return Poll::Ready(count);
        }
        if let Some(socket) = network.sockets.get_mut(socket.index as usize) {
            match &mut socket.waker {
                Some(known) => known.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
        }
        Poll::Pending
    }
}

impl Drop for OpenSocket {
    fn drop(&mut self) {
        let waker = lock(&self.shared.network).close(self.index);
        drop(waker);
    }
}
