//! What acts when the policy may not: approved behaviours, each a sequence of motions that the guard carries out.
//!
//! Every behaviour begins from the last command. Nothing here repeats a command for ever while it moves, and nothing
//! invents a pose, a velocity or a torque that the robot file does not name.

use crate::guard::{Guard, Motion, Ruling};
use crate::mode::Mode;
use crate::plan::{AfterMove, Behaviour, Bound, CommandKind, Plan};
use crate::sample::Sample;

/// A spring's target that moved with the robot comes to rest within this, s.
const SPRING_STOP_S: f64 = 0.2;
/// A damped robot counts as still below this, rad/s...
const STILL_RAD_PER_S: f64 = 0.1;
/// ...for this long, s...
const STILL_S: f64 = 0.2;
/// ...and at the latest after this, s.
const DAMP_S: f64 = 3.0;
/// A policy that stops by itself with a zero goal has this long, s.
const STAND_S: f64 = 2.0;
/// Share of a limit that a planned move uses.
const USED: f64 = 0.9;
/// A move has arrived within this, rad.
const ARRIVED: f64 = 1e-6;

/// Which behaviour, by what made it necessary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Nothing: the robot is at rest and stays where the last command left it.
    Hold,
    /// Armed outside the start envelope.
    BeforeStart,
    /// The policy is late, dead or refused; or the operator stops it.
    PolicyLost,
    /// The operator's goal is gone.
    GoalLost,
    /// The operator ends the program in good order.
    OnExit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Brake,
    Stay,
    Move,
    Damp,
    Off,
    Policy,
}

/// The robot's safe behaviours and the one that acts.
#[derive(Debug)]
pub struct Fallback {
    behaviours: Behaviours,
    pace: Vec<Pace>,
    tick_s: f64,
    is_spring: bool,
    cause: Cause,
    phase: Phase,
    elapsed: u64,
    still: u64,
    duration_s: f64,
    from: Vec<f64>,
    speed: Vec<f64>,
    target: Vec<f64>,
}

#[derive(Debug)]
struct Behaviours {
    before_start: Behaviour,
    policy_lost: Behaviour,
    goal_lost: Behaviour,
    on_exit: Behaviour,
}

impl Behaviours {
    fn of(&self, cause: Cause) -> &Behaviour {
        match cause {
            Cause::Hold => &Behaviour::StopAndHold,
            Cause::BeforeStart => &self.before_start,
            Cause::PolicyLost => &self.policy_lost,
            Cause::GoalLost => &self.goal_lost,
            Cause::OnExit => &self.on_exit,
        }
    }
}

/// How fast one joint's target may be moved on purpose.
#[derive(Debug, Clone, Copy)]
struct Pace {
    vel: f64,
    acc: f64,
    jerk: f64,
    /// rad/s from the target step per policy period.
    step: f64,
}

impl Fallback {
    /// The behaviours of a plan.
    pub fn new(plan: &Plan) -> Self {
        let (safe, limits, n) = (&plan.safe, &plan.limits, plan.n());
        let period_s = seconds(plan.period_ns());
        let limit = |bounds: &Option<Vec<Bound>>, index: usize| {
            bounds.as_ref().and_then(|all| all.get(index)).map_or(f64::INFINITY, |bound| bound.limit)
        };
        let pace = |index| Pace {
            vel: limit(&limits.vel, index),
            acc: limit(&limits.acc, index),
            jerk: limit(&limits.jerk, index),
            step: limit(&limits.target_step, index) / period_s,
        };
        Fallback {
            behaviours: Behaviours {
                before_start: safe.before_start.clone().unwrap_or(Behaviour::StopAndHold),
                policy_lost: safe.policy_lost.clone(),
                goal_lost: safe.goal_lost.clone(),
                on_exit: safe.on_exit.clone(),
            },
            pace: (0..n).map(pace).collect(),
            tick_s: seconds(plan.timing.tick_ns),
            is_spring: matches!(plan.command.kind, CommandKind::PositionPd | CommandKind::Torque),
            cause: Cause::Hold,
            phase: Phase::Stay,
            elapsed: 0,
            still: 0,
            duration_s: 0.0,
            from: vec![0.0; n],
            speed: vec![0.0; n],
            target: vec![0.0; n],
        }
    }

