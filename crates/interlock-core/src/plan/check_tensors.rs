//! Refuses inputs and outputs that do not fit each other, the joints or the cameras.

use super::check::{check_each, check_interval, check_vector, refuse, require, Checked, MAX_SIDE};
use super::{Action, CommandKind, Input, LastAction, Output, Plan, Resize, Role, Term, TermKind};
use crate::sample::MAX_TOKENS;

/// Most observations kept in a history.
const MAX_STEPS: usize = 256;
/// Most elements of one tensor.
const MAX_ELEMENTS: i64 = 1 << 26;
/// Longest time between two snapshots of a probe: an hour.
const LONGEST_PERIOD_NS: i64 = 3_600_000_000_000;

impl Input {
    /// Tensor name.
    pub fn name(&self) -> &str {
        match self {
            Input::Terms { name, .. }
            | Input::Image { name, .. }
            | Input::Tokens { name, .. }
            | Input::TokenMask { name, .. }
            | Input::State { name, .. }
            | Input::Noise { name, .. } => name,
        }
    }
}

/// Elements of a shape whose sizes are all positive and whose product is bearable.
pub(crate) fn elements(shape: &[i64]) -> Option<usize> {
    let mut product: i64 = 1;
    for size in shape {
        product = product.checked_mul(*size).filter(|p| *size > 0 && *p <= MAX_ELEMENTS)?;
    }
    usize::try_from(product).ok()
}

pub(super) fn check_inputs(plan: &Plan) -> Checked {
    require(!plan.inputs.is_empty(), "inputs", "a policy that reads nothing")?;
    for (index, input) in plan.inputs.iter().enumerate() {
        let at = format!("inputs[{index}]");
        let is_new = !plan.inputs.iter().take(index).any(|other| other.name() == input.name());
        require(is_new && !input.name().is_empty(), &at, "empty or repeated tensor name")?;
        match input {
            Input::Terms { terms, history, clip, .. } => {
                require(!terms.is_empty(), &at, "no terms")?;
                for (place, term) in terms.iter().enumerate() {
                    check_term(plan, &format!("{at}.terms[{place}]"), term)?;
                }
                require((1..=MAX_STEPS).contains(&history.steps), &at, "history of 1 to 256 steps")?;
                let width = terms.iter().fold(0usize, |sum, term| sum.saturating_add(term.dim));
                let size = i64::try_from(width.saturating_mul(history.steps)).unwrap_or(i64::MAX);
                require(size <= MAX_ELEMENTS, &at, "too many elements")?;
                clip.map_or(Ok(()), |clip| check_interval(&format!("{at}.clip"), clip))?;
            }
            Input::Image { .. } => check_image(plan, &at, input)?,
            Input::Tokens { length, .. } | Input::TokenMask { length, .. } => {
                require((1..=MAX_TOKENS).contains(length), &at, "token length out of range")?;
                require(plan.goal.text, &at, "reads a task text that the goal does not have")?;
            }
            Input::State { shape, output, .. } => {
                let Some(count) = elements(shape) else { return refuse(at, "shape out of range") };
                let source = plan.outputs.iter().find(|o| o.name == *output && o.role == Role::State);
                let fits = source.is_some_and(|o| elements(&o.shape) == Some(count));
                require(fits, &at, "no state output of that name and size")?;
            }
            Input::Noise { shape, .. } => require(elements(shape).is_some(), &at, "shape out of range")?,
        }
    }
    Ok(())
}

fn check_term(plan: &Plan, at: &str, term: &Term) -> Checked {
    let n = plan.n();
    let dim = match &term.term {
        TermKind::BaseLinVel | TermKind::BaseAngVel | TermKind::ProjectedGravity => 3,
        TermKind::JointPos | TermKind::JointPosRel | TermKind::JointVel => n,
        TermKind::Goal { part } => {
            require(plan.goal.velocity.is_some(), at, "there is no velocity goal")?;
            require(part.iter().all(|part| *part < 3), at, "a velocity goal has parts 0, 1, 2")?;
            part.len()
        }
        TermKind::LastAction { of } => {
            let is_one = plan.timing.chunk == 1 || *of == LastAction::Applied;
            require(is_one, at, "the last action of a chunk is known only as applied")?;
            n
        }
        TermKind::Phase { freq_hz, init_rad, still_rad, still_below, .. } => {
            let is_real = freq_hz.is_finite() && *freq_hz >= 0.0 && still_below.is_finite() && *still_below >= 0.0;
            require(is_real && still_rad.is_none_or(f64::is_finite), at, "phase numbers must be finite")?;
            check_vector(&format!("{at}.init_rad"), init_rad, init_rad.len())?;
            init_rad.len()
        }
    };
    require(dim > 0 && term.dim == dim, &format!("{at}.dim"), "is not the number of elements of this term")?;
    check_vector(&format!("{at}.per_si"), &term.per_si, dim)?;
    check_vector(&format!("{at}.offset"), &term.offset, dim)?;
    check_vector(&format!("{at}.scale"), &term.scale, dim)?;
    term.clip.map_or(Ok(()), |clip| check_interval(&format!("{at}.clip"), clip))
}

