//! All stages in one process on a manual clock.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_core::plan::Plan;
use interlock_rt::engine::EngineOptions;
use interlock_rt::lockstep::{Lockstep, LockstepRecording};
use interlock_rt::request::Request;
use interlock_rt::ticker::{Done, GuardMode};
use numpy::{PyArrayDyn, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{image_mode, matrix, slice};
use crate::engine::Graph;
use crate::refused::{guarded, Refused};
use crate::status;

/// What one tick did.
#[pyclass(name = "Tick", module = "interlock._core", frozen)]
pub struct PyTick {
    done: Done,
    rows: Vec<f64>,
}

#[pymethods]
impl PyTick {
    #[getter]
    fn tick(&self) -> u64 {
        self.done.tick
    }

    #[getter]
    fn due_ns(&self) -> i64 {
        self.done.due_ns
    }

    #[getter]
    fn mode(&self) -> u8 {
        self.done.mode
    }

    #[getter]
    fn level(&self) -> u8 {
        self.done.level
    }

    #[getter]
    fn ruling(&self) -> u8 {
        self.done.ruling
    }

    #[getter]
    fn codes(&self) -> Vec<u32> {
        (0..u64::BITS).filter(|code| self.done.codes >> code & 1 == 1).collect()
    }

    #[getter]
    fn sent(&self) -> bool {
        self.done.sent
    }

    #[getter]
    fn running(&self) -> bool {
        self.done.running
    }

    #[getter]
    fn kind(&self) -> u8 {
        self.done.kind
    }

    #[getter]
    fn command<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        matrix(py, self.rows.clone(), 5)
    }

    #[getter]
    fn offered(&self) -> bool {
        self.done.offered
    }
}

/// All stages in one process on a manual clock.
#[pyclass(name = "Lockstep", module = "interlock._core", frozen)]
pub struct PyLockstep(Mutex<Lockstep>);

impl PyLockstep {
    fn inner(&self) -> MutexGuard<'_, Lockstep> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyLockstep {
    #[new]
    #[pyo3(signature = (plan_json, graph, library, recording=None, header_json="{}", record_images="png", guard=true))]
    fn new(
        plan_json: &str,
        graph: Graph<'_>,
        library: PathBuf,
        recording: Option<PathBuf>,
        header_json: &str,
        record_images: &str,
        guard: bool,
    ) -> Result<Self, Refused> {
        let plan = Plan::from_json(plan_json)?;
        let engine = graph.open(&EngineOptions::new(library))?;
        let images = image_mode(record_images)?;
        let (plan_json, header_json) = (plan_json.to_owned(), header_json.to_owned());
        let recording = recording.map(|path| LockstepRecording { path, plan_json, header_json, images });
        let guard = if guard { GuardMode::On } else { GuardMode::SimulationOnlyOff };
        guarded(|| Ok(PyLockstep(Mutex::new(Lockstep::new(&plan, engine, guard, recording)?))))
    }

    fn request(&self, what: &str) -> Result<(), Refused> {
        self.inner().request(Request::parse(what)?);
        Ok(())
    }

    #[pyo3(signature = (velocity, tokens, text))]
    fn set_goal(
        &self,
        velocity: Option<PyReadonlyArrayDyn<'_, f64>>,
        tokens: Option<PyReadonlyArrayDyn<'_, i64>>,
        text: &str,
    ) -> Result<(), Refused> {
        let velocity = velocity.as_ref().map(slice).transpose()?;
        let tokens = tokens.as_ref().map(slice).transpose()?;
        Ok(self.inner().set_goal(velocity, tokens, text)?)
    }

    fn image(&self, camera: usize, pixels: PyReadonlyArrayDyn<'_, u8>, capture_ns: i64) -> Result<(), Refused> {
        Ok(self.inner().image(camera, slice(&pixels)?, capture_ns)?)
    }

    fn step(&self, now_ns: i64, sample: PyReadonlyArrayDyn<'_, f64>, capture_ns: i64) -> Result<PyTick, Refused> {
        let flat = slice(&sample)?;
        let mut inner = self.inner();
        guarded(|| {
            let done = inner.step(now_ns, flat, capture_ns)?;
            Ok(PyTick { done, rows: inner.command().to_vec() })
        })
    }

    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.inner();
        status::to_dict(py, inner.status(), inner.recording())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.inner().close());
    }
}
