//! Tokens that must be accepted, and above all those that must not.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use ring::hmac;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::http::path::resolve;

const KEY: &str = "k1:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const OTHER: &str = "k2:202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";
const SECRET: &str = "a secret of at least thirty-two bytes";
/// The beginning of the year 2100, as in the vectors.
const END: u64 = 4_102_444_800;
/// Path, address and token of each line, made by three other implementations (Python, Node, OpenSSL).
fn vectors() -> Vec<[&'static str; 3]> {
    let lines = include_str!("vectors/signed.txt").lines();
    let line = |line: &'static str| line.split('|').collect::<Vec<_>>().try_into().unwrap();
    lines.map(line).collect()
}

/// The token of one of the vectors.
fn token(number: usize) -> &'static str {
    vectors()[number][2]
}

fn keys(lines: &[&str]) -> SigningKeys {
    lines.join("\n").parse().unwrap()
}

fn grant(scope: &str, address: &str) -> Grant {
    Grant {
        scope: scope.parse().unwrap(),
        expires: END,
        address: (!address.is_empty()).then(|| network(address).unwrap()),
    }
}

/// Asks for `target` at the time `now` with these fields.
#[expect(clippy::too_many_arguments, reason = "all that a decision depends on")]
fn ask(access: &Access, target: &str, now: u64, client: &str, fields: &[(&str, &str)]) -> Result<(), Denial> {
    let mut request = Request::get(target);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(()).unwrap();
    let name = resolve(without_token(request.uri().path())).ok();
    let now = UNIX_EPOCH + Duration::from_secs(now);
    access.check(&request, name.as_ref(), (Some(now), client.parse().ok()))
}

fn signed_access(lines: &[&str]) -> Access {
    let keys = AccessKeys {
        signing: Some(keys(lines)),
        jwt: None,
    };
    Access::new(
        keys,
        vec!["/trailers/".parse().unwrap(), "/index.html".parse().unwrap()],
    )
}

#[test]
fn tokens_are_those_of_other_implementations() {
    for [scope, address, token] in vectors() {
        assert_eq!(keys(&[KEY, OTHER]).sign(&grant(scope, address)), token);
    }
}

#[rstest]
#[case::below("/~T/films/one/main.m3u8", "192.0.2.1", Ok(()))]
#[case::deeper("/~T/films/one/720p/1.m4s", "192.0.2.1", Ok(()))]
#[case::encoded("/%7ET/films/%6Fne/1.m4s", "192.0.2.1", Ok(()))]
#[case::query("/films/one/1.m4s?a=b&token=T", "192.0.2.1", Ok(()))]
#[case::marked_query("/films/one/1.m4s?token=~T", "192.0.2.1", Ok(()))]
#[case::encoded_query("/films/one/1.m4s?token=%7ET", "192.0.2.1", Ok(()))]
#[case::sibling("/~T/films/ones/1.m4s", "192.0.2.1", Err(Denial::Path))]
#[case::other("/~T/films/two/1.m4s", "192.0.2.1", Err(Denial::Path))]
#[case::directory_as_file("/~T/films/one", "192.0.2.1", Err(Denial::Path))]
#[case::case_differs("/~T/Films/one/1.m4s", "192.0.2.1", Err(Denial::Path))]
#[case::home("/~T/", "192.0.2.1", Err(Denial::Path))]
#[case::no_token("/films/one/1.m4s", "192.0.2.1", Err(Denial::Missing))]
#[case::short_token("/~azEsNDEw/films/one/1.m4s", "192.0.2.1", Err(Denial::Missing))]
#[case::second_segment("/films/~T/one/1.m4s", "192.0.2.1", Err(Denial::Missing))]
#[case::public("/trailers/a.mp4", "192.0.2.1", Ok(()))]
#[case::public_file("/index.html", "192.0.2.1", Ok(()))]
#[case::beside_public("/trailers", "192.0.2.1", Err(Denial::Missing))]
#[case::beside_public_file("/index.html.bak", "192.0.2.1", Err(Denial::Missing))]
fn a_token_opens_its_paths_alone(
    #[case] target: &str,
    #[case] client: &str,
    #[case] expected: Result<(), Denial>,
) {
    let access = signed_access(&[KEY]);
    let target = target.replacen('T', token(0).trim_start_matches('~'), 1);
    assert_eq!(ask(&access, &target, END - 1, client, &[]), expected, "{target}");
    let refused: u64 = access.refused().values().sum();
    assert_eq!(refused, u64::from(expected.is_err()));
}