fn check_image(plan: &Plan, at: &str, input: &Input) -> Checked {
    let Input::Image { camera, height, width, resize, range, mean, std, .. } = input else { return Ok(()) };
    let Some(source) = plan.cameras.get(*camera) else { return refuse(at, "no camera of that index") };
    let sides = 1..=MAX_SIDE;
    require(sides.contains(height) && sides.contains(width), at, "image size out of range")?;
    let is_same = source.height == *height && source.width == *width;
    require(*resize != Resize::None || is_same, at, "resize is none but the camera has another size")?;
    let shrinks = source.height >= *height && source.width >= *width;
    require(*resize != Resize::Area || shrinks, at, "area is for shrinking only")?;
    check_vector(&format!("{at}.range"), range, 2)?;
    check_vector(&format!("{at}.mean"), mean, 3)?;
    check_vector(&format!("{at}.std"), std, 3)?;
    check_each(&format!("{at}.std"), std, "must be positive", |value| value > 0.0)
}

pub(super) fn check_outputs(plan: &Plan) -> Checked {
    let mut actions = 0_usize;
    for (index, output) in plan.outputs.iter().enumerate() {
        let at = format!("outputs[{index}]");
        let is_new = !plan.outputs.iter().take(index).any(|other| other.name == output.name);
        require(is_new && !output.name.is_empty(), &at, "empty or repeated tensor name")?;
        require(elements(&output.shape).is_some(), &format!("{at}.shape"), "out of range")?;
        if let Some(period_ns) = output.period_ns {
            require(output.role == Role::Probe, &format!("{at}.period_ns"), "only a probe has a period of its own")?;
            require((1..=LONGEST_PERIOD_NS).contains(&period_ns), &format!("{at}.period_ns"), "out of range")?;
        }
        match (output.role, &output.action) {
            (Role::Action, Some(action)) => {
                actions = actions.saturating_add(1);
                check_action(plan, &at, output, action)?;
            }
            (Role::Action, None) => return refuse(at, "an action output says how it becomes targets"),
            (_, Some(_)) => return refuse(at, "only the action output has an action rule"),
            (Role::Confidence, None) => {
                require(elements(&output.shape) == Some(1), &at, "a confidence is one number")?;
            }
            (Role::State, None) => {
                let readers =
                    plan.inputs.iter().filter(|i| matches!(i, Input::State { output: o, .. } if *o == output.name));
                require(readers.count() == 1, &at, "exactly one state input must read it")?;
            }
            (Role::Distribution | Role::Probe, None) => {}
        }
    }
    require(actions == 1, "outputs", "expected exactly one action output")
}

fn check_action(plan: &Plan, at: &str, output: &Output, action: &Action) -> Checked {
    let n = plan.n();
    let rows = usize::try_from(plan.timing.chunk).unwrap_or(0);
    let width = output.shape.last().and_then(|last| usize::try_from(*last).ok());
    let fits = elements(&output.shape) == rows.checked_mul(n) && width == Some(n);
    require(fits, &format!("{at}.shape"), "expected [.., chunk, joints] of the timing and the joints")?;
    check_vector(&format!("{at}.action.scale"), &action.scale, n)?;
    check_vector(&format!("{at}.action.offset"), &action.offset, n)?;
    check_vector(&format!("{at}.action.si_per_unit"), &action.si_per_unit, n)?;
    let si_at = format!("{at}.action.si_per_unit");
    check_each(&si_at, &action.si_per_unit, "must not be zero", |value| value != 0.0)?;
    action.clip.map_or(Ok(()), |clip| check_interval(&format!("{at}.action.clip"), clip))?;
    let is_position = matches!(plan.command.kind, CommandKind::Position | CommandKind::PositionPd);
    require(is_position || !action.relative, &format!("{at}.action.relative"), "only positions can be relative")?;
    if reads_applied(plan) {
        let scale_at = format!("{at}.action.scale");
        let what = "must not be zero: last_action applied divides by it";
        check_each(&scale_at, &action.scale, what, |value| value != 0.0)?;
    }
    Ok(())
}

fn reads_applied(plan: &Plan) -> bool {
    let is_applied = |term: &Term| matches!(term.term, TermKind::LastAction { of: LastAction::Applied });
    plan.inputs.iter().any(|input| matches!(input, Input::Terms { terms, .. } if terms.iter().any(is_applied)))
}
