//! quinn's runtime, timers and sockets in virtual time.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncTimer, AsyncUdpSocket, EndpointConfig, Runtime, UdpPoller};

use super::executor::BoxedTask;
use super::runtime::VirtualTimer;
use super::{SEGMENTS, Simulation, VirtualRuntime, VirtualSocket, no_real_socket};

stack_interfaces!(Arc<dyn AsyncUdpSocket>);

impl Simulation {
    /// quinn's default endpoint configuration with its generator seeded by the simulation's seed and `name`, so that
    /// runs are reproducible. Every endpoint needs its own name.
    pub fn endpoint_config(&self, name: &str) -> EndpointConfig {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some(self.endpoint_seed(name)));
        config
    }
}

impl AsyncUdpSocket for VirtualSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(AlwaysWritable)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.send(&outgoing(transmit));
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        receive(self, cx, buffers, metas)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address())
    }

    fn max_transmit_segments(&self) -> usize {
        SEGMENTS
    }

    fn may_fragment(&self) -> bool {
        // Links drop packets above their MTU, so quinn can discover it.
        false
    }
}

#[derive(Debug)]
struct AlwaysWritable;

impl UdpPoller for AlwaysWritable {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
