//! A camera that repeats itself: new sequence numbers, the same picture, while the joints move.

use crate::code::Code;

/// Identical images in a row that count as frozen.
pub const FROZEN_IMAGES: u32 = 3;
/// How far some joint must have moved between the first and the last of them, rad: an arm at rest looks the same.
pub const MOVED_RAD: f64 = 2e-3;

/// A 64-bit digest of a picture: four multiply-xor lanes over little-endian words. Not cryptographic.
pub fn content_hash(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b1_85eb_ca87;
    let mut lanes: [u64; 4] = [1, 2, 3, 4];
    let blocks = bytes.chunks_exact(32);
    let tail = blocks.remainder();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(8)) {
            *lane = (*lane ^ word_of(word)).wrapping_mul(PRIME).rotate_left(29);
        }
    }
    for (lane, word) in lanes.iter_mut().zip(tail.chunks(8)) {
        *lane = (*lane ^ word_of(word)).wrapping_mul(PRIME).rotate_left(29);
    }
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mixed = lanes.iter().fold(length, |sum, lane| (sum ^ lane).wrapping_mul(PRIME).rotate_left(31));
    (mixed ^ (mixed >> 32)).wrapping_mul(PRIME)
}

/// Up to eight bytes as a little-endian word.
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = *byte);
    u64::from_le_bytes(word)
}

/// Watches one camera.
#[derive(Debug, Clone, PartialEq)]
pub struct FrozenWatch {
    seq: u64,
    hash: u64,
    identical: u32,
    /// Joint positions at the first of the identical images.
    pos: Vec<f64>,
}

impl FrozenWatch {
    /// Nothing seen yet, for a robot of `n` joints.
    pub fn new(n: usize) -> Self {
        FrozenWatch { seq: 0, hash: 0, identical: 0, pos: vec![f64::NAN; n] }
    }

    /// Forgets what was seen.
    pub fn reset(&mut self) {
        self.identical = 0;
    }

    /// Looks at an image. One with the sequence number of the last adds nothing: its age is somebody else's business.
    ///
    /// # Errors
    /// `FrozenImage` once [`FROZEN_IMAGES`] images in a row are identical although a joint moved by [`MOVED_RAD`].
    pub fn look(&mut self, seq: u64, pixels: &[u8], pos: &[f64]) -> Result<(), Code> {
        if self.identical > 0 && seq == self.seq {
            return self.verdict(pos);
        }
        let hash = content_hash(pixels);
        self.seq = seq;
        if self.identical > 0 && hash == self.hash {
            self.identical = self.identical.saturating_add(1);
        } else {
            self.hash = hash;
            self.identical = 1;
            self.pos.iter_mut().zip(pos).for_each(|(mine, theirs)| *mine = *theirs);
        }
        self.verdict(pos)
    }

    fn verdict(&self, pos: &[f64]) -> Result<(), Code> {
        let has_moved = self.pos.iter().zip(pos).any(|(before, now)| (now - before).abs() > MOVED_RAD);
        if self.identical >= FROZEN_IMAGES && has_moved {
            Err(Code::FrozenImage)
        } else {
            Ok(())
        }
    }
}
