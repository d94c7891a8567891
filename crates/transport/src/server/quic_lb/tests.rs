use proptest::prelude::*;
use quinn_proto::ConnectionIdGenerator as _;

use super::super::keys::{EndpointKey, EndpointKeys, Issuer, MarkedConnectionIds};
use super::*;

fn issuer(process: u8) -> Issuer {
    Issuer { process, worker: 2 }
}

fn ids(lb: &QuicLb, process: u8) -> MarkedConnectionIds {
    let key = EndpointKey::new([1; EndpointKey::LENGTH]);
    let keys = EndpointKeys::derive(&key, Some(lb)).unwrap();
    keys.connection_ids(issuer(process))
}

fn servers() -> impl Strategy<Value = QuicLb> {
    let lengths = (1..=8_u64).prop_flat_map(|server_id| {
        let nonce = prop::option::of(8..=19 - server_id);
        (Just(server_id), nonce, 0..=u64::MAX >> (64 - 8 * server_id))
    });
    let key = prop::option::of(prop::array::uniform16(any::<u8>()));
    (0..=6_u64, lengths, key).prop_map(|(config_id, (server_id, nonce, number), key)| {
        let config = QuicLbConfig::new(config_id, server_id, nonce, key).unwrap();
        QuicLb::new(config, number).unwrap()
    })
}

proptest! {
    #[test]
    fn the_balancer_finds_the_server_and_the_server_its_endpoint(lb in servers(), process: u8) {
        let mut own = ids(&lb, process);
        let id = own.generate_cid();
        prop_assert_eq!(id.len(), own.cid_len());
        prop_assert_eq!(usize::from(id[0] & 0x1F), id.len() - 1);
        prop_assert_eq!(lb.config().server_id(&id), Some(lb.server_id().into()));
        prop_assert!(own.validate(&id).is_ok());
        prop_assert_eq!(own.other_issuer(&id), None);
        let other = ids(&lb, process.wrapping_add(1)).other_issuer(&id);
        prop_assert_eq!(other, Some(issuer(process)));
    }

    /// Any change is detected, whether in clear text or below the encryption.
    #[test]
    fn no_other_id_is_valid(lb in servers(), bit in 0..160_usize) {
        let mut own = ids(&lb, 3);
        let mut id = own.generate_cid().to_vec();
        let bit = bit % (id.len() * 8);
        id[bit / 8] ^= 1 << (bit % 8);
        // With the shortest HMAC, one in 2^24 would be correct by chance.
        prop_assert!(own.validate(&ConnectionId::new(&id)).is_err());
        prop_assert_eq!(ids(&lb, 4).other_issuer(&id), None);
        prop_assert!(own.validate(&ConnectionId::new(&id[..id.len() - 1])).is_err());
    }

    /// Otherwise it would answer packets of the other server's connections with resets.
    #[test]
    fn an_id_of_another_server_with_the_same_key_is_not_valid(lb in servers(), other: u64) {
        let other = other & u64::MAX >> (64 - 8 * lb.config().server_id_length());
        prop_assume!(other != lb.server_id());
        let other = QuicLb::new(lb.config().clone(), other).unwrap();
        let id = ids(&other, 3).generate_cid();
        prop_assert!(ids(&lb, 3).validate(&id).is_err());
        prop_assert_eq!(ids(&lb, 4).other_issuer(&id), None);
        if lb.config().key().is_none() {
            // Nor if a client replaces the number, which it can read.
            let mut id = id.to_vec();
            let own = ids(&lb, 3).generate_cid();
            let number = ..=usize::from(lb.config().server_id_length());
            id[number].copy_from_slice(&own[number]);
            prop_assert!(ids(&lb, 3).validate(&ConnectionId::new(&id)).is_err());
        }
    }
}

/// The draft forbids content that links two IDs of a client, such as the number of a process (§5.4).
#[test]
fn without_a_key_only_the_server_id_is_the_same_in_all_ids() {
    for server_id_length in [1, 3, 8_u8] {
        let config = QuicLbConfig::new(0, server_id_length.into(), None, None).unwrap();
        let mut ids = ids(&QuicLb::new(config, 5).unwrap(), 3);
        let all: Vec<_> = (0..64).map(|_| ids.generate_cid()).collect();
        for at in 1 + usize::from(server_id_length)..ids.cid_len() {
            // That 64 random bytes have fewer than 32 values is less probable than 1 in 10^12.
            let values: std::collections::BTreeSet<_> = all.iter().map(|id| id[at]).collect();
            assert!(values.len() >= 32, "byte {at} of {}: {values:?}", ids.cid_len());
        }
    }
}

#[test]
fn configurations_without_room_for_the_servers_own_bytes_are_refused() {
    let error = |server_id, nonce| {
        let config = QuicLbConfig::new(0, server_id, nonce, None).unwrap();
        QuicLb::new(config, 1).unwrap_err()
    };
    let expected = QuicLbError::ServerIdLength { length: 9, most: 8 };
    assert_eq!(error(9, None), expected);
    let expected = QuicLbError::NonceLength {
        nonce: 7,
        least: 8,
        server_id: 1,
    };
    assert_eq!(error(1, Some(7)), expected);
    let config = QuicLbConfig::new(0, 1, None, None).unwrap();
    let expected = QuicLbError::ServerId {
        number: 256,
        length: 1,
    };
    assert_eq!(QuicLb::new(config, 256).unwrap_err(), expected);
    let config = QuicLbConfig::new(0, 8, None, None).unwrap();
    assert!(QuicLb::new(config, u64::MAX).is_ok());
}

#[test]
fn the_debug_text_of_the_generator_does_not_show_a_key() {
    let config = QuicLbConfig::new(0, 1, None, Some([0xAB; 16])).unwrap();
    let text = format!("{:?}", ids(&QuicLb::new(config, 9).unwrap(), 0));
    assert!(text.contains("is_encrypted: true"), "{text}");
    assert!(!text.contains("171"), "{text}");
    assert!(!text.to_lowercase().contains("abab"), "{text}");
}
