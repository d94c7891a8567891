//! Systems other than Linux, where a process cannot take over another one's port.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use playrate_transport::Succession;
use video_server::serve::VideoServer;

use super::Failure;
use super::listen::{Offered, Predecessor};
use super::tcp::{TcpService, TcpServices};

pub(super) enum Link {}

#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
pub(super) fn find(_: &Path, _: u64) -> Result<Option<Predecessor>, Failure> {
    Ok(None)
}

impl Link {
    pub(super) fn take(self, _: TcpServices<TcpListener>) -> anyhow::Result<(Succession, Older)> {
        match self {}
    }
}

#[derive(Debug)]
pub(super) enum Older {}

pub(super) struct Handover;

impl Handover {
    pub(super) fn new(_: Option<Older>) -> Self {
        Self
    }

    pub(super) fn offer(&mut self, _: &Path, _: Offered, _: TcpServices<Arc<TcpService>>) {}

    pub(super) fn serving(&mut self) {}

    pub(super) fn close_tcp(&self) {}

    pub(super) async fn over(&mut self, _: &VideoServer) {
        std::future::pending().await
    }
}
