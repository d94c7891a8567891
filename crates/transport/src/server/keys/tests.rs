use super::*;

const ISSUER: Issuer = Issuer {
    process: 7,
    worker: 3,
};

fn ids(key: u8) -> MarkedConnectionIds {
    let keys = EndpointKeys::derive(&EndpointKey::new([key; EndpointKey::LENGTH]), None).unwrap();
    keys.connection_ids(ISSUER)
}

#[test]
fn connection_ids_are_valid_for_the_servers_with_the_same_key_alone() {
    let id = ids(1).generate_cid();
    assert_eq!(id.len(), ids(1).cid_len());
    let sibling = MarkedConnectionIds {
        issuer: Issuer { worker: 4, ..ISSUER },
        ..ids(1)
    };
    assert_eq!(sibling.other_issuer(&id), Some(ISSUER));
    assert_eq!(ids(1).other_issuer(&id), None);
    assert!(ids(1).validate(&id).is_ok());
    assert!(ids(2).validate(&id).is_err());
}

#[test]
fn a_connection_id_with_any_other_bit_is_not_valid() {
    let id = ids(1).generate_cid();
    for bit in 0..id.len() * 8 {
        let mut other = id.to_vec();
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(ids(1).validate(&ConnectionId::new(&other)).is_err(), "{bit}");
    }
    for length in 0..id.len() {
        assert!(
            ids(1).validate(&ConnectionId::new(&id[..length])).is_err(),
            "{length}"
        );
    }
}

/// With 24 random bits, two of 40,000 would be the same.
#[test]
fn no_connection_id_is_issued_twice() {
    let mut ids = ids(1);
    let issued: std::collections::BTreeSet<_> = (0..40_000).map(|_| ids.generate_cid().to_vec()).collect();
    assert_eq!(issued.len(), 40_000);
}

#[test]
fn the_debug_text_of_a_key_does_not_show_it() {
    let key = EndpointKey::generate().unwrap();
    assert_ne!(key, EndpointKey::generate().unwrap());
    assert_eq!(format!("{key:?}"), "EndpointKey { .. }");
}

#[test]
fn the_fingerprint_follows_from_the_key_and_differs_from_it() {
    let [one, two] = [1, 2].map(|byte| EndpointKey::new([byte; EndpointKey::LENGTH]));
    assert_eq!(one.fingerprint(b"a"), one.clone().fingerprint(b"a"));
    assert_ne!(one.fingerprint(b"a"), two.fingerprint(b"a"));
    assert_ne!(one.fingerprint(b"a"), one.fingerprint(b"b"));
    assert_ne!(one.fingerprint(b"").to_be_bytes(), one.as_bytes()[..8]);
}
