//! [`Opening`]: the window and the threshold that a connection begins with.

use crate::Bytes;
use crate::parameter::{Arguments, Parameter, Value};

use super::{float, floor_bytes};

/// The parameter of every algorithm that sets the first window.
pub(crate) const INITIAL_WINDOW: Parameter = Parameter::number(
    "initial_window",
    0.0,
    0.0..=1000.0,
    "packets of the first window: 0 is RFC 9002 §7.2 (ten, at most 14,720 B), 3 RFC 3390 and Linux before 2.6.39, \
     10 RFC 6928",
);

/// The parameter of every algorithm that sets the first slow start threshold.
pub(crate) const SSTHRESH: Parameter = Parameter::size(
    "ssthresh",
    Bytes::ZERO,
    Bytes::ZERO..=Bytes::new(4_000_000_000),
    "slow start threshold that the connection begins with, as Linux remembers one for each destination; 0 is infinite",
);

/// Beginning of a connection. By default the window is that of RFC 9002 and the threshold infinite.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Size of the first window, packets; 0 for RFC 9002's.
    packets: f64,
    /// Slow start threshold in bytes; 0 if it is infinite.
    ssthresh: u64,
}

impl Opening {
    /// As an algorithm's arguments say; the default for algorithms that do not have the parameters.
    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        let packets = match arguments.value(INITIAL_WINDOW.name) {
            Some(Value::Number(packets)) => packets,
            _ => 0.0,
        };
        let ssthresh = match arguments.value(SSTHRESH.name) {
            Some(Value::Size(size)) => size.as_u64(),
            _ => 0,
        };
        Self { packets, ssthresh }
    }

    /// The first window in bytes, before the bounds of every window.
    pub(super) fn window(self, mtu: u64) -> u64 {
        if self.packets > 0.0 {
            return floor_bytes(self.packets * float(mtu));
        }
        // RFC 9002 §7.2: ten packets, at most max(14,720 B, two packets).
        mtu.saturating_mul(10).min(mtu.saturating_mul(2).max(14_720))
    }

    /// The first slow start threshold in bytes; `None` if it is infinite.
    pub(super) fn ssthresh(self) -> Option<u64> {
        (self.ssthresh > 0).then_some(self.ssthresh)
    }
}
