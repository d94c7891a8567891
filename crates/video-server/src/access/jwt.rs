//! Bearer tokens: JSON Web Tokens (RFC 7519), verified by ring. The key alone determines the algorithm.

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use ring::{hmac, signature};
use serde_json::{Map, Value};

use super::{AccessError, Denial, Scope};

/// Allowed difference between the clocks of issuer and server, in seconds.
const LEEWAY: f64 = 60.0;
/// Minimum length of a secret in bytes (RFC 7518 §3.2).
const MIN_SECRET: usize = 32;
/// First line of a public key in PEM (RFC 7468 §13).
const PEM: &str = "-----BEGIN PUBLIC KEY-----";
/// Public key (RFC 5280 §4.1) of Ed25519 (RFC 8410), up to the bytes that ring takes.
const ED25519: &[u8] = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";
/// Public key on P-256 (RFC 5480), up to the bytes that ring takes.
const P256: &[u8] = b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\
    \x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00";
/// The algorithm in a public key of RSA (RFC 3279 §2.3.1), with the beginning of a long bit string.
const RSA: &[u8] = b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00\x03\x82";

/// Length in bytes of a modulus of 2,048 to 8,192 bits, including its sign byte; ring accepts these.
const MODULUS: core::ops::RangeInclusive<usize> = 257..=1025;

/// Claims that a token must have.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "a server sets all of them")]
pub struct Claims {
    /// Audience (`aud`) that a token must name, if any.
    pub audience: Option<String>,
    /// Issuer (`iss`) that a token must name, if any.
    pub issuer: Option<String>,
    /// Name of the claim with a [`Scope`] or several; without it, a token opens everything.
    pub path: Option<String>,
}

/// Key of bearer tokens, and the claims that they must have.
#[derive(Debug)]
pub struct JwtKey {
    key: DecodingKey,
    validation: Validation,
    path: Option<String>,
}

impl JwtKey {
    /// Reads a public key in PEM (RSA of at least 2,048 bits, P-256, Ed25519), or a secret for HS256.
    ///
    /// # Errors
    /// The key is of another kind or too short.
    pub fn new(text: &str, claims: Claims) -> Result<Self, AccessError> {
        let (algorithm, key) = read(text)?;
        let key = match algorithm {
            Algorithm::HS256 => DecodingKey::from_secret(&key),
            Algorithm::RS256 => DecodingKey::from_rsa_der(&key),
            Algorithm::ES256 => DecodingKey::from_ec_der(&key),
            _ => DecodingKey::from_ed_der(&key),
        };
        let mut validation = Validation::new(algorithm);
        // Times are compared with the server's own clock.
        validation.validate_exp = false;
        let mut required = vec!["exp"];
        if let Some(audience) = claims.audience {
            validation.set_audience(&[audience]);
            required.push("aud");
        }
        if let Some(issuer) = claims.issuer {
            validation.set_issuer(&[issuer]);
            required.push("iss");
        }
        validation.set_required_spec_claims(&required);
        // Fails if the program has chosen another provider before, which is as good.
        let _ = PROVIDER.install_default();
        Ok(Self {
            key,
            validation,
            path: claims.path,
        })
    }

    /// Returns true if `text` is a public key, which need not be kept secret.
    pub fn is_public(text: &str) -> bool {
        text.trim_start().starts_with(PEM)
    }

