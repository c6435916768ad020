//! Observation terms: `(clip(si * per_si) + offset) * scale`, per element in policy order.

use super::frame::projected_gravity;
use super::history::History;
use super::phase::Clock;
use crate::code::Code;
use crate::plan::{Action, LastAction, Plan, Term, TermKind};
use crate::sample::Observation;

/// The previous action in every form that a term may ask for; zeros at reset. Policy order.
#[derive(Debug, Clone, PartialEq)]
pub struct LastActions {
    raw: Vec<f64>,
    clipped: Vec<f64>,
    clip: [f64; 2],
    /// How a target turns back into an action: `((target [- q]) / si_per_unit - offset) / scale`.
    scale: Vec<f64>,
    offset: Vec<f64>,
    si_per_unit: Vec<f64>,
    relative: bool,
    /// Joint position of the previous observation, robot order: a relative action counted from there.
    q_before: Vec<f64>,
    is_first: bool,
}

impl LastActions {
    /// No action yet.
    pub fn new(action: &Action) -> Self {
        let n = action.scale.len();
        LastActions {
            raw: vec![0.0; n],
            clipped: vec![0.0; n],
            clip: action.clip.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]),
            scale: action.scale.clone(),
            offset: action.offset.clone(),
            si_per_unit: action.si_per_unit.clone(),
            relative: action.relative,
            q_before: vec![0.0; n],
            is_first: true,
        }
    }

    /// Back to zeros.
    pub fn reset(&mut self) {
        self.raw.fill(0.0);
        self.clipped.fill(0.0);
        self.is_first = true;
    }

    /// Notes what the network wrote for the one action of a chunk.
    ///
    /// # Errors
    /// `Dimension` for a wrong number of values, `NotFinite`; nothing is noted then.
    pub fn note(&mut self, raw: &[f32]) -> Result<(), Code> {
        if raw.len() != self.raw.len() {
            return Err(Code::Dimension);
        }
        if !raw.iter().all(|value| value.is_finite()) {
            return Err(Code::NotFinite);
        }
        let [lo, hi] = self.clip;
        for ((mine, clipped), value) in self.raw.iter_mut().zip(&mut self.clipped).zip(raw) {
            *mine = f64::from(*value);
            *clipped = mine.max(lo).min(hi);
        }
        Ok(())
    }

    /// Notes that an observation was made: the next one is not the first. A refused observation changes nothing.
    pub fn observed(&mut self, observation: &Observation) {
        self.is_first = false;
        self.q_before.iter_mut().zip(&observation.sample.pos).for_each(|(mine, theirs)| *mine = *theirs);
    }

    fn write(&self, of: LastAction, observation: &Observation, policy_from_robot: &[usize], out: &mut [f64]) {
        let is_unsent = of == LastAction::Applied && observation.applied.iter().any(|value| value.is_nan());
        if self.is_first || is_unsent {
            out.fill(0.0);
            return;
        }
        let values = match of {
            LastAction::Raw => &self.raw,
            LastAction::Clipped => &self.clipped,
            LastAction::Applied => {
                let rules = self.scale.iter().zip(&self.offset).zip(&self.si_per_unit);
                for ((slot, robot), ((scale, offset), si)) in out.iter_mut().zip(policy_from_robot).zip(rules) {
                    let from = if self.relative { pick(&self.q_before, *robot) } else { 0.0 };
                    *slot = ((pick(&observation.applied, *robot) - from) / si - offset) / scale;
                }
                return;
            }
        };
        out.iter_mut().zip(values).for_each(|(slot, value)| *slot = *value);
    }
}

fn pick(values: &[f64], index: usize) -> f64 {
    values.get(index).copied().unwrap_or(f64::NAN)
}

/// One term with its numbers.
#[derive(Debug, Clone, PartialEq)]
struct Rule {
    term: Term,
    clock: Option<Clock>,
    clip: [f64; 2],
}

/// One input tensor of concatenated terms with its history.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    rules: Vec<Rule>,
    policy_from_robot: Vec<usize>,
    default_pos: Vec<f64>,
    clip: [f64; 2],
    /// SI values of the term at hand.
    si: Vec<f64>,
    frame: Vec<f32>,
    history: History,
}

const NO_CLIP: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];

impl Terms {
    /// The terms of one input of a checked plan.
    pub fn new(plan: &Plan, terms: &[Term], history: &crate::plan::History, clip: Option<[f64; 2]>) -> Self {
        let dims: Vec<usize> = terms.iter().map(|term| term.dim).collect();
        let widest = dims.iter().copied().max().unwrap_or(0);
        let rules = terms.iter().map(|term| Rule {
            clip: term.clip.unwrap_or(NO_CLIP),
            clock: match &term.term {
                TermKind::Phase { freq_hz, still_rad, still_below, .. } => {
                    Some(Clock::new(*freq_hz, plan.period_ns(), *still_rad, *still_below))
                }
                _ => None,
            },
            term: term.clone(),
        });
        Terms {
            rules: rules.collect(),
            policy_from_robot: plan.joints.policy_from_robot.clone(),
            default_pos: plan.joints.default_pos.clone(),
            clip: clip.unwrap_or(NO_CLIP),
            si: vec![0.0; widest],
            frame: vec![0.0; dims.iter().fold(0usize, |sum, dim| sum.saturating_add(*dim))],
            history: History::new(history, dims),
        }
    }

