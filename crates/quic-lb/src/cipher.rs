//! [`BlockCipher`]: the encryption of a server ID and a nonce.

use aes::Aes128;
use aes::cipher::{BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};

/// Bytes of a block of AES.
const AES_BLOCK: usize = 16;

/// Permutation of blocks of 5 to 19 bytes: AES-128 for 16 bytes (§5.4.1), and four passes of a Feistel network with
/// AES-128 for others (§5.4.2).
///
/// QUIC-LB encrypts a server ID and a nonce with it. Equal inputs give equal outputs, so it only hides blocks that
/// never repeat.
#[derive(Clone, Debug)]
pub struct BlockCipher(Aes128);

impl BlockCipher {
    /// Length of the key in bytes.
    pub const KEY_LENGTH: usize = 16;

    /// The permutation for `key`.
    pub fn new(key: &[u8; Self::KEY_LENGTH]) -> Self {
        Self(Aes128::new(key.into()))
    }

    /// Encrypts `block` in place.
    ///
    /// # Panics
    /// If the block does not have 5 to 19 bytes.
    pub fn encrypt(&self, block: &mut [u8]) {
        if let Ok(block) = <&mut [u8; AES_BLOCK]>::try_from(&mut *block) {
            self.0.encrypt_block(block.into());
        } else {
            self.passes(block, [1, 2, 3, 4]);
        }
    }

    /// Decrypts `block` in place.
    ///
    /// # Panics
    /// If the block does not have 5 to 19 bytes.
    pub fn decrypt(&self, block: &mut [u8]) {
        if let Ok(block) = <&mut [u8; AES_BLOCK]>::try_from(&mut *block) {
            self.0.decrypt_block(block.into());
        } else {
            self.passes(block, [4, 3, 2, 1]);
        }
    }

    /// Performs the passes with these numbers: odd ones change the right half of `block`, even ones the left half.
    ///
    /// If the number of bytes is odd, the byte in the middle is divided: its high bits belong to the left half, its low
    /// ones to the right half. Halves are left-aligned, as in the input of AES.
    fn passes(&self, block: &mut [u8], numbers: [u8; 4]) {
        let length = block.len();
        assert!(
            (5..=19).contains(&length),
            "a block must have 5 to 19 bytes (got {length})"
        );
        let (half, shared) = (length.div_ceil(2), length % 2);
        let left_bits = !(u128::MAX >> (4 * length));
        let right_bits = left_bits >> (4 * shared);
        let mut left = left_aligned(&block[..half]) & left_bits;
        let mut right = left_aligned(&block[length - half..]) & right_bits;
        for number in numbers {
            if number % 2 == 1 {
                right ^= self.expanded(left, length, number) & right_bits;
            } else {
                left ^= self.expanded(right, length, number) & left_bits;
            }
        }
        let (left, right) = (left.to_be_bytes(), right.to_be_bytes());
        block[..half].copy_from_slice(&left[..half]);
        block[half..].copy_from_slice(&right[shared..half]);
        if shared == 1 {
            block[half - 1] |= right[0];
        }
    }

    /// Encrypts a half of a block of `length` bytes together with that length and the pass (`expand` in the draft).
    fn expanded(&self, half: u128, length: usize, number: u8) -> u128 {
        let mut input = (half | (length as u128) << 8 | u128::from(number)).to_be_bytes();
        self.0.encrypt_block((&mut input).into());
        u128::from_be_bytes(input)
    }
}

/// The bytes of half a block, at most 10, followed by zeros.
fn left_aligned(half: &[u8]) -> u128 {
    let mut bytes = [0; AES_BLOCK];
    bytes[..half.len()].copy_from_slice(half);
    u128::from_be_bytes(bytes)
}
