//! [`BlockCipher`]: the encryption of server ID and nonce (§5.4.1, §5.4.2).

use std::fmt;

use aes::Aes128;
use aes::cipher::{BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};

/// Bytes of a block of AES.
const AES_BLOCK: usize = 16;

/// Permutation of blocks of 5 to 19 bytes: AES-128 for 16 bytes, and a Feistel network of four passes of it for others.
#[derive(Clone)]
pub(super) struct BlockCipher(Aes128);

impl fmt::Debug for BlockCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCipher").finish_non_exhaustive()
    }
}

impl BlockCipher {
    pub(super) fn new(key: &[u8; AES_BLOCK]) -> Self {
        Self(Aes128::new(key.into()))
    }

    /// Encrypts `block` in place.
    pub(super) fn encrypt(&self, block: &mut [u8]) {
        if let Ok(block) = <&mut [u8; AES_BLOCK]>::try_from(&mut *block) {
            self.0.encrypt_block(block.into());
        } else {
            self.passes(block, [1, 2, 3, 4]);
        }
    }

    /// Decrypts `block` in place.
    pub(super) fn decrypt(&self, block: &mut [u8]) {
        if let Ok(block) = <&mut [u8; AES_BLOCK]>::try_from(&mut *block) {
            self.0.decrypt_block(block.into());
        } else {
            self.passes(block, [4, 3, 2, 1]);
        }
    }

    /// Makes the passes of these numbers: those of odd ones change the right half, the others the left one.
    fn passes(&self, block: &mut [u8], numbers: [u8; 4]) {
        let length = block.len();
        let mut halves = Halves::split(block);
        for number in numbers {
            let (from, to) = match number % 2 {
                1 => (halves.left, &mut halves.right),
                _ => (halves.right, &mut halves.left),
            };
            let encrypted = self.round(from, length, number);
            for (to, from) in to.iter_mut().zip(encrypted).take(length.div_ceil(2)) {
                *to ^= from;
            }
            halves.clear_shared(length);
        }
        halves.join(block);
    }

    /// A half of a block of `length` bytes, encrypted together with that and the pass (`expand` in the draft).
    fn round(&self, mut half: Half, length: usize, number: u8) -> Half {
        #[expect(clippy::cast_possible_truncation, reason = "blocks have at most 19 bytes")]
        let announced = length as u8;
        half[AES_BLOCK - 2] = announced;
        half[AES_BLOCK - 1] = number;
        self.0.encrypt_block((&mut half).into());
        half
    }
}

/// Half of a block, filled up with zeros: at most 10 bytes of it are used.
type Half = [u8; AES_BLOCK];

/// The halves of a block. The byte in the middle of an odd number is divided: its high bits are the left half's.
struct Halves {
    left: Half,
    right: Half,
}

impl Halves {
    fn split(block: &[u8]) -> Self {
        let half = block.len().div_ceil(2);
        let (mut left, mut right) = ([0; AES_BLOCK], [0; AES_BLOCK]);
        left[..half].copy_from_slice(&block[..half]);
        right[..half].copy_from_slice(&block[block.len() - half..]);
        let mut halves = Self { left, right };
        halves.clear_shared(block.len());
        halves
    }

    /// Clears the bits of each half that are the other one's, if the block has an odd `length`.
    fn clear_shared(&mut self, length: usize) {
        if length % 2 == 1 {
            self.left[length / 2] &= 0xF0;
            self.right[0] &= 0x0F;
        }
    }

    fn join(&self, block: &mut [u8]) {
        let (length, half) = (block.len(), block.len().div_ceil(2));
        block[..half].copy_from_slice(&self.left[..half]);
        if length % 2 == 1 {
            block[length / 2] |= self.right[0];
        }
        block[half..].copy_from_slice(&self.right[length % 2..half]);
    }
}
