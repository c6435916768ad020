//! PD targets: the far end of a spring, bounded by what the spring does.
//!
//! Bounds in order: position range, predicted torque `kp * (target - q) - kd * dq` and its change since the last tick,
//! travel of the target within a window, target step per policy period. They are intersected; where they do not meet,
//! torque wins over position, position over travel and travel over step, because torque is what the robot feels. Torque
//! is limited by moving the target, every tick anew from what is measured.

use super::brake::within;
use super::ruling::Ruling;
use super::window::Window;
use crate::code::Code;
use crate::plan::{Bound, Plan};
use crate::sample::Sample;

/// Differences below this are rounding, rad.
const SAME: f64 = 2e-9;
/// Proportional gains below this cannot move a torque, N*m/rad.
const NO_SPRING: f64 = 1e-9;
/// No limit.
const FREE: Bound = Bound { limit: f64::INFINITY, refuse_beyond: f64::INFINITY };

/// Every joint's spring.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Springs {
    joints: Vec<Spring>,
}

#[derive(Debug, Clone, PartialEq)]
struct Spring {
    kp: f64,
    kd: f64,
    lo: f64,
    hi: f64,
    refuse_lo: f64,
    refuse_hi: f64,
    torque: Bound,
    step: Bound,
    vel_measured: Bound,
    /// Largest change of the predicted torque in one tick, N*m.
    ramp: f64,
    /// Refused change of torque per second, N*m/s.
    refuse_rate: f64,
    /// Policy period, s.
    period: f64,
    travel: Window,
    is_too_stiff: bool,
    /// Torque at the last command, predicted from what was measured then, N*m.
    felt: f64,
    /// The target sent last.
    target: f64,
    /// The target sent at the last policy period's start, brought into the range: steps count from it.
    anchor: f64,
    /// What the policy wanted then: its own steps count from it.
    wanted: f64,
    /// Gain after the torque limit acted on a joint without spring.
    damping: f64,
}

/// What is measured of one joint, if it is a number.
#[derive(Debug, Clone, Copy)]
struct Measured {
    q: f64,
    dq: f64,
}

fn measured(sample: &Sample) -> impl Iterator<Item = Option<Measured>> + '_ {
    let numbers = |(q, dq): (&f64, &f64)| (q.is_finite() && dq.is_finite()).then_some(Measured { q: *q, dq: *dq });
    sample.pos.iter().zip(&sample.vel).map(numbers)
}

impl Springs {
    pub fn new(plan: &Plan) -> Self {
        let limits = &plan.limits;
        let bound = |bounds: &Option<Vec<Bound>>, index: usize| {
            bounds.as_ref().and_then(|all| all.get(index)).copied().unwrap_or(FREE)
        };
        let most = |gains: &Option<Vec<f64>>, index: usize| {
            gains.as_ref().and_then(|all| all.get(index)).copied().unwrap_or(f64::INFINITY)
        };
        let (h, period) = (super::seconds(plan.timing.tick_ns), super::seconds(plan.period_ns()));
        let gain = |gains: &[f64], index: usize| gains.get(index).copied().unwrap_or(0.0);
        let joint = |index: usize| {
            let (kp, kd) = (gain(&plan.command.kp, index), gain(&plan.command.kd, index));
            let range = limits.pos.as_ref().and_then(|all| all.get(index));
            Spring {
                kp,
                kd,
                lo: range.map_or(f64::NEG_INFINITY, |range| range.lo),
                hi: range.map_or(f64::INFINITY, |range| range.hi),
                refuse_lo: range.map_or(f64::NEG_INFINITY, |range| range.refuse_lo),
                refuse_hi: range.map_or(f64::INFINITY, |range| range.refuse_hi),
                torque: bound(&limits.torque, index),
                step: bound(&limits.target_step, index),
                vel_measured: bound(&limits.vel_measured, index),
                ramp: bound(&limits.torque_rate, index).limit * h,
                refuse_rate: bound(&limits.torque_rate, index).refuse_beyond,
                period,
                travel: Window::new(limits.window_travel.as_ref().and_then(|all| all.get(index)).copied(), h),
                felt: 0.0,
                is_too_stiff: kp > most(&limits.kp_max, index) || kd > most(&limits.kd_max, index),
                target: 0.0,
                anchor: 0.0,
                wanted: 0.0,
                damping: kd,
            }
        };
        Springs { joints: (0..plan.n()).map(joint).collect() }
    }

    /// Begins where the robot is, as far as that is known.
    pub fn start(&mut self, positions: &[f64]) {
        for (joint, position) in self.joints.iter_mut().zip(positions) {
            let position = if position.is_finite() { *position } else { joint.target };
            joint.target = within(position, joint.lo, joint.hi);
            joint.anchor = joint.target;
            joint.wanted = joint.target;
            joint.felt = 0.0;
            joint.travel.start(joint.target);
        }
    }

