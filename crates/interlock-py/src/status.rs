//! The loop's numbers as a dictionary.

use interlock_rt::record::RecordStatus;
use interlock_rt::status::Status;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Numbers, counts per code, and how the recording is doing.
pub fn to_dict<'py>(py: Python<'py>, status: &Status, recording: Option<RecordStatus>) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, value) in status.snapshot().each() {
        out.set_item(name, value)?;
    }
    for (name, counts) in status.tallies().each() {
        let tally = PyDict::new(py);
        for (word, count) in counts {
            tally.set_item(word, count)?;
        }
        out.set_item(name, tally)?;
    }
    out.set_item("recording", recording.map(|status| recorded(py, &status)).transpose()?)?;
    Ok(out)
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
