//! [`Noq`]: noq as a [`QuicStack`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use noq_proto::congestion::Controller;
use noq_proto::{PathId, RttEstimator};
use playrate_adapter::{AckRequest, BaselineMetrics, QuicStack};
use playrate_units::{Bitrate, Bytes};

use crate::{Baseline, ConnectionController, EndpointFactory};

/// noq, for the shared types of playrate's adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Noq;

/// One of noq's own controllers.
pub struct BaselineController(pub(crate) Box<dyn Controller>);

impl Clone for BaselineController {
    fn clone(&self) -> Self {
        Self(self.0.clone_box())
    }
}

impl QuicStack for Noq {
    type TransportConfig = noq::TransportConfig;
    type Connection = noq::Connection;
    type Rtt = RttEstimator;
    type Baseline = Baseline;
    type BaselineController = BaselineController;

    const BASELINES: &'static [Baseline] = &Baseline::ALL;
    // noq sends a packet unless `in_flight + mtu > window`.
    const IS_STRICT: bool = false;
    const PACES_BY_RATE: bool = true;
    const IS_MULTIPATH: bool = true;

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
        let noqs = controller.0.metrics();
        let mut metrics = BaselineMetrics::default();
        // noq writes "infinite" as the largest integer.
        let ssthresh = noqs.ssthresh.filter(|&ssthresh| ssthresh < u64::MAX);
        metrics.ssthresh = ssthresh.map(Bytes::new);
        metrics.pacing_rate = noqs.pacing_rate.map(Bitrate::from_bytes_per_second);
        metrics
    }

    fn smoothed_and_min(rtt: &RttEstimator) -> (Duration, Duration) {
        (rtt.get(), rtt.min())
    }

    fn install(control: ConnectionController, transport: &mut noq::TransportConfig) {
        transport.congestion_controller_factory(Arc::new(EndpointFactory::with(move || control.clone())));
    }

    fn request_acks(request: AckRequest, transport: &mut noq::TransportConfig) {
        let mut frequency = noq::AckFrequencyConfig::default();
        // The threshold is the number of packets that may go unacknowledged (draft-ietf-quic-ack-frequency §4).
        let threshold = noq::VarInt::from_u32(request.packets.saturating_sub(1));
        frequency.ack_eliciting_threshold(threshold);
        frequency.max_ack_delay(request.longest);
        transport.ack_frequency_config(Some(frequency));
    }

    fn synchronize(connection: &noq::Connection) {
        connection.rtt(PathId::ZERO);
    }
}