    /// The first limit, in the guard's order, that the wanted targets exceed beyond refusal.
    pub fn refusal(&self, sample: &Sample, wanted: &[f64]) -> Option<(Code, usize)> {
        let refused = |(index, ((joint, wanted), measured)): (usize, ((&Spring, &f64), Option<Measured>))| {
            let code = measured.map_or(Some(Code::NotFinite), |measured| joint.refuses(measured, *wanted));
            code.map(|code| (code, index))
        };
        self.joints.iter().zip(wanted).zip(measured(sample)).enumerate().filter_map(refused).min()
    }

    /// Brings every target inside the bounds. `counts_steps` false: a safe behaviour, which paces itself.
    pub fn follow(&mut self, sample: &Sample, wanted: &[f64], counts_steps: bool, ruling: &mut Ruling) {
        for (index, ((joint, wanted), measured)) in self.joints.iter_mut().zip(wanted).zip(measured(sample)).enumerate()
        {
            joint.follow(measured, *wanted, counts_steps, index, ruling);
        }
    }

    /// Brings the anchors inside the bounds: they are what is held.
    pub fn hold(&mut self, sample: &Sample, ruling: &mut Ruling) {
        for (index, (joint, measured)) in self.joints.iter_mut().zip(measured(sample)).enumerate() {
            let anchor = joint.anchor;
            joint.follow(measured, anchor, false, index, ruling);
        }
    }

    /// A policy period begins with what was just admitted.
    pub fn anchor(&mut self, wanted: &[f64]) {
        for (joint, wanted) in self.joints.iter_mut().zip(wanted) {
            joint.anchor = within(joint.target, joint.lo, joint.hi);
            joint.wanted = *wanted;
        }
    }

    /// Steps are counted from what was sent last.
    pub fn anchor_here(&mut self) {
        for joint in &mut self.joints {
            joint.anchor = within(joint.target, joint.lo, joint.hi);
            joint.wanted = joint.anchor;
        }
    }

    /// What the robot feels now, from elsewhere: changes of torque are counted from it.
    pub fn feel(&mut self, torque: &[f64]) {
        for (joint, torque) in self.joints.iter_mut().zip(torque) {
            joint.felt = within(*torque, -joint.torque.limit, joint.torque.limit);
        }
    }

    pub fn write(&self, target: &mut [f64], kp: &mut [f64], kd: &mut [f64]) {
        for (((joint, target), kp), kd) in self.joints.iter().zip(target).zip(kp).zip(kd) {
            *target = joint.target;
            *kp = joint.kp;
            *kd = joint.damping;
        }
    }

    /// The torque of each spring at what is measured, inside the torque limit; 0 where nothing is known.
    pub fn write_torque(&self, sample: &Sample, torque: &mut [f64]) {
        for ((joint, measured), torque) in self.joints.iter().zip(measured(sample)).zip(torque) {
            let predicted = measured.map_or(0.0, |m| joint.kp * (joint.target - m.q) - joint.damping * m.dq);
            *torque = within(predicted, -joint.torque.limit, joint.torque.limit);
        }
    }

    /// Damping of each joint such that its torque stays inside the limit; returns whether a limit acted, per joint.
    /// Damping answers the robot's own motion at once: its torque may change at any rate.
    pub fn write_damping(&mut self, sample: &Sample, kd: &[f64], out: &mut [f64], ruling: &mut Ruling) {
        let joints = self.joints.iter_mut().zip(measured(sample)).zip(kd).zip(out);
        for (index, (((joint, measured), kd), out)) in joints.enumerate() {
            *out = joint.damped(measured, *kd);
            joint.felt = measured.map_or(joint.felt, |measured| -*out * measured.dq);
            if *out < *kd {
                ruling.limit(Code::Torque, index);
            }
        }
    }
}

impl Spring {
    fn refuses(&self, measured: Measured, wanted: f64) -> Option<Code> {
        let target = within(wanted, self.lo, self.hi);
        let predicted = self.kp * (target - measured.q) - self.kd * measured.dq;
        let is_outside = |target: f64| target < self.refuse_lo || target > self.refuse_hi;
        let near = |(low, high): (f64, f64)| within(target, low, high);
        let (torque, feasible) = (near(self.feasible(measured)), near(self.gradual(measured)));
        let rate = (predicted - self.felt).abs() / self.period;
        if is_outside(wanted) {
            Some(Code::Position)
        } else if predicted.abs() > self.torque.refuse_beyond || is_outside(torque) {
            Some(Code::Torque)
        } else if (self.kp >= NO_SPRING && rate > self.refuse_rate) || is_outside(feasible) {
            Some(Code::TorqueRate)
        } else if self.travel.refuses(target) {
            Some(Code::WindowTravel)
        } else if (wanted - self.wanted).abs() > self.step.refuse_beyond {
            Some(Code::TargetStep)
        } else if measured.dq.abs() > self.vel_measured.refuse_beyond {
            Some(Code::MeasuredVelocity)
        } else if self.is_too_stiff {
            Some(Code::Gain)
        } else {
            None
        }
    }

