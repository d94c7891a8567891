//! [`Trust`]: verification of a server's certificate by a client.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::tls::{ALPN, Pin, TlsError, read_certificates};

/// Servers that a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// Servers whose certificate was issued by an authority in this PEM file (or is itself in it).
    CaFile(PathBuf),
    /// The server with this public key only.
    Pin(Pin),
    /// Servers whose certificate was issued by an authority that this system trusts.
    System,
    /// Any server; a warning is logged.
    Insecure,
}

/// The expected pin and the server's, after a handshake has failed because they differ.
pub(crate) type WrongPin = Arc<OnceLock<(Pin, Pin)>>;

/// The client's TLS for one connection.
pub(crate) fn client_config(
    trust: &Trust,
    provider: Arc<CryptoProvider>,
) -> Result<(Arc<QuicClientConfig>, WrongPin), TlsError> {
    let wrong_pin = WrongPin::default();
    let policy = match trust {
        Trust::CaFile(path) => {
            let mut roots = RootCertStore::empty();
            let listed = read_certificates(path)?;
            for certificate in &listed {
                roots
                    .add(certificate.clone())
                    .map_err(|error| TlsError::Authorities(error.to_string()))?;
            }
            Policy::authorities(roots, listed, &provider)?
        }
        Trust::System => {
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "a certificate authority of this system cannot be read");
            }
            let mut roots = RootCertStore::empty();
            let (added, _unparsable) = roots.add_parsable_certificates(found.certs);
            if added == 0 {
                return Err(TlsError::NoSystemAuthorities);
            }
            Policy::authorities(roots, Vec::new(), &provider)?
        }
        Trust::Pin(expected) => Policy::Pin {
            expected: *expected,
            wrong_pin: Arc::clone(&wrong_pin),
        },
        Trust::Insecure => {
            tracing::warn!(
                "the server's certificate is NOT verified: anyone on the path can pose as the server"
            );
            Policy::Any
        }
    };
    let verifier = Verifier {
        policy,
        algorithms: provider.signature_verification_algorithms,
    };
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| TlsError::Authorities(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    let config =
        QuicClientConfig::try_from(config).map_err(|error| TlsError::Authorities(error.to_string()))?;
    Ok((Arc::new(config), wrong_pin))
}

/// Servers that a [`Verifier`] accepts.
#[derive(Debug)]
enum Policy {
    /// Servers whose certificate an authority issued, and those whose certificate is itself `listed` although it claims
    /// to be an authority's, as `openssl req -x509` makes them.
    Authorities {
        verifier: Arc<WebPkiServerVerifier>,
        listed: Vec<CertificateDer<'static>>,
    },
    /// The server with the expected key, regardless of the rest of its certificate.
    Pin { expected: Pin, wrong_pin: WrongPin },
    /// Any server, regardless of its certificate.
    Any,
}

impl Policy {
    fn authorities(
        roots: RootCertStore,
        listed: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|error| TlsError::Authorities(error.to_string()))?;
        Ok(Self::Authorities { verifier, listed })
    }
}

/// Verifies a server's certificate. The handshake signature always proves that the server has the key.
#[derive(Debug)]
struct Verifier {
    policy: Policy,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use rustls::Error::InvalidCertificate;
        match &self.policy {
            Policy::Authorities { verifier, listed } => {
                let verified =
                    verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
                // An authority's certificate, used as a server's. Dates were checked before, with separate errors.
                if !matches!(verified, Err(InvalidCertificate(CertificateError::Other(_))))
                    || !listed.contains(end_entity)
                {
                    return verified;
                }
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
            Policy::Pin { expected, wrong_pin } => {
                let seen =
                    Pin::of(end_entity).map_err(|_| InvalidCertificate(CertificateError::BadEncoding))?;
                if seen != *expected {
                    // Only the first one counts, and a handshake has only one.
                    let _ = wrong_pin.set((*expected, seen));
                    return Err(InvalidCertificate(
                        CertificateError::ApplicationVerificationFailure,
                    ));
                }
            }
            Policy::Any => {}
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
