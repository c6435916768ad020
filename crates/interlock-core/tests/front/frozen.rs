use interlock_core::code::Code;
use interlock_core::plan::Resize;
use interlock_core::preprocess::frozen::content_hash;
use interlock_core::preprocess::{ImageView, Preprocessor};
use proptest::prelude::*;

use super::plans::{observation, plan, with_camera, MS};

struct Rig {
    preprocessor: Preprocessor,
    seq: u64,
    now_ns: i64,
}

impl Rig {
    fn new() -> Self {
        let mut plan = plan(2);
        with_camera(&mut plan, [4, 4], [4, 4], Resize::None);
        Rig { preprocessor: Preprocessor::new(&plan).unwrap(), seq: 0, now_ns: 0 }
    }

    /// An observation every 40 ms with an image of a given grey and age.
    fn see(&mut self, grey: u8, pos: f64, age_ns: i64, episode: u32) -> Result<(), Code> {
        self.seq += 1;
        self.now_ns += 40 * MS;
        let mut observation = observation(2);
        observation.episode = episode;
        observation.sample.capture_ns = self.now_ns;
        observation.sample.pos = vec![0.0, pos];
        let pixels = [grey; 48];
        let capture_ns = self.now_ns - age_ns;
        let view = ImageView { pixels: &pixels, height: 4, width: 4, seq: self.seq, capture_ns };
        self.preprocessor.build(&observation, &[view])
    }
}

#[test]
fn a_camera_that_freezes_while_the_arm_moves_is_noticed() {
    let mut rig = Rig::new();
    for step in 0..10 {
        rig.see(step, 0.01 * f64::from(step), 5 * MS, 0).unwrap();
    }
    let seen: Vec<_> = (10..14).map(|step| rig.see(9, 0.01 * f64::from(step), 5 * MS, 0)).collect();
    assert_eq!(seen, [Ok(()), Err(Code::FrozenImage), Err(Code::FrozenImage), Err(Code::FrozenImage)]);
}

#[test]
fn an_arm_at_rest_may_look_the_same_for_ever() {
    let mut rig = Rig::new();
    for step in 0..1000 {
        rig.see(5, if step % 2 == 0 { 0.0 } else { 0.0015 }, 5 * MS, 0).unwrap();
    }
}

#[test]
fn motion_that_is_younger_than_the_picture_does_not_count() {
    let mut rig = Rig::new();
    for _ in 0..10 {
        rig.see(5, 0.0, 70 * MS, 0).unwrap();
    }
    // The arm moves from here on; pictures are nearly two observations old.
    rig.see(5, 0.1, 70 * MS, 0).unwrap();
    rig.see(5, 0.2, 70 * MS, 0).unwrap();
    rig.see(6, 0.3, 70 * MS, 0).unwrap();
    rig.see(7, 0.4, 70 * MS, 0).unwrap();
}

#[test]
fn the_same_picture_offered_twice_counts_once() {
    let mut rig = Rig::new();
    rig.see(5, 0.0, 5 * MS, 0).unwrap();
    rig.see(5, 0.1, 5 * MS, 0).unwrap();
    rig.seq -= 1;
    assert_eq!(rig.see(5, 0.2, 5 * MS, 0), Ok(()));
    assert_eq!(rig.see(5, 0.3, 5 * MS, 0), Err(Code::FrozenImage));
}

#[test]
fn a_new_episode_forgives() {
    let mut rig = Rig::new();
    for step in 0..2 {
        rig.see(5, 0.1 * f64::from(step), 5 * MS, 0).unwrap();
    }
    assert_eq!(rig.see(5, 0.2, 5 * MS, 0), Err(Code::FrozenImage));
    assert_eq!(rig.see(5, 0.3, 5 * MS, 1), Ok(()));
    assert_eq!(rig.see(6, 0.4, 5 * MS, 1), Ok(()));
}

proptest! {
    #[test]
    fn one_changed_bit_changes_the_digest(mut bytes in prop::collection::vec(any::<u8>(), 1..200), at: prop::sample::Index, bit in 0u32..8) {
        let before = content_hash(&bytes);
        let place = at.index(bytes.len());
        bytes[place] ^= 1 << bit;
        prop_assert_ne!(before, content_hash(&bytes));
    }

    #[test]
    fn a_longer_run_of_zeros_has_another_digest(length in 0usize..200) {
        prop_assert_ne!(content_hash(&vec![0; length]), content_hash(&vec![0; length + 1]));
    }
}
