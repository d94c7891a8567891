//! Systems other than Linux, where a process cannot take over another one's port.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Arc;

use playrate_transport::{DatagramRouter, Succession};
use video_server::serve::VideoServer;

use super::Failure;
use super::accepting::Accepting;

pub(super) enum Predecessor {}

impl Predecessor {
    #[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
    pub(super) fn find(_: &Path, _: u64) -> Result<Option<Self>, Failure> {
        Ok(None)
    }

    pub(super) fn address(&self) -> SocketAddr {
        match *self {}
    }

    pub(super) fn process_id(&self) -> u32 {
        match *self {}
    }

    pub(super) fn take_tcp(&mut self) -> Option<TcpListener> {
        match *self {}
    }

    pub(super) fn take_metrics(&mut self, _: SocketAddr) -> Option<TcpListener> {
        match *self {}
    }

    pub(super) fn take(self) -> anyhow::Result<(Vec<UdpSocket>, Succession, Older)> {
        match self {}
    }
}

#[derive(Debug)]
pub(super) enum Older {}

#[expect(dead_code, reason = "it is read on Linux")]
pub(super) struct Offered {
    pub(super) process: u8,
    pub(super) key: u64,
    pub(super) address: SocketAddr,
    pub(super) udp: Vec<UdpSocket>,
    pub(super) tcp: Option<TcpListener>,
    pub(super) metrics: Option<TcpListener>,
    pub(super) router: Arc<DatagramRouter>,
}

pub(super) struct Handover;

impl Handover {
    pub(super) fn new(_: Option<Older>) -> Self {
        Self
    }

    pub(super) fn offer(&mut self, _: &Path, _: Offered, _: Accepting) {}

    pub(super) fn serving(&mut self) {}

    pub(super) fn close_tcp(&self) {}

    pub(super) async fn over(&mut self, _: &VideoServer, _: &Accepting) {
        std::future::pending().await
    }
}
