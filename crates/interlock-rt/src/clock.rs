//! The three clocks and the one way to wait for a deadline.

use crate::realtime;

/// Clocks read one after another, so that a recording can be put on the epoch timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Triple {
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: i64,
    /// `CLOCK_REALTIME`.
    pub realtime_ns: i64,
    /// `CLOCK_TAI`; equals realtime where the kernel was never told the offset.
    pub tai_ns: i64,
}

fn read(clock: libc::clockid_t) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid, exclusive timespec; the call writes nothing else.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

/// `CLOCK_MONOTONIC` now.
pub fn monotonic_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// All three clocks now.
pub fn triple() -> Triple {
    Triple { monotonic_ns: monotonic_ns(), realtime_ns: read(libc::CLOCK_REALTIME), tai_ns: read(libc::CLOCK_TAI) }
}

pub(crate) fn timespec(ns: i64) -> libc::timespec {
    let ns = ns.max(0);
    libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}

/// Sleeps until the monotonic clock shows `due_ns`; returns at once where that is past. Signals do not cut it short.
pub fn sleep_until(due_ns: i64) {
    let due = timespec(due_ns);
    loop {
        // SAFETY: `due` outlives the call; with TIMER_ABSTIME no remaining time is written.
        let rc = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const due, std::ptr::null_mut())
        };
        if rc != libc::EINTR {
            return;
        }
    }
}

/// Lateness of every wake-up of a bare absolute-deadline loop: what the operating system alone costs.
///
/// Runs in a thread of its own, under `SCHED_FIFO` where `priority` is above 0 and the kernel grants it.
pub fn floor(rate_hz: f64, seconds: f64, priority: i32) -> Vec<i64> {
    let bare = move || {
        realtime::apply(realtime::Wanted { priority, cpu: None });
        bare_loop(nanoseconds(1e9 / rate_hz), nanoseconds(rate_hz * seconds))
    };
    std::thread::scope(|scope| scope.spawn(bare).join().unwrap_or_default())
}

fn bare_loop(period_ns: i64, ticks: i64) -> Vec<i64> {
    let mut late = Vec::with_capacity(usize::try_from(ticks).unwrap_or(0));
    let mut due = monotonic_ns().saturating_add(period_ns);
    for _ in 0..ticks {
        sleep_until(due);
        let now = monotonic_ns();
        late.push(now.saturating_sub(due));
        // A loop that is a period late starts afresh instead of running to catch up.
        due = due.max(now.saturating_sub(period_ns)).saturating_add(period_ns);
    }
    late
}

#[allow(clippy::cast_possible_truncation)] // saturating by definition of `as`
fn nanoseconds(value: f64) -> i64 {
    value.round().max(1.0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_never_reported_early() {
        for _ in 0..20 {
            let due = monotonic_ns() + 200_000;
            sleep_until(due);
            assert!(monotonic_ns() >= due);
        }
    }

    #[test]
    fn a_past_deadline_returns_and_the_floor_counts_every_tick() {
        sleep_until(-5);
        assert_eq!(floor(1000.0, 0.02, 0).len(), 20);
    }
}
