//! Configurations of a noq server and its client, with a certificate made for them.

use std::sync::Arc;

use noq::VarInt;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::ConnectionController;

/// Configurations of a server under `control` and of its client, both with up to four paths.
pub(crate) fn configs(control: &ConnectionController) -> (noq::ServerConfig, noq::ClientConfig) {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from(identity.cert);
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let mut server = noq::ServerConfig::with_single_cert(vec![certificate.clone()], key.into()).unwrap();
    let mut transport = noq::TransportConfig::default();
    transport.max_idle_timeout(None).max_concurrent_multipath_paths(4);
    control.install(&mut transport);
    control.request_acks(&mut transport);
    server.transport_config(Arc::new(transport));
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut client = noq::ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    let mut transport = noq::TransportConfig::default();
    transport
        .max_idle_timeout(None)
        .max_concurrent_multipath_paths(4)
        .stream_receive_window(VarInt::from_u32(1 << 24));
    client.transport_config(Arc::new(transport));
    (server, client)
}
