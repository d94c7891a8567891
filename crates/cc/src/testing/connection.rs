//! [`Connection`]: a model of the transport around a controller.

use core::mem;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::events::{AckFrame, Acked, Congestion, Sent, Signal};
use crate::registry::Value;
use crate::{
    Bitrate, Bytes, CongestionController, ControllerSpec, Path, Phase, Snapshot, Timestamp, VideoKnowledge,
};

/// Packets in one burst, as with quinn's segmentation offload.
const BURST: usize = 10;
/// The application never has more than this in flight.
const MOST_IN_FLIGHT: usize = 4_000;

#[derive(Clone, Copy, Debug)]
struct Packet {
    /// Number of packets that were sent before it.
    number: u64,
    sent: Timestamp,
    bytes: u64,
}

/// A connection with a congestion controller under test. A second instance, the reference, receives the same events in
/// as few calls as possible.
#[derive(Debug)]
pub struct Connection {
    controller: Box<dyn CongestionController>,
    reference: Box<dyn CongestionController>,
    /// The last burst since the last ACK frame, if the reference has not received it.
    unreported: Option<Sent>,
    /// Bytes in flight as of the last ACK frame, less those lost since.
    flight_known: u64,
    /// The algorithm or a component sets the window directly, so that it may grow at any time.
    absolute: bool,
    /// The window may grow while the application limits the sender (draft-ietf-ccwg-ratelimited-increase).
    grows_while_limited: bool,
    /// Largest flight since congestion or a pause last reduced the algorithm's window; at first the initial
    /// window.
    max_flight: u64,
    /// `max_flight` before the last reduction, which returns with the window if the losses were spurious.
    earlier_max_flight: u64,
    /// Facts of the video, shared with the controllers.
    pub known: Arc<VideoKnowledge>,
    now: Timestamp,
    mtu: u64,
    /// Packets in flight, oldest first.
    flight: VecDeque<Packet>,
    in_flight: u64,
    next_number: u64,
    newest_acked: Option<Timestamp>,
    app_limited: bool,
    smoothed_rtt: Option<Duration>,
}

impl Connection {
    /// A new connection on a path with 1200-byte packets.
    pub fn new(spec: &ControllerSpec) -> Self {
        Self::on(&Path::default(), spec)
    }

    /// A new connection on `path`.
    pub fn on(path: &Path, spec: &ControllerSpec) -> Self {
        let known = Arc::new(VideoKnowledge::new());
        let controller = spec.build(path, Arc::clone(&known));
        Self {
            max_flight: controller.initial_window().as_u64(),
            earlier_max_flight: 0,
            controller,
            reference: spec.build(path, Arc::clone(&known)),
            unreported: None,
            flight_known: 0,
            absolute: !spec.is_window_based(),
            grows_while_limited: spec.algorithm_arguments().value("growth")
                == Some(Value::Word("ratelimited")),
            known,
            now: Timestamp::ZERO,
            mtu: path.mtu.as_u64(),
            flight: VecDeque::new(),
            in_flight: 0,
            next_number: 0,
            newest_acked: None,
            app_limited: false,
            smoothed_rtt: None,
        }
    }

    /// The controller under test.
    pub fn controller(&self) -> &dyn CongestionController {
        &*self.controller
    }

    /// The congestion window, bytes.
    pub fn window(&self) -> u64 {
        self.controller.window().as_u64()
    }

    /// The window before shaping, loss policy and ceiling, bytes; a ceiling may let the published one rise at any time.
    fn algorithm_window(&self) -> u64 {
        self.snapshot()
            .algorithm_window
            .map_or_else(|| self.window(), Bytes::as_u64)
    }

    /// The controller's state for telemetry.
    pub fn snapshot(&self) -> Snapshot {
        self.controller.snapshot()
    }

    /// The time on the connection's clock.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Bytes that are in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Numbers and send times of the packets in flight, oldest first. Packets are numbered from 0 in the order of
    /// departure.
    pub fn flight(&self) -> impl Iterator<Item = (u64, Timestamp)> {
        self.flight.iter().map(|packet| (packet.number, packet.sent))
    }

    /// Largest UDP payload, bytes.
    pub fn mtu(&self) -> u64 {
        self.mtu
    }

    /// Packets that are in flight.
    pub fn packets_in_flight(&self) -> usize {
        self.flight.len()
    }

    /// Makes the transport report this smoothed RTT from now on.
    pub fn set_smoothed_rtt(&mut self, rtt: Option<Duration>) {
        self.smoothed_rtt = rtt;
    }

    /// Sets whether the application limits the sender, until more is sent.
    pub fn set_app_limited(&mut self, limited: bool) {
        self.app_limited = limited;
    }

