//! The one place through which everything goes that reaches an actuator.
//!
//! The list, in order: generation and sequence, finite (before any clamp), dimension, freshness of the measured state,
//! validity of the chunk, and then, as far as they apply to the kind of command: position, velocity, acceleration, jerk,
//! torque, torque rate, travel within a window, distance to the measured position, target step, measured velocity, gains.
//! Between a `limit` and its `refuse_beyond` the command is limited and
//! the list goes on; the first refusal ends it, nothing of the command is used, and the caller sends the safe behaviour's
//! next motion in the same tick. A command for several joints goes out whole or not at all.

mod brake;
mod joint;
mod pd;
mod ruling;
mod safe_command;
mod torque;
mod trajectory;
mod velocity;
mod window;

use crate::code::Code;
use crate::mode::Mode;
use crate::plan::{CommandKind, Limits, Plan, PlanError};
use crate::sample::Sample;
use crate::schedule::Wanted;
use pd::Springs;
pub use ruling::{Codes, Ruling, RulingKind};
pub use safe_command::{SafeCommand, Wire};
use torque::Torques;
use trajectory::Trajectory;
use velocity::Speeds;

/// A measured position may lie outside the limits by this share of the range before arming is refused: drives sag.
const SAG: f64 = 0.005;

/// What surrounds a command.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The tick's due time.
    pub now_ns: i64,
    /// The newest sample.
    pub sample: &'a Sample,
    /// Mode in which the command is sent.
    pub mode: Mode,
    /// The tick is the first of a policy period.
    pub starts_period: bool,
    /// How much of the sample's age is our own lateness, as the align stage judged it.
    pub excused_ns: i64,
}

