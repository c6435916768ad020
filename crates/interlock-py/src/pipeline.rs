//! preprocess -> infer -> decode for verification, replay and tests.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_core::code::Code;
use interlock_core::plan::{Camera, Plan};
use interlock_core::preprocess::frozen::content_hash;
use interlock_core::preprocess::{ImageView, Tensor, TensorData};
use interlock_core::sample::{Chunk, Observation};
use interlock_rt::engine::{DataBuf, EngineOptions, TensorBuf};
use interlock_rt::policy::Policy;
use interlock_rt::wire;
use numpy::{PyArrayDyn, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{matrix, slice, to_dict};
use crate::engine::Graph;
use crate::refused::{guarded, Refused};

type Floats<'py> = PyReadonlyArrayDyn<'py, f64>;
type Tokens<'py> = PyReadonlyArrayDyn<'py, i64>;

struct Inner {
    policy: Policy,
    observation: Observation,
    chunk: Chunk,
    cameras: Vec<Camera>,
    hashes: Vec<u64>,
}

/// preprocess -> infer -> decode of one policy: the very code the worker runs.
#[pyclass(name = "Pipeline", module = "interlock._core", frozen)]
pub struct PyPipeline(Mutex<Inner>);

pub fn refuse(code: Code, what: &str) -> Refused {
    Refused::new(
        code.word(),
        format!("{what}: {}", code.word()),
        "`interlock show` prints what the policy reads and writes",
    )
}

/// Takes what an operator asked into an observation's goal.
pub fn set_goal(goal: &mut interlock_core::sample::GoalState, velocity: &[f64], tokens: &[i64]) -> Result<(), Refused> {
    let wrong = |what: &str| refuse(Code::Dimension, what);
    if !velocity.is_empty() {
        goal.velocity = velocity.try_into().map_err(|_| wrong("goal_velocity: expected 3 values"))?;
    }
    let room = goal.tokens.get_mut(..tokens.len()).ok_or_else(|| wrong("tokens: too many"))?;
    room.copy_from_slice(tokens);
    goal.token_count = tokens.len();
    Ok(())
}

/// Images as the stages see them, of the sizes that the plan gives.
pub fn views<'a>(cameras: &[Camera], pixels: &[&'a [u8]], seqs: &[u64], capture_ns: i64) -> Vec<ImageView<'a>> {
    let of = |((camera, pixels), seq): ((&Camera, &&'a [u8]), &u64)| ImageView {
        pixels,
        height: camera.height as usize,
        width: camera.width as usize,
        seq: *seq,
        capture_ns,
    };
    cameras.iter().zip(pixels).zip(seqs).map(of).collect()
}

fn owned(tensor: &Tensor) -> TensorBuf {
    let data = match &tensor.data {
        TensorData::F32(values) => DataBuf::F32(values.clone()),
        TensorData::I64(values) => DataBuf::I64(values.clone()),
        TensorData::U8(values) => DataBuf::U8(values.clone()),
    };
    TensorBuf { name: tensor.name.clone(), shape: tensor.shape.clone(), data }
}

impl Inner {
    /// Fills the observation of the next policy period.
    fn observe(
        &mut self,
        sample: &Floats<'_>,
        pixels: &[&[u8]],
        goal_velocity: Option<&Floats<'_>>,
        tokens: Option<&Tokens<'_>>,
        applied: Option<&Floats<'_>>,
    ) -> Result<(), Refused> {
        if !wire::sample_from_flat(slice(sample)?, &mut self.observation.sample) {
            return Err(refuse(Code::Dimension, "sample: expected 3n + 10 values"));
        }
        if pixels.len() != self.cameras.len() {
            return Err(refuse(Code::Dimension, "images: expected one per camera of the plan"));
        }
        let velocity = goal_velocity.map_or(Ok(&[0.0; 3][..]), slice)?;
        set_goal(&mut self.observation.goal, velocity, tokens.map_or(Ok(&[][..]), slice)?)?;
        self.observation.applied.fill(f64::NAN);
        if let Some(applied) = applied {
            let applied = slice(applied)?;
            if applied.len() != self.observation.applied.len() {
                return Err(refuse(Code::Dimension, "applied: expected n values"));
            }
            self.observation.applied.copy_from_slice(applied);
        }
        self.observation.seq += 1;
        // A picture that was given before is not a new one: the watch for frozen cameras is about cameras.
        for ((pixels, hash), seq) in pixels.iter().zip(&mut self.hashes).zip(&mut self.observation.image_seq) {
            let content = content_hash(pixels);
            if *seq == 0 || content != *hash {
                (*hash, *seq) = (content, *seq + 1);
            }
        }
        Ok(())
    }

