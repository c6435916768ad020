//! Network output to SI targets in robot order.

use crate::code::Code;
use crate::plan::{Plan, PlanError};
use crate::sample::Chunk;

/// How one policy joint becomes a target.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Element {
    robot: usize,
    scale: f64,
    offset: f64,
    si_per_unit: f64,
}

/// Turns raw actions into targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoder {
    elements: Vec<Element>,
    rows: usize,
    clip: [f64; 2],
    relative: bool,
}

impl Decoder {
    /// A decoder for the plan's action output.
    ///
    /// # Errors
    /// A plan that [`Plan::check`] refuses.
    pub fn new(plan: &Plan) -> Result<Self, PlanError> {
        plan.check()?;
        let action = plan.outputs.iter().find_map(|output| output.action.as_ref());
        let Some(action) = action else { return Err(PlanError::bad("outputs", "no action output")) };
        let joints = plan.joints.policy_from_robot.iter();
        let rules = action.scale.iter().zip(&action.offset).zip(&action.si_per_unit);
        let elements = joints
            .zip(rules)
            .map(|(robot, ((scale, offset), si))| Element {
                robot: *robot,
                scale: *scale,
                offset: *offset,
                si_per_unit: *si,
            })
            .collect();
        Ok(Decoder {
            elements,
            rows: usize::try_from(plan.timing.chunk).unwrap_or(0),
            clip: action.clip.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]),
            relative: action.relative,
        })
    }

    /// Values of one raw action output: rows x joints.
    pub fn raw_len(&self) -> usize {
        self.rows.saturating_mul(self.elements.len())
    }

    /// Fills `out.actions`, `out.rows` and `out.status`.
    ///
    /// `action_raw` is row-major `[chunk, joints]` in policy order; `q_at_obs` the joint position of the observation,
    /// rad, robot order. On an error no row is usable and the status says why.
    ///
    /// # Errors
    /// `Dimension` for a wrong number of values, `NotFinite` for NaN or infinity anywhere (looked for before the clip,
    /// which would hide it).
    pub fn decode(&mut self, action_raw: &[f32], q_at_obs: &[f64], out: &mut Chunk) -> Result<(), Code> {
        let done = self.fill(action_raw, q_at_obs, &mut out.actions);
        out.rows = if done.is_ok() { self.rows } else { 0 };
        out.status = done.err().unwrap_or(Code::None) as u16;
        done
    }

    fn fill(&self, raw: &[f32], q: &[f64], out: &mut [f64]) -> Result<(), Code> {
        let n = self.elements.len();
        let out = out.get_mut(..self.raw_len()).ok_or(Code::Dimension)?;
        if raw.len() != out.len() || q.len() != n {
            return Err(Code::Dimension);
        }
        if !raw.iter().all(|value| value.is_finite()) || (self.relative && !q.iter().all(|value| value.is_finite())) {
            return Err(Code::NotFinite);
        }
        let [lo, hi] = self.clip;
        for (row, targets) in raw.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
            for (value, element) in row.iter().zip(&self.elements) {
                let clipped = f64::from(*value).max(lo).min(hi);
                let mut target = (clipped * element.scale + element.offset) * element.si_per_unit;
                if self.relative {
                    target += q.get(element.robot).copied().unwrap_or(f64::NAN);
                }
                let slot = targets.get_mut(element.robot).ok_or(Code::Dimension)?;
                *slot = target;
                if !target.is_finite() {
                    return Err(Code::NotFinite);
                }
            }
        }
        Ok(())
    }
}