    /// Lets `time` pass without an event.
    pub fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// Sends `packets` packets in one burst, regardless of the window.
    pub fn send(&mut self, packets: usize) {
        let (now, size) = (self.now, self.mtu);
        for _ in 0..packets {
            self.flight.push_back(Packet {
                number: self.next_number,
                sent: now,
                bytes: size,
            });
            self.next_number += 1;
        }
        let bytes = Bytes::from(packets) * size;
        self.in_flight += bytes.as_u64();
        let event = Sent::new(now, bytes);
        let before = self.algorithm_window();
        self.controller.on_sent(&event);
        if self.flight_known > 0 && !self.reference.requires_every_burst() {
            self.unreported = Some(event);
        } else {
            self.reference.on_sent(&event);
        }
        self.check_reduction(before);
    }

    /// Sends as many of `wanted` packets as the window permits, in bursts; if nothing is in flight, at least a lone
    /// probe.
    pub fn offer(&mut self, wanted: usize) {
        let mut left = wanted.min(MOST_IN_FLIGHT.saturating_sub(self.flight.len()));
        let mut blocked = false;
        while left > 0 && !blocked {
            let room = self.window().saturating_sub(self.in_flight());
            // quinn blocks when in_flight + mtu >= window.
            let fit = usize::try_from(room.saturating_sub(1) / self.mtu).unwrap_or(usize::MAX);
            let burst = left.min(BURST).min(fit.max(usize::from(self.flight.is_empty())));
            blocked = burst < left.min(BURST);
            if burst > 0 {
                self.send(burst);
            }
            left = left.saturating_sub(burst);
        }
        self.app_limited = !blocked;
    }

    /// Delivers an ACK frame for the oldest `packets` packets in flight.
    pub fn ack(&mut self, packets: usize) {
        let count = packets.min(self.flight.len());
        let acked: Vec<Packet> = self.flight.drain(..count).collect();
        self.acknowledge(&acked);
    }

    /// Delivers an ACK frame for the newest `packets` packets in flight.
    pub fn ack_newest(&mut self, packets: usize) {
        let first = self.flight.len().saturating_sub(packets);
        let acked: Vec<Packet> = self.flight.drain(first..).collect();
        self.acknowledge(&acked);
    }

    /// Delivers an ACK frame for the packets with these numbers, in ascending order; packets that are not in flight are
    /// skipped. Returns the send time of the newest one.
    pub fn ack_numbers(&mut self, numbers: &[u64]) -> Option<Timestamp> {
        let mut acked = Vec::with_capacity(numbers.len());
        for number in numbers {
            if let Ok(index) = self.flight.binary_search_by_key(number, |packet| packet.number) {
                acked.extend(self.flight.remove(index));
            }
        }
        self.acknowledge(&acked);
        acked.last().map(|packet| packet.sent)
    }

    fn acknowledge(&mut self, acked: &[Packet]) {
        let Some(newest) = acked.last() else { return };
        let bytes: u64 = acked.iter().map(|packet| packet.bytes).sum();
        self.in_flight -= bytes;
        self.newest_acked = self.newest_acked.max(Some(newest.sent));
        let (now, app_limited) = (self.now, self.app_limited);
        self.max_flight = self.max_flight.max(self.in_flight().saturating_add(bytes));
        let most = self.most_while_limited();
        let run = |packets: &[Packet]| {
            Acked::new(
                packets.first().map_or(now, |packet| packet.sent),
                Bytes::new(packets.iter().map(|packet| packet.bytes).sum()),
                u32::try_from(packets.len()).unwrap_or(u32::MAX),
            )
            .with_app_limited(app_limited)
        };
        let packets: Vec<Acked> = acked.chunks(1).map(run).collect();
        let runs: Vec<Acked> = acked.chunk_by(|one, two| one.sent == two.sent).map(run).collect();
        let mut event = AckFrame::new(now, &packets, Bytes::new(self.in_flight()))
            .with_app_limited(app_limited)
            .with_smoothed_rtt(self.smoothed_rtt);
        self.controller.on_ack_frame(&event);
        event.acked = &runs;
        let window = self.reference.on_ack_frame(&event);
        assert_eq!(window, self.reference.window(), "the window after a frame");
        (self.unreported, self.flight_known) = (None, self.in_flight);
        self.check();
        if app_limited {
            let window = self.algorithm_window();
            assert!(
                window <= most,
                "grew while app-limited, to {window}; allowed is {most}"
            );
        }
    }

    /// Upper bound of the algorithm's window after an ACK frame while the application limits the sender: no growth (RFC
    /// 9002 §7.8) unless the spec allows it.
    fn most_while_limited(&self) -> u64 {
        let before = self.algorithm_window();
        if self.absolute {
            u64::MAX
        } else if self.grows_while_limited {
            before.max(match self.snapshot().phase {
                Phase::Avoidance | Phase::Recovery => self.max_flight.saturating_add(self.mtu),
                _ => self.max_flight.saturating_mul(2),
            })
        } else {
            before
        }
    }

