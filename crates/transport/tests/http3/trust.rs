//! The servers that a client trusts, and its errors for others.

use std::net::SocketAddr;
use std::time::Duration;

use playrate_test_support::assert_contains;
use playrate_transport::{
    BindError, ConnectError, EndpointError, Identity, Server, ServerOptions, Target, Trust,
};
use rstest::rstest;

use crate::common::{fetch, ok_rig, runtime};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_pin_is_refused_with_both_pins_named() {
    let rig = ok_rig(|_| {});
    let (seen, expected) = (rig.identity.pin(), Identity::development(&[]).unwrap().pin());
    let client = rig.client(|options| options.trust = Trust::Pin(expected));
    let error = client.connect(&rig.target()).await.unwrap_err();
    let said = format!("wrong certificate: expected pin {expected}, the server's is {seen}");
    assert_eq!(error.to_string(), said);
    assert_eq!(fetch(&rig.connect().await, "/").await.unwrap(), b"ok");
}

/// A certificate that claims to be an authority's, as `openssl req -x509` makes them.
fn own_authority() -> Identity {
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let chain = vec![params.self_signed(&key).unwrap().der().clone()];
    Identity::new(chain, key.serialize_der().try_into().unwrap()).unwrap()
}

/// A CA file vouches only for the names and addresses in a listed certificate.
#[rstest]
#[case::development(Identity::development(&[]).unwrap(), true)]
#[case::own_authority(own_authority(), false)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_trusted_by_its_certificate_as_a_ca_file_or_not_verified_at_all(
    #[case] identity: Identity,
    #[case] names_address: bool,
) {
    let pem = identity.certificate_pem();
    let rig = ok_rig(|options| options.certificates = identity.into());
    let directory = tempfile::tempdir().unwrap();
    let ca_file = |name: &str, pem: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, pem).unwrap();
        Trust::CaFile(path)
    };
    let own = ca_file("own.pem", pem);
    let other = ca_file("other.pem", Identity::development(&[]).unwrap().certificate_pem());
    let address = rig.server.local_addr().unwrap();
    for (trust, name, is_trusted) in [
        (&own, "localhost", true),
        (&Trust::Insecure, "localhost", true),
        (&own, "127.0.0.1", names_address),
        (&own, "video.example", false),
        (&other, "localhost", false),
    ] {
        let client = rig.client(|options| options.trust = trust.clone());
        match client.connect(&Target::at(name, address)).await {
            Ok(connection) => {
                assert!(is_trusted, "{trust:?} {name}");
                assert_eq!(fetch(&connection, "/").await.unwrap(), b"ok");
            }
            Err(error) => {
                assert!(!is_trusted, "{trust:?} {name}: {error}");
                assert!(matches!(error, ConnectError::Untrusted { .. }), "{error}");
                assert!(error.to_string().contains("pass its CA or its pin"), "{error}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_no_certificates_are_named() {
    let rig = ok_rig(|_| {});
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("empty.pem");
    std::fs::write(&path, "nothing of the kind").unwrap();
    let client = rig.client(|options| options.trust = Trust::CaFile(path.clone()));
    let error = client.connect(&rig.target()).await.unwrap_err();
    assert!(error.to_string().contains("empty.pem"), "{error}");
    let error = Identity::from_pem_files(&path, &path).unwrap_err();
    assert!(error.to_string().contains("empty.pem"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_in_use_is_said_to_be() {
    let rig = ok_rig(|_| {});
    let address = rig.server.local_addr().unwrap();
    let error = Server::bind(address, runtime(), ServerOptions::new(rig.identity.clone())).unwrap_err();
    let is_in_use = matches!(error, EndpointError::Bind(BindError::InUse(_)));
    assert!(is_in_use, "{error}");
    assert_contains(&error.to_string(), &[&format!("{address} is in use")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_without_a_server_times_out_and_the_next_one_is_tried() {
    let rig = ok_rig(|_| {});
    // Bound but silent, so that no other program has the port.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let nowhere: SocketAddr = silent.local_addr().unwrap();
    let client = rig.client(|options| options.connect_timeout = Duration::from_millis(400));
    let mut target = Target::at("localhost", nowhere);
    let error = client.connect(&target).await.unwrap_err();
    let expected = format!("no answer from {nowhere} within 400ms");
    assert_eq!(error.to_string(), expected);
    target.addresses.push(rig.server.local_addr().unwrap());
    assert!(rig.client(|_| {}).connect(&target).await.is_ok());
}