#[test]
fn a_path_that_could_leave_the_scope_names_nothing() {
    for path in [
        "/films/one/../two/1.m4s",
        "/films/one/%2e%2e/two/1.m4s",
        "/films//one/1.m4s",
        "/films/one%2f1",
    ] {
        assert!(resolve(path).is_err(), "{path}");
    }
}

#[rstest]
#[case("2001:db8::7", Ok(()))]
#[case("2001:db8:0:1::7", Err(Denial::Address))]
#[case("192.0.2.1", Err(Denial::Address))]
#[case("unknown", Err(Denial::Address))]
fn a_token_for_a_network_serves_no_other(#[case] client: &str, #[case] expected: Result<(), Denial>) {
    let target = format!("/{}/films/f%C3%BCr%20dich.mp4", token(1));
    let access = signed_access(&[KEY]);
    assert_eq!(ask(&access, &target, END - 1, client, &[]), expected);
}

#[test]
fn an_ipv4_address_on_an_ipv6_socket_is_the_same_client() {
    let token = keys(&[KEY]).sign(&grant("/", "192.0.2.7"));
    let access = signed_access(&[KEY]);
    let ask = |client| ask(&access, &format!("/{token}/film.mp4"), 0, client, &[]);
    assert_eq!((ask("::ffff:192.0.2.7"), ask("192.0.2.7")), (Ok(()), Ok(())));
    assert_eq!(ask("::ffff:192.0.2.8"), Err(Denial::Address));
}

#[test]
fn a_token_ends_at_its_expiry_and_without_a_clock_none_is_valid() {
    let access = signed_access(&[KEY]);
    let target = format!("/{}/films/one/1.m4s", token(0));
    assert_eq!(ask(&access, &target, END, "192.0.2.1", &[]), Err(Denial::Expired));
    let request = Request::get(&target).body(()).unwrap();
    let name = resolve("/films/one/1.m4s").ok();
    assert_eq!(
        access.check(&request, name.as_ref(), (None, None)),
        Err(Denial::Expired)
    );
}

#[test]
fn keys_rotate_without_refusing_tokens_of_the_one_before() {
    let target = format!("/{}/films/one/1.m4s", token(0));
    let access = signed_access(&[KEY]);
    let set = |lines: &[&str]| {
        access.set_keys(AccessKeys {
            signing: Some(keys(lines)),
            jwt: None,
        });
        ask(&access, &target, 0, "192.0.2.1", &[])
    };
    assert_eq!(set(&[OTHER, KEY]), Ok(()));
    assert_eq!(set(&[OTHER]), Err(Denial::Key));
    let renamed = OTHER.replace("k2", "k1");
    assert_eq!(set(&[&renamed]), Err(Denial::Signature));
    assert_eq!(access.refused()[&Denial::Key], 1);
}

#[rstest]
#[case::empty("")]
#[case::comment_only("# none\n")]
#[case::short("k1:0011")]
#[case::odd("k1:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f0")]
#[case::no_hexadecimal("k1:+00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")]
#[case::no_id("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")]
#[case::comma_in_id("k,1:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")]
fn an_unusable_file_of_keys_is_refused_with_a_correction(#[case] text: &str) {
    let error = text.parse::<SigningKeys>().unwrap_err().to_string();
    assert!(error.contains("expected"), "{error}");
}

#[test]
fn more_than_two_keys_or_two_of_one_id_are_refused() {
    let third = OTHER.replace("k2", "k3");
    for lines in [[KEY, OTHER, &third].as_slice(), &[KEY, KEY]] {
        assert!(lines.join("\n").parse::<SigningKeys>().is_err());
    }
    let commented = format!("# in use\n{KEY}\n\n{OTHER}\n");
    assert!(commented.parse::<SigningKeys>().is_ok());
}

