//! A network path as a pure model, and two drivers that run it.
//!
//! A [`Link`] accepts packets, each with a size and a time, and returns the arrival time of each or the reason for its
//! drop. It has no clock, does no I/O and uses its own seeded generator, so the same packets give the same results on
//! every machine. A [`Path`] is a link in each direction.
//!
//! The drivers:
//! - [`Relay`] forwards real UDP datagrams between real programs and impairs them like the path;
//! - [`Simulation`] runs quinn programs in virtual time, hundreds of times faster than the clock and
//!   reproducibly.
//!
//! Belongs here: links, queues, loss, and the drivers that put them between real programs. Out of scope:
//! congestion control, video, HTTP.
//!
//! ```
//! use playrate_netsim::{LinkConfig, Packet, QueueLimit, Seed, Time, Verdict};
//! use playrate_units::{Bitrate, Duration};
//!
//! let config = LinkConfig::new(Bitrate::from_mbps(20), Duration::from_millis(50))
//!     .with_queue(QueueLimit::Packets(2));
//! let mut link = config.build(Duration::from_millis(100), Seed::new(7))?;
//!
//! // 1452 bytes of payload and 28 of headers take 592 µs at 20 Mbit/s.
//! let first = link.offer(Time::ZERO, Packet::new(1452));
//! assert_eq!(first.arrival(), Some(Time::from_nanos(50_592_000)));
//! link.offer(Time::ZERO, Packet::new(1452));
//! assert!(matches!(link.offer(Time::ZERO, Packet::new(1452)), Verdict::Dropped(_)));
//! # Ok::<(), playrate_netsim::ConfigError>(())
//! ```

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

/// Defines methods that return the same configuration with another value of one field.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($field:ident: $value:ty);)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(self, $field: $value) -> Self {
            Self { $field: $field.into(), ..self }
        }
    )*};
}

mod error;
mod link;
#[cfg(all(feature = "pair", any(feature = "quinn", feature = "noq")))]
mod pair;
mod path;
#[cfg(unix)]
mod relay;
mod seed;
mod time;
mod virtual_time;

/// The programs of the page compile and run as tests.
#[cfg(all(doctest, feature = "pair", feature = "quinn"))]
#[doc = include_str!("../../../docs/netsim.md")]
pub struct Page;

pub use error::ConfigError;
pub use link::*;
#[cfg(all(feature = "pair", feature = "noq"))]
pub use pair::Noq;
#[cfg(all(feature = "pair", feature = "quinn"))]
pub use pair::Quinn;
#[cfg(all(feature = "pair", any(feature = "quinn", feature = "noq")))]
pub use pair::{LinkOutcome, Pair, PairError, PairOutcome, PathOutcome, Side, Stack, tls};
pub use path::{Path, PathConfig};
#[cfg(unix)]
pub use relay::{
    Lateness, Relay, RelayConfig, RelayDirection, RelayError, RelayFlaw, RelayReport, RelaySnapshot,
};
pub use seed::Seed;
pub use time::Time;
pub use virtual_time::{
    Host, HostConfig, LinkId, NetworkStats, PathId, RunError, SetupError, Simulation, VirtualRuntime,
    VirtualSocket,
};
