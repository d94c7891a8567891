//! noq's runtime, timers and sockets in virtual time.

use core::num::NonZeroUsize;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::time::Instant;

use noq::udp::{EcnCodepoint, RecvMeta, Transmit};
use noq::{AsyncTimer, AsyncUdpSocket, EndpointConfig, Runtime, UdpSender};

use super::executor::BoxedTask;
use super::runtime::VirtualTimer;
use super::{SEGMENTS, Simulation, VirtualRuntime, VirtualSocket, no_real_socket};

stack_interfaces!(Box<dyn AsyncUdpSocket>);

impl Simulation {
    /// noq's default endpoint configuration with its generator seeded by the simulation's seed and `name`, so that runs
    /// are reproducible. Every endpoint needs its own name.
    pub fn noq_endpoint_config(&self, name: &str) -> EndpointConfig {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some(self.endpoint_seed(name)));
        config
    }
}

impl AsyncUdpSocket for VirtualSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(self.clone())
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        receive(self, cx, buffers, metas)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address())
    }

    fn may_fragment(&self) -> bool {
        // Links drop packets above their MTU, so noq can discover it.
        false
    }
}

impl UdpSender for VirtualSocket {
    fn poll_send(self: Pin<&mut Self>, transmit: &Transmit<'_>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.send(&outgoing(transmit));
        Poll::Ready(Ok(()))
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        NonZeroUsize::new(SEGMENTS).unwrap_or(NonZeroUsize::MIN)
    }
}