#[test]
fn keys_stay_out_of_logs() {
    let keys = AccessKeys {
        signing: Some(keys(&[KEY])),
        jwt: Some(JwtKey::new(SECRET, by_path()).unwrap()),
    };
    let shown = format!("{:?}", Access::new(keys, Vec::new()));
    for secret in ["000102", "[0, 1, 2", SECRET, "[97, 32, 115"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[rstest]
#[case("/~T/films/1.m4s", "/~*/films/1.m4s")]
#[case("/%7eT/films/1.m4s", "/~*/films/1.m4s")]
#[case("/~T", "/~*")]
#[case("/film.mp4?a=b&token=~T&c=d", "/film.mp4?a=b&token=~*&c=d")]
#[case::after_an_arm("/b/~T/film.mp4", "/b/~*/film.mp4")]
#[case::after_a_slash("//~T/film.mp4", "//~*/film.mp4")]
#[case::another_parameter("/film.mp4?Token=T", "/film.mp4?Token=*")]
#[case::relative("~T/films/", "~*/films/")]
#[case::without_a_path("https://host.example?token=T", "https://host.example?token=*")]
#[case::next_object(
    "/1.m4s?CMCD=nor%3D%22%2F~T%2F2.m4s%22",
    "/1.m4s?CMCD=nor%3D%22%2F~*%2F2.m4s%22"
)]
#[case::twice("/~T/a?token=T", "/~*/a?token=*")]
#[case::jwt("/a?jwt=J", "/a?jwt=*")]
#[case::encoded_point("/a%20b?token=!", "/a b?token=*")]
#[case::plain_and_encoded("/~T/a?token=!", "/~*/a?token=*")]
#[case::second_point("/a?jwt=^", "/a?jwt=*")]
#[case::encoded_twice("/a?token=§", "/a?token=*")]
#[case::short("/~name/film.mp4?a=b", "/~name/film.mp4?a=b")]
#[case::hash(
    "/hls/representation-1080p-video.d41d8cd98f00b204e9800998ecf8427e.m4s",
    "/hls/representation-1080p-video.d41d8cd98f00b204e9800998ecf8427e.m4s"
)]
#[case::long_name(
    "/~a_title_of_more_than_forty-four_characters.2026.mp4",
    "/~a_title_of_more_than_forty-four_characters.2026.mp4"
)]
fn tokens_stay_out_of_logs_wherever_they_are(#[case] target: &str, #[case] expected: &str) {
    let jwt = jwt(
        &json!({"alg": "HS256"}),
        &json!({"exp": END, "path": "/"}),
        SECRET.as_bytes(),
    );
    // Not that of the parameter.
    let target = target.replace("Token", "\0").replace('T', &token(0)[1..]);
    let encoded = token(0)[1..].replace('.', "%2E");
    let second = jwt
        .rsplit_once('.')
        .map(|(begin, end)| format!("{begin}%2E{end}"));
    let target = target.replace('J', &jwt).replace('!', &encoded);
    let target = target
        .replace('^', &second.unwrap())
        .replace('§', &encoded.replace('%', "%25"));
    let target = target.replace('\0', "Token");
    assert_eq!(redacted(&target), expected);
}

#[rstest]
#[case("/~T/film.mp4", Some("T"), "/film.mp4")]
#[case("/%7ET/film.mp4", Some("T"), "/film.mp4")]
#[case("/~T/", Some("T"), "/")]
#[case("/~T", Some("T"), "/")]
#[case("/~Tü/film.mp4", None, "/~Tü/film.mp4")]
#[case("/b/~T/film.mp4", None, "/b/~T/film.mp4")]
#[case(
    "/~a title of more than forty-four characters, in 2026.mp4",
    None,
    "/~a title of more than forty-four characters, in 2026.mp4"
)]
fn only_a_first_segment_with_the_form_of_a_token_is_one(
    #[case] path: &str,
    #[case] found: Option<&str>,
    #[case] rest: &str,
) {
    let full = |text: &str| text.replacen('T', &token(0)[1..], 1);
    let (path, rest) = (full(path), full(rest));
    assert_eq!(signed::split(&path), (found.map(full).as_deref(), rest.as_str()));
}

#[rstest]
#[case("192.0.2.7", Some("192.0.2.7/32"))]
#[case("::ffff:192.0.2.7", Some("192.0.2.7/32"))]
#[case("::ffff:10.0.0.0/104", Some("10.0.0.0/8"))]
#[case("::ffff:10.0.0.0/95", None)]
#[case("2001:db8::/64", Some("2001:db8::/64"))]
#[case("::/0", Some("::/0"))]
#[case("10.0.0.0/33", None)]
#[case("here", None)]
fn mapped_addresses_are_ipv4(#[case] text: &str, #[case] expected: Option<&str>) {
    let found = network(text).ok().map(|network| network.to_string());
    assert_eq!(found.as_deref(), expected);
}

