//! Addresses that proxies name, and those that others forge.

use std::io::Write as _;

use http::HeaderValue;
use rstest::rstest;

use super::*;
use crate::access::network;

fn proxies(field: Option<&str>) -> Proxies {
    Proxies {
        trusted: vec![
            network("10.0.0.0/8").unwrap(),
            network("2001:db8:1::/48").unwrap(),
        ],
        field: field.map(|name| name.parse().unwrap()),
        ..Proxies::default()
    }
}

#[rstest]
#[case::lone(&["192.0.2.7"], "192.0.2.7")]
#[case::with_a_port(&["192.0.2.7:4711"], "192.0.2.7")]
#[case::two_proxies(&["192.0.2.7, 10.1.1.1"], "192.0.2.7")]
#[case::two_lines(&["192.0.2.7", "10.1.1.1"], "192.0.2.7")]
#[case::forged_in_front(&["198.51.100.1, 192.0.2.7"], "192.0.2.7")]
#[case::forged_proxy_in_front(&["10.9.9.9, 192.0.2.7, 10.1.1.1"], "192.0.2.7")]
#[case::forged_line_in_front(&["198.51.100.1", "192.0.2.7"], "192.0.2.7")]
#[case::ipv6(&["2001:db8:2::7"], "2001:db8:2::7")]
#[case::unreadable_before_a_proxy(&["192.0.2.7, junk, 10.1.1.1"], "10.1.1.1")]
#[case::no_ascii_in_front(&["\u{fc}, 192.0.2.7"], "192.0.2.7")]
#[case::no_ascii_line_in_front(&["\u{fc}", "192.0.2.7"], "192.0.2.7")]
#[case::empty(&[""], "10.0.0.1")]
#[case::absent(&[], "10.0.0.1")]
fn the_last_address_that_is_no_proxy_is_the_client(#[case] values: &[&str], #[case] expected: &str) {
    let proxies = proxies(Some("x-forwarded-for"));
    let mut fields = HeaderMap::new();
    for value in values {
        fields.append(
            "x-forwarded-for",
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    fields.append("forwarded", HeaderValue::from_static("for=203.0.113.1"));
    let client = |peer: &str| {
        let peer = SocketAddr::new(peer.parse().unwrap(), 0);
        proxies.client(peer, &fields).ip().to_string()
    };
    assert_eq!(client("10.0.0.1"), expected);
    // Nobody else is believed.
    assert_eq!(client("203.0.113.9"), "203.0.113.9");
}

#[rstest]
#[case("for=192.0.2.7", "192.0.2.7")]
#[case("For=\"192.0.2.7:80\";proto=https;by=10.0.0.1", "192.0.2.7")]
#[case("proto=https; for=\"[2001:db8:2::7]:4711\"", "2001:db8:2::7")]
#[case("for=198.51.100.1, for=192.0.2.7", "192.0.2.7")]
#[case("for=\", for=192.0.2.7", "192.0.2.7")]
#[case("for=\"192.0.2.7:_http\"", "192.0.2.7")]
#[case("for=\"[2001:db8:2::7]:_http\"", "2001:db8:2::7")]
#[case("for=\"[2001:db8:2::7\"", "10.0.0.1")]
#[case("for=198.51.100.1;by=\u{fc}, for=192.0.2.7", "192.0.2.7")]
#[case("for=192.0.2.7, for=unknown", "10.0.0.1")]
#[case("for=192.0.2.7, for=_hidden", "10.0.0.1")]
#[case("by=192.0.2.7", "10.0.0.1")]
#[case("proto=https;host=\"x;for=198.51.100.1\";for=192.0.2.7", "192.0.2.7")]
#[case("for=192.0.2.7;host=\"x,for=198.51.100.1\";proto=https", "192.0.2.7")]
#[case("host=\"a\\\"b;for=198.51.100.1\";for=192.0.2.7", "192.0.2.7")]
#[case("for=192.0.2.7;for=198.51.100.1", "10.0.0.1")]
fn the_forwarded_field_is_read_from_its_end(#[case] value: &str, #[case] expected: &str) {
    let mut fields = HeaderMap::new();
    fields.insert("forwarded", HeaderValue::from_bytes(value.as_bytes()).unwrap());
    let peer = "10.0.0.1:1".parse().unwrap();
    let client = |field| proxies(field).client(peer, &fields).ip().to_string();
    assert_eq!(client(Some("forwarded")), expected);
    assert_eq!(proxies(None).client(peer, &fields), peer);
}

fn version_2(command: u8, family: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    [VERSION_2, &[0x20 | command, family][..], &length, payload].concat()
}

/// The client that a connection with these bytes names, if it is accepted, and the bytes left in it.
async fn read(bytes: &[u8]) -> (Option<String>, Vec<u8>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut sender = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    sender.write_all(bytes).unwrap();
    drop(sender);
    let proxy = "10.0.0.1:1".parse().unwrap();
    let read = proxies(None).client_of(stream, proxy).await;
    let Some((mut stream, client)) = read else {
        return (None, Vec::new());
    };
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    (Some(client.to_string()), rest)
}

#[tokio::test]
async fn a_header_names_the_client_and_leaves_the_rest() {
    let inet = [192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 0x01, 0xbb];
    let with_more = [&inet[..], &[0x04, 0, 3, 1, 2, 3]].concat();
    let (one, two) = ("192.0.2.7:4711", "[2001:db8:2::7]:4711");
    for (header, client) in [
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n".to_vec(), one),
        (b"PROXY TCP6 2001:db8:2::7 2001:db8::1 4711 443\r\n".to_vec(), two),
        (b"PROXY UNKNOWN\r\n".to_vec(), "10.0.0.1:1"),
        (version_2(1, 0x11, &inet), one),
        (version_2(1, 0x11, &with_more), one),
        (version_2(0, 0, &[]), "10.0.0.1:1"),
        (version_2(0, 0x11, &[]), "10.0.0.1:1"),
        (version_2(0, 0x11, &inet), "10.0.0.1:1"),
        (version_2(0, 0x7f, &[1, 2, 3]), "10.0.0.1:1"),
        (version_2(1, 0, &[]), "10.0.0.1:1"),
        (version_2(1, 0x31, &[0; 216]), "10.0.0.1:1"),
    ] {
        let rest = b"\x16\x03\x01 TLS".to_vec();
        let bytes = [header, rest.clone()].concat();
        assert_eq!(read(&bytes).await, (Some(client.to_owned()), rest), "{bytes:?}");
    }
}

#[tokio::test]
async fn a_connection_of_a_proxy_without_a_valid_header_is_closed() {
    let long = [b"PROXY TCP4 ".to_vec(), vec![b'1'; 200]].concat();
    let endless = version_2(1, 0x11, &[0; 5_000]);
    let short = version_2(1, 0x11, &[0; 4]);
    let tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and more".to_vec();
    let wrong = b"PROXY TCP4 192.0.2.777 10.0.0.1 4711 443\r\n".to_vec();
    let mut unknown = version_2(1, 0x11, &[0; 12]);
    unknown[12] = 0x31;
    for bytes in [
        long,
        endless,
        short,
        tls,
        wrong,
        unknown,
        b"PROXY".to_vec(),
        Vec::new(),
    ] {
        assert_eq!(read(&bytes).await.0, None, "{bytes:?}");
    }
}