    /// Elements of the finished tensor.
    pub fn len(&self) -> usize {
        self.history.len()
    }

    /// Never: a checked plan has at least one term.
    pub fn is_empty(&self) -> bool {
        self.history.len() == 0
    }

    /// Forgets history and phases.
    pub fn reset(&mut self) {
        self.history.reset();
        self.rules.iter_mut().filter_map(|rule| rule.clock.as_mut()).for_each(Clock::reset);
    }

    /// Computes the newest frame; nothing enters the history yet.
    ///
    /// # Errors
    /// `NotFinite` if a value that the policy reads is NaN or infinite, before any clip could hide it.
    pub fn evaluate(&mut self, observation: &Observation, last: &LastActions) -> Result<(), Code> {
        let mut rest = self.frame.as_mut_slice();
        for rule in &mut self.rules {
            let dim = rule.term.dim;
            let si = self.si.get_mut(..dim).ok_or(Code::Dimension)?;
            if let Some(clock) = &mut rule.clock {
                clock.turn(observation.period, observation.goal.velocity);
            }
            measure(rule, observation, last, &self.policy_from_robot, &self.default_pos, si)?;
            let (out, behind) = rest.split_at_mut_checked(dim).ok_or(Code::Dimension)?;
            rule.write(si, out)?;
            rest = behind;
        }
        Ok(())
    }

    /// Puts the newest frame into the history and writes the tensor.
    pub fn commit(&mut self, out: &mut [f32]) {
        self.history.push(&self.frame);
        self.history.write(out);
        let [lo, hi] = self.clip;
        if lo > f64::NEG_INFINITY || hi < f64::INFINITY {
            #[allow(clippy::cast_possible_truncation, reason = "the network reads float32")]
            let (lo, hi) = (lo as f32, hi as f32);
            for value in out {
                *value = value.max(lo).min(hi);
            }
        }
    }
}

impl Rule {
    /// Physical values to network values.
    fn write(&self, si: &[f64], out: &mut [f32]) -> Result<(), Code> {
        let [lo, hi] = self.clip;
        let numbers = self.term.per_si.iter().zip(&self.term.offset).zip(&self.term.scale);
        for ((slot, value), ((per_si, offset), scale)) in out.iter_mut().zip(si).zip(numbers) {
            if !value.is_finite() {
                return Err(Code::NotFinite);
            }
            #[allow(clippy::cast_possible_truncation, reason = "the network reads float32; overflow is refused below")]
            let network = (((value * per_si).max(lo).min(hi) + offset) * scale) as f32;
            if !network.is_finite() {
                return Err(Code::NotFinite);
            }
            *slot = network;
        }
        Ok(())
    }
}

/// Writes a term's values, SI and policy order.
fn measure(
    rule: &Rule,
    observation: &Observation,
    last: &LastActions,
    policy_from_robot: &[usize],
    default_pos: &[f64],
    out: &mut [f64],
) -> Result<(), Code> {
    let sample = &observation.sample;
    let joints = |out: &mut [f64], values: &dyn Fn(usize) -> f64| {
        out.iter_mut().zip(policy_from_robot).for_each(|(slot, robot)| *slot = values(*robot));
    };
    match &rule.term.term {
        TermKind::BaseLinVel => copy(out, &sample.lin_vel),
        TermKind::BaseAngVel => copy(out, &sample.ang_vel),
        TermKind::ProjectedGravity => copy(out, &projected_gravity(sample.quat)?),
        TermKind::Goal { part } => {
            out.iter_mut().zip(part).for_each(|(slot, part)| *slot = pick(&observation.goal.velocity, *part));
        }
        TermKind::JointPos => joints(out, &|robot| pick(&sample.pos, robot)),
        TermKind::JointPosRel => joints(out, &|robot| pick(&sample.pos, robot) - pick(default_pos, robot)),
        TermKind::JointVel => joints(out, &|robot| pick(&sample.vel, robot)),
        TermKind::LastAction { of } => last.write(*of, observation, policy_from_robot, out),
        TermKind::Phase { cos, init_rad, .. } => {
            let clock = rule.clock.as_ref().ok_or(Code::Dimension)?;
            for (slot, init) in out.iter_mut().zip(init_rad) {
                let phase = clock.phase_rad(observation.period, *init);
                *slot = if *cos { phase.cos() } else { phase.sin() };
            }
        }
    }
    Ok(())
}

fn copy(out: &mut [f64], values: &[f64]) {
    out.iter_mut().zip(values).for_each(|(slot, value)| *slot = *value);
}
