//! [`Quinn`]: quinn as a [`QuicStack`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use playrate_adapter::{AckRequest, BaselineMetrics, QuicStack};
use playrate_units::{Bitrate, Bytes};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::Controller;

use crate::{Baseline, ConnectionController, EndpointFactory};

/// quinn, for the shared types of playrate's adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quinn;

/// One of quinn's own controllers.
pub struct BaselineController(pub(crate) Box<dyn Controller>);

impl Clone for BaselineController {
    fn clone(&self) -> Self {
        Self(self.0.clone_box())
    }
}

impl QuicStack for Quinn {
    type TransportConfig = quinn::TransportConfig;
    type Connection = quinn::Connection;
    type Rtt = RttEstimator;
    type Baseline = Baseline;
    type BaselineController = BaselineController;

    const BASELINES: &'static [Baseline] = &Baseline::ALL;
    // quinn sends a packet only if `in_flight + mtu < window`.
    const IS_STRICT: bool = true;

    fn name(baseline: Baseline) -> &'static str {
        baseline.name()
    }

    fn build(baseline: Baseline, now: Instant, mtu: u16) -> BaselineController {
        BaselineController(baseline.factory(mtu).build(now, mtu))
    }

    fn window(controller: &BaselineController) -> Bytes {
        Bytes::new(controller.0.window())
    }

    fn initial_window(controller: &BaselineController) -> Bytes {
        Bytes::new(controller.0.initial_window())
    }

    fn metrics(controller: &BaselineController) -> BaselineMetrics {
        let quinns = controller.0.metrics();
        let mut metrics = BaselineMetrics::default();
        // quinn writes "infinite" as the largest integer.
        let ssthresh = quinns.ssthresh.filter(|&ssthresh| ssthresh < u64::MAX);
        metrics.ssthresh = ssthresh.map(Bytes::new);
        metrics.pacing_rate = quinns.pacing_rate.map(Bitrate::from_bits_per_second);
        metrics
    }

    fn smoothed_and_min(rtt: &RttEstimator) -> (Duration, Duration) {
        (rtt.get(), rtt.min())
    }

    fn install(control: ConnectionController, transport: &mut quinn::TransportConfig) {
        transport.congestion_controller_factory(Arc::new(EndpointFactory::with(move || control.clone())));
    }

    fn request_acks(request: AckRequest, transport: &mut quinn::TransportConfig) {
        let mut frequency = quinn::AckFrequencyConfig::default();
        // The threshold is the number of packets that may go unacknowledged (draft-ietf-quic-ack-frequency §4).
        let threshold = quinn::VarInt::from_u32(request.packets.saturating_sub(1));
        frequency.ack_eliciting_threshold(threshold);
        frequency.max_ack_delay(request.longest);
        transport.ack_frequency_config(Some(frequency));
    }

    fn synchronize(connection: &quinn::Connection) {
        connection.rtt();
    }
}
