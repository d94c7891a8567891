//! [`VirtualRuntime`] and [`VirtualSocket`]: quinn's interfaces to a simulation.

use core::time::Duration;
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, UdpPoller};

use super::SimulationCore;
use super::events::TimerTimes;
use super::executor::{BoxedTask, lock};
use crate::Time;

/// Maximum number of datagrams per system call (generic segmentation offload): the most that quinn takes.
const SEGMENTS: usize = 10;

/// Virtual time, timers and tasks for quinn and for programs written for [`quinn::Runtime`].
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
        let mut timer = self.new_timer(self.now() + time);
        poll_fn(move |cx| timer.as_mut().poll(cx))
    }

    /// Suspends the tasks of this runtime's host for `time`, starting with their next poll, like a stopped process or a
    /// blocking system call: timers fire late, and datagrams wait in the sockets' buffers. Overlapping suspensions end
    /// together. Without a host it does nothing.
    pub fn suspend(&self, time: Duration) {
        let Some(host) = self.host else { return };
        let shared = Arc::clone(&self.shared);
        shared.executor.suspend(host, self.time() + time);
        let mut timer = self.new_timer(self.now() + time);
        self.shared.executor.spawn(
            None,
            Box::pin(async move {
                poll_fn(|cx| timer.as_mut().poll(cx)).await;
                shared.executor.resume(host, shared.now());
            }),
        );
    }
}

impl Runtime for VirtualRuntime {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        let at = self.shared.time_of(deadline);
        let (slot, times) = lock(&self.shared.network).events.new_timer(at);
        Box::pin(VirtualTimer {
            shared: Arc::clone(&self.shared),
            slot,
            times,
            waker: None,
        })
    }

    fn spawn(&self, future: BoxedTask) {
        self.shared.executor.spawn(self.host, future);
    }

    fn wrap_udp_socket(&self, _: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a real socket has no place in virtual time; use Simulation::bind",
        ))
    }

    fn now(&self) -> Instant {
        self.shared.instant_of(self.time())
    }
}

/// quinn resets and polls a timer with nearly every packet, mostly to a later deadline and with the same waker. In that
/// case, nothing changes in the event queue, and its lock is not taken.
#[derive(Debug)]
struct VirtualTimer {
    shared: Arc<SimulationCore>,
    slot: u32,
    times: Arc<TimerTimes>,
    /// The last registered waker.
    waker: Option<Waker>,
}

impl AsyncTimer for VirtualTimer {
    fn reset(self: Pin<&mut Self>, deadline: Instant) {
        if self.times.reset(self.shared.time_of(deadline)) {
            lock(&self.shared.network).events.arm(self.slot);
        }
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.times.has_expired(this.shared.now()) {
            if this.times.is_awaited() {
                let waker = lock(&this.shared.network).events.forget_waker(this.slot);
                drop(waker);
            }
            return Poll::Ready(());
        }
        let is_known = this
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()));
        if !(is_known && this.times.is_awaited() && this.times.is_armed()) {
            if !is_known {
                this.waker = Some(cx.waker().clone());
            }
            let replaced = lock(&this.shared.network)
                .events
                .await_timer(this.slot, cx.waker());
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

/// A UDP socket of a simulated host. It never blocks on sending, never fragments and carries ECN codepoints.
#[derive(Debug)]
pub struct VirtualSocket {
    pub(super) shared: Arc<SimulationCore>,
    pub(super) index: u32,
    pub(super) address: SocketAddr,
}

impl VirtualSocket {
    /// Local address and port. Behind a NAT ([`Simulation::rebind`](super::Simulation::rebind)) others see another.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl AsyncUdpSocket for VirtualSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(AlwaysWritable)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        lock(&self.shared.network).send(self.index, transmit);
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut network = lock(&self.shared.network);
        let mut count = 0;
        for (buffer, meta) in buffers.iter_mut().zip(metas) {
            let Some(datagram) = network.receive(self.index) else {
                break;
            };
            // If a buffer is too small, the datagram is cut off, as with recvmsg.
            let length = datagram.data.len().min(buffer.len());
            if let (Some(to), Some(from)) = (buffer.get_mut(..length), datagram.data.get(..length)) {
                to.copy_from_slice(from);
            }
            *meta = RecvMeta {
                addr: datagram.from,
                len: length,
                stride: length,
                ecn: datagram.ecn,
                dst_ip: Some(self.address.ip()),
            };
            network.give_back(datagram.data);
            count += 1;
        }
        if count > 0 {
            return Poll::Ready(Ok(count));
        }
        if let Some(socket) = network.sockets.get_mut(self.index as usize) {
            match &mut socket.waker {
                Some(known) => known.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
        }
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn max_transmit_segments(&self) -> usize {
        SEGMENTS
    }

    fn may_fragment(&self) -> bool {
        // Links drop packets above their MTU, so quinn can discover it.
        false
    }
}

impl Drop for VirtualSocket {
    fn drop(&mut self) {
        let waker = lock(&self.shared.network).close(self.index);
        drop(waker);
    }
}

#[derive(Debug)]
struct AlwaysWritable;

impl UdpPoller for AlwaysWritable {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
