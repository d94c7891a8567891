//! [`Accepting`]: what a server accepts over TCP while it owns the port.

use std::sync::Arc;

use super::metrics::Dashboard;
use super::tcp::TcpServer;

/// TCP services of a process: the site, and the operator's view.
#[derive(Clone)]
pub(super) struct Accepting {
    pub(super) tcp: Option<Arc<TcpServer>>,
    pub(super) dashboard: Option<Arc<Dashboard>>,
}

impl Accepting {
    /// Stops accepting connections and further requests because another process accepts them.
    pub(super) fn stop(&self) {
        if let Some(tcp) = &self.tcp {
            tcp.stop();
        }
        if let Some(dashboard) = &self.dashboard {
            dashboard.stop();
        }
    }

    /// Waits until the site no longer accepts connections and the last one has ended.
    pub(super) async fn idle(&self) {
        if let Some(tcp) = &self.tcp {
            tcp.idle().await;
        }
    }
}
