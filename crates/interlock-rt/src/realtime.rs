//! Asking the kernel for real-time treatment of the calling thread, and reading back what it gave.

use std::mem::{size_of, zeroed};

use serde::Serialize;

/// What was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// `SCHED_FIFO` priority; 0: leave the scheduler alone.
    pub priority: i32,
    /// The only processor to run on.
    pub cpu: Option<usize>,
}

/// What the kernel says holds now, read back after asking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Granted {
    /// "fifo", "rr", "other", "batch", "idle", "deadline" or "unknown".
    pub scheduler: &'static str,
    /// Real-time priority; 0 outside the real-time schedulers.
    pub priority: i32,
    /// Priority asked for.
    pub asked_priority: i32,
    /// Whether all memory was locked.
    pub memory_locked: bool,
    /// Bytes that may be locked; -1: no bound.
    pub memlock_limit: i64,
    /// Highest real-time priority that an unprivileged process may take.
    pub rtprio_limit: i64,
    /// Processors that the thread may run on.
    pub cpus: Vec<usize>,
    /// Everything asked for was given.
    pub complete: bool,
    /// What was refused, with the kernel's reason.
    pub refused: Vec<String>,
}

fn failure(what: &str) -> String {
    format!("{what}: {}", std::io::Error::last_os_error())
}

/// Asks for `wanted` on the calling thread and locks the process's memory when a priority is asked for.
pub fn apply(wanted: Wanted) -> Granted {
    let mut refused = Vec::new();
    if let Some(cpu) = wanted.cpu {
        if !pin(cpu) {
            refused.push(failure(&format!("affinity to processor {cpu}")));
        }
    }
    let mut memory_locked = false;
    if wanted.priority > 0 {
        // SAFETY: plain system call.
        memory_locked = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } == 0;
        if !memory_locked {
            refused.push(failure("mlockall"));
        }
        let parameter = libc::sched_param { sched_priority: wanted.priority };
        // SAFETY: `parameter` outlives the call; 0 is the calling thread.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } != 0 {
            refused.push(failure(&format!("SCHED_FIFO {}", wanted.priority)));
        }
    }
    let (scheduler, priority) = scheduler();
    if wanted.priority > 0 && (scheduler != "fifo" || priority != wanted.priority) && refused.is_empty() {
        refused.push(format!("SCHED_FIFO {}: the kernel reports {scheduler} {priority}", wanted.priority));
    }
    let cpus = cpus();
    if wanted.cpu.is_some_and(|cpu| cpus != [cpu]) && refused.is_empty() {
        refused.push(format!("affinity: the kernel reports {cpus:?}"));
    }
    Granted {
        scheduler,
        priority,
        asked_priority: wanted.priority,
        memory_locked,
        memlock_limit: limit(libc::RLIMIT_MEMLOCK),
        rtprio_limit: limit(libc::RLIMIT_RTPRIO),
        cpus,
        complete: refused.is_empty(),
        refused,
    }
}

/// Lets go of the memory that [`apply`] locked for the whole process.
pub fn release(granted: &Granted) {
    if granted.memory_locked {
        // SAFETY: plain system call.
        unsafe { libc::munlockall() };
    }
}

fn scheduler() -> (&'static str, i32) {
    // SAFETY: a zeroed parameter is valid to be written to; 0 is the calling thread.
    let (policy, parameter) = unsafe {
        let mut parameter: libc::sched_param = zeroed();
        libc::sched_getparam(0, &raw mut parameter);
        (libc::sched_getscheduler(0), parameter)
    };
    let name = match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO => "fifo",
        libc::SCHED_RR => "rr",
        libc::SCHED_OTHER => "other",
        libc::SCHED_BATCH => "batch",
        libc::SCHED_IDLE => "idle",
        libc::SCHED_DEADLINE => "deadline",
        _ => "unknown",
    };
    (name, parameter.sched_priority)
}

fn pin(cpu: usize) -> bool {
    if cpu >= libc::CPU_SETSIZE as usize {
        return false;
    }
    // SAFETY: the set is a plain bit array, `cpu` lies inside it, 0 is the calling thread.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0
    }
}

fn cpus() -> Vec<usize> {
    // SAFETY: as in `pin`.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect()
    }
}

fn limit(resource: libc::__rlimit_resource_t) -> i64 {
    let mut bound = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `bound` is valid to be written to.
    unsafe { libc::getrlimit(resource, &raw mut bound) };
    if bound.rlim_cur == libc::RLIM_INFINITY {
        -1
    } else {
        i64::try_from(bound.rlim_cur).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_asked_is_completely_granted() {
        let granted = apply(Wanted::default());
        assert!(granted.complete, "{granted:?}");
        assert!(!granted.cpus.is_empty());
    }

    #[test]
    fn what_the_kernel_refuses_is_reported() {
        let granted = std::thread::spawn(|| apply(Wanted { priority: 0, cpu: Some(100_000) })).join().unwrap();
        assert!(!granted.complete);
        assert_eq!(granted.refused.len(), 1);
    }

    #[test]
    fn the_report_says_what_is_not_what_was_asked() {
        // 100 is no valid priority: the request fails whoever asks.
        let granted = std::thread::spawn(|| apply(Wanted { priority: 100, cpu: None })).join().unwrap();
        assert!(!granted.complete);
        assert_ne!(granted.scheduler, "fifo");
        assert_eq!(granted.asked_priority, 100);
    }
}
