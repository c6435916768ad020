//! Rings for drivers and tests.

use std::sync::Mutex;

use interlock_rt::clock;
use interlock_rt::shm::{Producer, Ring};
use pyo3::prelude::*;

use crate::arrays::{Payload, Target};
use crate::refused::Refused;

/// Single-producer ring in shared memory; readers take the newest slot without ever blocking the producer.
#[pyclass(name = "Ring", module = "interlock._core", frozen)]
pub struct PyRing {
    pub ring: Ring,
    producer: Mutex<Option<Producer>>,
}

impl From<Ring> for PyRing {
    fn from(ring: Ring) -> Self {
        PyRing { ring, producer: Mutex::new(None) }
    }
}

#[pymethods]
impl PyRing {
    #[staticmethod]
    fn create(name: &str, slots: u32, slot_bytes: usize) -> Result<Self, Refused> {
        Ok(Ring::create(name, slots, slot_bytes)?.into())
    }

    #[staticmethod]
    fn attach(fd: i32) -> Result<Self, Refused> {
        Ok(Ring::attach(fd)?.into())
    }

    #[getter]
    fn fd(&self) -> i32 {
        self.ring.fd()
    }

    #[getter]
    fn slot_bytes(&self) -> usize {
        self.ring.slot_bytes()
    }

    fn publish(&self, payload: &Bound<'_, PyAny>, stamp_ns: i64) -> PyResult<u64> {
        let payload = Payload::new(payload)?;
        let bytes = payload.bytes()?;
        let mut held = self.producer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if held.is_none() {
            *held = Some(self.ring.producer().map_err(Refused::from)?);
        }
        let sent = held.as_mut().and_then(|producer| producer.publish(bytes, stamp_ns));
        let refuse = || {
            let what = format!("expected at most {} bytes, got {}", self.ring.slot_bytes(), bytes.len());
            Refused::new("ring-layout", what, "create the ring with the size functions of interlock._core")
        };
        Ok(sent.ok_or_else(refuse)?)
    }

    fn latest(&self, out: &Bound<'_, PyAny>) -> PyResult<Option<(u64, i64)>> {
        let mut out = Target::new(out)?;
        Ok(self.ring.latest(out.bytes()?).map(|slot| (slot.seq, slot.stamp_ns)))
    }

    fn wait(&self, py: Python<'_>, after_seq: u64, timeout_ns: i64) -> bool {
        py.detach(|| self.ring.wait_until(after_seq, clock::monotonic_ns().saturating_add(timeout_ns)))
    }
}
