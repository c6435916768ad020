//! Velocity commands: bounded in velocity, acceleration and jerk, and in position by the braking distance from where
//! the robot is measured to be.

use super::brake::within;
use super::joint::Joint;
use super::ruling::Ruling;
use crate::code::Code;
use crate::plan::Limits;

/// Differences below this are rounding, rad/s.
const SAME: f64 = 1e-9;

/// Every joint's velocity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Speeds {
    joints: Vec<Joint>,
}

impl Speeds {
    pub fn new(limits: &Limits, n: usize, h: f64, period: f64) -> Self {
        Speeds { joints: Joint::all(limits, n, h, period) }
    }

    pub fn start(&mut self, positions: &[f64]) {
        for (joint, position) in self.joints.iter_mut().zip(positions) {
            joint.start(*position);
        }
    }

    /// The first limit, in the guard's order, that is exceeded beyond refusal: by where the robot is, or by what is wanted.
    pub fn refusal(&self, positions: &[f64], wanted: &[f64]) -> Option<(Code, usize)> {
        let refused = |(index, ((joint, position), wanted)): (usize, ((&Joint, &f64), &f64))| {
            let is_outside = joint.refuses_position(*position);
            let code = if !position.is_finite() {
                Some(Code::NotFinite)
            } else if is_outside {
                Some(Code::Position)
            } else {
                joint.refuses_velocity(*wanted)
            };
            code.map(|code| (code, index))
        };
        self.joints.iter().zip(positions).zip(wanted).enumerate().filter_map(refused).min()
    }

    /// Moves every joint's velocity towards the wanted one.
    pub fn follow(&mut self, positions: &[f64], wanted: &[f64], ruling: &mut Ruling) {
        for (index, ((joint, position), wanted)) in self.joints.iter_mut().zip(positions).zip(wanted).enumerate() {
            follow(joint, *position, *wanted, index, ruling);
        }
    }

    /// Moves every velocity one step towards zero; true once all are there.
    pub fn stop(&mut self) -> bool {
        self.joints.iter_mut().for_each(Joint::stop);
        self.joints.iter().all(Joint::is_at_rest)
    }

    pub fn write(&self, velocity: &mut [f64]) {
        for (joint, velocity) in self.joints.iter().zip(velocity) {
            *velocity = joint.v;
        }
    }
}

fn follow(joint: &mut Joint, position: f64, wanted: f64, index: usize, ruling: &mut Ruling) {
    let target = within(wanted, -joint.vel, joint.vel);
    let direct = (target - joint.v) * joint.brake.per_h();
    let broken = [
        (Code::Velocity, (target - wanted).abs() > SAME),
        (Code::Acceleration, direct.abs() > joint.acc),
        (Code::Jerk, (direct - joint.a).abs() > joint.brake.ramp()),
    ];
    let is_reachable = !broken.iter().skip(1).any(|(_, is_broken)| *is_broken);
    let chosen = if is_reachable && joint.keeps_velocity(target, direct) {
        direct
    } else {
        let (low, high) = joint.window();
        within(joint.brake.acceleration_for(target - joint.v), low, high)
    };
    // Outside its range a joint may come back, but go no further.
    let (lo, hi) = (joint.lo.min(position), joint.hi.max(position));
    let certified = joint.certified(position, chosen, lo, hi);
    let is_certified = (certified - chosen).abs() * joint.brake.h() <= SAME;
    joint.step(certified);
    joint.p = position;
    if !is_certified {
        ruling.limit(Code::Position, index);
    }
    if (joint.v - wanted).abs() > SAME {
        for (code, _) in broken.iter().filter(|(_, is_broken)| *is_broken) {
            ruling.limit(*code, index);
        }
        if is_reachable && is_certified && (joint.v - target).abs() > SAME {
            ruling.limit(Code::Jerk, index);
        }
    }
}
