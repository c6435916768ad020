//! Durations of the first ticks, for benchmarks and reports; room is made and touched before the first tick.

use std::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::status::{Status, Window};

/// Ticks kept: 400 s at 500 Hz.
pub const CAPACITY: usize = 200_000;

/// Durations in nanoseconds, one writer, any number of readers. Longer than 4.29 s counts as 4.29 s.
#[derive(Debug)]
pub struct Series {
    values: Box<[AtomicU32]>,
    used: AtomicUsize,
    /// Where watchers see the newest.
    window: Option<Window>,
}

impl Series {
    fn new(capacity: usize, window: Option<Window>) -> Self {
        Series { values: (0..capacity).map(|_| AtomicU32::new(0)).collect(), used: AtomicUsize::new(0), window }
    }

    /// Appends while there is room, and shows it in any case.
    pub fn push(&self, duration_ns: i64) {
        let duration_ns = u32::try_from(duration_ns.max(0)).unwrap_or(u32::MAX);
        if let Some(window) = &self.window {
            window.push(duration_ns);
        }
        let used = self.used.load(Relaxed);
        if let Some(slot) = self.values.get(used) {
            slot.store(duration_ns, Relaxed);
            self.used.store(used.wrapping_add(1), Release);
        }
    }

    /// Everything so far.
    pub fn values(&self) -> Vec<i64> {
        let used = self.used.load(Acquire);
        self.values.iter().take(used).map(|value| i64::from(value.load(Relaxed))).collect()
    }
}

macro_rules! timings {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// What is measured in every tick.
        #[derive(Debug)]
        pub struct Timings { $($(#[doc = $doc])* pub $name: Series,)* }

        impl Timings {
            /// Room for `capacity` ticks.
            pub fn new(capacity: usize) -> Self {
                Timings { $($name: Series::new(capacity, None),)* }
            }

            /// Room for [`CAPACITY`] ticks; the newest are shown to watchers.
            pub fn shown(status: &Status) -> Self {
                Timings { $($name: Series::new(CAPACITY, status.window(stringify!($name))),)* }
            }

            /// Every series with its name.
            pub fn each(&self) -> Vec<(&'static str, Vec<i64>)> {
                vec![$((stringify!($name), self.$name.values()),)*]
            }
        }
    };
}

timings! {
    /// Release to the thread running; every missed tick is a sample too.
    lateness_ns,
    /// Everything the tick did, without the hand-off to the worker.
    work_ns,
    /// Synchronous: observation published to chunk seen. Asynchronous: publishing the observation.
    handoff_ns,
    /// Waking to the newest sample being aligned.
    observe_ns,
    /// Modes, schedule, guard and fallback.
    act_ns,
    /// Publishing the command, with the system call that wakes the driver.
    send_ns,
    /// Copying into the recording.
    record_ns,
    /// Capture of the sample in use to the command being sent.
    capture_to_sent_ns,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out() {
        let timings = Timings::new(2);
        for value in [5, i64::MAX, 7] {
            timings.work_ns.push(value);
        }
        assert_eq!(timings.work_ns.values(), [5, i64::from(u32::MAX)]);
        assert!(timings.lateness_ns.values().is_empty());
    }

    #[test]
    fn every_duration_is_shown() {
        let status = Status::new().unwrap();
        let timings = Timings::shown(&status);
        timings.each().iter().for_each(|(name, _)| assert!(status.window(name).is_some(), "{name}"));
        assert_eq!(timings.each().len(), crate::status::SHOWN.len());
        timings.act_ns.push(5);
        assert_eq!(status.window("act_ns").unwrap().look().samples, [5]);
    }
}