    fn advance(&mut self) {
        self.observation.period += 1;
    }

    fn targets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let n = self.observation.applied.len();
        let values = self.chunk.actions.get(..self.chunk.rows * n).unwrap_or(&[]).to_vec();
        matrix(py, values, self.chunk.rows)
    }
}

impl PyPipeline {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pixels<'a>(images: &'a [PyReadonlyArrayDyn<'_, u8>]) -> Result<Vec<&'a [u8]>, Refused> {
    images.iter().map(slice).collect()
}

#[pymethods]
impl PyPipeline {
    #[new]
    #[pyo3(signature = (plan_json, graph, library))]
    fn new(plan_json: &str, graph: Option<Graph<'_>>, library: PathBuf) -> Result<Self, Refused> {
        let plan = Plan::from_json(plan_json)?;
        let engine = graph.map(|graph| graph.open(&EngineOptions::new(library))).transpose()?;
        let policy = guarded(|| Ok(Policy::new(&plan, engine)?))?;
        let rows = usize::try_from(plan.timing.chunk).unwrap_or(0);
        Ok(PyPipeline(Mutex::new(Inner {
            policy,
            observation: Observation::new(plan.n()),
            chunk: Chunk::new(rows, plan.n()),
            hashes: vec![0; plan.cameras.len()],
            cameras: plan.cameras,
        })))
    }

    fn reset(&self) {
        let mut inner = self.inner();
        inner.observation.episode = inner.observation.episode.wrapping_add(1);
        inner.observation.period = 0;
        inner.policy.reset();
    }

    #[pyo3(signature = (sample, images, *, goal_velocity=None, tokens=None, applied=None))]
    fn preprocess<'py>(
        &self,
        py: Python<'py>,
        sample: Floats<'py>,
        images: Vec<PyReadonlyArrayDyn<'py, u8>>,
        goal_velocity: Option<Floats<'py>>,
        tokens: Option<Tokens<'py>>,
        applied: Option<Floats<'py>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let pixels = pixels(&images)?;
        let mut inner = self.inner();
        inner.observe(&sample, &pixels, goal_velocity.as_ref(), tokens.as_ref(), applied.as_ref())?;
        let Inner { policy, observation, cameras, .. } = &mut *inner;
        let seen = views(cameras, &pixels, &observation.image_seq, 0);
        policy.preprocessor().build(observation, &seen).map_err(|code| refuse(code, "preprocess"))?;
        let tensors = policy.preprocessor().tensors().iter().map(owned).collect();
        inner.advance();
        to_dict(py, tensors)
    }

    fn decode<'py>(&self, py: Python<'py>, outputs: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let mut inner = self.inner();
        let Inner { policy, observation, chunk, .. } = &mut *inner;
        let mut given: Vec<Option<PyReadonlyArrayDyn<'py, f32>>> = Vec::new();
        for name in policy.outputs() {
            given.push(outputs.get_item(name)?.map(|array| array.extract()).transpose()?);
        }
        let slices = given.iter().map(|array| array.as_ref().map(slice).transpose()).collect::<Result<Vec<_>, _>>()?;
        policy
            .take_outputs(observation, chunk, &|index| slices.get(index).copied().flatten())
            .map_err(|code| refuse(code, "decode"))?;
        inner.targets(py)
    }

    #[pyo3(signature = (sample, images, *, goal_velocity=None, tokens=None, applied=None))]
    fn infer<'py>(
        &self,
        py: Python<'py>,
        sample: Floats<'py>,
        images: Vec<PyReadonlyArrayDyn<'py, u8>>,
        goal_velocity: Option<Floats<'py>>,
        tokens: Option<Tokens<'py>>,
        applied: Option<Floats<'py>>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let pixels = pixels(&images)?;
        let mut inner = self.inner();
        inner.observe(&sample, &pixels, goal_velocity.as_ref(), tokens.as_ref(), applied.as_ref())?;
        let Inner { policy, observation, chunk, cameras, .. } = &mut *inner;
        let seen = views(cameras, &pixels, &observation.image_seq, 0);
        guarded(|| Ok(policy.infer(observation, &seen, chunk, &|| 0)?))?;
        if chunk.status != Code::None as u16 {
            let code = Code::from_u16(chunk.status).unwrap_or(Code::WorkerError);
            return Err(refuse(code, "infer").into());
        }
        inner.advance();
        inner.targets(py)
    }

    fn last_outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, self.inner().policy.results().cloned().collect())
    }
}
