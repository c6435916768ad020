//! What construction and start-up can refuse; nothing on a tick returns this.

use std::fmt;

/// A refusal with a stable code, what was found and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtError {
    /// Stable word.
    pub code: &'static str,
    /// Where, expected, got.
    pub what: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

impl RtError {
    /// A refusal.
    pub fn new(code: &'static str, what: impl Into<String>, hint: impl Into<String>) -> Self {
        RtError { code, what: what.into(), hint: hint.into() }
    }

    /// The last error of the operating system, seen while doing `what`.
    pub fn os(code: &'static str, what: &str) -> Self {
        RtError::new(code, format!("{what}: {}", std::io::Error::last_os_error()), "")
    }
}

impl fmt::Display for RtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.what)
    }
}

impl std::error::Error for RtError {}
