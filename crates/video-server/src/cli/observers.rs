//! [`Observers`]: several observers as one.

use std::sync::Arc;

use playrate_transport::telemetry::Sink;
use video_server::serve::{ConnectionInfo, Observer, SessionSummary};

/// Tells each of them.
#[derive(Debug, Default)]
pub(super) struct Observers(pub(super) Vec<Arc<dyn Observer>>);

impl Observer for Observers {
    fn connecting(&self, connection: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
        let sinks = self.0.iter().map(|observer| observer.connecting(connection));
        sinks.flatten().collect()
    }

    fn finished(&self, session: &SessionSummary) {
        for observer in &self.0 {
            observer.finished(session);
        }
    }
}
