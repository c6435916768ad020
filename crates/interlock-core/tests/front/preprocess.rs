use interlock_core::code::Code;
use interlock_core::plan::{Input, TermKind};
use interlock_core::preprocess::noise::Noise;
use interlock_core::preprocess::{Preprocessor, TensorData};

use super::plans::{observation, plan, term, terms, with_state, with_text};

#[test]
fn tokens_are_padded_and_masked() {
    let mut plan = plan(2);
    with_text(&mut plan, 5);
    let mut preprocessor = Preprocessor::new(&plan).unwrap();
    let mut observation = observation(2);
    assert_eq!(preprocessor.build(&observation, &[]), Err(Code::NotReady));
    observation.goal.tokens[..3].copy_from_slice(&[11, 12, 13]);
    observation.goal.token_count = 3;
    preprocessor.build(&observation, &[]).unwrap();
    assert_eq!(preprocessor.tensors()[1].data, TensorData::I64(vec![11, 12, 13, 7, 7]));
    assert_eq!(preprocessor.tensors()[2].data, TensorData::I64(vec![1, 1, 1, 0, 0]));
    assert_eq!(preprocessor.tensors()[1].shape, [1, 5]);
    observation.goal.token_count = 1;
    preprocessor.build(&observation, &[]).unwrap();
    assert_eq!(preprocessor.tensors()[1].data, TensorData::I64(vec![11, 7, 7, 7, 7]));
    observation.goal.token_count = 6;
    assert_eq!(preprocessor.build(&observation, &[]), Err(Code::Dimension));
}

#[test]
fn recurrent_state_is_carried_until_the_episode_ends() {
    let mut plan = plan(2);
    with_state(&mut plan);
    let mut preprocessor = Preprocessor::new(&plan).unwrap();
    let mut observation = observation(2);
    assert_eq!(preprocessor.carried().collect::<Vec<_>>(), ["h_out"]);
    preprocessor.build(&observation, &[]).unwrap();
    assert_eq!(preprocessor.tensors()[1].data.as_f32(), [0.0, 0.0]);
    preprocessor.carry("h_out", &[1.0, 2.0]).unwrap();
    assert_eq!(preprocessor.carry("h_in", &[1.0, 2.0]), Err(Code::Dimension));
    assert_eq!(preprocessor.carry("h_out", &[1.0]), Err(Code::Dimension));
    assert_eq!(preprocessor.carry("h_out", &[1.0, f32::NAN]), Err(Code::NotFinite));
    preprocessor.build(&observation, &[]).unwrap();
    assert_eq!(preprocessor.tensors()[1].data.as_f32(), [1.0, 2.0]);
    observation.episode += 1;
    preprocessor.build(&observation, &[]).unwrap();
    assert_eq!(preprocessor.tensors()[1].data.as_f32(), [0.0, 0.0]);
}

#[test]
fn noise_is_the_same_in_every_episode_and_different_in_every_inference() {
    let mut plan = plan(2);
    plan.inputs.push(Input::Noise { name: "z".into(), shape: vec![1, 4, 5], seed: 42 });
    let mut preprocessor = Preprocessor::new(&plan).unwrap();
    let mut observation = observation(2);
    let mut draw = |episode: u32| {
        observation.episode = episode;
        preprocessor.build(&observation, &[]).unwrap();
        preprocessor.tensors()[1].data.clone()
    };
    let first = [draw(0), draw(0), draw(0)];
    let second = [draw(1), draw(1), draw(1)];
    assert_eq!(first, second);
    assert!(first[0] != first[1] && first[1] != first[2]);
}

#[test]
fn noise_is_standard_normal() {
    let mut values = vec![0.0f32; 200_001];
    Noise::new(7).fill(&mut values);
    let n = values.len() as f64;
    let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
    let moment = |power: i32| values.iter().map(|v| (f64::from(*v) - mean).powi(power)).sum::<f64>() / n;
    assert!(mean.abs() < 0.01 && (moment(2) - 1.0).abs() < 0.02, "{mean} {}", moment(2));
    assert!(moment(3).abs() < 0.03 && (moment(4) - 3.0).abs() < 0.1, "{} {}", moment(3), moment(4));
    let correlation = values.windows(2).map(|w| f64::from(w[0] * w[1])).sum::<f64>() / n;
    assert!(correlation.abs() < 0.01);
    assert_ne!(values[..8], {
        let mut other = [0.0; 8];
        Noise::new(8).fill(&mut other);
        other
    });
}

#[test]
fn an_observation_of_another_robot_is_refused() {
    let mut plan = plan(2);
    plan.inputs[0] = terms(vec![term(TermKind::JointPos, 2)]);
    let mut preprocessor = Preprocessor::new(&plan).unwrap();
    assert_eq!(preprocessor.build(&observation(3), &[]), Err(Code::Dimension));
    let mut uneven = observation(2);
    uneven.applied.push(0.0);
    assert_eq!(preprocessor.build(&uneven, &[]), Err(Code::Dimension));
}

#[test]
fn tensors_have_the_names_and_shapes_of_the_plan() {
    let mut plan = plan(2);
    with_text(&mut plan, 5);
    with_state(&mut plan);
    let preprocessor = Preprocessor::new(&plan).unwrap();
    let seen: Vec<_> = preprocessor.tensors().iter().map(|t| (t.name.as_str(), t.shape.clone())).collect();
    let expected = [("obs", vec![1, 2]), ("tokens", vec![1, 5]), ("mask", vec![1, 5]), ("h_in", vec![1, 2])];
    assert_eq!(seen, expected);
    for tensor in preprocessor.tensors() {
        assert_eq!(tensor.shape.iter().product::<i64>(), tensor.data.len() as i64);
    }
}
