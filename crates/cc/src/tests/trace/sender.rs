//! [`Sender`]: quinn's work around a controller: pacing, loss detection, smoothed RTT.

use core::time::Duration;

use super::network::{ACK_DELAY_NS, Ack, Network};
use crate::testing::Connection;
use crate::{ControllerSpec, Path, Timestamp};

/// Packets in one burst, as with quinn's segmentation offload.
const BURST: u64 = 10;
/// quinn's pacer: the bucket holds two milliseconds' worth, but between 10 and 256 packets.
const BUCKET_NS: u64 = 2_000_000;
const BUCKET_PACKETS: core::ops::RangeInclusive<u64> = 10..=256;
/// `kPacketThreshold` of RFC 9002 §6.1.1.
const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002 §6.2.2, before the first sample.
const INITIAL_RTT_NS: u64 = 333_000_000;
const GRANULARITY_NS: u64 = 1_000_000;

/// Smoothed RTT and its variance, ns (RFC 9002 §5.3).
#[derive(Clone, Copy, Debug)]
struct Rtt {
    smoothed: u64,
    variance: u64,
    latest: u64,
    min: u64,
}

impl Rtt {
    fn update(before: Option<Self>, latest: u64, delay: u64) -> Self {
        let Some(rtt) = before else {
            return Self {
                smoothed: latest,
                variance: latest / 2,
                latest,
                min: latest,
            };
        };
        let min = rtt.min.min(latest);
        let adjusted = if latest >= min + delay {
            latest - delay
        } else {
            latest
        };
        Self {
            smoothed: (rtt.smoothed * 7 + adjusted) / 8,
            variance: (rtt.variance * 3 + rtt.smoothed.abs_diff(adjusted)) / 4,
            latest,
            min,
        }
    }

    /// Age at which a packet counts as lost after later ones arrived, ns (RFC 9002 §6.1.2).
    fn patience(self) -> u64 {
        (self.smoothed.max(self.latest) * 9 / 8).max(GRANULARITY_NS)
    }
}

/// A sender at one end of a [`Network`].
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) connection: Connection,
    pub(super) network: Network,
    /// Packets that the application has to send; `None` for an endless transfer.
    pub(super) wanted: Option<u64>,
    /// Packets declared lost so far.
    pub(super) lost: u64,
    /// Bytes acknowledged so far.
    pub(super) delivered: u64,
    rtt: Option<Rtt>,
    largest_acked: Option<u64>,
    sent: u64,
    /// Time of the last departure or acknowledgement, ns.
    last_event: u64,
    /// Probe timeouts since the last acknowledgement.
    probes: u32,
    /// Bytes that may leave now, and the time of their last update.
    tokens: u64,
    filled: u64,
    /// Time of the pacer's next burst, ns.
    paced_until: Option<u64>,
    /// Time when the processor has finished the last burst, ns.
    processed: u64,
    /// Largest number of bytes that were in flight.
    pub(super) largest_flight: u64,
}

impl Sender {
    pub(super) fn new(spec: &ControllerSpec, network: Network) -> Self {
        let path = Path::default().strict();
        Self {
            connection: Connection::on(&path, spec),
            network,
            wanted: None,
            lost: 0,
            delivered: 0,
            rtt: None,
            largest_acked: None,
            sent: 0,
            last_event: 0,
            probes: 0,
            tokens: BUCKET_PACKETS.start() * path.mtu.as_u64(),
            filled: 0,
            paced_until: None,
            processed: 0,
            largest_flight: 0,
        }
    }

    fn now(&self) -> u64 {
        self.connection.now().as_nanos()
    }

    /// Time of the next event, ns.
    pub(super) fn next_event(&self) -> Option<u64> {
        let timers = [
            self.network.next_ack(),
            self.paced_until,
            self.loss_at(),
            self.probe_at(),
        ];
        timers.into_iter().flatten().min()
    }

    /// Advances to `time` (ns) and does everything that is due. Returns the send time of the newest acknowledged
    /// packet.
    pub(super) fn advance(&mut self, time: u64) -> Option<Timestamp> {
        self.connection
            .pass(Duration::from_nanos(time.saturating_sub(self.now())));
        let newest = self.network.pop_ack(time).and_then(|ack| self.on_ack(&ack));
        self.detect_losses();
        if self.probe_at().is_some_and(|at| at <= time) {
            self.probes += 1;
            self.send(2);
        }
        self.send_what_may_go();
        newest
    }