proptest! {
    #[test]
    fn every_change_of_a_token_is_refused(at in 1_usize..80, with in "[A-Za-z0-9_.,~-]") {
        let token = token(0);
        let changed = format!("{}{with}{}", &token[..at], &token[at + 1..]);
        prop_assume!(changed != token);
        for changed in [changed, format!("{}{}", &token[..at], &token[at + 1..]), format!("{token}{with}")] {
            let access = signed_access(&[KEY]);
            let target = format!("/{changed}/films/one/1.m4s");
            prop_assert!(ask(&access, &target, 0, "192.0.2.1", &[]).is_err());
            let target = format!("/films/one/1.m4s?token={}", &changed[1..]);
            prop_assert!(ask(&access, &target, 0, "192.0.2.1", &[]).is_err());
        }
    }

    #[test]
    fn a_path_outside_the_scope_is_refused(
        path in "/((films|one|two|%6Fne|\\.\\.|%2e%2e|%2f|\\PC){1,2}/){0,4}[a-z]{1,3}",
    ) {
        let access = signed_access(&[KEY]);
        let opened = resolve(&path).is_ok_and(|name| name.as_str().starts_with("films/one/"));
        if let Ok(target) = format!("/{}{path}", token(0)).parse::<http::Uri>()
            && resolve(without_token(target.path())).is_ok()
        {
            let is_public = resolve(&path).is_ok_and(|name| name.as_str().starts_with("trailers/"));
            let asked = ask(&access, &target.to_string(), 0, "192.0.2.1", &[]);
            prop_assert_eq!(asked.is_ok(), opened || is_public, "{}", path);
        }
    }

    #[test]
    fn no_text_is_a_token(text in "\\PC{0,80}") {
        let keys = keys(&[KEY]);
        prop_assert!(keys.check(&text, "/films/one/1.m4s", (0, None)).is_err());
    }
}

/// A token with this header and these claims, under HMAC with `key`.
fn jwt(header: &Value, claims: &Value, key: &[u8]) -> String {
    let parts = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let message = parts.join(".");
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, message.as_bytes()));
    format!("{message}.{signature}")
}

fn bearing(key: &str, claims: Claims, token: &str, now: u64) -> Result<(), Denial> {
    let keys = AccessKeys {
        signing: Some(keys(&[KEY])),
        jwt: Some(JwtKey::new(key, claims).unwrap()),
    };
    let access = Access::new(keys, Vec::new());
    let field = format!("Bearer {token}");
    ask(
        &access,
        "/films/one/1.m4s",
        now,
        "192.0.2.1",
        &[("authorization", &field)],
    )
}

fn by_path() -> Claims {
    Claims {
        path: Some("path".to_owned()),
        ..Claims::default()
    }
}

#[rstest]
#[case::good(json!({"exp": END, "path": "/films/one/"}), Ok(()))]
#[case::one_of_two(json!({"exp": END, "path": ["/films/two/", "/films/one/1.m4s"]}), Ok(()))]
#[case::fraction(json!({"exp": END as f64 + 0.5, "path": "/"}), Ok(()))]
#[case::in_time(json!({"exp": END, "nbf": END - 100, "path": "/"}), Ok(()))]
#[case::clocks_differ(json!({"exp": END - 120, "nbf": END - 40, "path": "/"}), Ok(()))]
#[case::expired(json!({"exp": END - 161, "path": "/"}), Err(Denial::Expired))]
#[case::early(json!({"exp": END, "nbf": END - 39, "path": "/"}), Err(Denial::Early))]
#[case::no_end(json!({"path": "/"}), Err(Denial::Claims))]
#[case::end_as_text(json!({"exp": "4102444800", "path": "/"}), Err(Denial::Claims))]
#[case::negative_end(json!({"exp": -1, "path": "/"}), Err(Denial::Claims))]
#[case::start_as_text(json!({"exp": END, "nbf": "0", "path": "/"}), Err(Denial::Claims))]
#[case::no_path(json!({"exp": END}), Err(Denial::Claims))]
#[case::no_text_as_path(json!({"exp": END, "path": 1}), Err(Denial::Path))]
#[case::other_path(json!({"exp": END, "path": "/films/on/"}), Err(Denial::Path))]
#[case::no_slash(json!({"exp": END, "path": "films/one/"}), Err(Denial::Path))]
#[case::empty_path(json!({"exp": END, "path": ""}), Err(Denial::Path))]
#[case::unexpected_audience(json!({"exp": END, "path": "/", "aud": "others"}), Err(Denial::Claims))]
#[case::number_as_audience(json!({"exp": END, "path": "/", "aud": 5}), Err(Denial::Claims))]
#[case::no_audience(json!({"exp": END, "path": "/", "aud": null}), Err(Denial::Claims))]
fn a_jwt_opens_what_its_claims_say(#[case] claims: Value, #[case] expected: Result<(), Denial>) {
    let token = jwt(&json!({"alg": "HS256", "typ": "JWT"}), &claims, SECRET.as_bytes());
    assert_eq!(
        bearing(SECRET, by_path(), &token, END - 100),
        expected,
        "{claims}"
    );
}

