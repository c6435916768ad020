//! The paced loop.

use std::path::PathBuf;
use std::time::Duration;

use interlock_core::plan::Plan;
use interlock_rt::paced::{Paced, PacedParts, WorkerParts};
use interlock_rt::realtime::{Granted, Wanted};
use interlock_rt::request::Request;
use numpy::{IntoPyArray, PyReadonlyArrayDyn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{image_mode, slice};
use crate::refused::{guarded, Refused};
use crate::ring::PyRing;
use crate::status;

/// The paced loop: Rust control thread on absolute deadlines, writer thread, watcher threads.
#[pyclass(name = "Supervisor", module = "interlock._core", frozen)]
pub struct PySupervisor(Paced);

/// As it stands in the recording's header.
pub(crate) fn granted<'py>(py: Python<'py>, granted: &Granted) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(granted).map_err(|error| PyValueError::new_err(error.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}

#[pymethods]
impl PySupervisor {
    #[new]
    #[pyo3(signature = (plan_json, *, state, command, images, observation, chunk, worker_pidfd, driver_pidfd, generation,
        recording, header_json="{}", record_images="png", realtime_priority=0, cpu=None, dry=false, probes=None))]
    #[allow(clippy::too_many_arguments)] // one keyword each, documented in the stub
    fn new(
        plan_json: &str,
        state: &PyRing,
        command: &PyRing,
        images: Vec<PyRef<'_, PyRing>>,
        observation: &PyRing,
        chunk: &PyRing,
        worker_pidfd: i32,
        driver_pidfd: i32,
        generation: u32,
        recording: Option<PathBuf>,
        header_json: &str,
        record_images: &str,
        realtime_priority: i32,
        cpu: Option<usize>,
        dry: bool,
        probes: Option<PyRef<'_, PyRing>>,
    ) -> Result<Self, Refused> {
        let parts = PacedParts {
            plan: Plan::from_json(plan_json)?,
            plan_json: plan_json.to_owned(),
            state: state.ring.clone(),
            command: command.ring.clone(),
            images: images.iter().map(|ring| ring.ring.clone()).collect(),
            probes: probes.map(|ring| ring.ring.clone()),
            worker: worker(observation, chunk, worker_pidfd, generation),
            driver_pidfd,
            recording,
            header_json: header_json.to_owned(),
            record_images: image_mode(record_images)?,
            realtime: Wanted { priority: realtime_priority, cpu },
            dry,
        };
        guarded(|| Ok(PySupervisor(Paced::new(parts)?)))
    }

    fn start<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let given = py.detach(|| guarded(|| Ok(self.0.start()?)))?;
        granted(py, &given)
    }

    fn request(&self, what: &str) -> Result<(), Refused> {
        Ok(self.0.request(Request::parse(what)?)?)
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
        Ok(self.0.set_goal(velocity, tokens, text)?)
    }

    fn set_worker(
        &self,
        observation: &PyRing,
        chunk: &PyRing,
        worker_pidfd: i32,
        generation: u32,
    ) -> Result<(), Refused> {
        Ok(self.0.set_worker(&worker(observation, chunk, worker_pidfd, generation))?)
    }

    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        status::to_dict(py, self.0.status(), self.0.recording())
    }

    fn log(&self, module: &str, level: &str, text: &str) {
        self.0.log(module, level, text);
    }

    #[getter]
    fn status_fd(&self) -> i32 {
        self.0.status().fd()
    }

    #[getter]
    fn epoch_minus_monotonic_ns(&self) -> i64 {
        self.0.offset_ns()
    }

    fn show_facts(&self, facts_json: &str) {
        self.0.status().show_facts(facts_json);
    }

    fn timings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (name, values) in self.0.timings().each() {
            out.set_item(name, values.into_pyarray(py))?;
        }
        Ok(out)
    }

    fn wait(&self, py: Python<'_>, timeout_ns: u64) -> bool {
        py.detach(|| self.0.wait(Duration::from_nanos(timeout_ns)))
    }

    fn stop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        py.detach(|| self.0.stop());
        self.status(py)
    }
}

fn worker(observation: &PyRing, chunk: &PyRing, pidfd: i32, generation: u32) -> WorkerParts {
    WorkerParts { observation: observation.ring.clone(), chunk: chunk.ring.clone(), pidfd, generation }
}
