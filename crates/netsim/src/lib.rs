//! A network path as a pure model, and what runs it.
//!
//! A [`Link`] answers one question: a packet of this size is offered at this time, so when does it arrive, or why is
//! it dropped? It has no clock, does no I/O and draws from its own seeded generator, so the same offers give the same
//! answers on every machine. A [`Path`] is a link in each direction.
//!
//! Who runs the model:
//! - [`Relay`] forwards real UDP datagrams between real programs and impairs them as the path says;
//! - [`Simulation`] runs quinn programs in virtual time, hundreds of times faster than the clock and reproducibly.
//!
//! What belongs here: links, queues, loss, and the drivers that put them between real programs. What does not:
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

mod error;
mod link;
mod path;
#[cfg(unix)]
mod relay;
mod seed;
mod time;
mod virtual_time;

pub use error::ConfigError;
pub use link::{
    Aqm, Codel, CrossPattern, CrossStats, CrossTraffic, DropReason, Drops, GilbertElliott, IP_UDP_OVERHEAD,
    Link, LinkBin, LinkConfig, LinkEvent, LinkObserver, LinkSeries, LinkStats, Loss, MahimahiTrace, Packet,
    QueueLimit, Rate, RateSchedule, Reordering, Tally, Verdict, WifiConfig,
};
pub use path::{Path, PathConfig};
#[cfg(unix)]
pub use relay::{
    Lateness, MAX_LATENESS, Relay, RelayConfig, RelayDirection, RelayError, RelayFlaw, RelayHandle,
    RelayReport, RelaySnapshot,
};
pub use seed::Seed;
pub use time::Time;
pub use virtual_time::{
    Host, HostConfig, LinkId, NetworkStats, PathId, RunError, RunLimits, SetupError, Simulation,
    VirtualRuntime, VirtualSocket,
};
