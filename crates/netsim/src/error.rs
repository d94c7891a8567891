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
    #[error("rate `{0}`: write `unlimited` or a rate and its unit, such as 20Mbit/s")]
    RateText(String),
    /// A text that names no loss.
    #[error("loss `{0}`: write `none` or a probability, such as 0.01%")]
    LossText(String),
    /// The largest packet is below what QUIC needs, or above what IP can carry.
    #[error("mtu `{0}`: write a size from 1228B (QUIC's 1200 and the headers) to 65535B")]
    Mtu(String),
}