    /// Checks a token for a request at the Unix time `now`, in seconds.
    pub(super) fn check(&self, token: &str, path: &str, now: u64) -> Result<(), Denial> {
        let decoded = jsonwebtoken::decode::<Map<String, Value>>(token, &self.key, &self.validation);
        let decoded = decoded.map_err(|error| match error.kind() {
            ErrorKind::InvalidSignature => Denial::Signature,
            ErrorKind::InvalidAlgorithm => Denial::Key,
            ErrorKind::InvalidAudience | ErrorKind::InvalidIssuer | ErrorKind::MissingRequiredClaim(_) => {
                Denial::Claims
            }
            _ => Denial::Malformed,
        })?;
        // Extensions that a recipient must understand (RFC 7515 §4.1.11): this one knows none.
        if decoded.header.crit.is_some() {
            return Err(Denial::Malformed);
        }
        let (claims, now) = (decoded.claims, now as f64);
        // The crate refuses an unexpected audience only if it is a string or an array.
        if self.validation.aud.is_none() && claims.contains_key("aud") {
            return Err(Denial::Claims);
        }
        let time = |name| claims.get(name).map(|time| time.as_f64().ok_or(Denial::Claims));
        if time("exp").ok_or(Denial::Claims)?? + LEEWAY <= now {
            return Err(Denial::Expired);
        }
        if time("nbf").transpose()?.is_some_and(|start| start > now + LEEWAY) {
            return Err(Denial::Early);
        }
        let Some(name) = &self.path else { return Ok(()) };
        let scopes = claims.get(name).ok_or(Denial::Claims)?;
        let scopes = scopes
            .as_array()
            .map_or(std::slice::from_ref(scopes), Vec::as_slice);
        let mut scopes = scopes
            .iter()
            .filter_map(|scope| Scope::from_str(scope.as_str()?).ok());
        let is_open = scopes.any(|scope| scope.contains(path));
        is_open.then_some(()).ok_or(Denial::Path)
    }
}

/// The algorithm of a key, and the key as ring takes it.
fn read(text: &str) -> Result<(Algorithm, Vec<u8>), AccessError> {
    let text = text.trim();
    // Public keys in other forms, which everybody has, must not become secrets.
    let is_line = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let is_key = text.contains("-----")
        || ["{", "[", "ssh-", "ecdsa-"]
            .iter()
            .any(|mark| text.starts_with(mark));
    if is_line && !is_key && text.len() >= MIN_SECRET {
        return Ok((Algorithm::HS256, text.into()));
    }
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with("-----"));
    let der = STANDARD.decode(lines.collect::<String>()).unwrap_or_default();
    let of_length = |algorithm, prefix, length| {
        let key = der
            .strip_prefix(prefix)
            .filter(|key: &&[u8]| key.len() == length)?;
        Some((algorithm, key.to_vec()))
    };
    let rsa = || {
        let (length, rest) = der.strip_prefix(b"\x30\x82")?.split_first_chunk()?;
        // Before the key are its own length and the number of unused bits.
        let key = rest.strip_prefix(RSA)?.get(3..)?;
        let modulus = key.get(4..)?.strip_prefix(b"\x02\x82")?.first_chunk()?;
        let [length, modulus] = [length, modulus].map(|length| usize::from(u16::from_be_bytes(*length)));
        let is_usable = length == rest.len() && MODULUS.contains(&modulus);
        is_usable.then(|| (Algorithm::RS256, key.to_vec()))
    };
    let found = of_length(Algorithm::EdDSA, ED25519, 32)
        .or_else(|| of_length(Algorithm::ES256, P256, 65))
        .or_else(rsa)
        .filter(|_| JwtKey::is_public(text));
    found.ok_or_else(|| {
        AccessError::new(format!(
            "expected a secret of at least {MIN_SECRET} characters, as `openssl rand -hex 32` makes, or a public key \
             in PEM (BEGIN PUBLIC KEY): RSA with at least 2,048 bits, P-256 or Ed25519"
        ))
    })
}

/// Verification by ring. This server signs nothing.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| {
        Ok(Box::new(RingVerifier {
            algorithm: *algorithm,
            key: key.try_get_as_bytes()?.to_vec(),
        }))
    },
    key_utils: KeyUtils::new_unimplemented(),
};

struct RingVerifier {
    algorithm: Algorithm,
    key: Vec<u8>,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        let algorithm: &dyn signature::VerificationAlgorithm = match self.algorithm {
            Algorithm::HS256 => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, &self.key);
                return hmac::verify(&key, message, signature).map_err(|_| SignatureError::new());
            }
            Algorithm::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::ES256 => &signature::ECDSA_P256_SHA256_FIXED,
            Algorithm::EdDSA => &signature::ED25519,
            _ => return Err(SignatureError::new()),
        };
        let key = signature::UnparsedPublicKey::new(algorithm, &self.key);
        key.verify(message, signature).map_err(|_| SignatureError::new())
    }
}
