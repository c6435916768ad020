//! One observation to the tensors that the engine reads: the only implementation, for the robot, simulation, replay and
//! verification alike.

pub mod frozen;
pub mod image;
pub mod noise;
pub mod resize;
mod tensor;

use crate::code::Code;
use crate::observe::terms::{LastActions, Terms};
use crate::plan::{Input, Plan, PlanError};
use crate::sample::{Observation, MAX_CAMERAS};
use frozen::FrozenWatch;
use image::Image;
pub use image::ImageView;
use noise::Noise;
pub use tensor::{Tensor, TensorData};

/// What fills one tensor.
#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Terms(Box<Terms>),
    Image(Box<Image>),
    Tokens { pad_id: i64 },
    TokenMask,
    State { output: String },
    Noise(Noise),
}

/// Fills the input tensors of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Preprocessor {
    stages: Vec<Stage>,
    tensors: Vec<Tensor>,
    frozen: Vec<FrozenWatch>,
    last: LastActions,
    actions: usize,
    n: usize,
    episode: Option<u32>,
}

impl Preprocessor {
    /// All buffers and tables for a plan.
    ///
    /// # Errors
    /// A plan that [`Plan::check`] refuses.
    pub fn new(plan: &Plan) -> Result<Self, PlanError> {
        plan.check()?;
        let action = plan.outputs.iter().find_map(|output| output.action.as_ref());
        let Some(action) = action else { return Err(PlanError::bad("outputs", "no action output")) };
        let mut stages = Vec::new();
        let mut tensors = Vec::new();
        for input in &plan.inputs {
            let (stage, shape, data) = build_stage(plan, input)?;
            tensors.push(Tensor { name: input.name().to_owned(), shape, data });
            stages.push(stage);
        }
        Ok(Preprocessor {
            stages,
            tensors,
            frozen: plan.cameras.iter().map(|_| FrozenWatch::new(plan.n())).collect(),
            last: LastActions::new(action),
            actions: usize::try_from(plan.timing.chunk).unwrap_or(0).saturating_mul(plan.n()),
            n: plan.n(),
            episode: None,
        })
    }

    /// Starts afresh: histories, phases, last action, recurrent state, noise and the watch for frozen cameras.
    pub fn reset(&mut self) {
        self.episode = None;
        self.last.reset();
        self.frozen.iter_mut().for_each(FrozenWatch::reset);
        for (stage, tensor) in self.stages.iter_mut().zip(&mut self.tensors) {
            match (stage, &mut tensor.data) {
                (Stage::Terms(terms), _) => terms.reset(),
                (Stage::State { .. }, TensorData::F32(values)) => values.fill(0.0),
                (Stage::Noise(noise), _) => noise.reset(),
                _ => {}
            }
        }
    }

