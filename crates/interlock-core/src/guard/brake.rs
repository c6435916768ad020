//! How a joint comes to rest: exact in discrete time, as an observer of successive positions sees it.
//!
//! With tick `h` the observer computes `v' = (p' - p) / h`, `a' = (v' - v) / h`, `j = (a' - a) / h`. So a state is the
//! last position, velocity and acceleration, and one step is `a' = a + q`, `v' = v + h a'`, `p' = p + h v'`, where `|q|`
//! is at most `jerk * h`, called `ramp` here.
//!
//! `next` is the braking rule. It depends on `(v, a)` only, keeps every limit, and reaches `v = 0, a = 0` exactly.
//! Because it is a rule, the path from a state is the tail of the path from the state before: whoever checked the whole
//! path once may follow it to the end.

use std::cmp::Ordering;

/// Most phases of one path that are worked out before it counts as endless. A path has about ten.
const MAX_PHASES: u32 = 4096;

/// The limits of one joint's motion in one tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Brake {
    /// Tick, s.
    h: f64,
    per_h: f64,
    /// Largest change of acceleration in one tick, rad/s^2.
    ramp: f64,
    per_ramp: f64,
}

/// Accelerations that a braking path may use: the joint's own limit, seen from a frame that accelerates itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Authority {
    /// Not above 0, rad/s^2.
    pub low: f64,
    /// Not below 0, rad/s^2.
    pub high: f64,
}

/// Where a braking path leads, relative to where it starts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Extent {
    /// Smallest displacement, not above 0, rad.
    pub min: f64,
    /// Largest displacement, not below 0, rad.
    pub max: f64,
    /// Displacement at rest, rad.
    pub end: f64,
}

impl Extent {
    const ENDLESS: Extent = Extent { min: f64::NEG_INFINITY, max: f64::INFINITY, end: f64::NAN };

    fn reach(&mut self, displacement: f64) {
        self.min = self.min.min(displacement);
        self.max = self.max.max(displacement);
        self.end = displacement;
    }
}

impl Brake {
    pub(super) fn new(h: f64, jerk: f64) -> Self {
        let ramp = jerk * h;
        Brake { h, per_h: 1.0 / h, ramp, per_ramp: 1.0 / ramp }
    }

    pub(super) fn h(&self) -> f64 {
        self.h
    }

    pub(super) fn per_h(&self) -> f64 {
        self.per_h
    }

    pub(super) fn ramp(&self) -> f64 {
        self.ramp
    }

    /// Velocity still gained while acceleration `a` is ramped to zero: `h * (a - ramp) + h * (a - 2 ramp) + ...`.
    pub(super) fn gain(&self, a: f64) -> f64 {
        let size = a.abs();
        let steps = (size * self.per_ramp).ceil();
        let gained = self.h * (steps - 1.0) * (size - 0.5 * self.ramp * steps);
        if steps < 2.0 {
            0.0
        } else {
            gained.copysign(a)
        }
    }

    /// The acceleration from whose step on a ramp to zero gains exactly `change` of velocity, whatever its size:
    /// the inverse of `h * a + gain(a)`.
    pub(super) fn acceleration_for(&self, change: f64) -> f64 {
        let y = change.abs() * self.per_h * self.per_ramp;
        let steps = ((0.25 + 2.0 * y).sqrt() - 0.5).ceil().max(1.0);
        (self.ramp * (y / steps + 0.5 * (steps - 1.0))).copysign(change)
    }

    /// The next acceleration on the way to rest.
    pub(super) fn next(&self, v: f64, a: f64, authority: Authority) -> f64 {
        within(within(self.acceleration_for(-v), authority.low, authority.high), a - self.ramp, a + self.ramp)
    }

