//! [`Fault`]: a fault of a plan: its time, its text, and its effect on a session.

use std::fmt;
use std::time::Duration;

use playrate_netsim::{LinkFault, LinkFaultKind, Reordering};
use playrate_units::rounded::{percent, time};
use playrate_units::{Bytes, Probability};

/// Bytes of UDP payload that every path of QUIC must carry (RFC 9000 §14.1).
const LEAST_PAYLOAD: u64 = 1_200;
/// Bytes of IP and UDP headers before that payload.
const HEADERS: u64 = 28;

/// Directions of a path that a fault affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ways {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
    Both,
}

impl Ways {
    pub(crate) const ALL: [Self; 3] = [Self::Down, Self::Up, Self::Both];

    const fn words(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
            Self::Both => "both ways",
        }
    }
}

/// An effect on a link, and its duration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Impairment {
    pub(crate) ways: Ways,
    pub(crate) lasts: Duration,
    /// Share of affected packets.
    pub(crate) share: Probability,
}

/// Kind of a fault, and its extent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FaultKind {
    Loss(Impairment),
    Outage {
        ways: Ways,
        lasts: Duration,
    },
    Reordering(Impairment, Duration),
    Duplication(Impairment),
    Corruption(Impairment),
    /// From now on, datagrams with a longer UDP payload are lost in both directions.
    MtuLimit(Bytes),
    NewPort,
    NewAddress,
    /// The server crashes, and another one starts on its address after `gap`, with the same or a different endpoint
    /// key.
    Restart {
        gap: Duration,
        same_key: bool,
    },
    /// The server crashes for good.
    ServerGone,
    /// The client crashes for good.
    ClientGone,
    /// Each read of the title blocks the server's process for `delay`.
    SlowDisk {
        lasts: Duration,
        delay: Duration,
    },
    /// Reads of the title fail.
    BrokenDisk {
        lasts: Duration,
    },
    /// The client's application takes no bytes; without a duration, until the viewer leaves.
    PausedReader(Option<Duration>),
    ServerSuspended(Duration),
    ClientSuspended(Duration),
}

impl FaultKind {
    /// Names of all kinds, in table order.
    pub(crate) const NAMES: [&'static str; 16] = [
        "loss burst",
        "outage",
        "reordering",
        "duplication",
        "corruption",
        "MTU limit",
        "new port",
        "new address",
        "server restart",
        "server gone",
        "client gone",
        "slow disk",
        "broken disk",
        "paused reader",
        "server suspended",
        "client suspended",
    ];

