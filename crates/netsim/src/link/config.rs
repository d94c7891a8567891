//! [`LinkConfig`]: the configuration of one link.

use core::time::Duration;

use playrate_units::{Bytes, duration};

use super::fault::FaultState;
use super::policer::PolicerState;
use super::{
    Aqm, CrossTraffic, DelaySchedule, IP_UDP_OVERHEAD, Link, LinkFault, Loss, Policer, QueueLimit, Rate,
    Reordering,
};
use crate::{ConfigError, Seed};

const MAX_DELAY: Duration = Duration::from_secs(3_600);
/// The smallest UDP payload that every QUIC path carries (RFC 9000 §14.1).
const QUIC_MIN_DATAGRAM: u64 = 1_200;
const MAX_IP_PACKET: u64 = 65_535;

/// Configuration of one direction of a path. The default is unlimited, immediate and lossless.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkConfig {
    /// Rate at which packets leave the queue.
    pub rate: Rate,
    /// Propagation delay, from a packet's last bit leaving to its arrival.
    pub delay: DelaySchedule,
    /// Limit of the queue.
    pub queue: QueueLimit,
    /// Random loss on the wire.
    pub loss: Loss,
    /// Queue management before the queue is full.
    pub aqm: Aqm,
    /// Rate limit in front of the queue; packets that exceed it are dropped.
    pub policer: Option<Policer>,
    /// Random addition to the propagation delay, uniform between zero and this. Packets stay in order: if one would
    /// overtake another, both arrive together.
    pub jitter: Duration,
    /// Packets that have left the queue are sent on together at multiples of this time; zero sends them on immediately.
    /// Cable modems, Wi-Fi aggregation and interrupt coalescing do this.
    pub batches: Duration,
    /// Packets that are overtaken by later ones.
    pub reordering: Option<Reordering>,
    /// Other traffic on the link.
    pub cross_traffic: Vec<CrossTraffic>,
    /// Temporary impairments during the run.
    pub faults: Vec<LinkFault>,
    /// Largest packet, headers included. Larger ones are dropped, as with the don't-fragment bit set.
    pub mtu: Bytes,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: Rate::Unlimited,
            delay: DelaySchedule::default(),
            queue: QueueLimit::ONE_BDP,
            loss: Loss::None,
            aqm: Aqm::None,
            policer: None,
            jitter: Duration::ZERO,
            batches: Duration::ZERO,
            reordering: None,
            cross_traffic: Vec::new(),
            faults: Vec::new(),
            mtu: Bytes::new(1_500),
        }
    }
}

impl LinkConfig {
    /// A link with this rate and propagation delay, a queue of one bandwidth-delay product, an MTU of 1500 bytes and no
    /// loss.
    pub fn new(rate: impl Into<Rate>, delay: impl Into<DelaySchedule>) -> Self {
        Self {
            rate: rate.into(),
            delay: delay.into(),
            ..Self::default()
        }
    }

    setters! {
        /// The same link with this rate.
        with_rate(rate: impl Into<Rate>);

        /// The same link with this propagation delay.
        with_delay(delay: impl Into<DelaySchedule>);

        /// The same link with this queue.
        with_queue(queue: QueueLimit);

        /// The same link with this loss.
        with_loss(loss: impl Into<Loss>);

        /// The same link with this queue management.
        with_aqm(aqm: Aqm);

        /// The same link with this policer.
        with_policer(policer: Policer);

        /// The same link with this jitter.
        with_jitter(jitter: Duration);

        /// The same link, which sends packets on in batches this far apart.
        with_batches(batches: Duration);

        /// The same link with this reordering.
        with_reordering(reordering: Reordering);

        /// The same link with this cross traffic.
        with_cross_traffic(cross_traffic: Vec<CrossTraffic>);

        /// The same link with these faults.
        with_faults(faults: Vec<LinkFault>);

        /// The same link with this MTU, headers included.
        with_mtu(mtu: Bytes);
    }

