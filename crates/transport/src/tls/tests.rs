use super::*;

#[test]
fn a_development_identity_reads_back_from_its_pem_and_has_the_same_pin() {
    let identity = Identity::development(&["video.example".to_owned()]).unwrap();
    let certificate = CertificateDer::from_pem_slice(identity.certificate_pem().as_bytes()).unwrap();
    assert_eq!(Pin::of(&certificate).unwrap(), identity.pin());
    let text = identity.pin().to_string();
    assert_eq!((text.len(), text.parse::<Pin>().unwrap()), (44, identity.pin()));
}

#[test]
fn two_development_identities_differ() {
    let pin = || Identity::development(&[]).unwrap().pin();
    assert_ne!(pin(), pin());
}

/// A certificate for `names` and its key, as PEM.
fn made(names: &[&str]) -> (String, String) {
    let made =
        rcgen::generate_simple_self_signed(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let made = made.unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// Reads an identity from files with these texts.
fn read(certificate: &str, key: &str) -> Result<Identity, TlsError> {
    let directory = tempfile::tempdir().unwrap();
    let [cert, private] = ["cert.pem", "key.pem"].map(|name| directory.path().join(name));
    std::fs::write(&cert, certificate).unwrap();
    std::fs::write(&private, key).unwrap();
    Identity::from_pem_files(&cert, &private)
}

#[test]
fn a_key_that_does_not_belong_to_the_certificate_is_refused() {
    let ((certificate, _), (_, key)) = (made(&["a.example"]), made(&["a.example"]));
    let error = read(&certificate, &key).unwrap_err();
    assert!(matches!(error, TlsError::Identity { .. }), "{error}");
}

#[rstest::rstest]
#[case("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n")]
#[case("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIB\n-----END EC PRIVATE KEY-----\n")]
fn an_encrypted_key_is_named_with_the_command_that_decrypts_it(#[case] key: &str) {
    let error = read(&made(&["a.example"]).0, key).unwrap_err().to_string();
    assert!(
        error.contains("key.pem is encrypted") && error.contains("openssl pkey -in"),
        "{error}"
    );
}

#[rstest::rstest]
#[case(Some("a.example"), 0)]
#[case(Some("www.b.example"), 1)]
#[case(Some("WWW.b.Example"), 1)]
#[case(Some("c.example"), 2)]
#[case(Some("films.b.example"), 1)]
#[case(Some("b.example"), 0)]
#[case(Some("one.two.b.example"), 0)]
#[case(Some("unknown.example"), 0)]
#[case(None, 0)]
fn the_first_certificate_for_the_requested_name_is_used_or_else_the_first_of_all(
    #[case] name: Option<&str>,
    #[case] expected: usize,
) {
    let names = [
        &["A.example"][..],
        &["*.b.example"],
        &["c.example", "films.b.example"],
    ];
    let identities = names
        .map(made)
        .map(|(certificate, key)| read(&certificate, &key).unwrap());
    let certificates = Certificates::new(identities.to_vec());
    let server = certificates.tcp_config(&[b"h2"]).unwrap();
    let flight = flight(server, name, b"h2").unwrap();
    let position = identities
        .iter()
        .position(|identity| contains(&flight, &identity.chain()[0]));
    assert_eq!(position, Some(expected));
}

#[test]
fn only_a_validation_in_progress_is_answered_and_other_clients_never_see_its_certificate() {
    let (certificate, key) = made(&["a.example"]);
    let identity = read(&certificate, &key).unwrap();
    let certificates = Certificates::from(identity.clone());
    let server = certificates.tcp_config(&[b"h2", ACME_TLS]).unwrap();
    let validate = |name| flight(Arc::clone(&server), Some(name), ACME_TLS);
    assert_eq!(validate("a.example"), None);
    let digest = [7; 32];
    certificates.answer_challenge("A.example", &digest).unwrap();
    let answer = validate("a.example").unwrap();
    // 1.3.6.1.5.5.7.1.31, critical, with an OCTET STRING in an OCTET STRING (RFC 8737 §3).
    let extension = [
        &[
            0x06, 8, 0x2b, 6, 1, 5, 5, 7, 1, 31, 0x01, 1, 0xff, 0x04, 34, 0x04, 32,
        ][..],
        &digest,
    ];
    assert!(contains(&answer, &extension.concat()) && !contains(&answer, &identity.chain()[0]));
    assert_eq!(validate("b.example"), None);
    let usual = flight(Arc::clone(&server), Some("a.example"), b"h2").unwrap();
    assert!(contains(&usual, &identity.chain()[0]));
    certificates.end_challenges();
    assert_eq!(validate("a.example"), None);
}

#[rstest::rstest]
#[case::tls_1_2(&rustls::version::TLS12)]
#[case::tls_1_3(&rustls::version::TLS13)]
fn a_session_is_resumed_until_the_certificates_change(
    #[case] version: &'static rustls::SupportedProtocolVersion,
) {
    let identities = [(); 2].map(|()| Identity::development(&[]).unwrap());
    let mut roots = rustls::RootCertStore::empty();
    for identity in &identities {
        roots.add(identity.chain()[0].clone()).unwrap();
    }
    let client = rustls::ClientConfig::builder_with_provider(ring_provider())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let [first, second] = identities;
    let certificates = Certificates::from(first.clone());
    let (client, server) = (Arc::new(client), certificates.tcp_config(&[]).unwrap());
    let is_resumed = || handshake(&client, &server) == rustls::HandshakeKind::Resumed;
    assert_eq!([(); 2].map(|()| is_resumed()), [false, true]);
    assert!(!certificates.set(vec![first]));
    assert_eq!([(); 2].map(|()| is_resumed()), [true, true]);
    assert!(certificates.set(vec![second]));
    assert_eq!([(); 2].map(|()| is_resumed()), [false, true]);
}

/// Connects a client of `localhost`, and transfers everything that both sides send.
fn handshake(
    client: &Arc<rustls::ClientConfig>,
    server: &Arc<rustls::ServerConfig>,
) -> rustls::HandshakeKind {
    let name = "localhost".try_into().unwrap();
    let client = rustls::ClientConnection::new(Arc::clone(client), name).unwrap();
    let server = rustls::ServerConnection::new(Arc::clone(server)).unwrap();
    let (mut from, mut to) = (rustls::Connection::from(client), rustls::Connection::from(server));
    while from.wants_write() || to.wants_write() {
        let mut bytes = Vec::new();
        while from.wants_write() {
            from.write_tls(&mut bytes).unwrap();
        }
        to.read_tls(&mut &bytes[..]).unwrap();
        to.process_new_packets().unwrap();
        std::mem::swap(&mut from, &mut to);
    }
    from.handshake_kind().unwrap()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The first bytes of a server, with its certificate, to a client that requests `name` with `protocol` alone; in
/// TLS 1.2, where they are not encrypted.
fn flight(server: Arc<rustls::ServerConfig>, name: Option<&str>, protocol: &[u8]) -> Option<Vec<u8>> {
    let mut client = rustls::ClientConfig::builder_with_provider(ring_provider())
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    client.alpn_protocols = vec![protocol.to_vec()];
    client.enable_sni = name.is_some();
    let name = name.unwrap_or("a.example").to_owned().try_into().unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(client), name).unwrap();
    let mut server = rustls::ServerConnection::new(server).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    server.read_tls(&mut &bytes[..]).unwrap();
    server.process_new_packets().ok()?;
    bytes.clear();
    server.write_tls(&mut bytes).unwrap();
    Some(bytes)
}

#[rstest::rstest]
#[case("")]
#[case("abc=")]
#[case("3q2+7w==")]
#[case("not base64 at all, though rather long indeed")]
fn a_malformed_pin_is_refused_and_quoted(#[case] text: &str) {
    let error = text.parse::<Pin>().unwrap_err();
    assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
}

#[test]
fn a_missing_certificate_file_is_named() {
    let error =
        Identity::from_pem_files(Path::new("/no/such/cert.pem"), Path::new("/no/such/key.pem")).unwrap_err();
    assert!(error.to_string().contains("/no/such/cert.pem"), "{error}");
}