#[rstest]
#[case(json!({"exp": END, "aud": "us", "iss": "me"}), Ok(()))]
#[case(json!({"exp": END, "aud": ["them", "us"], "iss": "me"}), Ok(()))]
#[case(json!({"exp": END, "aud": "them", "iss": "me"}), Err(Denial::Claims))]
#[case(json!({"exp": END, "aud": "us", "iss": "you"}), Err(Denial::Claims))]
#[case(json!({"exp": END, "iss": "me"}), Err(Denial::Claims))]
#[case(json!({"exp": END, "aud": "us"}), Err(Denial::Claims))]
#[case(json!({"exp": END, "aud": 1, "iss": "me"}), Err(Denial::Claims))]
#[case(json!({"exp": END, "aud": "us", "iss": {}}), Err(Denial::Claims))]
fn audience_and_issuer_must_be_the_expected_ones(
    #[case] claims: Value,
    #[case] expected: Result<(), Denial>,
) {
    let token = jwt(&json!({"alg": "HS256"}), &claims, SECRET.as_bytes());
    let required = Claims {
        audience: Some("us".to_owned()),
        issuer: Some("me".to_owned()),
        path: None,
    };
    assert_eq!(bearing(SECRET, required, &token, 0), expected, "{claims}");
}

const RSA: &str = include_str!("vectors/rsa.pem");
const EC: &str = include_str!("vectors/ec.pem");
const ED25519: &str = include_str!("vectors/ed25519.pem");

#[rstest]
#[case::rs256("RS256", RSA)]
#[case::es256("ES256", EC)]
#[case::eddsa("EdDSA", ED25519)]
fn a_public_key_verifies_tokens_of_its_own_algorithm_alone(#[case] algorithm: &str, #[case] key: &str) {
    // Made by OpenSSL.
    for line in include_str!("vectors/tokens.txt").lines() {
        let (name, token) = line.split_once(':').unwrap();
        let asked = bearing(key, by_path(), token, END - 1);
        assert_eq!(asked.is_ok(), name == algorithm, "{name}: {asked:?}");
        assert!(bearing(key, by_path(), &format!("{}A", &token[..token.len() - 1]), 0).is_err());
    }
    // Everybody knows the public key, and must not be able to sign with it as a secret.
    let claims = json!({"exp": END, "path": "/"});
    for secret in [key.as_bytes(), key.trim().as_bytes()] {
        for header in [json!({"alg": "HS256"}), json!({"alg": algorithm})] {
            assert!(
                bearing(key, by_path(), &jwt(&header, &claims, secret), 0).is_err(),
                "{header}"
            );
        }
    }
}

#[rstest]
fn a_public_key_that_was_cut_is_refused(#[values(RSA, EC, ED25519)] key: &str) {
    let lines: Vec<_> = key.lines().collect();
    for cut in 1..lines.len() - 1 {
        let rest = [&lines[..cut], &lines[cut + 1..]].concat().join("\n");
        assert!(JwtKey::new(&rest, by_path()).is_err(), "{rest}");
    }
}