    /// Whether a cause is answered by the policy itself with a zero goal.
    pub fn is_policy(&self, cause: Cause) -> bool {
        *self.behaviours.of(cause) == Behaviour::PolicyZeroGoal
    }

    /// Whether the acting behaviour needs the policy.
    pub fn uses_policy(&self) -> bool {
        self.phase == Phase::Policy
    }

    /// Whether the drives do not hold the robot where the last command says.
    pub fn is_passive(&self) -> bool {
        matches!(self.phase, Phase::Damp | Phase::Off)
    }

    /// Whether the acting behaviour takes the robot somewhere, or is about to.
    pub fn is_travelling(&self) -> bool {
        let goes = matches!(self.behaviours.of(self.cause), Behaviour::GoTo { .. });
        goes && matches!(self.phase, Phase::Brake | Phase::Move)
    }

    /// What acts now.
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// Whether the acting behaviour has arrived; it goes on all the same.
    pub fn is_done(&self) -> bool {
        match self.phase {
            Phase::Stay | Phase::Off => true,
            Phase::Brake | Phase::Move => false,
            Phase::Damp => self.still >= self.ticks(STILL_S) || self.elapsed >= self.ticks(DAMP_S),
            Phase::Policy => self.elapsed >= self.ticks(STAND_S),
        }
    }

    /// Lets a behaviour act from the last command on.
    pub fn begin(&mut self, cause: Cause, guard: &Guard, sample: &Sample) {
        self.cause = cause;
        self.elapsed = 0;
        self.still = 0;
        let last = guard.command().target();
        for ((from, last), measured) in self.from.iter_mut().zip(last).zip(&sample.pos) {
            *from = if last.is_finite() { *last } else { *measured };
        }
        for ((speed, measured), pace) in self.speed.iter_mut().zip(&sample.vel).zip(&self.pace) {
            let moves = if measured.is_finite() { *measured } else { 0.0 };
            let most = if pace.step.is_finite() && cause != Cause::Hold { pace.step } else { 0.0 };
            *speed = moves.min(most).max(-most);
        }
        self.target.copy_from_slice(&self.from);
        let is_at_rest = if self.is_spring { self.is_slow() } else { guard.is_at_rest() };
        self.phase = match self.behaviours.of(cause) {
            Behaviour::StopAndHold if is_at_rest => Phase::Stay,
            Behaviour::StopAndHold | Behaviour::GoTo { .. } => Phase::Brake,
            Behaviour::Damp { .. } => Phase::Damp,
            Behaviour::PolicyZeroGoal => Phase::Policy,
        };
    }

    /// One tick of the acting behaviour. A behaviour that needs the policy holds when asked to act without it.
    pub fn step(&mut self, guard: &mut Guard, sample: &Sample, mode: Mode) -> Ruling {
        self.elapsed = self.elapsed.saturating_add(1);
        match self.phase {
            Phase::Off => guard.admit_safe(sample, mode, Motion::Off),
            Phase::Damp => self.damp(guard, sample, mode),
            Phase::Brake | Phase::Stay | Phase::Policy => self.brake(guard, sample, mode),
            Phase::Move => self.travel(guard, sample, mode),
        }
    }

    /// One tick in which the policy acted for the behaviour.
    pub fn note_policy(&mut self) {
        self.elapsed = self.elapsed.saturating_add(1);
    }

    fn damp(&mut self, guard: &mut Guard, sample: &Sample, mode: Mode) -> Ruling {
        let is_still = sample.vel.iter().all(|speed| speed.abs() < STILL_RAD_PER_S);
        self.still = if is_still { self.still.saturating_add(1) } else { 0 };
        match self.behaviours.of(self.cause) {
            Behaviour::Damp { kd } => guard.admit_safe(sample, mode, Motion::Damp(kd)),
            _ => guard.admit_safe(sample, mode, Motion::Brake),
        }
    }

