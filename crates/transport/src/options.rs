//! [`TransportOptions`]: the transport parameters that matter for video; avoids quinn's pitfalls.

use std::time::Duration;

use playrate_units::Bytes;
use quinn::{EndpointConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use playrate_quinn::Baseline;

/// Requests that a client may have in progress on one connection.
pub(crate) const CONCURRENT_REQUESTS: u32 = 100;

/// Thresholds at which an overtaken packet counts as lost (RFC 9002 §6.1).
///
/// Larger ones tolerate more reordering, and detect a real loss later. They apply to the packets that this side sends;
/// its peer has its own thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LossDetection {
    /// A packet is lost if an acknowledged one was sent this many packets later (kPacketThreshold), at least 3.
    pub packet_threshold: u32,
    /// A packet is lost if it was sent this many RTTs ago and a later one is acknowledged (kTimeThreshold), 1 to 8.
    pub time_threshold: f32,
}

impl LossDetection {
    /// Thresholds that RFC 9002 recommends, close to TCP's three duplicate acknowledgements.
    pub const RFC_9002: Self = Self {
        packet_threshold: 3,
        time_threshold: 1.125,
    };
    /// Thresholds for paths that reorder packets by up to 64 packets and half an RTT. Once a later packet is
    /// acknowledged, a loss is detected at most one and a half RTTs after the lost packet left. A burst in slow start
    /// continues for 64 packets longer until its loss is detected.
    pub const TOLERANT: Self = Self {
        packet_threshold: 64,
        time_threshold: 1.5,
    };

    /// Creates thresholds; for invalid ones, [`TransportOptions::to_quinn`] returns an error.
    ///
    /// RFC 9002 §6.1.1: the packet threshold SHOULD NOT be less than 3. §6.1.2 has no upper bound for the time
    /// threshold; quinn multiplies RTTs by it, and panics if the product exceeds a `Duration`.
    pub const fn new(packet_threshold: u32, time_threshold: f32) -> Self {
        Self {
            packet_threshold,
            time_threshold,
        }
    }

    fn is_possible(self) -> bool {
        self.packet_threshold >= 3 && (1.0..=8.0).contains(&self.time_threshold)
    }
}

impl Default for LossDetection {
    fn default() -> Self {
        Self::TOLERANT
    }
}

/// Transport parameters of one endpoint's connections.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TransportOptions {
    /// Bytes that a peer may send on one stream before they are read here (`initial_max_stream_data`). Up to
    /// [`MAX_WINDOW`](Self::MAX_WINDOW).
    pub stream_receive_window: Bytes,
    /// Bytes that a peer may send on all streams before they are read here (`initial_max_data`).
    pub receive_window: Bytes,
    /// Bytes taken from the application and not acknowledged yet. This bounds a sender's memory per connection, and how
    /// far a write may run ahead of the network. Only bytes within the peer's receive windows are taken.
    pub send_window: Bytes,
    /// Silence after which a connection counts as dead; at most `u32::MAX` ms.
    pub idle_timeout: Duration,
    /// Sends something after this much silence, so that a paused connection does not count as dead.
    pub keep_alive: Option<Duration>,
    /// Largest UDP payload at the start: at least 1,200, at most 65,527.
    pub initial_mtu: u16,
    /// Largest MTU for MTU discovery; `None` keeps the initial one.
    pub mtu_discovery: Option<u16>,
    /// Reordering that is tolerated before a packet counts as lost.
    pub loss_detection: LossDetection,
    /// Makes runs reproducible: seeds quinn's random choices and disables HTTP/3 greasing of clients; servers send
    /// none. Keys and connection IDs stay random, with the same lengths. For simulation only, because those choices
    /// protect a live connection.
    pub seed: Option<[u8; 32]>,
}

