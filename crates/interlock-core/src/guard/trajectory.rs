//! Position commands: a trajectory bounded in position, velocity, acceleration, jerk, travel within a window and distance
//! to where the robot is, that can always brake in time.
//!
//! A wanted position that keeps every limit goes out as it is. Otherwise the joint goes after it as fast as the limits
//! allow without running past it: it heads for the point where braking, seen from the moving target, ends on the target.

use super::brake::{within, Authority};
use super::joint::{Joint, SAME};
use super::ruling::Ruling;
use crate::code::Code;
use crate::plan::Limits;

/// Share of the acceleration limit that a target may use up before the joint stops trying to match it; what is left
/// brings the joint back to the target.
const MATCHED: f64 = 0.8;
/// Most evaluations of where braking ends, per joint and tick.
const EVALUATIONS: u32 = 40;
/// Where braking ends is found this well, rad.
const FOUND: f64 = 1e-12;

/// Every joint's trajectory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trajectory {
    joints: Vec<Follower>,
}

/// One joint and how its target moves.
#[derive(Debug, Clone, PartialEq)]
struct Follower {
    joint: Joint,
    target: f64,
    target_v: f64,
    target_a: f64,
    /// The last command was the target itself.
    is_on_target: bool,
}

impl Trajectory {
    pub fn new(limits: &Limits, n: usize, h: f64, period: f64) -> Self {
        let follower = |joint| Follower { joint, target: 0.0, target_v: 0.0, target_a: 0.0, is_on_target: true };
        Trajectory { joints: Joint::all(limits, n, h, period).into_iter().map(follower).collect() }
    }

    pub fn start(&mut self, positions: &[f64]) {
        for (follower, position) in self.joints.iter_mut().zip(positions) {
            follower.joint.start(*position);
            follower.settle();
        }
    }

    /// The first limit, in the guard's order, that the wanted positions exceed beyond refusal.
    pub fn refusal(&self, measured: &[f64], wanted: &[f64]) -> Option<(Code, usize)> {
        let refused = |(index, ((follower, wanted), measured)): (usize, ((&Follower, &f64), &f64))| {
            follower.joint.refuses(*wanted, *measured).map(|code| (code, index))
        };
        self.joints.iter().zip(wanted).zip(measured).enumerate().filter_map(refused).min()
    }

    /// Moves every joint towards its wanted position.
    pub fn follow(&mut self, measured: &[f64], wanted: &[f64], ruling: &mut Ruling) {
        for (index, ((follower, wanted), measured)) in self.joints.iter_mut().zip(wanted).zip(measured).enumerate() {
            follower.follow(*measured, *wanted, index, ruling);
        }
    }

    /// Moves every joint one step of braking; true once all are at rest.
    pub fn stop(&mut self) -> bool {
        for follower in &mut self.joints {
            follower.joint.stop();
            follower.joint.travel.push(follower.joint.p);
            follower.settle();
        }
        self.joints.iter().all(|follower| follower.joint.is_at_rest())
    }

    pub fn write(&self, target: &mut [f64], velocity: &mut [f64]) {
        for ((follower, target), velocity) in self.joints.iter().zip(target).zip(velocity) {
            *target = follower.joint.p;
            *velocity = follower.joint.v;
        }
    }
}

impl Follower {
    /// Forgets how the target moved.
    fn settle(&mut self) {
        self.target = self.joint.p;
        self.target_v = 0.0;
        self.target_a = 0.0;
        self.is_on_target = false;
    }