    /// Fills every tensor from one observation; `images` in the order of the plan's cameras. An observation of another
    /// episode resets first. A refused observation leaves histories and last actions as they were.
    ///
    /// # Errors
    /// `Dimension` for a wrong number of joints, an image of another size or a text that is too long; `StaleImage` for
    /// a camera without image, `FrozenImage`, `NotReady` for a missing task text, `NotFinite`.
    pub fn build(&mut self, observation: &Observation, images: &[ImageView<'_>]) -> Result<(), Code> {
        if self.episode != Some(observation.episode) {
            self.reset();
            self.episode = Some(observation.episode);
        }
        if observation.sample.pos.len() != self.n
            || observation.sample.vel.len() != self.n
            || observation.applied.len() != self.n
        {
            return Err(Code::Dimension);
        }
        self.look(observation, images)?;
        self.evaluate(observation)?;
        self.commit(observation, images);
        self.last.observed(observation);
        Ok(())
    }

    /// The tensors, in the order of the plan's inputs.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Names of the outputs that must be given to [`Preprocessor::carry`] after each inference.
    pub fn carried(&self) -> impl Iterator<Item = &str> {
        self.stages.iter().filter_map(|stage| match stage {
            Stage::State { output } => Some(output.as_str()),
            _ => None,
        })
    }

    /// Takes the recurrent state that the graph wrote to `output`, for the next observation of this episode.
    ///
    /// # Errors
    /// `Dimension` for an unknown output or another size, `NotFinite`; the state is unchanged then.
    pub fn carry(&mut self, output: &str, state: &[f32]) -> Result<(), Code> {
        for (stage, tensor) in self.stages.iter().zip(&mut self.tensors) {
            let (Stage::State { output: mine }, TensorData::F32(values)) = (stage, &mut tensor.data) else { continue };
            if mine != output {
                continue;
            }
            if values.len() != state.len() {
                return Err(Code::Dimension);
            }
            if !state.iter().all(|value| value.is_finite()) {
                return Err(Code::NotFinite);
            }
            values.iter_mut().zip(state).for_each(|(mine, theirs)| *mine = *theirs);
            return Ok(());
        }
        Err(Code::Dimension)
    }

    /// Takes the raw action output, for the term `last_action` of the next observation.
    ///
    /// # Errors
    /// `Dimension` for a wrong number of values, `NotFinite`; nothing is noted then.
    pub fn note_action(&mut self, raw: &[f32]) -> Result<(), Code> {
        if raw.len() != self.actions {
            return Err(Code::Dimension);
        }
        // Of a chunk of several actions only `applied` may be asked for: see the check of the plan.
        self.last.note(raw.get(..self.n).unwrap_or(&[]))
    }

    /// Refuses images that must not be used.
    fn look(&mut self, observation: &Observation, images: &[ImageView<'_>]) -> Result<(), Code> {
        let mut seen = [false; MAX_CAMERAS];
        for stage in &self.stages {
            let Stage::Image(image) = stage else { continue };
            let view = images.get(image.camera()).ok_or(Code::Dimension)?;
            image.check(view)?;
            let seen = seen.get_mut(image.camera()).ok_or(Code::Dimension)?;
            if !*seen {
                *seen = true;
                let watch = self.frozen.get_mut(image.camera()).ok_or(Code::Dimension)?;
                watch.look(view, &observation.sample)?;
            }
        }
        Ok(())
    }

    /// Computes what may still be refused; nothing enters a history yet.
    fn evaluate(&mut self, observation: &Observation) -> Result<(), Code> {
        for (stage, tensor) in self.stages.iter_mut().zip(&self.tensors) {
            match stage {
                Stage::Terms(terms) => terms.evaluate(observation, &self.last)?,
                Stage::Tokens { .. } | Stage::TokenMask => match observation.goal.token_count {
                    0 => return Err(Code::NotReady),
                    count if count > tensor.data.len() => return Err(Code::Dimension),
                    _ => {}
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes every tensor.
    fn commit(&mut self, observation: &Observation, images: &[ImageView<'_>]) {
        let goal = &observation.goal;
        for (stage, tensor) in self.stages.iter_mut().zip(&mut self.tensors) {
            match (stage, &mut tensor.data) {
                (Stage::Terms(terms), TensorData::F32(out)) => terms.commit(out),
                (Stage::Image(image), out) => {
                    if let Some(view) = images.get(image.camera()) {
                        image.write(view.pixels, out);
                    }
                }
                (Stage::Tokens { pad_id }, TensorData::I64(out)) => {
                    out.fill(*pad_id);
                    let tokens = goal.tokens.iter().take(goal.token_count);
                    out.iter_mut().zip(tokens).for_each(|(slot, token)| *slot = *token);
                }
                (Stage::TokenMask, TensorData::I64(out)) => {
                    out.fill(0);
                    out.iter_mut().take(goal.token_count).for_each(|slot| *slot = 1);
                }
                (Stage::Noise(noise), TensorData::F32(out)) => noise.fill(out),
                _ => {}
            }
        }
    }
}

/// The stage and the buffer of one input of a checked plan.
fn build_stage(plan: &Plan, input: &Input) -> Result<(Stage, Vec<i64>, TensorData), PlanError> {
    let row = |length: usize| vec![1, i64::try_from(length).unwrap_or(i64::MAX)];
    let size = |shape: &[i64]| crate::plan::elements(shape).unwrap_or(0);
    Ok(match input {
        Input::Terms { terms, history, clip, .. } => {
            let terms = Terms::new(plan, terms, history, *clip);
            let length = terms.len();
            (Stage::Terms(Box::new(terms)), row(length), TensorData::F32(vec![0.0; length]))
        }
        Input::Image { uint8, .. } => {
            let image = Image::new(input, &plan.cameras);
            let Some(image) = image else { return Err(PlanError::bad(input.name(), "no such camera")) };
            let shape = image.shape();
            let length = size(&shape);
            let data = if *uint8 { TensorData::U8(vec![0; length]) } else { TensorData::F32(vec![0.0; length]) };
            (Stage::Image(Box::new(image)), shape, data)
        }
        Input::Tokens { length, pad_id, .. } => {
            (Stage::Tokens { pad_id: *pad_id }, row(*length), TensorData::I64(vec![*pad_id; *length]))
        }
        Input::TokenMask { length, .. } => (Stage::TokenMask, row(*length), TensorData::I64(vec![0; *length])),
        Input::State { shape, output, .. } => {
            let data = TensorData::F32(vec![0.0; size(shape)]);
            (Stage::State { output: output.clone() }, shape.clone(), data)
        }
        Input::Noise { shape, seed, .. } => {
            let data = TensorData::F32(vec![0.0; size(shape)]);
            (Stage::Noise(Noise::new(*seed)), shape.clone(), data)
        }
    })
}
