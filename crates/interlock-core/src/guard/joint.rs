//! One joint's commanded motion and the promise that it can always be stopped inside its limits.

use super::brake::{within, Authority, Brake};
use super::window::Window;
use crate::code::Code;
use crate::plan::{Bound, Limits, Range};

/// Differences below this are rounding, rad.
pub(super) const SAME: f64 = 2e-9;
/// Kept from the position limits so that rounding never crosses them, rad.
const MARGIN: f64 = 1e-9;
/// Halvings when a wanted acceleration has to give way to the position limit.
const HALVINGS: u32 = 24;
/// Stands for "no limit" where a quantity is not applicable, rad and rad/s.
const FAR: f64 = 1e9;

/// Limits of one joint and its last command: position, velocity, acceleration as an observer of successive commands
/// computes them. Every state that was admitted has a braking path inside the limits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Joint {
    pub brake: Brake,
    pub lo: f64,
    pub hi: f64,
    pub vel: f64,
    pub acc: f64,
    pub travel: Window,
    /// Largest distance of the command from the measured position, rad.
    distance: f64,
    /// Policy period, s: what is wanted is a demand to be there within one.
    period: f64,
    refuse: Refuse,
    pub p: f64,
    pub v: f64,
    pub a: f64,
}

#[derive(Debug, Clone, PartialEq)]
struct Refuse {
    lo: f64,
    hi: f64,
    vel: f64,
    acc: f64,
    jerk: f64,
    distance: f64,
}

/// Where a joint has to stay, and which limit says so on either side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reach {
    pub lo: f64,
    pub hi: f64,
    lo_code: Code,
    hi_code: Code,
}

impl Reach {
    pub fn new(lo: f64, hi: f64) -> Self {
        Reach { lo, hi, lo_code: Code::Position, hi_code: Code::Position }
    }

    /// The part of it that another limit leaves.
    pub fn and(self, (lo, hi): (f64, f64), code: Code) -> Self {
        let (lo, lo_code) = if lo > self.lo { (lo, code) } else { (self.lo, self.lo_code) };
        let (hi, hi_code) = if hi < self.hi { (hi, code) } else { (self.hi, self.hi_code) };
        Reach { lo, hi, lo_code, hi_code }
    }

    /// The limit that ends it towards the sign of `side`.
    pub fn code(&self, side: f64) -> Code {
        if side < 0.0 {
            self.lo_code
        } else {
            self.hi_code
        }
    }
}

impl Joint {
    /// The joints of a plan's limits; a quantity without a limit gets one that cannot act.
    pub fn all(limits: &Limits, n: usize, h: f64, period: f64) -> Vec<Joint> {
        (0..n)
            .map(|index| {
                let range = limits.pos.as_ref().and_then(|all| all.get(index)).copied().unwrap_or(Range {
                    lo: -FAR,
                    hi: FAR,
                    refuse_lo: -FAR,
                    refuse_hi: FAR,
                });
                let bound = |bounds: &Option<Vec<Bound>>, otherwise: f64| {
                    let free = Bound { limit: otherwise, refuse_beyond: f64::INFINITY };
                    bounds.as_ref().and_then(|all| all.get(index)).copied().unwrap_or(free)
                };
                let distance = bound(&limits.distance, f64::INFINITY);
                let travel = limits.window_travel.as_ref().and_then(|all| all.get(index)).copied();
                let vel = bound(&limits.vel, FAR);
                let acc = bound(&limits.acc, 2.0 * vel.limit / h);
                let jerk = bound(&limits.jerk, 2.0 * acc.limit / h);
                Joint {
                    brake: Brake::new(h, jerk.limit),
                    lo: range.lo + MARGIN,
                    hi: range.hi - MARGIN,
                    vel: vel.limit,
                    acc: acc.limit,
                    travel: Window::new(travel, h),
                    distance: distance.limit,
                    period,
                    refuse: Refuse {
                        lo: range.refuse_lo,
                        hi: range.refuse_hi,
                        vel: vel.refuse_beyond,
                        acc: acc.refuse_beyond,
                        jerk: jerk.refuse_beyond,
                        distance: distance.refuse_beyond,
                    },
                    p: 0.0,
                    v: 0.0,
                    a: 0.0,
                }
            })
            .collect()
    }

    /// Begins at rest, inside the limits; where it was if the position is no number.
    pub fn start(&mut self, position: f64) {
        let position = if position.is_finite() { position } else { self.p };
        self.p = within(position, self.lo, self.hi);
        self.v = 0.0;
        self.a = 0.0;
        self.travel.start(self.p);
    }

    /// Policy period, s.
    pub fn period(&self) -> f64 {
        self.period
    }

    pub fn is_at_rest(&self) -> bool {
        self.v == 0.0 && self.a == 0.0
    }

    pub fn authority(&self) -> Authority {
        Authority { low: -self.acc, high: self.acc }
    }

