use interlock_core::code::Code;
use interlock_core::plan::{AfterMove, Behaviour, Bound, CommandKind, Input, LastAction, Plan, Resize, Role, TermKind};

use super::plans::{chunked, plan, term, terms, walker, with_camera, with_state, with_text};

fn refused(name: &str, change: impl FnOnce(&mut Plan)) {
    let mut plan = walker(3);
    with_camera(&mut plan, [48, 64], [24, 32], Resize::Bilinear);
    with_text(&mut plan, 8);
    with_state(&mut plan);
    assert_eq!(plan.check(), Ok(()));
    change(&mut plan);
    let error = plan.check().expect_err(name);
    assert_eq!(error.code, Code::BadPlan);
    assert!(error.at.starts_with(name), "{name}: refused for another reason: {error}");
}

fn image(plan: &mut Plan, change: impl FnOnce(&mut usize, &mut u32, &mut Resize, &mut [f64; 3])) {
    if let Input::Image { camera, height, resize, std, .. } = &mut plan.inputs[1] {
        change(camera, height, resize, std);
    }
}

#[test]
fn a_plan_survives_its_own_json() {
    for plan in [plan(2), walker(3), chunked(4, 16, 0, interlock_core::plan::Interpolate::Cubic)] {
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(Plan::from_json(&text), Ok(plan));
    }
}

#[test]
fn text_that_is_no_plan_is_refused() {
    let text = serde_json::to_string(&plan(2)).unwrap();
    for bad in ["", "{}", "[]", "null", &text[..text.len() / 2], &text.replacen("tick_ns", "tik_ns", 1)] {
        assert_eq!(Plan::from_json(bad).unwrap_err().at, "plan");
    }
    assert!(Plan::from_json(&text.replacen("1.0", "1e999", 1)).is_err());
}

#[test]
fn joints_that_do_not_fit_are_refused() {
    refused("schema", |p| p.schema = "interlock.plan/2".into());
    refused("identity.robot", |p| p.identity.robot = "abc".into());
    refused("joints.names", |p| p.joints.names[1] = p.joints.names[0].clone());
    refused("joints.si_per_unit", |p| p.joints.si_per_unit[2] = 0.0);
    refused("joints.si_per_unit", |p| p.joints.si_per_unit.truncate(2));
    refused("joints.default_pos", |p| p.joints.default_pos[0] = f64::NAN);
    refused("joints.policy_from_robot", |p| p.joints.policy_from_robot = vec![0, 1, 1]);
    refused("joints.policy_from_robot", |p| p.joints.policy_from_robot = vec![0, 1, 3]);
    refused("joints.policy_from_robot", |p| p.joints.policy_from_robot = vec![0, 1]);
}

#[test]
fn timing_that_contradicts_itself_is_refused() {
    refused("timing.tick_ns", |p| p.timing.tick_ns = 0);
    refused("timing.ticks_per_period", |p| p.timing.ticks_per_period = 0);
    refused("timing.ticks_per_inference", |p| p.timing.ticks_per_inference = 3);
    refused("timing.chunk", |p| p.timing.chunk = 0);
    refused("timing.chunk", |p| p.timing.ticks_per_inference = 4);
    refused("timing.action_delay_ns", |p| p.timing.action_delay_ns = -1);
    refused("timing.action_delay_ns", |p| p.timing.action_delay_ns = 1_000_000_000);
    refused("timing.action_valid_ns", |p| p.timing.action_valid_ns = 1);
    refused("timing.inference_deadline_ns", |p| p.timing.inference_deadline_ns = 11_000_000);
    refused("timing.max_age_state_ns", |p| p.timing.max_age_state_ns = 0);
    refused("timing.max_skew_ns", |p| p.timing.max_skew_ns = i64::MAX);
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    refused("inputs[0].terms[0].dim", |p| p.inputs[0] = terms(vec![term(TermKind::JointPos, 2)]));
    refused("inputs[0].terms[0].dim", |p| p.inputs[0] = terms(vec![term(TermKind::BaseAngVel, 4)]));
    refused("inputs[0].terms[0]", |p| p.inputs[0] = terms(vec![term(TermKind::Goal { part: vec![3] }, 1)]));
    refused("inputs[0].terms[0].scale", |p| {
        let mut bad = term(TermKind::JointPos, 3);
        bad.scale[1] = f64::INFINITY;
        p.inputs[0] = terms(vec![bad]);
    });
    refused("inputs[0].terms[0].clip", |p| {
        let mut bad = term(TermKind::JointPos, 3);
        bad.clip = Some([1.0, -1.0]);
        p.inputs[0] = terms(vec![bad]);
    });
    refused("inputs[0]", |p| {
        if let Input::Terms { history, .. } = &mut p.inputs[0] {
            history.steps = 0;
        }
    });
    refused("inputs[1]", |p| image(p, |camera, _, _, _| *camera = 1));
    refused("inputs[1]", |p| image(p, |_, height, _, _| *height = 0));
    refused("inputs[1]", |p| image(p, |_, _, resize, _| *resize = Resize::None));
    refused("inputs[1]", |p| {
        image(p, |_, height, resize, _| {
            *height = 96;
            *resize = Resize::Area;
        });
    });
    refused("inputs[1].std", |p| image(p, |_, _, _, std| std[1] = 0.0));
    refused("inputs[2]", |p| p.inputs[2] = Input::Tokens { name: "tokens".into(), length: 65, pad_id: 0 });
    refused("inputs[2]", |p| p.goal.text = false);
    refused("inputs[3]", |p| p.inputs[3] = p.inputs[2].clone());
    refused("inputs[4]", |p| {
        p.inputs[4] = Input::State { name: "h".into(), shape: vec![1, 2], output: "missing".into() };
    });
    refused("inputs[4]", |p| {
        p.inputs[4] = Input::State { name: "h".into(), shape: vec![1, 3], output: "h_out".into() };
    });
    refused("inputs[4]", |p| p.inputs[4] = Input::Noise { name: "z".into(), shape: vec![1, -1], seed: 0 });
}

