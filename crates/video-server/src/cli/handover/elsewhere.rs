//! Systems other than Linux, where a process cannot take over another one's port.

mod sockets;

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use playrate_transport::Succession;
use video_server::serve::VideoServer;

pub(super) use sockets::{Offered, Predecessor};

use super::Failure;
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

pub(super) enum Older {}

impl Older {
    pub(super) fn serving(&self) {
        match *self {}
    }
}

pub(super) enum Offer {}

impl Offer {
    pub(super) fn withdraw_tcp(&self) {
        match *self {}
    }
}

pub(super) fn offer(_: &Path, _: Offered, _: TcpServices<Arc<TcpService>>) -> Option<Offer> {
    None
}

pub(super) async fn over(_: Option<&Offer>, _: Option<&Older>, _: &VideoServer) {
    std::future::pending().await
}