    /// Targets whose predicted torque is inside the limit.
    fn feasible(&self, measured: Measured) -> (f64, f64) {
        self.targets(measured, -self.torque.limit, self.torque.limit)
    }

    /// Those of them whose torque changes no faster than it may since the last command. Never empty: what was felt was
    /// inside the limit.
    fn gradual(&self, measured: Measured) -> (f64, f64) {
        let most = self.torque.limit;
        self.targets(measured, (self.felt - self.ramp).max(-most), (self.felt + self.ramp).min(most))
    }

    /// Targets whose predicted torque lies in `[low, high]`; any, for a joint without stiffness.
    fn targets(&self, measured: Measured, low: f64, high: f64) -> (f64, f64) {
        if self.kp < NO_SPRING {
            return (f64::NEG_INFINITY, f64::INFINITY);
        }
        let relaxed = measured.q + self.kd * measured.dq / self.kp;
        (relaxed + low / self.kp, relaxed + high / self.kp)
    }

    fn damped(&self, measured: Option<Measured>, kd: f64) -> f64 {
        let speed = measured.map_or(0.0, |measured| measured.dq.abs());
        if kd * speed > self.torque.limit {
            self.torque.limit / speed
        } else {
            kd
        }
    }

    fn follow(
        &mut self,
        measured: Option<Measured>,
        wanted: f64,
        counts_steps: bool,
        index: usize,
        ruling: &mut Ruling,
    ) {
        let in_range = within(wanted, self.lo, self.hi);
        let free = (f64::NEG_INFINITY, f64::INFINITY);
        let (low, high) = measured.map_or(free, |measured| self.feasible(measured));
        let in_torque = within(in_range, low, high);
        let gradual = measured.map_or(free, |measured| self.gradual(measured));
        let in_rate = within(in_torque, gradual.0, gradual.1);
        let travel = self.travel.bounds();
        let in_travel = within(in_rate, travel.0, travel.1);
        let step = if counts_steps { self.step.limit } else { f64::INFINITY };
        let in_step = within(in_travel, self.anchor - step, self.anchor + step);
        // A bound may not bring back what one before it took away: of those the nearest point wins.
        let (low, high) = meet(travel, meet((self.lo, self.hi), gradual));
        self.target = within(in_step, low, high);
        self.travel.push(self.target);
        self.damping = if self.kp < NO_SPRING { self.damped(measured, self.kd) } else { self.kd };
        if let Some(measured) = measured {
            let predicted = self.kp * (self.target - measured.q) - self.damping * measured.dq;
            self.felt = within(predicted, -self.torque.limit, self.torque.limit);
        }

        if (in_range - wanted).abs() > SAME {
            ruling.limit(Code::Position, index);
        }
        if (in_torque - in_range).abs() > SAME || self.damping < self.kd {
            ruling.limit(Code::Torque, index);
        }
        if (in_rate - in_torque).abs() > SAME {
            ruling.limit(Code::TorqueRate, index);
        }
        if (in_travel - in_rate).abs() > SAME && (self.target - in_rate).abs() > SAME {
            ruling.limit(Code::WindowTravel, index);
        }
        if (in_step - in_travel).abs() > SAME && (self.target - in_travel).abs() > SAME {
            ruling.limit(Code::TargetStep, index);
        }
        if measured.is_some_and(|measured| measured.dq.abs() > self.vel_measured.limit) {
            ruling.notice(Code::MeasuredVelocity, index);
        }
    }
}

/// The intersection of two intervals, or the point of `second` nearest to `first`.
fn meet(first: (f64, f64), second: (f64, f64)) -> (f64, f64) {
    (within(first.0, second.0, second.1), within(first.1, second.0, second.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Plan::check` refuses such gains already; the guard does not rely on it.
    #[test]
    fn a_command_with_gains_above_the_robots_is_refused() {
        let mut spring = Spring {
            kp: 1.0,
            kd: 0.1,
            lo: -1.0,
            hi: 1.0,
            refuse_lo: -1.0,
            refuse_hi: 1.0,
            torque: FREE,
            step: FREE,
            vel_measured: FREE,
            ramp: f64::INFINITY,
            refuse_rate: f64::INFINITY,
            period: 0.01,
            travel: Window::new(None, 0.01),
            felt: 0.0,
            is_too_stiff: false,
            target: 0.0,
            anchor: 0.0,
            wanted: 0.0,
            damping: 0.1,
        };
        let still = Measured { q: 0.0, dq: 0.0 };
        assert_eq!(spring.refuses(still, 0.0), None);
        spring.is_too_stiff = true;
        assert_eq!(spring.refuses(still, 0.0), Some(Code::Gain));
    }
}