#[test]
fn outputs_that_do_not_fit_are_refused() {
    refused("outputs", |p| {
        p.outputs.remove(0);
    });
    refused("outputs", |p| {
        let mut second = p.outputs[0].clone();
        second.name = "again".into();
        p.outputs.push(second);
    });
    refused("outputs[0]", |p| p.outputs[0].action = None);
    refused("outputs[0]", |p| p.outputs[0].role = Role::Probe);
    refused("outputs[0].period_ns", |p| p.outputs[0].period_ns = Some(50_000_000));
    refused("outputs[0].shape", |p| p.outputs[0].shape = vec![1, 4]);
    refused("outputs[0].shape", |p| p.outputs[0].shape = vec![3, 1]);
    refused("outputs[0].action.scale", |p| p.outputs[0].action.as_mut().unwrap().scale[0] = f64::NAN);
    refused("outputs[0].action.si_per_unit", |p| p.outputs[0].action.as_mut().unwrap().si_per_unit[0] = 0.0);
    refused("outputs[0].action.scale", |p| {
        p.outputs[0].action.as_mut().unwrap().scale[2] = 0.0;
        p.inputs[0] = terms(vec![term(TermKind::LastAction { of: LastAction::Applied }, 3)]);
    });
    refused("outputs[1]", |p| {
        p.inputs.pop();
    });
}