    fn on_ack(&mut self, ack: &Ack) -> Option<Timestamp> {
        let before = self.connection.in_flight();
        let sent = self.connection.ack_numbers(&ack.numbers);
        self.delivered += before - self.connection.in_flight();
        self.largest_acked = self.largest_acked.max(ack.numbers.last().copied());
        self.probes = 0;
        self.last_event = self.now();
        let latest = self.connection.now().nanos_since(sent?);
        let rtt = Rtt::update(self.rtt, latest, ack.delay_ns);
        self.rtt = Some(rtt);
        // After the controller has received the frame: as with quinn, its value is one ACK frame old.
        self.connection
            .set_smoothed_rtt(Some(Duration::from_nanos(rtt.smoothed)));
        sent
    }

    /// Time when the oldest packet counts as lost because later ones arrived, ns.
    fn loss_at(&self) -> Option<u64> {
        let (number, sent) = self.connection.flight().next()?;
        let overtaken = number < self.largest_acked?;
        overtaken.then_some(sent.as_nanos() + self.rtt?.patience())
    }

    fn detect_losses(&mut self) {
        let (Some(rtt), Some(largest)) = (self.rtt, self.largest_acked) else {
            return;
        };
        let now = self.connection.now();
        let is_lost = |(number, sent): &(u64, Timestamp)| {
            number + PACKET_THRESHOLD <= largest
                || (*number < largest && now.nanos_since(*sent) >= rtt.patience())
        };
        let packets = self.connection.flight().take_while(is_lost).count();
        if packets > 0 {
            self.connection.lose(packets);
            self.lost += packets as u64;
            self.wanted = self.wanted.map(|wanted| wanted + packets as u64);
        }
    }

    /// Time when a probe is due because there was no acknowledgement, ns (RFC 9002 §6.2.1).
    fn probe_at(&self) -> Option<u64> {
        self.connection.flight().next()?;
        let (smoothed, variance) = self.rtt.map_or((INITIAL_RTT_NS, INITIAL_RTT_NS / 2), |rtt| {
            (rtt.smoothed, rtt.variance)
        });
        let timeout = smoothed + (variance * 4).max(GRANULARITY_NS) + ACK_DELAY_NS;
        Some(self.last_event + (timeout << self.probes.min(10)))
    }

    fn send(&mut self, packets: u64) {
        let now = self.now();
        let mtu = self.connection.mtu();
        self.connection
            .send(usize::try_from(packets).expect("bursts are small"));
        for _ in 0..packets {
            self.network.take(now, self.sent, mtu);
            self.sent += 1;
        }
        self.tokens = self.tokens.saturating_sub(packets * mtu);
        self.wanted = self.wanted.map(|wanted| wanted.saturating_sub(packets));
        self.last_event = now;
        self.largest_flight = self.largest_flight.max(self.connection.in_flight());
        let needed = self.network.conditions.processor.unwrap_or(0);
        self.processed = now + needed * packets;
    }

    fn send_what_may_go(&mut self) {
        self.paced_until = None;
        let mtu = self.connection.mtu();
        loop {
            let wanted = self.wanted.unwrap_or(u64::MAX);
            if wanted == 0 {
                self.connection.set_app_limited(true);
                return;
            }
            if self.processed > self.now() {
                self.paced_until = Some(self.processed);
                break;
            }
            let room = self
                .connection
                .window()
                .saturating_sub(self.connection.in_flight());
            // quinn blocks when in_flight + mtu >= window.
            let fit = room.saturating_sub(1) / mtu;
            if fit == 0 {
                break;
            }
            self.paced_until = self.wait_for_tokens(mtu);
            if self.paced_until.is_some() {
                break;
            }
            self.send(BURST.min(fit).min(wanted).min(self.tokens / mtu));
        }
        self.connection.set_app_limited(false);
    }

    /// quinn's token bucket: 1.25 windows per smoothed RTT. `None` if a packet may leave now, else the time when
    /// the bucket is full again.
    fn wait_for_tokens(&mut self, mtu: u64) -> Option<u64> {
        let window = self.connection.window();
        let rtt = self.rtt.map_or(INITIAL_RTT_NS, |rtt| rtt.smoothed);
        let in_bucket = window * BUCKET_NS / rtt;
        let capacity = in_bucket.clamp(BUCKET_PACKETS.start() * mtu, BUCKET_PACKETS.end() * mtu);
        self.tokens = self.tokens.min(capacity);
        if self.tokens >= mtu {
            return None;
        }
        let now = self.now();
        let elapsed = now - self.filled;
        self.filled = now;
        // At most a bucketful is earned, however long the sender was silent.
        let earned = u128::from(window) * 5 * u128::from(elapsed) / (4 * u128::from(rtt));
        let earned = u64::try_from(earned).unwrap_or(capacity);
        self.tokens = self.tokens.saturating_add(earned).min(capacity);
        if self.tokens >= mtu {
            return None;
        }
        Some(now + (capacity - self.tokens) * rtt / window * 4 / 5)
    }
}