    /// The braking path from `(v, a)`. Closed form per phase: ramp, steady, landing ramp.
    pub(super) fn extent(&self, mut v: f64, mut a: f64, authority: Authority) -> Extent {
        let (h, ramp) = (self.h, self.ramp);
        let mut extent = Extent::default();
        for _ in 0..MAX_PHASES {
            let landing = self.acceleration_for(-v);
            let first = self.next(v, a, authority);
            // Seen so that acceleration has to fall: `side` mirrors the other case.
            let side = match first.partial_cmp(&landing) {
                Some(Ordering::Greater) => 1.0,
                Some(Ordering::Less) => -1.0,
                Some(Ordering::Equal) => {
                    extent.reach(extent.end + self.landing_distance(v, first));
                    return extent;
                }
                None => return Extent::ENDLESS,
            };
            let (speed, pull) = (side * v, side * a);
            let floor = if side > 0.0 { authority.low } else { -authority.high };
            let steady = speed + self.gain(floor);
            if pull <= floor && steady >= -h * floor {
                let steps = (steady / (-h * floor)).floor();
                v += side * h * steps * floor;
                extent.reach(extent.end + side * h * steps * (speed + 0.5 * h * floor * (steps + 1.0)));
                a = side * floor;
                continue;
            }
            let steps = self.ramp_steps(speed, pull, floor);
            if steps >= 2.0 {
                let (fall, triangle) = (ramp * steps, 0.5 * steps * (steps + 1.0));
                v += side * h * (steps * pull - ramp * triangle);
                a = side * (pull - fall);
                let travel = steps * speed + h * triangle * (pull - ramp * (steps + 2.0) / 3.0);
                extent.reach(extent.end + side * h * travel);
            } else {
                a = first;
                v += h * a;
                extent.reach(extent.end + h * v);
            }
        }
        Extent::ENDLESS
    }

    /// How many whole ramp steps can be taken at once without a change of direction in between; 0 or 1: step singly.
    fn ramp_steps(&self, speed: f64, pull: f64, floor: f64) -> f64 {
        let (h, ramp) = (self.h, self.ramp);
        let lands = 0.5 * pull * pull + ramp * self.per_h * speed;
        let until_landing = (pull + lands.max(0.0).sqrt()) * self.per_ramp - 1.0;
        let mut steps = until_landing.min((pull - floor) * self.per_ramp);
        if speed < 0.0 {
            let top = pull - 0.5 * ramp;
            let turns = top * top + 2.0 * ramp * self.per_h * speed;
            if turns >= 0.0 {
                steps = steps.min((top - turns.sqrt()) * self.per_ramp);
            }
        }
        let steps = steps.floor();
        // The estimate is checked exactly: after the last step the ramp to zero must not undershoot, and speed keeps its side.
        let last_pull = pull - ramp * steps;
        let last_speed = speed + h * (steps * pull - 0.5 * ramp * steps * (steps + 1.0));
        let holds = last_pull >= floor && last_speed + self.gain(last_pull) >= 0.0;
        let keeps_side = (speed >= 0.0) == (last_speed > 0.0) || last_speed == 0.0;
        if holds && keeps_side {
            steps
        } else {
            0.0
        }
    }

    /// Distance to rest when `first` is the next acceleration and the ramp to zero from there ends at rest.
    fn landing_distance(&self, v: f64, first: f64) -> f64 {
        let size = first.abs();
        let steps = (size * self.per_ramp).ceil().max(1.0);
        let rest = size - (steps - 1.0) * self.ramp;
        let sum = 0.5 * steps * (steps - 1.0) * (rest + self.ramp * (steps - 2.0) / 3.0);
        (self.h * self.h * sum).copysign(v)
    }

    /// A bound on how far a braking path goes forward (towards the sign of `side`), cheap and never too small.
    pub(super) fn reach(&self, v: f64, a: f64, acc: f64, side: f64) -> f64 {
        let (speed, pull) = (side * v, (side * a).max(0.0));
        let ramp_time = pull * self.per_ramp * self.h;
        let top = speed + 0.5 * pull * ramp_time;
        if top <= 0.0 {
            return 0.0;
        }
        let turn_time = acc * self.per_ramp * self.h;
        top * (0.5 * top / acc + turn_time + ramp_time + 4.0 * self.h)
    }
}

