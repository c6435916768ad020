use interlock_core::code::Code;
use interlock_core::decode::Decoder;
use interlock_core::plan::Interpolate;
use interlock_core::sample::Chunk;
use proptest::prelude::*;

use super::plans::{chunked, plan};

proptest! {
    #[test]
    fn targets_follow_the_declared_formula(
        raw in prop::collection::vec(-10.0f32..10.0, 12),
        q in prop::collection::vec(-3.0f64..3.0, 3),
        scale in prop::collection::vec(-2.0f64..2.0, 3),
        offset in prop::collection::vec(-2.0f64..2.0, 3),
        si in prop::collection::vec(0.01f64..2.0, 3),
        clip in prop::option::of(Just([-1.5, 2.5])),
        relative: bool,
        order in Just(vec![0usize, 1, 2]).prop_shuffle(),
    ) {
        let mut plan = chunked(3, 4, 0, Interpolate::Hold);
        plan.joints.policy_from_robot = order.clone();
        let action = plan.outputs[0].action.as_mut().unwrap();
        (action.scale, action.offset, action.si_per_unit) = (scale.clone(), offset.clone(), si.clone());
        (action.clip, action.relative) = (clip, relative);
        let mut decoder = Decoder::new(&plan).unwrap();
        let mut chunk = Chunk::new(4, 3);
        decoder.decode(&raw, &q, &mut chunk).unwrap();
        prop_assert_eq!((chunk.rows, chunk.status), (4, 0));
        for row in 0..4 {
            for policy in 0..3 {
                let robot = order[policy];
                let mut value = f64::from(raw[row * 3 + policy]);
                if let Some([lo, hi]) = clip {
                    value = if value < lo { lo } else if value > hi { hi } else { value };
                }
                let base = if relative { q[robot] } else { 0.0 };
                let expected = (value * scale[policy] + offset[policy]) * si[policy] + base;
                prop_assert!((chunk.actions[row * 3 + robot] - expected).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn one_bad_number_anywhere_makes_the_whole_chunk_unusable(place in 0usize..12, which in 0usize..3, clipped: bool) {
        let mut plan = chunked(3, 4, 0, Interpolate::Hold);
        if clipped {
            plan.outputs[0].action.as_mut().unwrap().clip = Some([-1.0, 1.0]);
        }
        let mut raw = vec![0.5f32; 12];
        raw[place] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][which];
        let mut chunk = Chunk::new(4, 3);
        let answer = Decoder::new(&plan).unwrap().decode(&raw, &[0.0; 3], &mut chunk);
        prop_assert_eq!(answer, Err(Code::NotFinite));
        prop_assert_eq!((chunk.rows, chunk.status), (0, Code::NotFinite as u16));
    }
}

#[test]
fn a_wrong_number_of_values_is_refused() {
    let mut decoder = Decoder::new(&plan(3)).unwrap();
    let mut chunk = Chunk::new(1, 3);
    for (raw, q) in [(2, 3), (4, 3), (0, 3), (3, 2), (3, 4)] {
        assert_eq!(decoder.decode(&vec![0.0; raw], &vec![0.0; q], &mut chunk), Err(Code::Dimension));
        assert_eq!((chunk.rows, chunk.status), (0, Code::Dimension as u16));
    }
    assert_eq!(decoder.decode(&[0.0; 3], &[0.0; 3], &mut Chunk::new(1, 2)), Err(Code::Dimension));
    assert_eq!(decoder.decode(&[0.0; 3], &[0.0; 3], &mut chunk), Ok(()));
}

#[test]
fn a_relative_action_on_an_unknown_position_is_refused() {
    let mut plan = plan(2);
    plan.outputs[0].action.as_mut().unwrap().relative = true;
    let mut chunk = Chunk::new(1, 2);
    let answer = Decoder::new(&plan).unwrap().decode(&[0.0; 2], &[0.0, f64::NAN], &mut chunk);
    assert_eq!(answer, Err(Code::NotFinite));
}

#[test]
fn a_target_that_overflows_is_refused() {
    let mut plan = plan(1);
    plan.outputs[0].action.as_mut().unwrap().scale = vec![1e300];
    let mut chunk = Chunk::new(1, 1);
    assert_eq!(Decoder::new(&plan).unwrap().decode(&[1e30], &[0.0], &mut chunk), Err(Code::NotFinite));
}
