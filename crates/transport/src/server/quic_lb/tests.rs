use proptest::prelude::*;
use quinn_proto::ConnectionIdGenerator as _;

use super::super::keys::{EndpointKey, EndpointKeys, Issuer, MarkedConnectionIds};
use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

fn key(hex: &str) -> [u8; 16] {
    bytes(hex).try_into().unwrap()
}

fn issuer(process: u8) -> Issuer {
    Issuer { process, worker: 2 }
}

fn ids(lb: &QuicLb, process: u8) -> MarkedConnectionIds {
    let key = EndpointKey::new([1; EndpointKey::LENGTH]);
    let keys = EndpointKeys::derive_behind(lb, &key).unwrap();
    keys.connection_ids(issuer(process))
}

/// Appendix B of the draft, with server ID and nonce as one block. The last row's first octet is misprinted there, with
/// the configuration 0.
#[test]
fn the_cipher_has_the_results_of_the_draft() {
    let cipher = BlockCipher::new(&key("8f95f09245765f80256934e50c66207f"));
    for (block, encrypted) in [
        ("ed793aee080dbf", "20b1d07b359d3c"),
        ("ed793a51d49b8f5fab65ee080dbf48", "cc381bc74cb4fbad2823a3d1f8fed2"),
        (
            "ed793a51d49b8f5fee080dbf48c0d1e5",
            "4dd2d05a7b0de9b2b9907afb5ecf8cc3",
        ),
        (
            "ed793a51d49b8f5fabee080dbf48c0d1e55d",
            "5779c9cc86beb3a3a4a3ca96fce4bfe0cdbc",
        ),
    ] {
        let mut changed = bytes(block);
        cipher.encrypt(&mut changed);
        assert_eq!(changed, bytes(encrypted), "{block}");
        cipher.decrypt(&mut changed);
        assert_eq!(changed, bytes(block));
    }
}

/// §5.4.2.4 of the draft.
#[test]
fn the_cipher_has_the_result_of_the_example_in_the_draft() {
    let cipher = BlockCipher::new(&key("fdf726a9893ec05c0632d3956680baf0"));
    let mut block = bytes("31441a9c69c275");
    cipher.encrypt(&mut block);
    assert_eq!(block, bytes("67947d29be054a"));
}

/// Appendix B of the draft. Its nonces are shorter than those of this server, which a reader does not notice as long as
/// nothing is encrypted. (The second example there has half a byte too few.)
#[test]
fn a_balancer_reads_the_server_id_of_the_draft() {
    let config = QuicLbConfig::new(0, 3, Some(8), None).unwrap();
    let id = bytes("07c4605e4504cc4f00000000");
    assert_eq!(config.server_id(&id), Some(0xC4_605E));
    assert_eq!(config.server_id(&id[..11]), None, "too short");
    assert_eq!(
        QuicLbConfig::new(1, 3, None, None).unwrap().server_id(&id),
        None,
        "another configuration"
    );
    // The one of which server ID and nonce have these lengths.
    let config = QuicLbConfig::new(2, 8, Some(8), Some(key("8f95f09245765f80256934e50c66207f"))).unwrap();
    let id = bytes("504dd2d05a7b0de9b2b9907afb5ecf8cc3");
    assert_eq!(config.server_id(&id), Some(0xED79_3A51_D49B_8F5F));
}

fn servers() -> impl Strategy<Value = QuicLb> {
    let lengths = (1..=8_u64).prop_flat_map(|server_id| {
        let nonce = prop::option::of(8..=19 - server_id);
        (Just(server_id), nonce, 0..=u64::MAX >> (64 - 8 * server_id))
    });
    let key = prop::option::of(prop::array::uniform16(any::<u8>()));
    (0..=6_u64, lengths, key).prop_map(|(config_id, (server_id, nonce, number), key)| {
        let config = QuicLbConfig::new(config_id, server_id, nonce, key).unwrap();
        config.server(number).unwrap()
    })
}