/// An option with an impossible value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A window outside the bounds.
    #[error(
        "{name} must be between {} and {} (got {value})",
        TransportOptions::MIN_WINDOW,
        TransportOptions::MAX_WINDOW
    )]
    Window {
        /// Name of the window.
        name: &'static str,
        /// The value that was given.
        value: Bytes,
    },
    /// An MTU outside the bounds.
    #[error("{name} must be between 1200 B and 65527 B (got {value} B)")]
    Mtu {
        /// Name of the MTU.
        name: &'static str,
        /// The value given, in bytes.
        value: u16,
    },
    /// A threshold below the recommendation of RFC 9002 §6.1, or so large that no loss would be detected.
    #[error("packet threshold must be at least 3 and time threshold between 1 and 8 RTTs (got {} and {})",
        .0.packet_threshold, .0.time_threshold)]
    LossDetection(LossDetection),
    /// This idle timeout is too long for a transport parameter.
    #[error("the idle timeout must be at most 49 days (got {})", playrate_units::duration::display(*.0))]
    IdleTimeout(Duration),
}

impl TransportOptions {
    /// The largest receive window accepted.
    pub const MAX_WINDOW: Bytes = Bytes::new(256 << 20);
    /// A window below this cannot carry a request or a response header.
    pub const MIN_WINDOW: Bytes = Bytes::new(16 << 10);

    /// For a server: requests are small, so its receive windows are small; a response runs at most 4 MiB ahead of the
    /// network.
    pub fn server() -> Self {
        Self {
            stream_receive_window: Bytes::new(64 << 10),
            receive_window: Bytes::from_mib(1),
            send_window: Bytes::from_mib(4),
            ..Self::client()
        }
    }