#[test]
fn the_raw_last_action_of_a_chunk_is_refused() {
    let mut plan = chunked(2, 4, 0, interlock_core::plan::Interpolate::Hold);
    plan.inputs[0] = terms(vec![term(TermKind::LastAction { of: LastAction::Raw }, 2)]);
    assert_eq!(plan.check().unwrap_err().at, "inputs[0].terms[0]");
    plan.inputs[0] = terms(vec![term(TermKind::LastAction { of: LastAction::Applied }, 2)]);
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn a_limit_that_the_kind_of_command_needs_cannot_be_missing() {
    type Change = fn(&mut Plan);
    let clear: [(&str, Change); 6] = [
        ("limits.pos", |p| p.limits.pos = None),
        ("limits.torque", |p| p.limits.torque = None),
        ("limits.target_step", |p| p.limits.target_step = None),
        ("limits.vel_measured", |p| p.limits.vel_measured = None),
        ("limits.kp_max", |p| p.limits.kp_max = None),
        ("limits.kd_max", |p| p.limits.kd_max = None),
    ];
    for (name, change) in clear {
        refused(name, change);
    }
    for (name, change) in [
        ("limits.vel", (|p| p.limits.vel = None) as Change),
        ("limits.acc", |p| p.limits.acc = None),
        ("limits.jerk", |p| p.limits.jerk = None),
    ] {
        let mut plan = plan(2);
        change(&mut plan);
        assert_eq!(plan.check().unwrap_err().at, name);
    }
}

#[test]
fn limits_that_contradict_themselves_are_refused() {
    refused("limits.pos[1]", |p| p.limits.pos.as_mut().unwrap()[1].lo = 5.0);
    refused("limits.pos[1]", |p| p.limits.pos.as_mut().unwrap()[1].refuse_hi = 2.0);
    refused("limits.pos[1]", |p| p.limits.pos.as_mut().unwrap()[1].refuse_hi = f64::INFINITY);
    refused("limits.torque[0]", |p| p.limits.torque.as_mut().unwrap()[0].refuse_beyond = 1.0);
    refused("limits.torque[0]", |p| p.limits.torque.as_mut().unwrap()[0].limit = -1.0);
    refused("limits.torque", |p| {
        p.limits.torque.as_mut().unwrap().pop();
    });
    refused("command.kp[2]", |p| p.command.kp[2] = 101.0);
    refused("command.kd", |p| p.command.kd = vec![]);
    refused("command.host_pd", |p| {
        p.command.kind = CommandKind::Torque;
        p.command.host_pd = true;
    });
}

#[test]
fn a_limit_that_cannot_act_for_the_kind_of_command_is_refused() {
    let some = || Some(vec![Bound { limit: 1.0, refuse_beyond: 2.0 }; 3]);
    refused("limits.distance", |p| p.limits.distance = some());
    refused("limits.torque_rate[0]", |p| {
        p.limits.torque_rate = Some(vec![Bound { limit: 0.0, refuse_beyond: 2.0 }; 3]);
    });
    let mut position = plan(3);
    position.limits.torque_rate = some();
    assert_eq!(position.check().unwrap_err().at, "limits.torque_rate");
    position.limits.torque_rate = None;
    (position.limits.window_travel, position.limits.distance) = (some(), some());
    position.check().unwrap();
}

#[test]
fn behaviours_that_cannot_act_are_refused() {
    refused("safe.policy_lost", |p| p.safe.policy_lost = Behaviour::PolicyZeroGoal);
    refused("safe.policy_lost", |p| p.safe.policy_lost = Behaviour::StopAndHold);
    refused("safe.policy_lost", |p| {
        p.safe.policy_lost = Behaviour::GoTo { pose: vec![0.0; 3], duration_ns: 1, then: AfterMove::Hold };
    });
    refused("safe.policy_lost.kd[1]", |p| p.safe.policy_lost = Behaviour::Damp { kd: vec![1.0, 6.0, 1.0] });
    refused("safe.goal_lost", |p| p.goal.velocity = Some([[0.5, 1.0]; 3]));
    refused("safe.before_start", |p| p.safe.before_start = Some(Behaviour::StopAndHold));
    refused("safe.before_start.pose", |p| {
        p.safe.before_start = Some(Behaviour::GoTo { pose: vec![1.0; 3], duration_ns: 1, then: AfterMove::Hold });
    });
    refused("safe.on_exit.pose[0]", |p| {
        p.safe.on_exit = Behaviour::GoTo { pose: vec![3.5, 0.0, 0.0], duration_ns: 1, then: AfterMove::Hold };
    });
    refused("start.within_tilt_rad", |p| p.start.within_tilt_rad = None);
    refused("start.pose[0]", |p| p.start.pose[0] = 4.0);
    refused("start.within_pos[0]", |p| p.start.within_pos[0] = 0.0);
    let mut arm = plan(2);
    arm.safe.policy_lost = Behaviour::Damp { kd: vec![1.0; 2] };
    assert_eq!(arm.check().unwrap_err().at, "safe.policy_lost");
}

#[test]
fn a_key_that_nobody_knows_is_refused_everywhere() {
    let mut plan = walker(2);
    with_camera(&mut plan, [4, 4], [4, 4], Resize::None);
    with_text(&mut plan, 4);
    let mut value = serde_json::to_value(&plan).unwrap();
    let mut places = Vec::new();
    objects(&value, String::new(), &mut places);
    assert!(places.len() > 20, "{places:?}");
    for place in places {
        let object = value.pointer_mut(&place).unwrap().as_object_mut().unwrap();
        object.insert("typo".into(), 1.into());
        assert!(Plan::from_json(&value.to_string()).is_err(), "{place} takes any key");
        value.pointer_mut(&place).unwrap().as_object_mut().unwrap().remove("typo");
    }
    assert!(Plan::from_json(&value.to_string()).is_ok());
}

fn objects(value: &serde_json::Value, place: String, places: &mut Vec<String>) {
    if let Some(object) = value.as_object() {
        object.iter().for_each(|(key, inner)| objects(inner, format!("{place}/{key}"), places));
        places.push(place);
    } else if let Some(list) = value.as_array() {
        list.iter().enumerate().for_each(|(index, inner)| objects(inner, format!("{place}/{index}"), places));
    }
}
