//! One inference session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use interlock_rt::engine::{Engine, EngineOptions, Port};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays::{to_dict, NamedArrays};
use crate::refused::{guarded, Refused};

/// Verified bytes, or the path of a graph whose external data stands beside it.
#[derive(FromPyObject)]
pub enum Graph<'py> {
    Bytes(Bound<'py, PyBytes>),
    Path(PathBuf),
}

impl Graph<'_> {
    pub fn open(&self, options: &EngineOptions) -> Result<Engine, Refused> {
        guarded(|| match self {
            Graph::Bytes(bytes) => Ok(Engine::from_bytes(bytes.as_bytes(), options)?),
            Graph::Path(path) => Ok(Engine::from_path(path, options)?),
        })
    }
}

/// One ONNX Runtime session through its C API.
#[pyclass(name = "Engine", module = "interlock._core", frozen)]
pub struct PyEngine(Mutex<Engine>);

impl PyEngine {
    fn engine(&self) -> std::sync::MutexGuard<'_, Engine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ports(ports: &[Port]) -> Vec<(String, &'static str, Vec<i64>)> {
    ports.iter().map(|port| (port.name.clone(), port.element.name(), port.shape.clone())).collect()
}

#[pymethods]
impl PyEngine {
    #[new]
    #[pyo3(signature = (graph, library, *, threads=1, optimize=true, provider="CPUExecutionProvider"))]
    fn new(
        graph: Graph<'_>,
        library: PathBuf,
        threads: usize,
        optimize: bool,
        provider: &str,
    ) -> Result<Self, Refused> {
        let providers = vec![provider.to_owned()];
        Ok(PyEngine(Mutex::new(graph.open(&EngineOptions { library, threads, optimize, providers })?)))
    }

    #[getter]
    fn runtime_version(&self) -> String {
        self.engine().runtime_version().to_owned()
    }

    fn inputs(&self) -> Vec<(String, &'static str, Vec<i64>)> {
        ports(self.engine().inputs())
    }

    fn outputs(&self) -> Vec<(String, &'static str, Vec<i64>)> {
        ports(self.engine().outputs())
    }

    fn effective_providers(&self) -> BTreeMap<String, usize> {
        self.engine().effective_providers().clone()
    }

    fn run<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        let arrays = NamedArrays::new(inputs)?;
        let tensors = arrays.tensors()?;
        let outputs = guarded(|| Ok(self.engine().run_once(&tensors)?))?;
        to_dict(py, outputs)
    }
}
