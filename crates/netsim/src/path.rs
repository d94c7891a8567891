//! [`Path`]: a link in each direction.

use core::time::Duration;

use playrate_units::Bitrate;

use crate::{ConfigError, DelaySchedule, Link, LinkConfig, Loss, QueueLimit, Rate, Seed, WifiConfig};

/// Configuration of both directions of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathConfig {
    /// Direction of the data, from the server to its clients.
    pub forward: LinkConfig,
    /// Direction of requests and acknowledgements, from the clients to the server.
    pub backward: LinkConfig,
}

impl PathConfig {
    /// Creates a path from the configurations of its directions.
    pub fn new(forward: LinkConfig, backward: LinkConfig) -> Self {
        Self { forward, backward }
    }

    /// A path whose data direction is the bottleneck: `rate`, `queue` and `loss` apply there. The return direction is
    /// unlimited and lossless, and each direction takes half of the round-trip propagation delay `rtt`.
    pub fn bottleneck(rate: Bitrate, rtt: Duration, queue: QueueLimit, loss: impl Into<Loss>) -> Self {
        let path = Self::of_rate(Rate::Constant(rate), rtt);
        Self::new(path.forward.with_queue(queue).with_loss(loss), path.backward)
    }

    /// A path whose last hop is Wi-Fi: the access point's queue towards the client, the client's own queue in the
    /// return direction, and the hop's residual loss both ways. Each direction has its own random draws, and half of
    /// the round-trip propagation delay `rtt`.
    pub fn wifi(wifi: &WifiConfig, rtt: impl Into<DelaySchedule>) -> Self {
        let (forward, backward) = rtt.into().halves();
        let link = |delay, queue| {
            LinkConfig::new(wifi.clone(), delay)
                .with_queue(queue)
                .with_loss(wifi.residual_loss)
        };
        Self {
            forward: link(forward, wifi.queue),
            backward: link(backward, wifi.device_queue),
        }
    }

    /// A path whose data direction has this rate and the model's default queue. Each direction takes half of the
    /// round-trip propagation delay `rtt`. The return direction is unlimited, or uses the same model if the medium is
    /// shared.
    pub fn of_rate(rate: impl Into<Rate>, rtt: impl Into<DelaySchedule>) -> Self {
        match rate.into() {
            Rate::Wifi(wifi) => Self::wifi(&wifi, rtt),
            rate => {
                let (forward, backward) = rtt.into().halves();
                Self {
                    forward: LinkConfig::new(rate, forward),
                    backward: LinkConfig::new(Rate::Unlimited, backward),
                }
            }
        }
    }

    /// The round-trip propagation delay of the first route.
    pub fn round_trip(&self) -> Duration {
        let (forward, backward) = (&self.forward.delay, &self.backward.delay);
        forward.first().saturating_add(backward.first())
    }

    /// The round-trip propagation delay of the longest route.
    pub fn longest_round_trip(&self) -> Duration {
        let (forward, backward) = (&self.forward.delay, &self.backward.delay);
        forward.longest().saturating_add(backward.longest())
    }

    /// Both links, each with its own generator derived from `seed`.
    pub fn build(&self, seed: Seed) -> Result<Path, ConfigError> {
        let round_trip = self.round_trip();
        Ok(Path {
            forward: self.forward.build(round_trip, seed.child("forward"))?,
            backward: self.backward.build(round_trip, seed.child("backward"))?,
        })
    }
}

/// Both directions of a running path.
#[derive(Debug)]
#[non_exhaustive]
pub struct Path {
    /// Direction of the data, from the server to its clients.
    pub forward: Link,
    /// Direction of requests and acknowledgements, from the clients to the server.
    pub backward: Link,
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_units::Bytes;

    #[test]
    fn a_bottleneck_splits_the_delay_and_sizes_its_queue_by_the_round_trip() {
        let config = PathConfig::bottleneck(
            Bitrate::from_mbps(20),
            Duration::from_nanos(100_000_001),
            QueueLimit::ONE_BDP,
            Loss::None,
        );
        assert_eq!(config.round_trip(), Duration::from_nanos(100_000_001));
        let limits = [&config.forward, &config.backward].map(|link| link.queue_limit(config.round_trip()));
        assert_eq!(limits, [Some(Bytes::from_kb(250)), None]);
    }

    #[test]
    fn a_queue_too_small_for_a_packet_is_refused_with_its_size() {
        let config = PathConfig::bottleneck(
            Bitrate::from_kbps(64),
            Duration::from_millis(10),
            QueueLimit::ONE_BDP,
            Loss::None,
        );
        let error = config.build(Seed::new(1)).unwrap_err().to_string();
        assert!(error.contains("`1bdp` holds 80B"), "{error}");
    }
}
