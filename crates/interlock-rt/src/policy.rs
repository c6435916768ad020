//! preprocess -> infer -> decode of one policy: the very code that the worker, lockstep, verification and replay run.

use interlock_core::code::Code;
use interlock_core::decode::Decoder;
use interlock_core::plan::{Plan, Role};
use interlock_core::preprocess::{ImageView, Preprocessor, Tensor, TensorData};
use interlock_core::sample::{Chunk, InferenceTimes, Observation};

use crate::engine::{DataRef, Engine, TensorBuf, TensorRef};
use crate::error::RtError;

/// Runs before the first observation counts, so that lazy initialisation is over.
const WARM_RUNS: usize = 10;

/// A policy with its recurrent state, histories and buffers.
pub struct Policy {
    preprocessor: Preprocessor,
    decoder: Decoder,
    engine: Option<Engine>,
    /// Positions among the plan's outputs, which is the order of the engine's results.
    action: usize,
    confidence: Option<usize>,
    carried: Vec<(usize, String)>,
    outputs: Vec<String>,
}

fn tensor_ref(tensor: &Tensor) -> TensorRef<'_> {
    let data = match &tensor.data {
        TensorData::F32(values) => DataRef::F32(values),
        TensorData::I64(values) => DataRef::I64(values),
        TensorData::U8(values) => DataRef::U8(values),
    };
    TensorRef { name: &tensor.name, shape: &tensor.shape, data }
}

fn bad_plan(error: &interlock_core::plan::PlanError) -> RtError {
    RtError::new(error.code.word(), format!("{}: {}", error.at, error.what), "run `interlock check` again")
}

impl Policy {
    /// Joins a plan to an engine, checks names, shapes and types, and warms it. Without an engine only
    /// `preprocessor` and `decode` are of use.
    pub fn new(plan: &Plan, engine: Option<Engine>) -> Result<Self, RtError> {
        let preprocessor = Preprocessor::new(plan).map_err(|error| bad_plan(&error))?;
        let decoder = Decoder::new(plan).map_err(|error| bad_plan(&error))?;
        let outputs: Vec<String> = plan.outputs.iter().map(|output| output.name.clone()).collect();
        let find = |name: &str| outputs.iter().position(|mine| mine == name);
        let with_role = |role: Role| plan.outputs.iter().position(|output| output.role == role);
        let lost = |name: &str| RtError::new("bad-plan", format!("outputs: {name} is missing"), "");
        let action = with_role(Role::Action).ok_or_else(|| lost("an action"))?;
        let carried = preprocessor
            .carried()
            .map(|name| find(name).map(|index| (index, name.to_owned())).ok_or_else(|| lost(name)))
            .collect::<Result<Vec<_>, _>>()?;
        let confidence = with_role(Role::Confidence);
        let mut policy = Policy { preprocessor, decoder, engine, action, confidence, carried, outputs };
        policy.prepare(plan)?;
        Ok(policy)
    }

    fn prepare(&mut self, plan: &Plan) -> Result<(), RtError> {
        let Some(engine) = &mut self.engine else { return Ok(()) };
        let tensors = self.preprocessor.tensors();
        let inputs: Vec<_> = tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.shape.as_slice())).collect();
        let outputs: Vec<_> = plan.outputs.iter().map(|out| (out.name.as_str(), out.shape.as_slice())).collect();
        engine.bind(&inputs, &outputs)?;
        for _ in 0..WARM_RUNS {
            engine.run(tensors.iter().map(tensor_ref))?;
        }
        let used = self.carried.iter().map(|(index, _)| *index).chain([self.action]).chain(self.confidence);
        for index in used {
            if let Some(output) = engine.results().nth(index).filter(|output| output.data.as_f32().is_none()) {
                let got = output.data.element_type().name();
                let what = format!("{}: expected float32, got {got}", output.name);
                return Err(RtError::new("engine-graph", what, "build the policy again: `interlock build`"));
            }
        }
        Ok(())
    }

    /// Histories, recurrent state, last action, phase and noise start afresh.
    pub fn reset(&mut self) {
        self.preprocessor.reset();
    }

    /// The first half alone.
    pub fn preprocessor(&mut self) -> &mut Preprocessor {
        &mut self.preprocessor
    }

    /// Where the action output stands among the plan's outputs.
    pub fn outputs(&self) -> &[String] {
        &self.outputs
    }

    /// Raw outputs of the last inference, in the plan's order.
    pub fn results(&self) -> impl Iterator<Item = &TensorBuf> {
        self.engine.iter().flat_map(Engine::results)
    }

    /// Answers one observation. Whatever goes wrong stands in `chunk.status`, and then no row is usable.
    pub fn infer(
        &mut self,
        observation: &Observation,
        images: &[ImageView<'_>],
        chunk: &mut Chunk,
        now: &dyn Fn() -> i64,
    ) -> Result<(), RtError> {
        self.begin(observation, chunk, now());
        if let Err(code) = self.preprocessor.build(observation, images) {
            chunk.status = code as u16;
            return Ok(());
        }
        chunk.times.preprocessed_ns = now();
        chunk.status = Code::WorkerError as u16;
        let Some(engine) = &mut self.engine else { return Ok(()) };
        engine.run(self.preprocessor.tensors().iter().map(tensor_ref))?;
        chunk.times.inferred_ns = now();
        self.finish(observation, chunk);
        chunk.times.decoded_ns = now();
        Ok(())
    }

    /// Names the observation that `chunk` answers.
    pub fn begin(&self, observation: &Observation, chunk: &mut Chunk, now_ns: i64) {
        chunk.generation = observation.generation;
        chunk.seq = observation.seq;
        chunk.at_ns = observation.at_ns;
        chunk.confidence = f64::NAN;
        chunk.rows = 0;
        chunk.times = InferenceTimes { received_ns: now_ns, ..InferenceTimes::default() };
    }

    /// Decodes the engine's results and carries the recurrent state on.
    fn finish(&mut self, observation: &Observation, chunk: &mut Chunk) {
        // Taken out for the call, because what is read lies in it; moving it moves a few pointers.
        let Some(engine) = self.engine.take() else { return };
        let read = |index: usize| engine.results().nth(index).and_then(|output| output.data.as_f32());
        // The status of the chunk says what went wrong.
        let _ = self.take_outputs(observation, chunk, &read);
        self.engine = Some(engine);
    }

    /// Decodes outputs, by position among the plan's, as if the engine had written them for `observation`. A recurrent
    /// state that is not given stays as it was.
    pub fn take_outputs<'a>(
        &mut self,
        observation: &Observation,
        chunk: &mut Chunk,
        read: &dyn Fn(usize) -> Option<&'a [f32]>,
    ) -> Result<(), Code> {
        let raw = read(self.action).unwrap_or(&[]);
        self.decoder.decode(raw, &observation.sample.pos, chunk)?;
        let mut noted = self.preprocessor.note_action(raw);
        for (index, name) in &self.carried {
            if let Some(state) = read(*index) {
                noted = noted.and_then(|()| self.preprocessor.carry(name, state));
            }
        }
        if let Err(code) = noted {
            chunk.rows = 0;
            chunk.status = code as u16;
        }
        if let Some(value) = self.confidence.and_then(read).and_then(|values| values.first()) {
            chunk.confidence = f64::from(*value);
        }
        noted
    }
}
