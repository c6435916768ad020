//! What Python sees when construction or start-up is refused.

use std::panic::{catch_unwind, AssertUnwindSafe};

use interlock_core::plan::PlanError;
use interlock_rt::error::RtError;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    interlock._core,
    CoreError,
    PyException,
    "Raised by construction and start-up only, never on a tick. `code` is a stable word."
);

/// An error on its way to Python.
pub struct Refused(RtError);

impl Refused {
    pub fn new(code: &'static str, what: impl Into<String>, hint: &str) -> Self {
        Refused(RtError::new(code, what, hint))
    }
}

impl From<RtError> for Refused {
    fn from(error: RtError) -> Self {
        Refused(error)
    }
}

impl From<PlanError> for Refused {
    fn from(error: PlanError) -> Self {
        let hint = "the plan is written by `interlock check`: run it again, and report what contradicts itself";
        Refused(RtError::new(error.code.word(), format!("{}: {}", error.at, error.what), hint))
    }
}

impl From<Refused> for PyErr {
    fn from(Refused(error): Refused) -> Self {
        let raised = CoreError::new_err(error.what);
        Python::attach(|py| {
            let value = raised.value(py);
            // An exception has a dictionary; should it refuse, the message is still there.
            let _ = value.setattr("code", error.code);
            let _ = value.setattr("hint", error.hint);
        });
        raised
    }
}

/// Runs `what`; a panic becomes an error like any other.
pub fn guarded<T>(what: impl FnOnce() -> Result<T, Refused>) -> Result<T, Refused> {
    catch_unwind(AssertUnwindSafe(what)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Refused::new("internal", said, "this is a defect: please report it"))
    })
}