/// `value` brought into `[low, high]`; `low` wins where they cross. Never panics, unlike `f64::clamp`.
pub(super) fn within(value: f64, low: f64, high: f64) -> f64 {
    value.min(high).max(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Any tick, jerk and acceleration limit, and a state within them.
    fn case() -> impl Strategy<Value = (Brake, f64, f64, f64)> {
        (0.5e-3..0.05, 0.5..50.0, 1.0..200.0, -1.0..1.0, -1.0..1.0).prop_map(|(h, acc, per, v, a)| {
            let acc: f64 = acc;
            (Brake::new(h, acc * per), acc, v * 6.0, a * acc)
        })
    }

    fn symmetric(acc: f64) -> Authority {
        Authority { low: -acc, high: acc }
    }

    /// The path step by step, which `extent` has to foretell.
    fn walk(brake: &Brake, mut v: f64, mut a: f64, authority: Authority) -> Option<Extent> {
        let mut extent = Extent::default();
        for _ in 0..2_000_000 {
            if v.abs() < 1e-12 && a.abs() < 1e-9 {
                return Some(extent);
            }
            let next = brake.next(v, a, authority);
            assert!((next - a).abs() <= brake.ramp() * (1.0 + 1e-9), "jerk");
            assert!(next >= authority.low - 1e-9 && next <= authority.high + 1e-9, "acceleration");
            a = next;
            v += brake.h() * a;
            extent.reach(extent.end + brake.h() * v);
        }
        None
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_braking_rule_reaches_rest_and_the_closed_form_knows_where((brake, acc, v, a) in case(), lean in -0.8..0.8) {
            let authority = Authority { low: -acc * (1.0 + lean), high: acc * (1.0 - lean) };
            let a = within(a, authority.low, authority.high);
            let walked = walk(&brake, v, a, authority);
            prop_assert!(walked.is_some(), "never at rest");
            let (walked, foretold) = (walked.unwrap(), brake.extent(v, a, authority));
            let tolerance = 1e-8 * (1.0 + walked.max - walked.min);
            prop_assert!((walked.end - foretold.end).abs() < tolerance, "{walked:?} {foretold:?}");
            prop_assert!((walked.max - foretold.max).abs() < tolerance, "{walked:?} {foretold:?}");
            prop_assert!((walked.min - foretold.min).abs() < tolerance, "{walked:?} {foretold:?}");
        }

        #[test]
        fn the_cheap_bound_is_never_too_small((brake, acc, v, a) in case()) {
            let extent = brake.extent(v, a, symmetric(acc));
            prop_assert!(brake.reach(v, a, acc, 1.0) >= extent.max - 1e-12);
            prop_assert!(brake.reach(v, a, acc, -1.0) >= -extent.min - 1e-12);
        }

        #[test]
        fn a_braking_joint_that_was_not_turning_does_not_turn((brake, acc, v, _a) in case()) {
            let extent = brake.extent(v, 0.0, symmetric(acc));
            let (back, ahead) = if v > 0.0 { (extent.min, extent.max) } else { (extent.max, extent.min) };
            prop_assert!(back.abs() < 1e-12 && (ahead - extent.end).abs() < 1e-12);
        }

        #[test]
        fn the_acceleration_for_a_change_gains_that_change((brake, _acc, change, _a) in case()) {
            let a = brake.acceleration_for(change);
            prop_assert!((brake.h() * a + brake.gain(a) - change).abs() < 1e-9);
        }

        #[test]
        fn the_end_of_the_path_grows_with_acceleration((brake, acc, v, a) in case(), more in 0.0..1.0) {
            let b: f64 = f64::min(a + more * acc, acc);
            let end = |a: f64| {
                let v = v + brake.h() * a;
                brake.h() * v + brake.extent(v, a, symmetric(acc)).end
            };
            prop_assert!(end(b) >= end(a) - 1e-9);
        }
    }
}
