//! A server's identity derived from a seed, so that the handshake has the same length in every run.

use playrate_netsim::Seed;
use playrate_transport::{Identity, Pin};
use quinn::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};

use super::SimError;
use super::ends::SERVER_NAME;

/// What stands before the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410 §7).
const PKCS8_ED25519: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// The identity of a simulated server, and its pin.
///
/// A certificate with an ECDSA key, as a server makes for itself, has signatures of 70 to 72 bytes; an Ed25519 key made
/// from the seed gives the same bytes every time. Reproducible, therefore not secret: for simulations only.
///
/// # Errors
/// None that a seed can cause.
pub fn identity(seed: Seed) -> Result<(Identity, Pin), SimError> {
    let failed = |error: &dyn ToString| SimError::setup("the server's certificate", &error.to_string());
    let mut der = PKCS8_ED25519.to_vec();
    der.extend_from_slice(&seed.derive("identity"));
    let der = PrivatePkcs8KeyDer::from(der);
    let key = KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519).map_err(|error| failed(&error))?;
    let certificate = CertificateParams::new(vec![SERVER_NAME.to_owned()])
        .and_then(|params| params.self_signed(&key))
        .map_err(|error| failed(&error))?;
    let identity = Identity::new(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(der))
        .map_err(|error| failed(&error))?;
    let pin = identity.pin();
    Ok((identity, pin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_identity_every_time_and_another_seed_another() {
        let pin = |seed| identity(Seed::new(seed)).unwrap().1;
        assert_eq!(pin(1), pin(1));
        assert_ne!(pin(1), pin(2));
    }
}
