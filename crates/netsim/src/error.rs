//! [`ConfigError`]: what can be wrong with a path as it was asked for.

use thiserror::Error;

/// A link or path that cannot be built, with the value that is at fault and what would do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The rate is zero or beyond what the model counts exactly.
    #[error("rate `{0}`: write `unlimited` or a rate from 1bit/s to 1000Gbit/s")]
    Rate(String),
    /// The propagation delay is longer than an hour.
    #[error("delay `{0}`: write a time of at most 1h, such as 50ms")]
    Delay(String),
    /// The queue cannot hold a single full packet.
    #[error(
        "queue `{queue}` holds {holds} and a full packet is {packet}: write at least that, such as 1bdp, 250kB or 100packets"
    )]
    Queue {
        /// The limit as it was asked for.
        queue: String,
        /// How many bytes or packets that is on this link.
        holds: String,
        /// The size of a full packet on this link.
        packet: String,
    },
    /// A text that names no queue limit.
    #[error(
        "queue `{0}`: write bytes, packets or a multiple of the bandwidth-delay product, such as 250kB, 100packets or 1bdp"
    )]
    QueueText(String),
    /// A text that names no rate.
    #[error(
        "rate `{0}`: write `unlimited`, a rate such as 20Mbit/s, `wifi(15Mbit/s)` or `wifi(15Mbit/s,queue=500kB)`, or steps such as 20Mbit/s,5Mbit/s@30s,20Mbit/s@60s"
    )]
    RateText(String),
    /// A text that names no loss.
    #[error("loss `{0}`: write `none`, a probability such as 0.01%, or bursts such as gilbert(0.1%,20%)")]
    LossText(String),
    /// The largest packet is below what QUIC needs, or above what IP can carry.
    #[error("mtu `{0}`: write a size from 1228B (QUIC's 1200 and the headers) to 65535B")]
    Mtu(String),
    /// A rate schedule that makes no sense.
    #[error("rate `{schedule}`: {what}")]
    Schedule {
        /// The schedule as it was asked for.
        schedule: String,
        /// What is wrong with it.
        what: String,
    },
    /// A trace that cannot be read.
    #[error("line {line}: {what}")]
    Trace {
        /// The line at fault, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A Wi-Fi hop that could never work.
    #[error("wifi: {0}")]
    Wifi(String),
    /// A text that names no queue management.
    #[error("queue management `{0}`: write `none`, `codel`, `codel(5ms,100ms)` or `codel(5ms,100ms,ecn)`")]
    AqmText(String),
    /// A text that names no cross traffic.
    #[error(
        "cross traffic `{0}`: write poisson(RATE) or onoff(RATE,ON,OFF), such as onoff(5Mbit/s,500ms,1s), with a packet size after that if it is not 1500B"
    )]
    CrossText(String),
    /// Cross traffic that no link could carry.
    #[error(
        "cross traffic `{0}`: its rate must be above zero and below one packet a nanosecond, its packets not larger than the MTU, its on-time above zero"
    )]
    CrossTraffic(String),
}
