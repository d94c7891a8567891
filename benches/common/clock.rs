//! [`Clock`]: departure and acknowledgement times of packets on a steady path.

use core::ops::Add;
use core::time::Duration;

/// Size of every packet in bytes: quinn's on Ethernet, after MTU discovery.
pub const PACKET: u16 = 1_452;
/// Nanoseconds that a packet takes at 100 Mbit/s.
const PACKET_NS: u64 = 116_160;
/// The path's mean RTT.
pub const RTT: Duration = Duration::from_millis(40);
/// Bandwidth-delay product of the path in bytes.
pub const BDP: u64 = 500_000;
/// Twice the longest flight in bursts of one packet, and a power of two.
const RING: usize = 1_024;

/// Ticks once per burst; a burst is acknowledged one flight later. A single wave of faster and slower ticks makes the
/// RTT rise and fall by a tenth. Noise makes all ticks different, so that neither delay-based algorithms nor branch
/// predictors see a constant.
#[derive(Clone)]
pub struct Clock<T> {
    now: T,
    tick: usize,
    flight: usize,
    steps: Box<[Duration; RING]>,
    departures: Box<[T; RING]>,
}

impl<T: Copy + Add<Duration, Output = T>> Clock<T> {
    /// For bursts of `packets`, from `origin` on.
    pub fn new(origin: T, packets: u64) -> Self {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let steps = Box::new(core::array::from_fn(|index| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let wave = if index < RING / 2 { 90 } else { 110 };
            let percent = wave - 5 + state % 11;
            Duration::from_nanos(packets * PACKET_NS * percent / 100)
        }));
        let flight = u64::try_from(RTT.as_nanos()).unwrap_or(u64::MAX) / (packets * PACKET_NS);
        Self {
            now: origin,
            tick: 0,
            flight: usize::try_from(flight).unwrap_or(RING).clamp(1, RING - 1),
            steps,
            departures: Box::new([origin; RING]),
        }
    }

    /// Advances to the next burst. Returns its time, and the departure of the burst being acknowledged.
    #[inline]
    pub fn tick(&mut self) -> (T, T) {
        self.tick = self.tick.wrapping_add(1);
        self.now = self.now + self.steps[self.tick % RING];
        self.departures[self.tick % RING] = self.now;
        (
            self.now,
            self.departures[self.tick.wrapping_sub(self.flight) % RING],
        )
    }
}