    /// Whether a position may be asked for at all.
    pub fn refuses_position(&self, position: f64) -> bool {
        position < self.refuse.lo || position > self.refuse.hi
    }

    /// The first limit whose `refuse_beyond` a demand for `velocity` exceeds: to have it, and to have changed to it,
    /// within one policy period.
    pub fn refuses_velocity(&self, velocity: f64) -> Option<Code> {
        let acceleration = (velocity - self.v) / self.period;
        let jerk = (acceleration - self.a) / self.period;
        if velocity.abs() > self.refuse.vel {
            Some(Code::Velocity)
        } else if acceleration.abs() > self.refuse.acc {
            Some(Code::Acceleration)
        } else if jerk.abs() > self.refuse.jerk {
            Some(Code::Jerk)
        } else {
            None
        }
    }

    /// The first limit whose `refuse_beyond` a demand for `position` exceeds. The way from the last command to it is a
    /// demand on one policy period, not on one tick: a policy whose actions stand between ticks asks for steps.
    ///
    /// A joint whose distance to the command is limited must have been measured.
    pub fn refuses(&self, position: f64, measured: f64) -> Option<Code> {
        let is_away = |from: f64| (from - measured).abs() > self.refuse.distance;
        if self.distance < f64::INFINITY && !measured.is_finite() {
            Some(Code::NotFinite)
        } else if self.refuses_position(position) {
            Some(Code::Position)
        } else if let Some(code) = self.refuses_velocity((position - self.p) / self.period) {
            Some(code)
        } else if self.travel.refuses(position) {
            Some(Code::WindowTravel)
        } else if is_away(position) || is_away(self.p) {
            Some(Code::Distance)
        } else {
            None
        }
    }

    /// Where the next position and the braking path behind it have to stay. Where the robot itself moved away from the
    /// command, the command may come back to it, but go no further.
    pub fn reach(&self, measured: f64) -> Reach {
        let reach = Reach::new(self.lo, self.hi).and(self.travel.bounds(), Code::WindowTravel);
        if measured.is_finite() {
            let around = ((measured - self.distance).min(self.p), (measured + self.distance).max(self.p));
            reach.and(around, Code::Distance)
        } else {
            reach
        }
    }

    /// The accelerations that jerk, acceleration and velocity limits leave for the next tick. Never empty: ramping the
    /// acceleration down is always inside.
    pub fn window(&self) -> (f64, f64) {
        let ramp = self.brake.ramp();
        let low = (self.a - ramp).max(-self.acc).max(self.brake.acceleration_for(-self.vel - self.v));
        let high = (self.a + ramp).min(self.acc).min(self.brake.acceleration_for(self.vel - self.v));
        (low, high)
    }

    /// Whether a state's velocity stays inside its limit while the acceleration is ramped down.
    pub fn keeps_velocity(&self, v: f64, a: f64) -> bool {
        let gained = 0.5 * a * a * self.brake.h() / self.brake.ramp();
        v.abs() + gained <= self.vel || (v.abs() <= self.vel && (v + self.brake.gain(a)).abs() <= self.vel)
    }

    /// Whether the braking path from a state stays inside `[lo, hi]`.
    pub fn stops_inside(&self, p: f64, v: f64, a: f64, lo: f64, hi: f64) -> bool {
        let span = self.travel.limit();
        let (ahead, behind) = (self.brake.reach(v, a, self.acc, 1.0), self.brake.reach(v, a, self.acc, -1.0));
        if p + ahead <= hi && p - behind >= lo && ahead + behind <= span {
            return true;
        }
        let extent = self.brake.extent(v, a, self.authority());
        p + extent.max <= hi && p + extent.min >= lo && extent.max - extent.min <= span
    }

    /// `wanted` if braking stays possible after it, else the nearest acceleration towards the braking rule after which
    /// it does. `from` is where the joint is now.
    pub fn certified(&self, from: f64, wanted: f64, lo: f64, hi: f64) -> f64 {
        let is_safe = |a: f64| {
            let v = self.v + self.brake.h() * a;
            self.stops_inside(from + self.brake.h() * v, v, a, lo, hi)
        };
        if is_safe(wanted) {
            return wanted;
        }
        let (mut safe, mut unsafe_) = (self.brake.next(self.v, self.a, self.authority()), wanted);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (safe + unsafe_);
            if is_safe(middle) {
                safe = middle;
            } else {
                unsafe_ = middle;
            }
        }
        safe
    }

    /// Takes one step with the acceleration `a`.
    pub fn step(&mut self, a: f64) {
        self.a = a;
        self.v += self.brake.h() * a;
        self.p += self.brake.h() * self.v;
    }

    /// Takes one step of the braking rule.
    pub fn stop(&mut self) {
        if self.is_at_rest() {
            return;
        }
        self.step(self.brake.next(self.v, self.a, self.authority()));
        // What rounding leaves over is below what an observer can see.
        if self.v.abs() < 1e-12 && self.a.abs() < 1e-9 {
            self.v = 0.0;
            self.a = 0.0;
        }
    }
}
