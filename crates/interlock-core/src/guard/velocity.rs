//! Velocity commands: bounded in velocity, acceleration, jerk and travel within a window, and in position by the braking
//! distance from where the robot is measured to be.

use super::brake::within;
use super::joint::{Joint, Reach};
use super::ruling::Ruling;
use crate::code::Code;
use crate::plan::Limits;

/// Differences below this are rounding, rad/s.
const SAME: f64 = 1e-9;

/// Every joint's velocity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Speeds {
    joints: Vec<Speed>,
}

/// One joint and how far it was commanded to travel.
#[derive(Debug, Clone, PartialEq)]
struct Speed {
    joint: Joint,
    travelled: f64,
}

impl Speeds {
    pub fn new(limits: &Limits, n: usize, h: f64, period: f64) -> Self {
        let speed = |joint| Speed { joint, travelled: 0.0 };
        Speeds { joints: Joint::all(limits, n, h, period).into_iter().map(speed).collect() }
    }

    pub fn start(&mut self, positions: &[f64]) {
        for (speed, position) in self.joints.iter_mut().zip(positions) {
            speed.joint.start(*position);
            speed.travelled = 0.0;
            speed.joint.travel.start(0.0);
        }
    }

    /// The first limit, in the guard's order, that is exceeded beyond refusal: by where the robot is, or by what is wanted.
    pub fn refusal(&self, positions: &[f64], wanted: &[f64]) -> Option<(Code, usize)> {
        let refused = |(index, ((speed, position), wanted)): (usize, ((&Speed, &f64), &f64))| {
            let joint = &speed.joint;
            let is_outside = joint.refuses_position(*position);
            let code = if !position.is_finite() {
                Some(Code::NotFinite)
            } else if is_outside {
                Some(Code::Position)
            } else {
                joint.refuses_velocity(*wanted).or_else(|| speed.refuses_travel(*wanted))
            };
            code.map(|code| (code, index))
        };
        self.joints.iter().zip(positions).zip(wanted).enumerate().filter_map(refused).min()
    }

    /// Moves every joint's velocity towards the wanted one.
    pub fn follow(&mut self, positions: &[f64], wanted: &[f64], ruling: &mut Ruling) {
        for (index, ((speed, position), wanted)) in self.joints.iter_mut().zip(positions).zip(wanted).enumerate() {
            speed.follow(*position, *wanted, index, ruling);
        }
    }

    /// Moves every velocity one step towards zero; true once all are there.
    pub fn stop(&mut self) -> bool {
        for speed in &mut self.joints {
            speed.stop();
        }
        self.joints.iter().all(|speed| speed.joint.is_at_rest())
    }

    pub fn write(&self, velocity: &mut [f64]) {
        for (speed, velocity) in self.joints.iter().zip(velocity) {
            *velocity = speed.joint.v;
        }
    }
}

impl Speed {
    /// A demand for `velocity` is one for a policy period.
    fn refuses_travel(&self, velocity: f64) -> Option<Code> {
        let demanded = self.travelled + velocity * self.joint.period();
        self.joint.travel.refuses(demanded).then_some(Code::WindowTravel)
    }

    fn stop(&mut self) {
        self.joint.stop();
        self.note();
    }

    /// A tick passed with the joint's velocity.
    fn note(&mut self) {
        self.travelled += self.joint.brake.h() * self.joint.v;
        self.joint.travel.push(self.travelled);
    }

    fn follow(&mut self, position: f64, wanted: f64, index: usize, ruling: &mut Ruling) {
        let joint = &mut self.joint;
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
        // Outside its range a joint may come back, but go no further. Travel counts from where it was commanded to be.
        let (low, high) = joint.travel.bounds();
        let offset = position - self.travelled;
        let reach = Reach::new(joint.lo.min(position), joint.hi.max(position))
            .and((low + offset, high + offset), Code::WindowTravel);
        let certified = joint.certified(position, chosen, reach.lo, reach.hi);
        let is_certified = (certified - chosen).abs() * joint.brake.h() <= SAME;
        let side = joint.v + joint.brake.h() * chosen;
        joint.step(certified);
        joint.p = position;
        if !is_certified {
            ruling.limit(reach.code(side), index);
        }
        if (joint.v - wanted).abs() > SAME {
            for (code, _) in broken.iter().filter(|(_, is_broken)| *is_broken) {
                ruling.limit(*code, index);
            }
            if is_reachable && is_certified && (joint.v - target).abs() > SAME {
                ruling.limit(Code::Jerk, index);
            }
        }
        self.note();
    }
}
