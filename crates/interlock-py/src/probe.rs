//! Snapshots of probes for whoever publishes them.

use std::sync::{Mutex, PoisonError};

use interlock_core::plan::Plan;
use interlock_rt::clock;
use interlock_rt::probe::{self, Snapshots};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::refused::Refused;
use crate::ring::PyRing;

/// Every snapshot once, in order, as an encoded message.
#[pyclass(name = "Probes", module = "interlock._core", frozen)]
pub struct PyProbes(Mutex<Snapshots>);

#[pymethods]
impl PyProbes {
    #[staticmethod]
    fn ring(plan_json: &str) -> Result<Option<PyRing>, Refused> {
        Ok(probe::ring(&Plan::from_json(plan_json)?)?.map(PyRing::from))
    }

    #[staticmethod]
    fn schema(py: Python<'_>) -> Bound<'_, PyBytes> {
        PyBytes::new(py, probe::message_schema())
    }

    #[staticmethod]
    fn is_recorded(plan_json: &str) -> Result<bool, Refused> {
        Ok(probe::is_recorded(&Plan::from_json(plan_json)?))
    }

    #[new]
    fn new(plan_json: &str, ring: &PyRing, epoch_minus_monotonic_ns: i64) -> Result<Self, Refused> {
        let plan = Plan::from_json(plan_json)?;
        Ok(PyProbes(Mutex::new(Snapshots::new(&plan, ring.ring.clone(), epoch_minus_monotonic_ns))))
    }

    fn take<'py>(&self, py: Python<'py>, timeout_ns: i64) -> Option<(String, Bound<'py, PyBytes>)> {
        let (name, message) = py.detach(|| {
            let mut snapshots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            snapshots.take_message(clock::monotonic_ns().saturating_add(timeout_ns))
        })?;
        Some((name, PyBytes::new(py, &message)))
    }
}