proptest! {
    #[test]
    fn what_is_encrypted_is_decrypted(
        key in prop::array::uniform16(any::<u8>()),
        block in prop::collection::vec(any::<u8>(), 5..=19),
    ) {
        let cipher = BlockCipher::new(&key);
        let mut changed = block.clone();
        cipher.encrypt(&mut changed);
        prop_assert_ne!(&changed, &block);
        cipher.decrypt(&mut changed);
        prop_assert_eq!(changed, block);
    }

    #[test]
    fn the_balancer_finds_the_server_and_the_server_its_endpoint(lb in servers(), process: u8) {
        let mut own = ids(&lb, process);
        let id = own.generate_cid();
        prop_assert_eq!(id.len(), own.cid_len());
        prop_assert_eq!(usize::from(id[0] & 0x1F), id.len() - 1);
        prop_assert_eq!(lb.config().server_id(&id), Some(lb.server_id()));
        prop_assert!(own.validate(&id).is_ok());
        prop_assert_eq!(own.other_issuer(&id), None);
        let other = ids(&lb, process.wrapping_add(1)).other_issuer(&id);
        prop_assert_eq!(other, Some(issuer(process)));
    }

    /// Whatever is changed, in the open or below the encryption.
    #[test]
    fn no_other_id_is_valid(lb in servers(), bit in 0..160_usize) {
        let mut own = ids(&lb, 3);
        let mut id = own.generate_cid().to_vec();
        let bit = bit % (id.len() * 8);
        id[bit / 8] ^= 1 << (bit % 8);
        // Of the shortest HMAC, one in 2^24 would be right by chance.
        prop_assert!(own.validate(&ConnectionId::new(&id)).is_err());
        prop_assert_eq!(ids(&lb, 4).other_issuer(&id), None);
        prop_assert!(own.validate(&ConnectionId::new(&id[..id.len() - 1])).is_err());
    }

    /// Else it would answer packets of that one's connections with resets.
    #[test]
    fn an_id_of_another_server_with_the_same_key_is_not_valid(lb in servers(), other: u64) {
        let other = other & largest(lb.config().server_id_length());
        prop_assume!(other != lb.server_id());
        let other = lb.config().clone().server(other).unwrap();
        let id = ids(&other, 3).generate_cid();
        prop_assert!(ids(&lb, 3).validate(&id).is_err());
        prop_assert_eq!(ids(&lb, 4).other_issuer(&id), None);
        if !lb.config().is_encrypted() {
            // Nor after a client has replaced the number, which it can read.
            let mut id = id.to_vec();
            let own = ids(&lb, 3).generate_cid();
            let number = ..=usize::from(lb.config().server_id_length());
            id[number].copy_from_slice(&own[number]);
            prop_assert!(ids(&lb, 3).validate(&ConnectionId::new(&id)).is_err());
        }
    }
}

/// The draft forbids what would link two IDs of a client, as the number of a process would (§5.4).
#[test]
fn without_a_key_only_the_server_id_is_the_same_in_all_ids() {
    for server_id_length in [1, 3, 8_u8] {
        let config = QuicLbConfig::new(0, server_id_length.into(), None, None).unwrap();
        let mut ids = ids(&config.server(5).unwrap(), 3);
        let all: Vec<_> = (0..64).map(|_| ids.generate_cid()).collect();
        for at in 1 + usize::from(server_id_length)..ids.cid_len() {
            // That 64 random bytes have fewer than 32 values is less probable than 1 in 10^12.
            let values: std::collections::BTreeSet<_> = all.iter().map(|id| id[at]).collect();
            assert!(values.len() >= 32, "byte {at} of {}: {values:?}", ids.cid_len());
        }
    }
}

#[test]
fn numbers_outside_of_their_range_are_refused() {
    assert_eq!(
        QuicLbConfig::new(7, 1, None, None).unwrap_err(),
        QuicLbError::ConfigId(7)
    );
    for length in [0, 9, u64::MAX] {
        let error = QuicLbConfig::new(0, length, None, None).unwrap_err();
        assert_eq!(error, QuicLbError::ServerIdLength(length));
    }
    for (server_id, nonce) in [(1_u8, 7), (1, 19), (8, 12)] {
        let error = QuicLbConfig::new(0, server_id.into(), Some(nonce), None).unwrap_err();
        assert_eq!(error, QuicLbError::NonceLength { nonce, server_id });
    }
    let config = QuicLbConfig::new(0, 1, None, None).unwrap();
    let error = config.server(256).unwrap_err();
    assert_eq!(
        error.to_string(),
        "server-id must be 0 to 255 with a server-id-length of 1 (got 256)"
    );
    let config = QuicLbConfig::new(0, 8, None, None).unwrap();
    assert!(config.server(u64::MAX).is_ok());
}

#[test]
fn the_debug_text_does_not_show_the_key() {
    let config = QuicLbConfig::new(0, 1, None, Some([0xAB; 16])).unwrap();
    let text = format!("{:?}", ids(&config.server(9).unwrap(), 0));
    assert!(text.contains("is_encrypted: true"), "{text}");
    assert!(
        !text.contains("171") && !text.to_lowercase().contains("abab"),
        "{text}"
    );
}
