//! The loop's numbers as dictionaries, in this process and from another.

use interlock_rt::record::RecordStatus;
use interlock_rt::status::{Status, Tallies, Watched};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::refused::Refused;

/// Numbers, counts per code, and how the recording is doing.
pub fn to_dict<'py>(py: Python<'py>, status: &Status, recording: Option<RecordStatus>) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, value) in status.snapshot().each() {
        out.set_item(name, value)?;
    }
    put_tallies(py, &out, &status.tallies())?;
    out.set_item("recording", recording.map(|status| recorded(py, &status)).transpose()?)?;
    Ok(out)
}

fn put_tallies(py: Python<'_>, out: &Bound<'_, PyDict>, tallies: &Tallies) -> PyResult<()> {
    for (name, counts) in tallies.each() {
        let tally = PyDict::new(py);
        for (word, count) in counts {
            tally.set_item(word, count)?;
        }
        out.set_item(name, tally)?;
    }
    Ok(())
}

/// What another process's loop shows; for reading only.
#[pyclass(name = "Watched", module = "interlock._core", frozen)]
pub struct PyWatched(Watched);

#[pymethods]
impl PyWatched {
    #[staticmethod]
    fn attach(fd: i32) -> Result<Self, Refused> {
        Ok(PyWatched(Watched::attach(fd)?))
    }

    fn look<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let (Some(snapshot), Some(tallies), Some(recorded)) = (self.0.snapshot(), self.0.tallies(), self.0.recorded())
        else {
            return Ok(None);
        };
        let out = PyDict::new(py);
        for (name, value) in snapshot.each() {
            out.set_item(name, value)?;
        }
        put_tallies(py, &out, &tallies)?;
        let recording = PyDict::new(py);
        for (name, value) in recorded.each() {
            recording.set_item(name, value)?;
        }
        out.set_item("recording", (recorded.at_ns > 0).then_some(recording))?;
        Ok(Some(out))
    }

    fn durations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (name, durations) in self.0.durations() {
            let each = PyDict::new(py);
            each.set_item("sum_ns", durations.sum_ns)?;
            each.set_item("buckets", durations.buckets)?;
            each.set_item("samples", durations.samples.into_pyarray(py))?;
            out.set_item(name, each)?;
        }
        Ok(out)
    }

    fn facts(&self) -> String {
        self.0.facts()
    }

    fn goal(&self) -> String {
        self.0.goal()
    }
}

fn recorded<'py>(py: Python<'py>, status: &RecordStatus) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("bytes", status.bytes)?;
    out.set_item("bytes_per_s", status.rate)?;
    out.set_item("ticks", status.ticks)?;
    out.set_item("ticks_dropped", status.ticks_dropped)?;
    out.set_item("chunks_dropped", status.chunks_dropped)?;
    out.set_item("images", status.images)?;
    out.set_item("images_dropped", status.images_dropped)?;
    out.set_item("logs_dropped", status.logs_dropped)?;
    out.set_item("images_ended", status.images_ended)?;
    out.set_item("ended", status.ended)?;
    out.set_item("replayable", status.replayable)?;
    out.set_item("writer_longest_ns", status.writer_longest_ns)?;
    out.set_item("writer_busy_ns", status.writer_busy_ns)?;
    out.set_item("error", &status.error)?;
    Ok(out)
}
