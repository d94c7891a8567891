//! TLS: a server's [`Certificates`], each an [`Identity`], and the [`Pin`] that a client may trust one by.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use parking_lot::RwLock;
use quinn::crypto::rustls::QuicServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::{
    ClientHello, ParsedCertificate, ResolvesServerCert, ServerSessionMemoryCache, StoresServerSessions,
};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, SupportedCipherSuite};
use sha2::{Digest, Sha256};

/// The only supported application protocol: HTTP/3 (RFC 9114 §3.1).
pub(crate) const ALPN: &[u8] = b"h3";

/// Application protocol of an authority that validates the control of a name over TCP (RFC 8737 §6.2).
pub const ACME_TLS: &[u8] = b"acme-tls/1";

/// Reasons why a certificate, key or trust cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A PEM file that cannot be read.
    #[error("cannot read {what} from {}: {reason}", .path.display())]
    Read {
        /// The expected content of the file.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Text of the error.
        reason: String,
    },
    /// The private key in this file is encrypted.
    #[error("the private key in {0} is encrypted; decrypt it with `openssl pkey -in {0} -out KEY`")]
    EncryptedKey(PathBuf),
    /// The certificate and key do not belong together, or cannot be used for this reason.
    #[error("the certificate and key cannot be used: {0}")]
    Identity(String),
    /// Generating a certificate failed for this reason.
    #[error("cannot generate a certificate: {0}")]
    Generation(String),
    /// The trust anchors cannot be used for this reason.
    #[error("cannot use the certificate authorities given: {0}")]
    Authorities(String),
    /// The system has no certificate authorities.
    #[error("this system has no certificate authorities to trust; give a CA file or a pin")]
    NoSystemAuthorities,
    /// A cipher suite whose number is not registered, such as one without encryption, on a real network.
    #[error("cipher suite {0:#06x} is not registered; sockets of a real network need ring's suites")]
    UnregisteredSuite(u16),
    /// This text is not a pin.
    #[error("`{0}` is not a pin: expected the base64 SHA-256 of a public key, 44 characters ending in `=`")]
    Pin(String),
}

/// ring's cryptography with the cipher suites of rustls' defaults.
pub(crate) fn ring_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The error of an endpoint on a real network if `provider` has an unregistered cipher suite.
pub(crate) fn require_registered_suites(provider: &CryptoProvider) -> Result<(), TlsError> {
    let mut suites = provider.cipher_suites.iter().map(SupportedCipherSuite::suite);
    match suites.find(|suite| matches!(suite, CipherSuite::Unknown(_))) {
        Some(suite) => Err(TlsError::UnregisteredSuite(suite.into())),
        None => Ok(()),
    }
}

/// SHA-256 of a certificate's public key (the DER of its `SubjectPublicKeyInfo`). Its text form is base64, as in RFC
/// 7469 §2.4 and Chromium's `--ignore-certificate-errors-spki-list`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pin([u8; 32]);

impl Pin {
    /// Pin of a certificate, or an error if it cannot be parsed.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, TlsError> {
        let parsed = ParsedCertificate::try_from(certificate)
            .map_err(|error| TlsError::Identity(error.to_string()))?;
        Ok(Self(
            Sha256::digest(parsed.subject_public_key_info().as_ref()).into(),
        ))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&BASE64.encode(self.0))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({self})")
    }
}

impl FromStr for Pin {
    type Err = TlsError;

    fn from_str(text: &str) -> Result<Self, TlsError> {
        BASE64
            .decode(text.trim())
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| TlsError::Pin(text.to_owned()))
    }
}

/// A server's certificate chain and private key.
#[derive(Clone)]
pub struct Identity {
    certified: Arc<CertifiedKey>,
    pin: Pin,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("pin", &self.pin)
            .finish_non_exhaustive()
    }
}

/// Validity of a development certificate. Browsers accept at most 14 days if a certificate is trusted only by its hash.
const DEVELOPMENT_VALIDITY: Duration = Duration::from_secs(13 * 24 * 3600);

impl Identity {
    /// Reads a certificate chain, leaf first, and its private key from one PEM text.
    ///
    /// # Errors
    /// If one of them is missing or invalid, or the key is of another certificate.
    pub fn from_pem(text: &str) -> Result<Self, TlsError> {
        let invalid = |error: pem::Error| TlsError::Identity(error.to_string());
        let chain: Result<_, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(invalid)?;
        Self::new(chain.map_err(invalid)?, key)
    }

