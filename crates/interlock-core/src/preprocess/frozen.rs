//! A camera that repeats itself: new sequence numbers, the same picture, while the joints move.

use std::collections::VecDeque;

use super::image::ImageView;
use crate::code::Code;
use crate::sample::Sample;

/// Identical images in a row that count as frozen.
pub const FROZEN_IMAGES: u32 = 3;
/// How far some joint must have moved between the first and the last of them, rad: an arm at rest looks the same.
pub const MOVED_RAD: f64 = 2e-3;

/// A 64-bit digest of a picture: eight multiply-xor lanes over little-endian words. Not cryptographic.
pub fn content_hash(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b1_85eb_ca87;
    let mut lanes: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    let (blocks, tail) = bytes.as_chunks::<64>();
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(PRIME).rotate_left(29);
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

/// Joint positions remembered, so that a picture that is several observations old finds one from before its capture.
const REMEMBERED: usize = 8;

/// Joint positions at a capture time.
#[derive(Debug, Clone, PartialEq)]
struct Pose {
    capture_ns: i64,
    pos: Vec<f64>,
}

/// Watches one camera.
///
/// A picture is older than the joint sample beside it, so a joint that has just begun to move is not yet in it. Only
/// motion from before the newest picture's capture counts: from the joint sample that came with the first of the
/// identical pictures to the last one captured before the newest picture.
#[derive(Debug, Clone, PartialEq)]
pub struct FrozenWatch {
    seq: u64,
    hash: u64,
    identical: u32,
    first: Pose,
    /// Newest first.
    recent: VecDeque<Pose>,
}

impl FrozenWatch {
    /// Nothing seen yet, for a robot of `n` joints.
    pub fn new(n: usize) -> Self {
        let pose = Pose { capture_ns: i64::MAX, pos: vec![f64::NAN; n] };
        let recent = std::iter::repeat_n(pose.clone(), REMEMBERED).collect();
        FrozenWatch { seq: 0, hash: 0, identical: 0, first: pose, recent }
    }

    /// Forgets what was seen.
    pub fn reset(&mut self) {
        self.identical = 0;
        for pose in &mut self.recent {
            pose.capture_ns = i64::MAX;
        }
    }

    /// Looks at an image beside the newest joint sample. One with the sequence number of the last adds nothing: its age
    /// is somebody else's business.
    ///
    /// # Errors
    /// `FrozenImage` once [`FROZEN_IMAGES`] images in a row are identical although a joint moved by [`MOVED_RAD`].
    pub fn look(&mut self, view: &ImageView<'_>, sample: &Sample) -> Result<(), Code> {
        if self.identical == 0 || view.seq != self.seq {
            self.seq = view.seq;
            let hash = content_hash(view.pixels);
            if self.identical > 0 && hash == self.hash {
                self.identical = self.identical.saturating_add(1);
            } else {
                self.hash = hash;
                self.identical = 1;
                self.first.take(sample);
            }
        }
        if let Some(mut oldest) = self.recent.pop_back() {
            oldest.take(sample);
            self.recent.push_front(oldest);
        }
        let is_frozen = self.identical >= FROZEN_IMAGES && self.has_moved(view.capture_ns);
        if is_frozen {
            Err(Code::FrozenImage)
        } else {
            Ok(())
        }
    }

    fn has_moved(&self, capture_ns: i64) -> bool {
        let Some(seen) = self.recent.iter().find(|pose| pose.capture_ns <= capture_ns) else { return false };
        let first = &self.first;
        let pairs = first.pos.iter().zip(&seen.pos);
        seen.capture_ns > first.capture_ns && pairs.into_iter().any(|(first, seen)| (seen - first).abs() > MOVED_RAD)
    }
}

impl Pose {
    fn take(&mut self, sample: &Sample) {
        self.capture_ns = sample.capture_ns;
        self.pos.iter_mut().zip(&sample.pos).for_each(|(mine, theirs)| *mine = *theirs);
    }
}
