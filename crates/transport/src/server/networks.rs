//! [`Network`]: the networks of an address.

use std::net::IpAddr;

/// Number of networks that count a connection.
pub(super) const LEVELS: usize = 3;
/// Their prefix lengths, the widest first: a site has an IPv6 /48 or /56, and divides up its /64s as it likes (RFC
/// 6177).
const IPV6_PREFIXES: [u32; LEVELS] = [48, 56, 64];
/// The same for an IPv4 address written as an IPv6 address (RFC 4291 §2.5.5.2): its /24, and twice the address itself.
const IPV4_PREFIXES: [u32; LEVELS] = [96 + 24, 128, 128];

/// Prefix of addresses. Those of different lengths may be equal, so only compare those of the same level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Network(u128);

impl Network {
    /// Network of `address` with a limit of its own: an IPv4 address, or an IPv6 /64. IPv4 addresses received on an
    /// IPv6 socket count as IPv4.
    pub(super) fn of(address: IpAddr) -> Self {
        let [.., narrowest] = Self::all_of(address);
        narrowest
    }

    /// Networks of `address`, the widest first: an IPv6 /48, /56 and /64, or an IPv4 /24 and, twice, the address.
    pub(super) fn all_of(address: IpAddr) -> [Self; LEVELS] {
        let (bits, prefixes) = match address.to_canonical() {
            IpAddr::V4(address) => (address.to_ipv6_mapped().to_bits(), IPV4_PREFIXES),
            IpAddr::V6(address) => (address.to_bits(), IPV6_PREFIXES),
        };
        prefixes.map(|length| Self(bits & (u128::MAX << (u128::BITS - length))))
    }
}