    /// For a client: 16 MiB may be in transit to it or wait to be read, so one stream can fill 100 Mbit/s at an RTT of
    /// 1 s.
    pub fn client() -> Self {
        Self {
            stream_receive_window: Bytes::from_mib(16),
            receive_window: Bytes::from_mib(16),
            send_window: Bytes::from_mib(1),
            idle_timeout: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(10)),
            initial_mtu: 1_200,
            mtu_discovery: Some(1_452),
            loss_detection: LossDetection::default(),
            seed: None,
        }
    }

    fn largest_mtu(&self) -> u16 {
        self.mtu_discovery.unwrap_or(0).max(self.initial_mtu)
    }

    /// The parameters in quinn's form, with quinn's Cubic. Created for every connection, because they contain its
    /// controller.
    pub fn to_quinn(&self) -> Result<TransportConfig, OptionsError> {
        let window = |name, value: Bytes| {
            if (Self::MIN_WINDOW..=Self::MAX_WINDOW).contains(&value) {
                Ok(value.as_u64())
            } else {
                Err(OptionsError::Window { name, value })
            }
        };
        let receive = |name, value| Ok(VarInt::from_u64(window(name, value)?).unwrap_or(VarInt::MAX));
        let mtu = |name, value: u16| {
            if (1_200..=65_527).contains(&value) {
                Ok(value)
            } else {
                Err(OptionsError::Mtu { name, value })
            }
        };
        if !self.loss_detection.is_possible() {
            return Err(OptionsError::LossDetection(self.loss_detection));
        }
        let mut config = TransportConfig::default();
        config
            .stream_receive_window(receive("stream receive window", self.stream_receive_window)?)
            .receive_window(receive("receive window", self.receive_window)?)
            .send_window(window("send window", self.send_window)?)
            .max_concurrent_bidi_streams(CONCURRENT_REQUESTS.into())
            // HTTP/3 needs three; a few more for greasing and extensions.
            .max_concurrent_uni_streams(8_u32.into())
            .max_idle_timeout(Some(
                IdleTimeout::try_from(self.idle_timeout)
                    .map_err(|_| OptionsError::IdleTimeout(self.idle_timeout))?,
            ))
            .keep_alive_interval(self.keep_alive)
            .packet_threshold(self.loss_detection.packet_threshold)
            .time_threshold(self.loss_detection.time_threshold)
            .datagram_receive_buffer_size(None)
            .initial_mtu(mtu("initial MTU", self.initial_mtu)?)
            // Like quinn's default, but safe for a large MTU.
            .congestion_controller_factory(Baseline::Cubic.factory(self.initial_mtu));
        let discovery = |bound| -> Result<_, OptionsError> {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(mtu("largest MTU", bound)?);
            Ok(discovery)
        };
        config.mtu_discovery_config(self.mtu_discovery.map(discovery).transpose()?);
        // quinn offloads up to 10 datagrams at once. If they exceed 65,507 bytes in total, the kernel refuses them
        // (EMSGSIZE), quinn treats that as loss, and black hole detection drops the MTU to 1,200.
        config.enable_segmentation_offload(self.largest_mtu() <= 6_500);
        Ok(config)
    }

    /// The options that apply to the endpoint.
    pub fn to_endpoint(&self) -> Result<EndpointConfig, OptionsError> {
        let mut config = EndpointConfig::default();
        config.rng_seed(self.seed);
        // The default is Ethernet's 1,472; a larger MTU must also be receivable.
        let largest = self.largest_mtu().max(1_472);
        config
            .max_udp_payload_size(largest)
            .map_err(|_| OptionsError::Mtu {
                name: "largest MTU",
                value: largest,
            })?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// A client's options with this `change`.
    fn changed(change: impl FnOnce(&mut TransportOptions)) -> TransportOptions {
        let mut options = TransportOptions::client();
        change(&mut options);
        options
    }

    fn thresholds(packets: u32, time: f32) -> TransportOptions {
        changed(|it| it.loss_detection = LossDetection::new(packets, time))
    }

    #[rstest]
    #[case(
        changed(|it| it.stream_receive_window = Bytes::new(1_000)),
        "stream receive window must be between 16.384kB and 268435.456kB (got 1kB)"
    )]
    #[case(changed(|it| it.receive_window = Bytes::from_mib(257)), "receive window must be between")]
    #[case(
        changed(|it| it.initial_mtu = 1_199),
        "initial MTU must be between 1200 B and 65527 B (got 1199 B)"
    )]
    #[case(
        changed(|it| it.mtu_discovery = Some(u16::MAX)),
        "largest MTU must be between 1200 B and 65527 B (got 65535 B)"
    )]
    #[case(changed(|it| it.idle_timeout = Duration::MAX), "at most 49 days")]
    #[case(
        thresholds(2, 1.125),
        "packet threshold must be at least 3 and time threshold between 1 and 8 RTTs (got 2 and 1.125)"
    )]
    #[case(thresholds(3, f32::NAN), "between 1 and 8 RTTs (got 3 and NaN)")]
    #[case(thresholds(3, 8.01), "between 1 and 8 RTTs (got 3 and 8.01)")]
    #[case(thresholds(3, 0.99), "between 1 and 8 RTTs (got 3 and 0.99)")]
    fn impossible_options_are_refused_with_the_value_and_the_bounds(
        #[case] options: TransportOptions,
        #[case] expected: &str,
    ) {
        let error = options.to_quinn().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn the_defaults_and_the_largest_values_are_accepted() {
        let largest = |it: &mut TransportOptions| {
            it.stream_receive_window = TransportOptions::MAX_WINDOW;
            it.receive_window = TransportOptions::MAX_WINDOW;
        };
        for options in [
            TransportOptions::client(),
            TransportOptions::server(),
            changed(largest),
            thresholds(3, 1.0),
            thresholds(3, 8.0),
        ] {
            assert!(options.to_quinn().is_ok() && options.to_endpoint().is_ok());
        }
    }

    #[test]
    fn a_large_mtu_can_be_received_and_is_not_offloaded() {
        let mut options = TransportOptions::server();
        options.mtu_discovery = Some(9_000);
        let shown = format!("{:?}", options.to_quinn().unwrap());
        assert!(shown.contains("enable_segmentation_offload: false"), "{shown}");
        assert_eq!(options.to_endpoint().unwrap().get_max_udp_payload_size(), 9_000);
    }
}