    fn follow(&mut self, measured: f64, wanted: f64, index: usize, ruling: &mut Ruling) {
        let Joint { vel, acc, p, v, a, .. } = self.joint;
        let reach = self.joint.reach(measured);
        let (lo, hi) = (reach.lo, reach.hi);
        let (per_h, ramp) = (self.joint.brake.per_h(), self.joint.brake.ramp());
        let target = within(wanted, lo, hi);
        let frame = self.observe(target);

        let direct_v = (target - p) * per_h;
        let direct_a = (direct_v - v) * per_h;
        let broken = [
            (reach.code(wanted - target), (target - wanted).abs() > SAME),
            (Code::Velocity, direct_v.abs() > vel),
            (Code::Acceleration, direct_a.abs() > acc),
            (Code::Jerk, (direct_a - a).abs() > ramp),
        ];
        let is_reachable = !broken.iter().skip(1).any(|(_, is_broken)| *is_broken);
        let keeps_velocity = self.joint.keeps_velocity(direct_v, direct_a);
        let can_stop = is_reachable && self.joint.stops_inside(target, direct_v, direct_a, lo, hi);
        if can_stop && keeps_velocity && (self.is_on_target || frame.is_matched_by(&self.joint, direct_v, direct_a)) {
            self.joint.p = target;
            self.joint.v = direct_v;
            self.joint.a = direct_a;
        } else {
            let pursued = self.pursue(target, &frame);
            let certified = self.joint.certified(p, pursued, lo, hi);
            self.joint.step(certified);
        }
        self.joint.travel.push(self.joint.p);
        self.is_on_target = (self.joint.p - target).abs() <= SAME;
        if (self.joint.p - wanted).abs() <= SAME {
            return;
        }
        for (code, _) in broken.iter().filter(|(_, is_broken)| *is_broken) {
            ruling.limit(*code, index);
        }
        if is_reachable && !keeps_velocity {
            ruling.limit(Code::Velocity, index);
        } else if is_reachable && !can_stop {
            ruling.limit(reach.code(direct_v), index);
        } else if is_reachable && !self.is_on_target {
            // One tick could reach the target, but not come to its velocity: jerk is what keeps it away.
            ruling.limit(Code::Jerk, index);
        }
    }

    /// How the target moves. A jump that the joint could not follow is not a motion: of such a difference and the one
    /// before it the smaller counts, none if their signs differ.
    fn observe(&mut self, target: f64) -> Frame {
        let per_h = self.joint.brake.per_h();
        let (acc, ramp) = (self.joint.acc, self.joint.brake.ramp());
        let v = (target - self.target) * per_h;
        let a = (v - self.target_v) * per_h;
        let jump = (a - self.target_a).abs();
        let seen_v = if a.abs() <= acc { v } else { smaller(v, self.target_v) };
        let seen_a = if jump <= ramp { a } else { smaller(a, self.target_a) };
        let most = MATCHED * acc;
        let h = self.joint.brake.h();
        self.target = target;
        self.target_v = v;
        self.target_a = a;
        Frame {
            v: within(seen_v, -self.joint.vel, self.joint.vel),
            a: within(seen_a, -most, most),
            slack: SAME + 2.0 * h * h * jump.min(ramp),
        }
    }

    /// The acceleration of the next tick that brings the joint to rest on the moving target.
    fn pursue(&self, target: f64, frame: &Frame) -> f64 {
        let (mut low, mut high) = self.joint.window();
        let ends = |a: f64| {
            let v = self.joint.v + self.joint.brake.h() * a;
            let p = self.joint.p + self.joint.brake.h() * v;
            (p - target) + frame.end(&self.joint, v, a)
        };
        let (mut low_end, mut high_end) = (ends(low), ends(high));
        if low_end >= 0.0 {
            return low;
        }
        if high_end <= 0.0 {
            return high;
        }
        // Regula falsi with the Illinois rule; the end grows with the acceleration.
        let mut kept = 0_i32;
        let mut middle = low;
        for _ in 0..EVALUATIONS {
            middle = within((low * high_end - high * low_end) / (high_end - low_end), low, high);
            let end = ends(middle);
            if end.abs() <= FOUND {
                break;
            }
            if end > 0.0 {
                (high, high_end) = (middle, end);
                low_end *= if kept > 0 { 0.5 } else { 1.0 };
                kept = 1;
            } else {
                (low, low_end) = (middle, end);
                high_end *= if kept < 0 { 0.5 } else { 1.0 };
                kept = -1;
            }
        }
        middle
    }
}

/// The target's motion, seen as going on with constant acceleration.
#[derive(Debug, Clone, Copy)]
struct Frame {
    v: f64,
    a: f64,
    /// How far from the target braking may end and still count as on it, rad.
    slack: f64,
}

impl Frame {
    /// Where a joint with `(v, a)` comes to rest in this frame, relative to where it is.
    fn end(&self, joint: &Joint, v: f64, a: f64) -> f64 {
        let authority = Authority { low: -joint.acc - self.a, high: joint.acc - self.a };
        joint.brake.extent(v - self.v, a - self.a, authority).end
    }

    fn is_matched_by(&self, joint: &Joint, v: f64, a: f64) -> bool {
        self.end(joint, v, a).abs() <= self.slack
    }
}

/// The one nearer to zero, zero if the signs differ.
fn smaller(x: f64, y: f64) -> f64 {
    if x * y <= 0.0 {
        0.0
    } else if x.abs() < y.abs() {
        x
    } else {
        y
    }
}