    /// Declares the oldest `packets` packets in flight lost.
    pub fn lose(&mut self, packets: usize) {
        self.declare_lost(packets, false);
    }

    /// Declares the oldest `packets` packets in flight lost; they span the persistent congestion period.
    pub fn lose_persistently(&mut self, packets: usize) {
        self.declare_lost(packets, true);
    }

    fn declare_lost(&mut self, packets: usize, persistent: bool) {
        let count = packets.min(self.flight.len());
        let lost: Vec<Packet> = self.flight.drain(..count).collect();
        let Some(newest) = lost.last() else { return };
        let bytes = Bytes::new(lost.iter().map(|packet| packet.bytes).sum());
        self.in_flight -= bytes.as_u64();
        let event = Congestion::new(self.now, newest.sent, Signal::Loss { bytes, persistent });
        self.report_congestion(&event);
        self.flight_known = self.flight_known.saturating_sub(bytes.as_u64());
    }

    /// Reports that all packets declared lost have arrived.
    pub fn find_losses_spurious(&mut self) {
        let before = self.algorithm_window();
        self.controller.on_spurious_congestion();
        self.reference.on_spurious_congestion();
        self.check();
        if self.algorithm_window() > before {
            self.max_flight = self.max_flight.max(self.earlier_max_flight);
        }
    }

    /// Reports an ECN-CE mark on the newest packet that was acknowledged.
    pub fn ecn_ce(&mut self) {
        let Some(newest_sent) = self.newest_acked else {
            return;
        };
        let event = Congestion::new(self.now, newest_sent, Signal::EcnCe);
        self.report_congestion(&event);
    }

    /// Changes the path's MTU to `mtu`.
    pub fn change_mtu(&mut self, mtu: Bytes) {
        self.mtu = mtu.as_u64();
        self.controller.on_mtu_change(mtu);
        self.reference.on_mtu_change(mtu);
        self.check();
    }

    /// Replaces the controller by its clone.
    pub fn replace_by_clone(&mut self) {
        self.controller = self.controller.clone_box();
        self.check();
    }

    /// Applies an event for every three bytes, its code and a number. Every input is valid.
    ///
    /// # Panics
    /// If the controller violates an invariant: its window leaves its bounds, two instances that received the same
    /// events differ, or the algorithm's window of a window-based controller grows while the application limits the
    /// sender (with `growth=ratelimited`: beyond the bound of draft-ietf-ccwg-ratelimited-increase).
    pub fn run(&mut self, bytes: &[u8]) {
        for &[code, high, low] in bytes.as_chunks().0 {
            self.apply(code, u16::from_be_bytes([high, low]));
        }
    }

    /// Applies one event. Most of the codes are common events.
    fn apply(&mut self, code: u8, number: u16) {
        let (wide, packets, given) = (u64::from(number), usize::from(number), number != 0);
        let time = Duration::from_millis(wide);
        match code % 32 {
            0..=5 => self.pass(Duration::from_micros(4 * wide)),
            6 => self.pass(time),
            7..=13 => self.offer(packets % 1_024),
            14..=19 => self.ack(packets % 64),
            20 => self.ack(packets),
            21 => self.ack_newest(packets % 64),
            22..=23 => self.lose(packets % 16),
            24 => self.lose_persistently(packets % 16),
            25 => self.ecn_ce(),
            26 => self.change_mtu(Bytes::new(1_200 + wide % 8_000)),
            27 => {
                self.app_limited = true;
                self.ack(usize::MAX);
                self.pass(time);
            }
            28 => self
                .known
                .set_average_rate(given.then(|| Bitrate::from_kbps(wide))),
            29 => self.known.set_playout_buffer(given.then(|| Bytes::from_kb(wide))),
            30 => self.known.set_buffered(given.then_some(time)),
            _ if wide % 2 == 0 => self.find_losses_spurious(),
            _ => self.replace_by_clone(),
        }
    }

    fn report_congestion(&mut self, event: &Congestion) {
        let before = self.algorithm_window();
        if let Some(burst) = self.unreported.take() {
            self.reference.on_sent(&burst);
        }
        self.controller.on_congestion(event);
        self.reference.on_congestion(event);
        self.check_reduction(before);
    }

    /// Called after events that may have reduced the algorithm's window, which was `before`.
    fn check_reduction(&mut self, before: u64) {
        self.check();
        if self.algorithm_window() < before {
            self.earlier_max_flight = mem::take(&mut self.max_flight);
        }
    }

    fn check(&self) {
        let window = self.window();
        let least = self.mtu.saturating_mul(2);
        assert!(least <= window, "window {window} below {least}");
        assert!(u32::try_from(window).is_ok(), "window {window} above u32::MAX");
        assert!(
            self.snapshot() == self.reference.snapshot(),
            "controller and reference differ: {:?} and {:?}",
            self.snapshot(),
            self.reference.snapshot()
        );
    }
}