/// What a safe behaviour may ask of the guard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Motion<'a> {
    /// Come to rest from the last command and stay (position, velocity), or stay at the target that stood at
    /// [`Guard::hold_here`] (PD, torque with gains).
    Brake,
    /// Go to these positions, rad, as fast as the limits allow.
    Toward(&'a [f64]),
    /// No stiffness; damping per joint, N*m*s/rad. A kind of command without damping brakes.
    Damp(&'a [f64]),
    /// The drives let go.
    Off,
}

/// The guard's list for one plan, and what was sent last.
#[derive(Debug)]
pub struct Guard {
    law: Law,
    /// The PD law of PD commands, and of holding by torque.
    springs: Springs,
    is_host_pd: bool,
    ranges: Vec<(f64, f64)>,
    max_age_ns: i64,
    generation: u32,
    seq: u64,
    is_at_rest: bool,
    command: SafeCommand,
}

#[derive(Debug)]
enum Law {
    Position(Trajectory),
    PositionPd,
    Velocity(Speeds),
    Torque(Torques),
}

impl Guard {
    /// A guard that enforces the plan's limits.
    ///
    /// # Errors
    /// A plan that [`Plan::check`] refuses.
    pub fn new(plan: &Plan) -> Result<Self, PlanError> {
        plan.check()?;
        Ok(Guard::build(plan))
    }

    /// The simulation gate's comparison run: everything of the list but the limits. Not for anything that moves.
    ///
    /// # Errors
    /// A plan that [`Plan::check`] refuses.
    pub fn without_limits(plan: &Plan) -> Result<Self, PlanError> {
        plan.check()?;
        Ok(Guard::build(&Plan { limits: Limits::default(), ..plan.clone() }))
    }

    fn build(plan: &Plan) -> Self {
        let (n, limits) = (plan.n(), &plan.limits);
        let (h, period) = (seconds(plan.timing.tick_ns), seconds(plan.period_ns()));
        let law = match plan.command.kind {
            CommandKind::Position => Law::Position(Trajectory::new(limits, n, h, period)),
            CommandKind::PositionPd => Law::PositionPd,
            CommandKind::Velocity => Law::Velocity(Speeds::new(limits, n, h, period)),
            CommandKind::Torque => Law::Torque(Torques::new(limits, n, h, period)),
        };
        let with_sag = |range: &crate::plan::Range| {
            let sag = SAG * (range.hi - range.lo);
            (range.lo - sag, range.hi + sag)
        };
        Guard {
            law,
            springs: Springs::new(plan),
            is_host_pd: plan.command.host_pd,
            ranges: limits.pos.iter().flatten().map(with_sag).collect(),
            max_age_ns: plan.timing.max_age_state_ns,
            generation: 0,
            seq: 0,
            is_at_rest: true,
            command: SafeCommand::new(n),
        }
    }

    /// Forgets the last command and begins at rest where the robot is.
    pub fn start(&mut self, sample: &Sample) {
        match &mut self.law {
            Law::Position(trajectory) => trajectory.start(&sample.pos),
            Law::PositionPd => {}
            Law::Velocity(speeds) => speeds.start(&sample.pos),
            Law::Torque(torques) => torques.start(),
        }
        self.springs.start(&sample.pos);
        self.is_at_rest = true;
        self.fill(sample, Mode::Idle, Fill::Law, &mut Ruling::default());
        self.command.wire = Wire::Off;
    }

    /// Puts a generation in charge; commands of others are refused.
    pub fn put_in_charge(&mut self, generation: u32) {
        self.generation = generation;
        self.seq = 0;
        self.springs.anchor_here();
    }

    /// Where the measured state lies outside the position limits, if anywhere; 0.5 % of the range counts as sag.
    ///
    /// # Errors
    /// `NotFinite` or `OutsideLimits`, with the joint.
    pub fn check_inside(&self, sample: &Sample) -> Result<(), (Code, usize)> {
        if let Some(joint) = sample.pos.iter().position(|position| !position.is_finite()) {
            return Err((Code::NotFinite, joint));
        }
        let is_outside = |(position, (lo, hi)): (&f64, &(f64, f64))| position < lo || position > hi;
        let outside = sample.pos.iter().zip(&self.ranges).position(is_outside);
        outside.map_or(Ok(()), |joint| Err((Code::OutsideLimits, joint)))
    }

    /// Judges what the policy wants (SI, robot order). Unless refused, [`Guard::command`] is what may be sent.
    pub fn admit(&mut self, situation: &Situation<'_>, wanted: &Wanted, target: &[f64]) -> Ruling {
        let mut ruling = Ruling::default();
        if let Some((code, joint)) = self.refusal(situation, wanted, target) {
            ruling.refuse(code, joint);
            return ruling;
        }
        self.seq = wanted.seq;
        self.is_at_rest = false;
        let sample = situation.sample;
        match &mut self.law {
            Law::Position(trajectory) => trajectory.follow(&sample.pos, target, &mut ruling),
            Law::PositionPd => self.springs.follow(sample, target, true, &mut ruling),
            Law::Velocity(speeds) => speeds.follow(&sample.pos, target, &mut ruling),
            Law::Torque(torques) => torques.follow(&sample.vel, target, &mut ruling),
        }
        if situation.starts_period {
            self.springs.anchor(target);
        }
        self.fill(sample, situation.mode, Fill::Law, &mut ruling);
        ruling
    }

    fn refusal(&self, situation: &Situation<'_>, wanted: &Wanted, target: &[f64]) -> Option<(Code, Option<usize>)> {
        let sample = situation.sample;
        let age_ns = situation.now_ns.saturating_sub(sample.capture_ns);
        if !wanted.valid {
            return Some((Code::NoValidAction, None));
        }
        if wanted.generation != self.generation {
            return Some((Code::RetiredGeneration, None));
        }
        if wanted.seq < self.seq {
            return Some((Code::OldSequence, None));
        }
        if let Some(joint) = target.iter().position(|value| !value.is_finite()) {
            return Some((Code::NotFinite, Some(joint)));
        }
        let n = self.command.target.len();
        if target.len() != n || sample.pos.len() != n || sample.vel.len() != n {
            return Some((Code::Dimension, None));
        }
        if age_ns > self.max_age_ns.saturating_add(situation.excused_ns) {
            return Some((Code::StaleState, None));
        }
        if situation.now_ns < wanted.due_ns || situation.now_ns > wanted.until_ns {
            return Some((Code::NoValidAction, None));
        }
        let refused = match &self.law {
            Law::Position(trajectory) => trajectory.refusal(&sample.pos, target),
            Law::PositionPd => self.springs.refusal(sample, target),
            Law::Velocity(speeds) => speeds.refusal(&sample.pos, target),
            Law::Torque(torques) => torques.refusal(&sample.vel, target),
        };
        refused.map(|(code, joint)| (code, Some(joint)))
    }

    /// Carries out a safe behaviour's motion inside the same limits; never refuses.
    pub fn admit_safe(&mut self, sample: &Sample, mode: Mode, motion: Motion<'_>) -> Ruling {
        let mut ruling = Ruling::default();
        let mut is_at_rest = false;
        let fill = match (motion, &mut self.law) {
            (Motion::Off, _) => Fill::Off,
            (Motion::Damp(kd), Law::PositionPd | Law::Torque(_)) => Fill::Damping(kd),
            (Motion::Toward(target), Law::Position(trajectory)) => {
                trajectory.follow(&sample.pos, target, &mut ruling);
                Fill::Law
            }
            (Motion::Toward(target), Law::PositionPd | Law::Torque(_)) => {
                self.springs.follow(sample, target, false, &mut ruling);
                Fill::Spring
            }
            (Motion::Brake, Law::PositionPd | Law::Torque(_)) => {
                self.springs.hold(sample, &mut ruling);
                is_at_rest = true;
                Fill::Spring
            }
            (Motion::Brake | Motion::Damp(_), Law::Position(trajectory)) => {
                is_at_rest = trajectory.stop();
                Fill::Law
            }
            (Motion::Brake | Motion::Damp(_) | Motion::Toward(_), Law::Velocity(speeds)) => {
                is_at_rest = speeds.stop();
                Fill::Law
            }
        };
        self.is_at_rest = is_at_rest;
        self.fill(sample, mode, fill, &mut ruling);
        ruling
    }

    /// Holds from now on, with `Motion::Brake`, where the springs pull to now.
    pub fn hold_here(&mut self) {
        self.springs.anchor_here();
    }

    /// The command admitted last.
    pub fn command(&self) -> &SafeCommand {
        &self.command
    }

    /// Whether braking is over.
    pub fn is_at_rest(&self) -> bool {
        self.is_at_rest
    }

    fn fill(&mut self, sample: &Sample, mode: Mode, fill: Fill<'_>, ruling: &mut Ruling) {
        let is_host_pd = self.is_host_pd || matches!(self.law, Law::Torque(_));
        let command = &mut self.command;
        command.mode = mode;
        command.velocity.fill(0.0);
        command.torque.fill(0.0);
        command.kp.fill(0.0);
        command.kd.fill(0.0);
        command.wire = match (fill, &self.law) {
            (Fill::Off, _) => Wire::Off,
            (Fill::Damping(kd), _) => {
                self.springs.write_damping(sample, kd, &mut command.kd, ruling);
                stay(&mut command.target, sample);
                if is_host_pd {
                    for ((torque, kd), speed) in command.torque.iter_mut().zip(&command.kd).zip(&sample.vel) {
                        *torque = if speed.is_finite() { -kd * speed } else { 0.0 };
                    }
                    command.kd.fill(0.0);
                    Wire::Torque
                } else {
                    Wire::PositionPd
                }
            }
            (Fill::Law, Law::Position(trajectory)) => {
                trajectory.write(&mut command.target, &mut command.velocity);
                Wire::Position
            }
            (Fill::Law, Law::Velocity(speeds)) => {
                speeds.write(&mut command.velocity);
                stay(&mut command.target, sample);
                Wire::Velocity
            }
            (Fill::Law, Law::Torque(torques)) => {
                torques.write(&mut command.torque);
                self.springs.feel(&command.torque);
                stay(&mut command.target, sample);
                Wire::Torque
            }
            (Fill::Spring, _) | (Fill::Law, Law::PositionPd) => {
                self.springs.write(&mut command.target, &mut command.kp, &mut command.kd);
                if is_host_pd {
                    self.springs.write_torque(sample, &mut command.torque);
                    command.kp.fill(0.0);
                    command.kd.fill(0.0);
                    Wire::Torque
                } else {
                    Wire::PositionPd
                }
            }
        };
        if let Law::Torque(torques) = &mut self.law {
            torques.feel(&command.torque);
        }
    }
}

/// Where the numbers of a command come from.
#[derive(Debug, Clone, Copy)]
enum Fill<'a> {
    Law,
    Spring,
    Damping(&'a [f64]),
    Off,
}

/// Where a command without a target leaves the robot: where it is, if that is known.
fn stay(target: &mut [f64], sample: &Sample) {
    if sample.pos.iter().all(|position| position.is_finite()) {
        target.iter_mut().zip(&sample.pos).for_each(|(target, position)| *target = *position);
    }
}

/// Nanoseconds as seconds; exact below 104 days.
#[allow(clippy::cast_precision_loss, reason = "spans of a plan are at most ten minutes")]
fn seconds(span_ns: i64) -> f64 {
    span_ns as f64 * 1e-9
}
