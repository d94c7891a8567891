//! Sizes of the attacks.

use crate::attacks::{Attack, Scale};

/// Maximum number of connections of an attack that must not displace viewers.
const MOST_IN_SOAK: usize = 300;

/// The size of an attack that one machine with a fast link can make.
pub(crate) fn full(attack: Attack) -> Scale {
    let (connections, addresses, rate) = match attack {
        Attack::Initials => (1, 10_000, 10_000.0),
        Attack::IdleQuic | Attack::IdleTcp | Attack::IdleTls | Attack::Pings | Attack::FewRequests => {
            (5_000, 100, 500.0)
        }
        Attack::SlowHeads => (1_000, 100, 1_000.0),
        Attack::EndlessHeads | Attack::EndlessContent => (60, 12, 2_000.0),
        Attack::ResetHttp2 | Attack::ResetHttp3 => (12, 12, 5_000.0),
        Attack::StalledHttp3 | Attack::StalledHttp2 | Attack::Ranges | Attack::Paths | Attack::FalseCmcd => {
            (12, 12, 1_000.0)
        }
        Attack::Migration => (12, 100, 500.0),
        Attack::TinyWindows => (100, 12, 2_000.0),
    };
    Scale {
        connections,
        addresses,
        rate,
    }
}

/// The size of an attack during viewing: a tenth of the rate, because the viewers must be served with the rest of a
/// machine.
pub(crate) fn soak(attack: Attack) -> Scale {
    let scale = full(attack);
    Scale {
        connections: scale.connections.min(MOST_IN_SOAK),
        rate: scale.rate / 10.0,
        ..scale
    }
}