    /// Reads a PEM certificate chain, leaf first, and its PEM private key.
    pub fn from_pem_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = read_certificates(certificate)?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| {
            // `BEGIN ENCRYPTED PRIVATE KEY` (RFC 7468 §11), or the field `Proc-Type: 4,ENCRYPTED` of older files.
            let text = std::fs::read(key).unwrap_or_default();
            if text.windows(9).any(|word| word == b"ENCRYPTED") {
                return TlsError::EncryptedKey(key.to_owned());
            }
            TlsError::Read {
                what: "a private key",
                path: key.to_owned(),
                reason: error.to_string(),
            }
        })?;
        Self::new(chain, private)
    }

    /// An identity from a certificate chain, leaf first, and its key. Fails if the two do not belong together.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, TlsError> {
        let leaf = chain.first().ok_or_else(|| {
            TlsError::Identity(
                "the chain is empty: at least the server's own certificate is needed".to_owned(),
            )
        })?;
        let pin = Pin::of(leaf)?;
        let certified = CertifiedKey::from_der(chain, key, &ring_provider())
            .map_err(|error| TlsError::Identity(error.to_string()))?;
        Ok(Self {
            certified: Arc::new(certified),
            pin,
        })
    }

    /// Creates a self-signed certificate for `localhost`, `127.0.0.1`, `::1` and `names`. It is valid from yesterday
    /// for 13 days. Clients trust it by its [pin](Self::pin), or by its [certificate](Self::certificate_pem) as a CA.
    pub fn development(names: &[String]) -> Result<Self, TlsError> {
        let mut all: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        all.extend_from_slice(names);
        let mut params = rcgen::CertificateParams::new(all).map_err(|error| generation_error(&error))?;
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "playrate development certificate");
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        #[expect(
            clippy::disallowed_methods,
            reason = "a certificate is valid on the wall clock, in virtual time too"
        )]
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + now.saturating_sub(Duration::from_secs(24 * 3600));
        params.not_after = params.not_before + DEVELOPMENT_VALIDITY;
        let (chain, key) = self_signed(&params)?;
        Self::new(chain, key)
    }

    /// The pin by which clients can trust this identity.
    pub fn pin(&self) -> Pin {
        self.pin
    }

    /// Returns true if the certificate is for `name`, a domain or an IP address.
    pub fn is_for(&self, name: &str) -> bool {
        let leaf = self.certified.end_entity_cert();
        let leaf = leaf.and_then(ParsedCertificate::try_from);
        let name = ServerName::try_from(name);
        leaf.is_ok_and(|leaf| name.is_ok_and(|name| verify_server_name(&leaf, &name).is_ok()))
    }

    /// The certificate chain, leaf first; never empty.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.certified.cert
    }

    /// The leaf certificate as PEM text.
    pub fn certificate_pem(&self) -> String {
        let text = BASE64.encode(self.chain().first().map_or(&[][..], AsRef::as_ref));
        let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
        // Base64 is ASCII, so every byte is a character.
        for line in text.as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END CERTIFICATE-----\n");
        pem
    }
}

/// The certificates of a server, which its listeners share. Clones are the same certificates: a change applies to all
/// connections that begin afterwards, over UDP and TCP.
#[derive(Clone, Debug)]
pub struct Certificates {
    identities: Arc<RwLock<Vec<Identity>>>,
    /// Answers to the validations in progress (RFC 8737 §3), by name.
    challenges: Arc<RwLock<HashMap<String, Arc<CertifiedKey>>>>,
    /// Number of changes of the identities.
    changes: Arc<AtomicU64>,
}

impl From<Identity> for Certificates {
    fn from(identity: Identity) -> Self {
        Self::new(vec![identity])
    }
}

impl Certificates {
    /// A client gets the first certificate that is for the name that it requests (SNI), or else the first of all. With
    /// no certificate, every handshake fails.
    pub fn new(identities: Vec<Identity>) -> Self {
        Self {
            identities: Arc::new(identities.into()),
            challenges: Arc::default(),
            changes: Arc::default(),
        }
    }

    /// Uses `identities` for clients that connect from now on. Open connections are not affected. Clients cannot resume
    /// earlier sessions, which would go on without the new certificate (RFC 8446 §4.6.1). Returns false and changes
    /// nothing if the certificates are those in use.
    pub fn set(&self, identities: Vec<Identity>) -> bool {
        let mut present = self.identities.write();
        let chains = present.iter().map(Identity::chain);
        let is_new = chains.ne(identities.iter().map(Identity::chain));
        if is_new {
            *present = identities;
            self.changes.fetch_add(1, Relaxed);
        }
        is_new
    }

    /// The certificates that are in use at this time.
    pub fn identities(&self) -> Vec<Identity> {
        self.identities.read().clone()
    }