    /// The same link with a queue `parts.0` ÷ `parts.1` as large, to the nearest byte or packet and at least one
    /// packet. A multiple of the bandwidth-delay product, with the path's propagation delay `round_trip`, becomes a
    /// size in bytes; on a link without a limit it stays a multiple.
    #[must_use]
    pub fn with_scaled_queue(self, round_trip: Duration, parts: (u64, u64)) -> Self {
        let scaled = |number: u64| {
            let half = u128::from(parts.1 / 2);
            let number = (u128::from(number) * u128::from(parts.0) + half) / u128::from(parts.1.max(1));
            u64::try_from(number).unwrap_or(u64::MAX)
        };
        let queue = match (self.queue, self.queue.resolve(self.rate.mean(), round_trip)) {
            (QueueLimit::Packets(packets), _) => {
                let packets = u32::try_from(scaled(packets.into())).unwrap_or(u32::MAX);
                QueueLimit::Packets(packets.max(1))
            }
            (limit, (u64::MAX, _)) => limit,
            (_, (bytes, _)) => QueueLimit::Bytes(Bytes::new(scaled(bytes)).max(self.mtu)),
        };
        self.with_queue(queue)
    }

    /// Queue limit in bytes on a path with this round-trip propagation delay; `None` if the link is unlimited or its
    /// limit is in packets.
    pub fn queue_limit(&self, round_trip: Duration) -> Option<Bytes> {
        let (bytes, _) = self.queue.resolve(self.rate.mean(), round_trip);
        (bytes != u64::MAX).then_some(Bytes::new(bytes))
    }

    /// Builds the link. `round_trip` is the propagation delay of the whole path in both directions, on its first route.
    /// Queue limits in multiples of the bandwidth-delay product refer to it.
    pub fn build(&self, round_trip: Duration, seed: Seed) -> Result<Link, ConfigError> {
        let late = self.reordering.map_or(Duration::ZERO, |reordering| reordering.by);
        let late = late.max(FaultState::longest_delay(&self.faults));
        if let Some(delay) = [self.delay.longest(), self.jitter, self.batches, late]
            .into_iter()
            .find(|delay| *delay > MAX_DELAY)
        {
            return Err(ConfigError::Delay(duration::display(delay).to_string()));
        }
        let mtu = self.mtu.as_u64();
        if !(QUIC_MIN_DATAGRAM + IP_UDP_OVERHEAD..=MAX_IP_PACKET).contains(&mtu) {
            return Err(ConfigError::Mtu(self.mtu.to_string()));
        }
        let transmitter = self.rate.transmitter(seed)?;
        let (queue_bytes, queue_packets) = self.queue.resolve(self.rate.mean(), round_trip);
        if queue_packets == 0 || queue_bytes < mtu {
            let (holds, packet) = match queue_packets {
                0 => ("0 packets".to_owned(), "1 packet".to_owned()),
                _ => (Bytes::new(queue_bytes).to_string(), self.mtu.to_string()),
            };
            let queue = self.queue.to_string();
            return Err(ConfigError::Queue { queue, holds, packet });
        }
        let sources = self.cross_traffic.iter().enumerate();
        let sources = sources
            .map(|(number, traffic)| {
                traffic.source(self.mtu, seed.child("cross traffic").child(&number.to_string()))
            })
            .collect::<Result<_, _>>()?;
        let policer = self.policer.map(|policer| PolicerState::new(policer, self.mtu));
        Ok(Link {
            sources,
            policer: policer.transpose()?,
            ..Link::new(self, transmitter, (queue_bytes, queue_packets), seed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_units::Bitrate;

    #[test]
    fn a_scaled_queue_is_a_share_of_what_its_limit_comes_to() {
        let link = |queue: &str| {
            LinkConfig::new(Bitrate::from_mbps(20), Duration::from_millis(50))
                .with_queue(queue.parse().unwrap())
        };
        let scaled = |link: LinkConfig| {
            let scaled = link.with_scaled_queue(Duration::from_millis(100), (105, 100));
            scaled.queue.to_string()
        };
        assert_eq!(scaled(link("1bdp")), "262.5kB");
        assert_eq!(scaled(link("300packets")), "315packets");
        assert_eq!(scaled(link("1packets")), "1packets");
        assert_eq!(scaled(link("450kB")), "472.5kB");
        assert_eq!(scaled(link("1bdp").with_rate(Rate::Unlimited)), "1bdp");
        let least = link("1500B").with_scaled_queue(Duration::ZERO, (1, 2));
        assert_eq!(least.queue.to_string(), "1.5kB");
    }
}
