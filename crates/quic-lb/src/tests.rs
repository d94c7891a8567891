use proptest::prelude::*;
use rstest::rstest;

use crate::{BlockCipher, QuicLbConfig, QuicLbError, QuicLbServer};

/// Key of the examples in Appendix B.
const KEY: &str = "8f95f09245765f80256934e50c66207f";

fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2);
    digits
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn key(hex: &str) -> [u8; 16] {
    bytes(hex).try_into().unwrap()
}

/// The connection IDs of Appendix B. The draft has two misprints: the last row has the first octet of configuration 0,
/// and another example without a key lacks half a byte.
#[rstest]
#[case::in_the_open(0, None, "c4605e", "4504cc4f", "07c4605e4504cc4f")]
#[case::four_passes_over_an_odd_length(0, Some(KEY), "ed793a", "ee080dbf", "0720b1d07b359d3c")]
#[case::a_server_id_longer_than_the_nonce(
    1,
    Some(KEY),
    "ed793a51d49b8f5fab65",
    "ee080dbf48",
    "2fcc381bc74cb4fbad2823a3d1f8fed2"
)]
#[case::one_pass(
    2,
    Some(KEY),
    "ed793a51d49b8f5f",
    "ee080dbf48c0d1e5",
    "504dd2d05a7b0de9b2b9907afb5ecf8cc3"
)]
#[case::four_passes_over_an_even_length(
    0,
    Some(KEY),
    "ed793a51d49b8f5fab",
    "ee080dbf48c0d1e55d",
    "125779c9cc86beb3a3a4a3ca96fce4bfe0cdbc"
)]
fn connection_ids_are_those_of_the_draft(
    #[case] config_id: u64,
    #[case] with: Option<&str>,
    #[case] server_id: &str,
    #[case] nonce: &str,
    #[case] id: &str,
) {
    let lengths = [server_id, nonce].map(|hex| hex.len() as u64 / 2);
    let config = QuicLbConfig::new(config_id, lengths[0], Some(lengths[1]), with.map(key)).unwrap();
    let number = u128::from_str_radix(server_id, 16).unwrap();
    let server = config.clone().server(number).unwrap();
    assert_eq!(server.connection_id(&bytes(nonce)), Some(bytes(id)));
    assert_eq!(server.content(&bytes(id)), Some(bytes(nonce)));
    let packet = [bytes(id), vec![0xFF; 1_200]].concat();
    assert_eq!(config.server_id(&packet), Some(number));
}

/// §5.4.2.4 of the draft.
#[test]
fn the_cipher_has_the_result_of_the_example_in_the_draft() {
    let cipher = BlockCipher::new(&key("fdf726a9893ec05c0632d3956680baf0"));
    let mut block = bytes("31441a9c69c275");
    cipher.encrypt(&mut block);
    assert_eq!(block, bytes("67947d29be054a"));
}

#[test]
fn ids_of_other_configurations_and_short_ones_name_no_server() {
    let id = bytes("07c4605e4504cc4f00000000");
    let config = QuicLbConfig::new(0, 3, Some(8), None).unwrap();
    assert_eq!(config.server_id(&id), Some(0xC4_605E));
    for length in 0..id.len() {
        assert_eq!(config.server_id(&id[..length]), None, "too short");
    }
    let other = QuicLbConfig::new(1, 3, None, None).unwrap();
    assert_eq!(other.server_id(&id), None, "another configuration");
}

fn servers() -> impl Strategy<Value = QuicLbServer> {
    let lengths = (1..=15_u64).prop_flat_map(|server_id| {
        let nonce = prop::option::of(4..=19 - server_id);
        (Just(server_id), nonce, 0..=u128::MAX >> (128 - 8 * server_id))
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
    fn the_balancer_finds_the_server_and_the_server_its_content(
        server in servers(),
        content in prop::collection::vec(any::<u8>(), 0..=20),
        bit in 0..160_usize,
    ) {
        let config = server.config();
        let room = 19 - usize::from(config.server_id_length());
        let fits = (config.nonce_length().into()..=room).contains(&content.len());
        let Some(id) = server.connection_id(&content) else {
            prop_assert!(!fits);
            return Ok(());
        };
        prop_assert!(fits);
        prop_assert_eq!(usize::from(id[0] & 0x1F), id.len() - 1);
        prop_assert_eq!(config.server_id(&id), Some(server.server_id()));
        let read = server.content(&id);
        prop_assert_eq!(read.as_ref(), Some(&content));
        prop_assert_eq!(server.content(&id[..id.len() - 1]), None);
        let mut other = id.clone();
        other[bit / 8 % id.len()] ^= 1 << (bit % 8);
        prop_assert_ne!(server.content(&other), Some(content));
    }
}

#[test]
fn numbers_outside_their_range_are_refused() {
    let error =
        |config_id, server_id, nonce| QuicLbConfig::new(config_id, server_id, nonce, None).unwrap_err();
    assert_eq!(error(7, 1, None), QuicLbError::ConfigId(7));
    for length in [0, 16, u64::MAX] {
        let expected = QuicLbError::ServerIdLength { length, most: 15 };
        assert_eq!(error(0, length, None), expected);
    }
    for (server_id, nonce) in [(1_u8, 3), (1, 19), (15, 5)] {
        let expected = QuicLbError::NonceLength {
            nonce,
            least: 4,
            server_id,
        };
        assert_eq!(error(0, server_id.into(), Some(nonce)), expected);
    }
    let config = QuicLbConfig::new(0, 1, None, None).unwrap();
    assert_eq!(
        config.server(256).unwrap_err().to_string(),
        "server-id must be 0 to 255 with a server-id-length of 1 (got 256)"
    );
    let config = QuicLbConfig::new(0, 15, None, None).unwrap();
    assert_eq!(config.nonce_length(), 4);
    assert!(config.server(u128::MAX >> 8).is_ok());
}

#[test]
fn the_debug_text_does_not_show_the_key() {
    let config = QuicLbConfig::new(0, 1, None, Some([0xAB; 16])).unwrap();
    let text = format!("{:?}", config.server(9).unwrap());
    assert!(text.contains("is_encrypted: true"), "{text}");
    assert!(!text.contains("171"), "{text}");
    assert!(!text.to_lowercase().contains("abab"), "{text}");
}
