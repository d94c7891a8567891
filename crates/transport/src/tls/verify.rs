//! [`Trust`]: verification of a server's certificate by a client.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use quinn::ConnectionError;
use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::{ALPN, Pin, TlsError, read_certificates};
use crate::error::{ConnectError, ConnectionLost};

/// Servers that a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// Servers whose certificate was issued by an authority in this PEM file (or is itself in it).
    CaFile(PathBuf),
    /// The one server that has this public key.
    Pin(Pin),
    /// Servers whose certificate was issued by an authority that this system trusts.
    System,
    /// Any server. The log warns of it.
    Insecure,
}

/// Details of one handshake for its error message.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    wrong_pin: Arc<OnceLock<(Pin, Pin)>>,
}

impl Handshake {
    /// The reason why the handshake failed, for the user.
    pub(crate) fn error(&self, error: ConnectionError) -> ConnectError {
        if let Some(&(expected, seen)) = self.wrong_pin.get() {
            return ConnectError::WrongPin { expected, seen };
        }
        if let ConnectionError::TransportError(broken) = &error
            && broken.reason.starts_with("invalid peer certificate")
        {
            return ConnectError::Untrusted {
                reason: broken.reason.clone(),
            };
        }
        ConnectError::Lost(ConnectionLost::from(error))
    }
}

/// The client's TLS for one connection.
pub(crate) fn client_config(
    trust: &Trust,
    provider: Arc<CryptoProvider>,
) -> Result<(Arc<QuicClientConfig>, Handshake), TlsError> {
    let handshake = Handshake::default();
    let by_key = |expected| {
        Arc::new(KeyVerifier {
            expected,
            wrong_pin: Arc::clone(&handshake.wrong_pin),
            provider: Arc::clone(&provider),
        })
    };
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::CaFile(path) => {
            let mut roots = RootCertStore::empty();
            let listed = read_certificates(path)?;
            for certificate in &listed {
                let added = roots.add(certificate.clone());
                added.map_err(|error| TlsError::authorities(&error))?;
            }
            let by_authority = from_roots(roots, &provider)?;
            Arc::new(ListedVerifier { listed, by_authority })
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
            from_roots(roots, &provider)?
        }
        Trust::Pin(pin) => by_key(Some(*pin)),
        Trust::Insecure => {
            tracing::warn!(
                "the server's certificate is NOT verified: anyone on the path can pose as the server"
            );
            by_key(None)
        }
    };
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| TlsError::authorities(&error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    let config = QuicClientConfig::try_from(config).map_err(|error| TlsError::authorities(&error))?;
    Ok((Arc::new(config), handshake))
}

fn from_roots(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| TlsError::authorities(&error))
}

/// Trusts servers whose certificate an authority issued, and those whose certificate is itself listed although it calls
/// itself an authority's, as `openssl req -x509` makes them.
#[derive(Debug)]
struct ListedVerifier {
    listed: Vec<CertificateDer<'static>>,
    by_authority: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for ListedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            self.by_authority
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // An authority's certificate in a server's place. Dates are checked before, with errors of their own.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_)))
                if self.listed.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

/// Trusts the server that has the expected key, regardless of the rest of the certificate, or any server. The handshake
/// signature proves in either case that the server has the key.
#[derive(Debug)]
struct KeyVerifier {
    expected: Option<Pin>,
    wrong_pin: Arc<OnceLock<(Pin, Pin)>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for KeyVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(expected) = self.expected {
            let seen = Pin::of(end_entity)
                .map_err(|_| rustls::Error::InvalidCertificate(CertificateError::BadEncoding))?;
            if seen != expected {
                // Only the first word counts, and a handshake has only one.
                let _ = self.wrong_pin.set((expected, seen));
                return Err(rustls::Error::InvalidCertificate(
                    CertificateError::ApplicationVerificationFailure,
                ));
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
