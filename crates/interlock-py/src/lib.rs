//! Conversion between Python and the crates below; no logic. `python/interlock/_core.pyi` documents every name.
#![allow(missing_docs, clippy::needless_pass_by_value)]

mod arrays;
mod engine;
mod lockstep;
mod pipeline;
mod probe;
mod refused;
mod ring;
mod status;
mod supervisor;

use std::collections::BTreeMap;
use std::path::PathBuf;

use interlock_core::code::Code;
use interlock_core::plan::Plan;
use interlock_rt::counting::Counting;
use interlock_rt::engine::EngineOptions;
use interlock_rt::request::Request;
use interlock_rt::worker::{self, WorkerLinks};
use interlock_rt::{clock, last_resort, realtime, ticker, wire};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use refused::{CoreError, Refused};

/// Counts per thread, so that `Supervisor.status()` can say what the control thread allocates.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[pyfunction]
fn monotonic_ns() -> i64 {
    clock::monotonic_ns()
}

#[pyfunction]
fn code_word(value: u16) -> &'static str {
    Code::from_u16(value).map_or("unknown", Code::word)
}

#[pyfunction]
fn code_words() -> BTreeMap<u16, &'static str> {
    Code::ALL.iter().map(|code| (*code as u16, code.word())).collect()
}

#[pyfunction]
fn mode_names() -> BTreeMap<u32, String> {
    ticker::mode_names()
}

#[pyfunction]
fn request_words() -> BTreeMap<u8, &'static str> {
    Request::ALL.iter().map(|request| (*request as u8, request.word())).collect()
}

#[pyfunction]
fn check_plan(plan_json: &str) -> Result<(), Refused> {
    Plan::from_json(plan_json)?;
    Ok(())
}

#[pyfunction]
fn state_bytes(n: usize) -> usize {
    wire::state_bytes(n)
}

#[pyfunction]
fn command_bytes(n: usize) -> usize {
    wire::command_bytes(n)
}

#[pyfunction]
fn observation_bytes(n: usize) -> usize {
    wire::observation_bytes(n)
}

#[pyfunction]
fn chunk_bytes(rows: usize, n: usize) -> usize {
    wire::chunk_bytes(rows, n)
}

#[pyfunction]
#[pyo3(signature = (rate_hz, seconds, priority=0))]
fn floor(py: Python<'_>, rate_hz: f64, seconds: f64, priority: i32) -> Bound<'_, PyArray1<i64>> {
    py.detach(|| clock::floor(rate_hz, seconds, priority)).into_pyarray(py)
}

#[pyfunction]
#[pyo3(signature = (priority, cpu=None))]
fn try_realtime(py: Python<'_>, priority: i32, cpu: Option<usize>) -> PyResult<Bound<'_, PyAny>> {
    let given = py.detach(|| realtime::try_out(realtime::Wanted { priority, cpu }));
    supervisor::granted(py, &given)
}

#[pyfunction]
fn leave_with(parent_pidfd: i32, grace_ns: i64) -> Result<(), Refused> {
    Ok(last_resort::leave_with(parent_pidfd, grace_ns)?)
}

#[pyfunction]
#[pyo3(
    signature = (plan_json, graph, library, *, observation, chunk, images, generation, threads=1, parent_pidfd=-1,
        probe=None),
    text_signature = "(plan_json, graph, library, *, observation, chunk, images, generation, threads=1, parent_pidfd=-1, probe=None)"
)]
#[allow(clippy::too_many_arguments)] // one keyword each, documented in the stub
fn run_worker(
    py: Python<'_>,
    plan_json: &str,
    graph: engine::Graph<'_>,
    library: PathBuf,
    observation: &ring::PyRing,
    chunk: &ring::PyRing,
    images: Vec<PyRef<'_, ring::PyRing>>,
    generation: u32,
    threads: usize,
    parent_pidfd: i32,
    probe: Option<PyRef<'_, ring::PyRing>>,
) -> Result<(), Refused> {
    let plan = Plan::from_json(plan_json)?;
    let session = graph.open(&EngineOptions { threads, ..EngineOptions::new(library) })?;
    let links = WorkerLinks {
        observation: observation.ring.clone(),
        chunk: chunk.ring.clone(),
        images: images.iter().map(|image| image.ring.clone()).collect(),
        probe: probe.map(|probe| probe.ring.clone()),
    };
    py.detach(|| refused::guarded(|| Ok(worker::run(&plan, session, &links, generation, parent_pidfd)?)))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let error = module.py().get_type::<CoreError>();
    error.setattr("code", "")?;
    error.setattr("hint", "")?;
    module.add("CoreError", error)?;
    module.add_class::<ring::PyRing>()?;
    module.add_class::<engine::PyEngine>()?;
    module.add_class::<pipeline::PyPipeline>()?;
    module.add_class::<lockstep::PyTick>()?;
    module.add_class::<lockstep::PyLockstep>()?;
    module.add_class::<supervisor::PySupervisor>()?;
    module.add_class::<status::PyWatched>()?;
    module.add_class::<probe::PyProbes>()?;
    for function in [
        wrap_pyfunction!(monotonic_ns, module)?,
        wrap_pyfunction!(code_word, module)?,
        wrap_pyfunction!(code_words, module)?,
        wrap_pyfunction!(mode_names, module)?,
        wrap_pyfunction!(request_words, module)?,
        wrap_pyfunction!(check_plan, module)?,
        wrap_pyfunction!(state_bytes, module)?,
        wrap_pyfunction!(command_bytes, module)?,
        wrap_pyfunction!(observation_bytes, module)?,
        wrap_pyfunction!(chunk_bytes, module)?,
        wrap_pyfunction!(floor, module)?,
        wrap_pyfunction!(try_realtime, module)?,
        wrap_pyfunction!(leave_with, module)?,
        wrap_pyfunction!(run_worker, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
