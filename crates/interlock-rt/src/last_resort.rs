//! Ending a process whose parent is gone, whatever its own loop is doing: a thread that takes no lock and no GIL.

use std::os::fd::RawFd;

use crate::clock;
use crate::error::RtError;
use crate::watch::{Ended, Watch};

/// Longest sleep between two looks at whether the parent lives.
const LOOK_NS: i64 = 50_000_000;

/// Ends this process `grace_ns` after `ended` is set, at once and without a word: nothing of it is of use any more.
pub fn leave_after(ended: Ended, grace_ns: i64) -> Result<(), RtError> {
    spawn(move || leave(&ended, grace_ns))
}

/// The same for the process behind `parent`, a pidfd that stays the caller's.
pub fn leave_with(parent: RawFd, grace_ns: i64) -> Result<(), RtError> {
    let watch = Watch::new("parent", parent)?;
    spawn(move || leave(&watch.ended(), grace_ns))
}

fn spawn(body: impl FnOnce() + Send + 'static) -> Result<(), RtError> {
    let spawned = std::thread::Builder::new().name("last-resort".into()).spawn(body);
    spawned.map(|_| ()).map_err(|error| RtError::new("thread", error.to_string(), ""))
}

fn leave(ended: &Ended, grace_ns: i64) {
    while !ended.is_set() {
        clock::sleep_until(clock::monotonic_ns().saturating_add(LOOK_NS));
    }
    clock::sleep_until(clock::monotonic_ns().saturating_add(grace_ns));
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(0) };
}