    /// Returns true if a certificate is for `name`, a domain or an IP address.
    pub fn are_for(&self, name: &str) -> bool {
        let identities = self.identities.read();
        identities.iter().any(|identity| identity.is_for(name))
    }

    /// Answers an authority that validates the control of `name` over TCP with `digest`, the SHA-256 of the key
    /// authorization (RFC 8737 §3), until [`end_challenges`](Self::end_challenges).
    pub fn answer_challenge(&self, name: &str, digest: &[u8; 32]) -> Result<(), TlsError> {
        let mut params =
            rcgen::CertificateParams::new([name.to_owned()]).map_err(|error| generation_error(&error))?;
        params.custom_extensions = vec![rcgen::CustomExtension::new_acme_identifier(digest)];
        let (chain, key) = self_signed(&params)?;
        // Not `from_der`, which refuses the extension.
        let key = ring_provider().key_provider.load_private_key(key);
        let key = key.map_err(|error| TlsError::Identity(error.to_string()))?;
        let answer = Arc::new(CertifiedKey::new(chain, key));
        self.challenges.write().insert(name.to_ascii_lowercase(), answer);
        Ok(())
    }

    /// Stops answering validations. Call it when an order has ended.
    pub fn end_challenges(&self) {
        self.challenges.write().clear();
    }

    pub(crate) fn quic_config(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<QuicServerConfig>, TlsError> {
        QuicServerConfig::try_from(self.config(provider, &[&rustls::version::TLS13], &[ALPN])?)
            .map(Arc::new)
            .map_err(|error| TlsError::Identity(error.to_string()))
    }

    /// TLS 1.3 and 1.2 for a server on TCP with these certificates. It speaks the first of `protocols` (ALPN, RFC 7301)
    /// that the client also supports. With [`ACME_TLS`], the connection must be closed after the handshake.
    ///
    /// # Errors
    /// If ring's cryptography does not support these versions.
    pub fn tcp_config(&self, protocols: &[&[u8]]) -> Result<Arc<rustls::ServerConfig>, TlsError> {
        self.config(ring_provider(), rustls::ALL_VERSIONS, protocols)
            .map(Arc::new)
    }

    fn config(
        &self,
        provider: Arc<CryptoProvider>,
        versions: &[&'static rustls::SupportedProtocolVersion],
        protocols: &[&[u8]],
    ) -> Result<rustls::ServerConfig, TlsError> {
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(|error| TlsError::Identity(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.session_storage = Arc::new(Sessions {
            kept: ServerSessionMemoryCache::new(MAX_SESSIONS),
            changes: Arc::clone(&self.changes),
        });
        Ok(config)
    }
}

/// Maximum number of sessions that clients of one endpoint may resume: the default of rustls.
const MAX_SESSIONS: usize = 256;

/// Sessions that clients may resume until the certificates change.
#[derive(Debug)]
struct Sessions {
    kept: Arc<ServerSessionMemoryCache>,
    changes: Arc<AtomicU64>,
}

impl Sessions {
    /// A key that is unknown after the next change.
    fn key(&self, key: &[u8]) -> Vec<u8> {
        [key, &self.changes.load(Relaxed).to_be_bytes()].concat()
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.kept.put(self.key(&key), value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kept.get(&self.key(key))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kept.take(&self.key(key))
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name();
        // An authority offers only this protocol.
        if hello.alpn().is_some_and(|protocols| protocols.eq([ACME_TLS])) {
            return self.challenges.read().get(name?).cloned();
        }
        let identities = self.identities.read();
        let named = name.and_then(|name| identities.iter().find(|identity| identity.is_for(name)));
        let identity = named.or(identities.first())?;
        Some(Arc::clone(&identity.certified))
    }
}

fn generation_error(error: &rcgen::Error) -> TlsError {
    TlsError::Generation(error.to_string())
}

/// A certificate of `params`, and its new key, which signed it.
fn self_signed(
    params: &rcgen::CertificateParams,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let key = rcgen::KeyPair::generate().map_err(|error| generation_error(&error))?;
    let certificate = params
        .self_signed(&key)
        .map_err(|error| generation_error(&error))?;
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    Ok((vec![certificate.der().clone()], key.into()))
}

/// Reads every certificate of a PEM file; at least one.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |reason: String| TlsError::Read {
        what: "certificates",
        path: path.to_owned(),
        reason,
    };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(error.to_string()))?;
    if certificates.is_empty() {
        return Err(failed(
            "the file has no PEM certificate: expected at least one `BEGIN CERTIFICATE`".to_owned(),
        ));
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests;
