//! [`Flight`]: packets on a [`Network`], and a transport's reports on them.

use std::collections::VecDeque;

use super::super::OwnedFrame;
use super::network::Network;
use crate::events::{Acked, Congestion, Signal};
use crate::{Bytes, Timestamp};

#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    sent: Timestamp,
    bytes: u64,
}

/// Packets that are neither acknowledged nor declared lost, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    packets: VecDeque<Packet>,
    /// Number of the next packet.
    next: u64,
    /// The first packet that is not overtaken: one more than the largest acknowledged number.
    reached: u64,
}

impl Flight {
    pub(crate) fn bytes(&self) -> u64 {
        self.packets.iter().map(|packet| packet.bytes).sum()
    }

    /// Send time of the newest packet.
    pub(crate) fn newest(&self) -> Option<Timestamp> {
        self.packets.back().map(|packet| packet.sent)
    }

    /// Records a departing packet. Returns its number.
    pub(crate) fn leave(&mut self, sent: Timestamp, bytes: u64) -> u64 {
        let number = self.next;
        self.packets.push_back(Packet { number, sent, bytes });
        self.next += 1;
        number
    }

    /// The ACK frame that has arrived by now, if it acknowledges packets in flight.
    pub(crate) fn receive(
        &mut self,
        network: &mut Network,
        now: Timestamp,
        limited: bool,
    ) -> Option<OwnedFrame> {
        let mut numbers = network.pop_ack(now.as_nanos())?.numbers;
        numbers.sort_unstable();
        let mut acked = Vec::new();
        for number in numbers {
            self.reached = self.reached.max(number + 1);
            // A packet that arrives after it was declared lost is not reported.
            if let Ok(index) = self.packets.binary_search_by_key(&number, |packet| packet.number)
                && let Some(Packet { sent, bytes, .. }) = self.packets.remove(index)
            {
                acked.push(Acked::new(sent, Bytes::new(bytes), 1).with_app_limited(limited));
            }
        }
        (!acked.is_empty()).then(|| OwnedFrame {
            now,
            acked,
            in_flight: Bytes::new(self.bytes()),
            app_limited: limited,
            smoothed_rtt: None,
        })
    }

    /// Declares the packets lost that `by` later ones have overtaken (RFC 9002 §6.1.1: three).
    pub(crate) fn detect_losses(&mut self, now: Timestamp, by: u64) -> Option<Congestion> {
        let overtaken = |packet: &&Packet| packet.number + by < self.reached;
        let lost = self.packets.iter().take_while(overtaken).count();
        self.lose(now, lost)
    }

    /// Declares the oldest `packets` packets lost.
    pub(crate) fn lose(&mut self, now: Timestamp, packets: usize) -> Option<Congestion> {
        let lost: Vec<Packet> = self.packets.drain(..packets).collect();
        let bytes = Bytes::new(lost.iter().map(|packet| packet.bytes).sum());
        Some(Congestion::new(now, lost.last()?.sent, Signal::loss(bytes)))
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
}