    pub(crate) const fn name(&self) -> &'static str {
        let index = match self {
            Self::Loss(_) => 0,
            Self::Outage { .. } => 1,
            Self::Reordering(..) => 2,
            Self::Duplication(_) => 3,
            Self::Corruption(_) => 4,
            Self::MtuLimit(_) => 5,
            Self::NewPort => 6,
            Self::NewAddress => 7,
            Self::Restart { .. } => 8,
            Self::ServerGone => 9,
            Self::ClientGone => 10,
            Self::SlowDisk { .. } => 11,
            Self::BrokenDisk { .. } => 12,
            Self::PausedReader(_) => 13,
            Self::ServerSuspended(_) => 14,
            Self::ClientSuspended(_) => 15,
        };
        Self::NAMES[index]
    }

    /// Duration of the fault; `None` means up to the end.
    fn lasts(&self) -> Option<Duration> {
        match *self {
            Self::Loss(impairment)
            | Self::Reordering(impairment, _)
            | Self::Duplication(impairment)
            | Self::Corruption(impairment) => Some(impairment.lasts),
            Self::Outage { lasts, .. }
            | Self::BrokenDisk { lasts }
            | Self::ServerSuspended(lasts)
            | Self::ClientSuspended(lasts) => Some(lasts),
            // The last read may begin at the end.
            Self::SlowDisk { lasts, delay } => Some(lasts + delay),
            Self::Restart { gap, .. } => Some(gap),
            Self::MtuLimit(limit) if limit.as_u64() >= LEAST_PAYLOAD => Some(Duration::ZERO),
            Self::NewPort | Self::NewAddress => Some(Duration::ZERO),
            Self::PausedReader(lasts) => lasts,
            Self::MtuLimit(_) | Self::ServerGone | Self::ClientGone => None,
        }
    }

    /// Returns true if this fault may stop all traffic of a path or a server.
    pub(crate) fn silences(&self) -> bool {
        match self {
            Self::Loss(_)
            | Self::Corruption(_)
            | Self::Outage { .. }
            | Self::Restart { .. }
            | Self::ServerGone
            | Self::SlowDisk { .. }
            | Self::ServerSuspended(_)
            | Self::ClientSuspended(_)
            // While a client connects: [`FaultPlan::may_be_connecting`](crate::plan::FaultPlan::may_be_connecting).
            | Self::NewPort
            | Self::NewAddress => true,
            // A path that carries no full-size QUIC packet.
            Self::MtuLimit(_) => self.lasts().is_none(),
            Self::ClientGone
            | Self::BrokenDisk { .. }
            | Self::PausedReader(_)
            | Self::Reordering(..)
            | Self::Duplication(_) => false,
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let impaired = |f: &mut fmt::Formatter<'_>, impairment: &Impairment| {
            let share = percent(impairment.share.as_f64());
            let ways = impairment.ways.words();
            write!(f, " of {share} for {}, {ways}", time(impairment.lasts))
        };
        match self {
            Self::Loss(impairment) | Self::Duplication(impairment) | Self::Corruption(impairment) => {
                impaired(f, impairment)
            }
            Self::Reordering(impairment, by) => {
                impaired(f, impairment)?;
                write!(f, ", by {}", time(*by))
            }
            Self::Outage { ways, lasts } => write!(f, " of {}, {}", time(*lasts), ways.words()),
            Self::MtuLimit(limit) => write!(f, " of {} B of UDP payload from now on", limit.as_u64()),
            Self::NewPort | Self::NewAddress => f.write_str(" of the client behind its NAT"),
            Self::Restart { gap, same_key } => {
                let key = if *same_key { "the same" } else { "another" };
                write!(f, " after {} with {key} endpoint key", time(*gap))
            }
            Self::ServerGone | Self::ClientGone => Ok(()),
            Self::SlowDisk { lasts, delay } => write!(f, " for {}: {} a read", time(*lasts), time(*delay)),
            Self::PausedReader(None) => f.write_str(" until the viewer leaves"),
            Self::BrokenDisk { lasts }
            | Self::PausedReader(Some(lasts))
            | Self::ServerSuspended(lasts)
            | Self::ClientSuspended(lasts) => write!(f, " for {}", time(*lasts)),
        }
    }
}

/// A fault at a given time of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) at: Duration,
    pub(crate) kind: FaultKind,
}

impl Fault {
    /// End of the fault; `None` if it lasts to the end.
    pub(crate) fn ends(&self) -> Option<Duration> {
        Some(self.at + self.kind.lasts()?)
    }

    /// Longest probe timeout that the fault may cause. A fault that blocks everything for a time may delay an
    /// acknowledgement by as much, which makes the RTT appear that long. After a first sample like that, the probe
    /// timeout is three times the RTT (RFC 9002 §5.3, §6.2.1).
    pub(crate) fn probe_timeout(&self) -> Duration {
        let delay = match self.kind {
            FaultKind::Outage { lasts, .. }
            | FaultKind::ServerSuspended(lasts)
            | FaultKind::ClientSuspended(lasts) => lasts,
            FaultKind::SlowDisk { lasts, delay } => lasts + delay,
            _ => Duration::ZERO,
        };
        delay * 3
    }

    /// Faults of the links to and from the client.
    pub(crate) fn of_links(&self) -> [Option<LinkFault>; 2] {
        let until = self.ends().unwrap_or(Duration::MAX);
        let (ways, kind) = match self.kind {
            FaultKind::Loss(it) => (it.ways, LinkFaultKind::Loss(it.share.into())),
            FaultKind::Outage { ways, .. } => (ways, LinkFaultKind::Outage),
            FaultKind::Reordering(it, by) => {
                (it.ways, LinkFaultKind::Reordering(Reordering::new(it.share, by)))
            }
            FaultKind::Duplication(it) => (it.ways, LinkFaultKind::Duplication(it.share)),
            FaultKind::Corruption(it) => (it.ways, LinkFaultKind::Corruption(it.share)),
            FaultKind::MtuLimit(limit) => {
                let kind = LinkFaultKind::Mtu(limit + Bytes::new(HEADERS));
                return [Some(LinkFault::new(self.at, Duration::MAX, kind)); 2];
            }
            _ => return [None; 2],
        };
        let fault = LinkFault::new(self.at, until, kind);
        [Ways::Down, Ways::Up].map(|way| (ways == way || ways == Ways::Both).then_some(fault))
    }
}
