//! [`ConfigError`]: errors in the configuration of a path.

use thiserror::Error;

/// A link or path that cannot be built. Every message names the invalid value and valid ones.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The rate is zero or beyond what the model counts exactly.
    #[error("rate `{0}`: expected `unlimited` or a rate from 1bit/s to 1000Gbit/s")]
    Rate(String),
    /// The propagation delay is longer than an hour.
    #[error("delay `{0}`: expected a time of at most 1h, such as 50ms")]
    Delay(String),
    /// The queue cannot hold a single full packet.
    #[error(
        "queue `{queue}` holds {holds}, less than a full packet of {packet}; \
         expected at least that, such as 1bdp, 250kB or 100packets"
    )]
    Queue {
        /// The limit as configured.
        queue: String,
        /// The same limit on this link, in bytes or packets.
        holds: String,
        /// The size of a full packet on this link.
        packet: String,
    },
    /// A text that is not a queue limit.
    #[error(
        "queue `{0}`: expected bytes, packets or a multiple of the bandwidth-delay product, \
         such as 250kB, 100packets or 1bdp"
    )]
    QueueText(String),
    /// A text that is not a rate.
    #[error("rate `{0}`: expected {forms}", forms = crate::Rate::FORMS)]
    RateText(String),
    /// A text that is not a loss.
    #[error("loss `{0}`: expected `none`, a probability such as 0.01%, or bursts such as gilbert(0.1%,20%)")]
    LossText(String),
    /// A text that is not a delay.
    #[error(
        "delay `{0}`: expected a time such as 100ms, or steps such as 20ms,100ms@30s or 20ms,down@30s,25ms@31s"
    )]
    DelayText(String),
    /// The largest packet is below what QUIC needs, or above what IP can carry.
    #[error("mtu `{0}`: expected a size from 1228B (QUIC's 1200 and the headers) to 65535B")]
    Mtu(String),
    /// An invalid schedule of rates or delays.
    #[error("schedule `{schedule}`: {what}")]
    Schedule {
        /// The schedule as configured.
        schedule: String,
        /// The rule that it breaks.
        what: String,
    },
    /// A trace that cannot be read.
    #[error("line {line}: {what}")]
    Trace {
        /// The invalid line, from 1.
        line: usize,
        /// The fault, and the required content of the line.
        what: String,
    },
    /// A text that is not a policer, or that describes one that passes nothing.
    #[error(
        "policer `{0}`: expected a rate above zero and a bucket of at least a full packet, such as 5Mbit/s,100kB"
    )]
    Policer(String),
    /// A text that is not a reordering.
    #[error("reordering `{0}`: expected a probability and a delay, such as 1%,10ms")]
    Reordering(String),
    /// A Wi-Fi hop that could never work.
    #[error("wifi: {0}")]
    Wifi(String),
    /// A text that is not a queue management scheme.
    #[error("queue management `{0}`: expected `none`, `codel`, `codel(5ms,100ms)` or `codel(5ms,100ms,ecn)`")]
    AqmText(String),
    /// A text that is not a description of cross traffic.
    #[error(
        "cross traffic `{0}`: expected poisson(RATE) or onoff(RATE,ON,OFF), such as onoff(5Mbit/s,500ms,1s), \
         with a packet size appended if it is not 1500B"
    )]
    CrossText(String),
    /// Cross traffic beyond any link's capacity.
    #[error(
        "cross traffic `{0}`: its rate must be above zero and below one packet per nanosecond, \
         its packets must not exceed the MTU, and its on-time must be above zero"
    )]
    CrossTraffic(String),
}