    fn brake(&mut self, guard: &mut Guard, sample: &Sample, mode: Mode) -> Ruling {
        let (ruling, is_at_rest) = if self.is_spring {
            // The target goes on with the robot's own speed and slows down to rest.
            let time = (self.seconds_elapsed()).min(SPRING_STOP_S);
            let share = time * (1.0 - 0.5 * time / SPRING_STOP_S);
            for ((target, from), speed) in self.target.iter_mut().zip(&self.from).zip(&self.speed) {
                *target = from + speed * share;
            }
            let is_at_rest = time >= SPRING_STOP_S || self.is_slow();
            (guard.admit_safe(sample, mode, Motion::Toward(&self.target)), is_at_rest)
        } else {
            let ruling = guard.admit_safe(sample, mode, Motion::Brake);
            (ruling, guard.is_at_rest())
        };
        if self.phase == Phase::Brake && is_at_rest {
            if matches!(self.behaviours.of(self.cause), Behaviour::GoTo { .. }) {
                self.plan_move(guard);
            } else {
                self.phase = Phase::Stay;
            }
        }
        ruling
    }

    fn plan_move(&mut self, guard: &Guard) {
        if !self.is_spring {
            self.target.copy_from_slice(guard.command().target());
        }
        self.from.copy_from_slice(&self.target);
        let Behaviour::GoTo { pose, duration_ns, .. } = self.behaviours.of(self.cause) else { return };
        // Peaks of the quintic: 15/8 d/T, 10/sqrt(3) d/T^2, 60 d/T^3.
        let needed = |((from, to), pace): ((&f64, &f64), &Pace)| {
            let distance = (to - from).abs() / USED;
            let by_speed = 1.875 * distance / pace.vel.min(pace.step);
            by_speed.max((5.7736 * distance / pace.acc).sqrt()).max((60.0 * distance / pace.jerk).cbrt())
        };
        let slowest = self.from.iter().zip(pose).zip(&self.pace).map(needed).fold(0.0, f64::max);
        self.duration_s = seconds(*duration_ns).max(slowest);
        self.phase = Phase::Move;
        self.elapsed = 0;
    }

    fn travel(&mut self, guard: &mut Guard, sample: &Sample, mode: Mode) -> Ruling {
        let share = (self.seconds_elapsed() / self.duration_s).min(1.0);
        let smooth = share * share * share * (10.0 - 15.0 * share + 6.0 * share * share);
        let Behaviour::GoTo { pose, then, .. } = self.behaviours.of(self.cause) else {
            return guard.admit_safe(sample, mode, Motion::Brake);
        };
        for ((target, from), to) in self.target.iter_mut().zip(&self.from).zip(pose) {
            *target = from + (to - from) * smooth;
        }
        let ruling = guard.admit_safe(sample, mode, Motion::Toward(&self.target));
        let sent = guard.command().target();
        let is_there = self.is_spring || sent.iter().zip(pose).all(|(sent, to)| (sent - to).abs() < ARRIVED);
        if share >= 1.0 && is_there {
            match then {
                AfterMove::TorqueOff => self.phase = Phase::Off,
                AfterMove::Hold => self.settle(),
            }
        }
        ruling
    }

    /// Stays at the target reached.
    fn settle(&mut self) {
        self.from.copy_from_slice(&self.target);
        self.speed.fill(0.0);
        self.phase = Phase::Stay;
    }

    fn is_slow(&self) -> bool {
        self.speed.iter().all(|speed| *speed == 0.0)
    }

    fn ticks(&self, span_s: f64) -> u64 {
        ticks(span_s, self.tick_s)
    }

    #[allow(clippy::cast_precision_loss, reason = "2^53 ticks are longer than any robot lives")]
    fn seconds_elapsed(&self) -> f64 {
        self.elapsed as f64 * self.tick_s
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few seconds over at least a microsecond")]
fn ticks(span_s: f64, tick_s: f64) -> u64 {
    (span_s / tick_s).ceil() as u64
}

#[allow(clippy::cast_precision_loss, reason = "spans of a plan are at most ten minutes")]
fn seconds(span_ns: i64) -> f64 {
    span_ns as f64 * 1e-9
}
