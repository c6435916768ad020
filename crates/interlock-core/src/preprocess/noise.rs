//! Seeded standard normal noise: xoshiro256++ (Blackman and Vigna, 2019) seeded by splitmix64, Box-Muller in float64.

use std::f64::consts::TAU;

/// A generator of normal numbers, the same everywhere for the same seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    seed: u64,
    state: [u64; 4],
}

impl Noise {
    /// Starts at `seed`.
    pub fn new(seed: u64) -> Self {
        let mut noise = Noise { seed, state: [0; 4] };
        noise.reset();
        noise
    }

    /// Back to the seed.
    pub fn reset(&mut self) {
        let mut counter = self.seed;
        for word in &mut self.state {
            counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = counter;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *word = z ^ (z >> 31);
        }
    }

    /// Fills `out` with the next numbers; each call uses them in pairs, the last one of an odd length is dropped.
    pub fn fill(&mut self, out: &mut [f32]) {
        for pair in out.chunks_mut(2) {
            let radius = (-2.0 * self.uniform().ln()).sqrt();
            let (sin, cos) = (TAU * self.uniform()).sin_cos();
            for (slot, value) in pair.iter_mut().zip([radius * cos, radius * sin]) {
                #[allow(clippy::cast_possible_truncation, reason = "the network reads float32")]
                let value = value as f32;
                *slot = value;
            }
        }
    }

    /// Uniform in (0, 1], so that its logarithm is finite.
    fn uniform(&mut self) -> f64 {
        let [s0, s1, s2, s3] = self.state;
        let word = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let (s2, s3) = (s2 ^ s0, s3 ^ s1);
        self.state = [s0 ^ s3, s1 ^ s2, s2 ^ (s1 << 17), s3.rotate_left(45)];
        #[allow(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let value = (word >> 11).saturating_add(1) as f64;
        value * (1.0 / 9_007_199_254_740_992.0)
    }
}
