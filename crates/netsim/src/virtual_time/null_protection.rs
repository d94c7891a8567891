//! A cipher suite for simulated sessions: TLS as usual, but QUIC packets are not encrypted.
//!
//! Packets have the same lengths as under the real suite, so a run has the same packets at the same times. A tag
//! consists of the packet number and bytes of the key. So stateless resets, and packets with another key or a wrong
//! packet number, fail to decrypt, as under the real suite. Damage to a packet's contents is not detected.

use std::sync::{Arc, OnceLock};

use rustls::crypto::CryptoProvider;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::crypto::ring;
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{CipherSuite, CipherSuiteCommon, Error, SupportedCipherSuite, Tls13CipherSuite};

/// Number of the suite, in the range for private use (IANA, TLS Cipher Suites). No peer outside a simulation knows it.
const PRIVATE_USE: CipherSuite = CipherSuite::Unknown(0xFF51);

/// Bytes of a tag.
const TAG: usize = 16;

/// ring's provider, with the suite without protection in front of its own.
pub(super) fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    if let Some(suite) = suite(&provider) {
        provider
            .cipher_suites
            .insert(0, SupportedCipherSuite::Tls13(suite));
    }
    Arc::new(provider)
}

/// The suite that `provider` prefers for QUIC, without its protection.
fn suite(provider: &CryptoProvider) -> Option<&'static Tls13CipherSuite> {
    static SUITE: OnceLock<Tls13CipherSuite> = OnceLock::new();
    let mut suites = provider
        .cipher_suites
        .iter()
        .filter_map(SupportedCipherSuite::tls13);
    let (real, quic) = suites.find_map(|suite| Some((suite, suite.quic?)))?;
    Some(SUITE.get_or_init(|| {
        static ALGORITHM: OnceLock<NullAlgorithm> = OnceLock::new();
        Tls13CipherSuite {
            common: CipherSuiteCommon {
                suite: PRIVATE_USE,
                hash_provider: real.common.hash_provider,
                confidentiality_limit: real.common.confidentiality_limit,
            },
            hkdf_provider: real.hkdf_provider,
            aead_alg: real.aead_alg,
            quic: Some(ALGORITHM.get_or_init(|| NullAlgorithm(quic))),
        }
    }))
}

/// Makes keys with the lengths and limits of the algorithm's, but without protection.
struct NullAlgorithm(&'static dyn Algorithm);

impl Algorithm for NullAlgorithm {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        let mark = key.as_ref().first_chunk().copied().unwrap_or_default();
        Box::new(NullPacketKey {
            mark: u128::from_be_bytes(mark),
            real: self.0.packet_key(key, iv),
        })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        Box::new(NullHeaderKey(self.0.header_protection_key(key)))
    }

    fn aead_key_len(&self) -> usize {
        self.0.aead_key_len()
    }
}

struct NullPacketKey {
    /// Bytes of the key that identify its packets.
    mark: u128,
    /// The real key, which has the usage limits.
    real: Box<dyn PacketKey>,
}

impl NullPacketKey {
    /// Tag of a packet; without multipath, the path is 0.
    fn tag(&self, path: u32, packet_number: u64) -> [u8; TAG] {
        let number = u128::from(path) << 64 | u128::from(packet_number);
        (self.mark ^ number).to_be_bytes()
    }
}

impl PacketKey for NullPacketKey {
    fn encrypt_in_place(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        self.encrypt_in_place_for_path(0, number, header, payload)
    }

    fn encrypt_in_place_for_path(
        &self,
        path: u32,
        number: u64,
        _: &[u8],
        _: &mut [u8],
    ) -> Result<Tag, Error> {
        Ok(Tag::from(&self.tag(path, number)[..]))
    }

    fn decrypt_in_place<'a>(
        &self,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.decrypt_in_place_for_path(0, number, header, payload)
    }

    fn decrypt_in_place_for_path<'a>(
        &self,
        path: u32,
        number: u64,
        _: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        match payload.split_last_chunk::<TAG>() {
            Some((plain, tag)) if *tag == self.tag(path, number) => Ok(plain),
            _ => Err(Error::DecryptError),
        }
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        self.real.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.real.integrity_limit()
    }
}

struct NullHeaderKey(Box<dyn HeaderProtectionKey>);

impl HeaderProtectionKey for NullHeaderKey {
    fn encrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Ok(())
    }

    fn decrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Ok(())
    }

    fn sample_len(&self) -> usize {
        self.0.sample_len()
    }
}