#[rstest]
#[case::none(json!({"alg": "none"}))]
#[case::none_in_capitals(json!({"alg": "NONE"}))]
#[case::no_algorithm(json!({"typ": "JWT"}))]
#[case::longer_hash(json!({"alg": "HS512"}))]
#[case::another_family(json!({"alg": "RS256"}))]
#[case::extension(json!({"alg": "HS256", "crit": ["b64"], "b64": false}))]
fn the_header_of_a_jwt_decides_nothing(#[case] header: Value) {
    let claims = json!({"exp": END, "path": "/"});
    let token = jwt(&header, &claims, SECRET.as_bytes());
    assert!(bearing(SECRET, by_path(), &token, 0).is_err());
    let (message, _) = token.rsplit_once('.').unwrap();
    assert!(bearing(SECRET, by_path(), &format!("{message}."), 0).is_err());
}

/// A public key of RSA with a modulus of this many bytes, whose highest bit is set.
fn rsa(modulus: usize) -> String {
    let tagged = |tag: u8, content: &[u8]| {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82][..], &length, content].concat()
    };
    let modulus = tagged(0x02, &[&[0][..], &vec![0xFF; modulus]].concat());
    let key = tagged(0x30, &[&modulus[..], &[0x02, 0x03, 1, 0, 1]].concat());
    let key = tagged(0x03, &[&[0][..], &key].concat());
    let algorithm = b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
    let der = tagged(0x30, &[&algorithm[..], &key].concat());
    let encoded = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN PUBLIC KEY-----\n{encoded}\n-----END PUBLIC KEY-----\n")
}

#[test]
fn rsa_of_2048_to_8192_bits_is_accepted() {
    for bytes in [256, 512, 1024] {
        assert!(JwtKey::new(&rsa(bytes), by_path()).is_ok(), "{bytes}");
    }
}

#[rstest]
#[case::short_secret("too short")]
#[case::weak_rsa(include_str!("vectors/rsa1024.pem"))]
#[case::rsa_of_2040_bits(&rsa(255))]
#[case::rsa_of_8200_bits(&rsa(1025))]
#[case::long_ed25519(
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g\n"
)]
#[case::private(
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n"
)]
#[case::no_base64("-----BEGIN PUBLIC KEY-----\n!\n")]
#[case::of_ssh("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f")]
#[case::json("{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAECAwQFBgcICQoLDA0ODxAREhM\"}]}")]
#[case::text_in_front(
    "# the key of 2026\n-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAAECAwQFBgcICQoLDA0ODxAREhM\n"
)]
#[case::byte_order_mark("\u{feff}-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAAECAwQFBgcICQoLDA0ODxAREhM\n")]
fn an_unusable_key_of_tokens_is_refused(#[case] text: &str) {
    let error = JwtKey::new(text, by_path()).unwrap_err().to_string();
    assert!(error.contains("expected a secret"), "{error}");
}

#[test]
fn either_kind_of_token_is_enough() {
    let keys = AccessKeys {
        signing: Some(keys(&[KEY])),
        jwt: Some(JwtKey::new(SECRET, by_path()).unwrap()),
    };
    let access = Access::new(keys, Vec::new());
    let good = jwt(
        &json!({"alg": "HS256"}),
        &json!({"exp": END, "path": "/"}),
        SECRET.as_bytes(),
    );
    let (good, bad) = (format!("bearer {good}"), "Bearer x.y.z".to_owned());
    let (signed, plain) = (format!("/{}/films/one/1", token(0)), "/films/one/1");
    for (target, field, expected) in [
        (signed.as_str(), &bad, Ok(())),
        (plain, &good, Ok(())),
        (&signed.replace("one", "two"), &good, Ok(())),
        (&signed.replace("one", "two"), &bad, Err(Denial::Path)),
        (plain, &bad, Err(Denial::Malformed)),
        (plain, &"Basic dXNlcjpwYXNz".to_owned(), Err(Denial::Missing)),
    ] {
        let fields = [("authorization", field.as_str())];
        assert_eq!(
            ask(&access, target, 0, "192.0.2.1", &fields),
            expected,
            "{target}"
        );
    }
}

proptest! {
    #[test]
    fn every_change_of_a_jwt_is_refused(at in 0_usize..110, with in "[A-Za-z0-9_.-]") {
        let token = jwt(&json!({"alg": "HS256"}), &json!({"exp": END, "path": "/"}), SECRET.as_bytes());
        prop_assume!(at < token.len());
        let changed = format!("{}{with}{}", &token[..at], &token[at + 1..]);
        prop_assume!(changed != token);
        prop_assert!(bearing(SECRET, by_path(), &changed, 0).is_err());
    }
}
