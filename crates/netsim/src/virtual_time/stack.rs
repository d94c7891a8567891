//! The part of a QUIC stack's interfaces that is the same in quinn and noq, whose types differ only by crate.

/// Implements `Runtime` and `AsyncTimer`, and converts datagrams, for the stack whose types the module imports.
/// `$socket` is the socket type of its `Runtime`.
macro_rules! stack_interfaces {
    ($socket:ty) => {
        impl Runtime for VirtualRuntime {
            fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
                Box::pin(self.timer(self.shared.time_of(deadline)))
            }

            fn spawn(&self, future: BoxedTask) {
                self.shared.executor.spawn(self.host, future);
            }

            fn wrap_udp_socket(&self, _: std::net::UdpSocket) -> io::Result<$socket> {
                Err(no_real_socket())
            }

            fn now(&self) -> Instant {
                self.instant()
            }
        }

        impl AsyncTimer for VirtualTimer {
            fn reset(self: Pin<&mut Self>, deadline: Instant) {
                self.set_deadline(deadline);
            }

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
                self.get_mut().poll_expired(cx)
            }
        }

        fn outgoing<'a>(transmit: &'a Transmit<'_>) -> crate::virtual_time::network::Outgoing<'a> {
            crate::virtual_time::network::Outgoing {
                to: transmit.destination,
                from: transmit.src_ip,
                ecn: transmit.ecn.map_or(0, |codepoint| codepoint as u8),
                contents: transmit.contents,
                segment_size: transmit.segment_size,
            }
        }

        fn receive(
            socket: &VirtualSocket,
            cx: &mut Context<'_>,
            buffers: &mut [IoSliceMut<'_>],
            metas: &mut [RecvMeta],
        ) -> Poll<io::Result<usize>> {
            let most = buffers.len().min(metas.len());
            let buffers = buffers.get_mut(..most).unwrap_or_default();
            let received = socket.poll_receive(cx, buffers, |number, datagram| {
                if let Some(meta) = metas.get_mut(number) {
                    meta.addr = datagram.from;
                    meta.len = datagram.length;
                    meta.stride = datagram.length;
                    meta.ecn = EcnCodepoint::from_bits(datagram.ecn);
                    meta.dst_ip = Some(datagram.to);
                }
            });
            received.map(Ok)
        }
    };
}
