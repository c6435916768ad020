//! Asking the kernel for real-time treatment of the calling thread, and reading back what it gave.

use std::mem::{size_of, zeroed};

use serde::Serialize;

use crate::cgroup::{self, Group};

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
    /// Bytes that are locked now, by the kernel's own count.
    pub locked_bytes: i64,
    /// Bytes that may be locked; -1: no bound.
    pub memlock_limit: i64,
    /// Highest real-time priority that an unprivileged process may take; -1: no bound.
    pub rtprio_limit: i64,
    /// The only processor that was asked for.
    pub asked_cpu: Option<usize>,
    /// Processors that the thread may run on.
    pub cpus: Vec<usize>,
    /// How much later than asked the kernel may wake the thread to save power, ns; of no effect under "fifo".
    pub timer_slack_ns: i64,
    /// Microseconds of each second that real-time threads may take of a processor; -1: all, 0: unknown.
    pub realtime_us_per_s: i64,
    /// Control groups that bound this process.
    pub cgroups: Vec<Group>,
    /// Everything asked for was given.
    pub complete: bool,
    /// Which of "affinity", "memory", "scheduler", "timer-slack" were refused.
    pub missing: Vec<&'static str>,
    /// The same in words, with the kernel's reason.
    pub refused: Vec<String>,
}

/// Collects what was refused, one word and one text each.
#[derive(Default)]
struct Refusals(Vec<(&'static str, String)>);

impl Refusals {
    /// With the kernel's reason for the call that failed last.
    fn failed(&mut self, what: &'static str, asked: &str) {
        self.0.push((what, format!("{asked}: {}", std::io::Error::last_os_error())));
    }

    fn other(&mut self, what: &'static str, text: String) {
        self.0.push((what, text));
    }

    fn has(&self, what: &str) -> bool {
        self.0.iter().any(|(each, _)| *each == what)
    }
}

/// Asks for `wanted` on the calling thread and locks the process's memory when a priority is asked for. The thread's
/// timers are made exact in any case: it costs nobody else anything.
pub fn apply(wanted: Wanted) -> Granted {
    let mut refusals = Refusals::default();
    if let Some(cpu) = wanted.cpu {
        pin(cpu, &mut refusals);
    }
    // SAFETY: plain system call on the calling thread.
    if unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) } != 0 {
        refusals.failed("timer-slack", "timers exact to 1 ns");
    }
    let (mut has_locked, mut locked_bytes) = (false, locked());
    if wanted.priority > 0 {
        // SAFETY: plain system call.
        has_locked = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } == 0;
        if !has_locked {
            refusals.failed("memory", "mlockall");
        }
        locked_bytes = locked();
        if has_locked && locked_bytes == 0 {
            refusals.other("memory", "mlockall: the kernel reports that nothing is locked".into());
        }
        take_priority(wanted.priority, &mut refusals);
    }
    let (scheduler, priority) = scheduler();
    let cpus = cpus();
    if wanted.cpu.is_some_and(|cpu| cpus != [cpu]) && !refusals.has("affinity") {
        refusals.other("affinity", format!("affinity: the kernel reports {cpus:?}"));
    }
    Granted {
        scheduler,
        priority,
        asked_priority: wanted.priority,
        memory_locked: has_locked && locked_bytes > 0,
        locked_bytes,
        memlock_limit: limit(libc::RLIMIT_MEMLOCK),
        rtprio_limit: limit(libc::RLIMIT_RTPRIO),
        asked_cpu: wanted.cpu,
        cpus,
        // SAFETY: plain system call; the slack is what it returns.
        timer_slack_ns: i64::from(unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }),
        realtime_us_per_s: realtime_us_per_s(),
        cgroups: cgroup::read(),
        complete: refusals.0.is_empty(),
        missing: refusals.0.iter().map(|(what, _)| *what).collect(),
        refused: refusals.0.into_iter().map(|(_, text)| text).collect(),
    }
}

/// What would be granted now: asked on a thread of its own, read back and given back.
pub fn try_out(wanted: Wanted) -> Granted {
    let asked = std::thread::spawn(move || {
        let granted = apply(wanted);
        release(&granted);
        granted
    });
    asked.join().unwrap_or_default()
}

/// Lets go of the memory that [`apply`] locked for the whole process.
pub fn release(granted: &Granted) {
    if granted.memory_locked {
        // SAFETY: plain system call.
        unsafe { libc::munlockall() };
    }
}

fn take_priority(asked: i32, refusals: &mut Refusals) {
    let parameter = libc::sched_param { sched_priority: asked };
    // SAFETY: `parameter` outlives the call; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } != 0 {
        return refusals.failed("scheduler", &format!("SCHED_FIFO {asked}"));
    }
    let (scheduler, priority) = scheduler();
    if scheduler != "fifo" || priority != asked {
        refusals.other("scheduler", format!("SCHED_FIFO {asked}: the kernel reports {scheduler} {priority}"));
    }
}

/// Bytes of this process that are locked into memory.
fn locked() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<i64>().ok());
    kilobytes.unwrap_or(0).saturating_mul(1024)
}

fn realtime_us_per_s() -> i64 {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        text.trim().parse::<i64>().ok()
    };
    match (read("sched_rt_runtime_us"), read("sched_rt_period_us")) {
        (Some(-1), _) => -1,
        (Some(share), Some(period)) if period > 0 => share.saturating_mul(1_000_000) / period,
        _ => 0,
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

fn pin(cpu: usize, refusals: &mut Refusals) {
    let asked = format!("affinity to processor {cpu}");
    let allowed = cpus();
    if cpu >= libc::CPU_SETSIZE as usize {
        return refusals.other("affinity", format!("{asked}: the highest number is {}", libc::CPU_SETSIZE - 1));
    }
    // SAFETY: the set is a plain bit array, `cpu` lies inside it, 0 is the calling thread.
    let rc = unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if rc != 0 {
        refusals.failed("affinity", &format!("{asked}; this process may run on {allowed:?}"));
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
    use std::sync::{Mutex, PoisonError};

    /// What is locked is the whole process's: who locks is alone.
    static MEMORY: Mutex<()> = Mutex::new(());

    #[test]
    fn nothing_asked_is_completely_granted() {
        let granted = try_out(Wanted::default());
        assert!(granted.complete, "{granted:?}");
        assert!(!granted.cpus.is_empty());
        assert!(!granted.memory_locked);
    }

    #[test]
    fn timers_are_exact_without_any_privilege() {
        let granted = try_out(Wanted::default());
        assert!(granted.timer_slack_ns <= 1, "{granted:?}");
    }

    #[test]
    fn a_processor_that_does_not_exist_is_reported_with_those_that_do() {
        let missing = *cpus().iter().max().unwrap() + 500;
        let granted = try_out(Wanted { priority: 0, cpu: Some(missing) });
        assert_eq!(granted.missing, ["affinity"]);
        assert!(granted.refused[0].contains(&format!("{:?}", cpus())), "{granted:?}");
        assert_eq!(granted.cpus, cpus());
    }

    #[test]
    fn a_number_that_no_processor_can_have_is_reported() {
        let granted = try_out(Wanted { priority: 0, cpu: Some(100_000) });
        assert_eq!(granted.missing, ["affinity"]);
        assert!(granted.refused[0].contains("1023"), "{granted:?}");
    }

    #[test]
    fn a_processor_that_exists_is_the_only_one_afterwards() {
        let cpu = *cpus().last().unwrap();
        let granted = try_out(Wanted { priority: 0, cpu: Some(cpu) });
        assert!(granted.complete, "{granted:?}");
        assert_eq!((granted.asked_cpu, granted.cpus), (Some(cpu), vec![cpu]));
    }

    #[test]
    fn the_report_says_what_is_not_what_was_asked() {
        let _alone = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
        // 100 is no valid priority: the request fails whoever asks.
        let granted = try_out(Wanted { priority: 100, cpu: None });
        assert!(!granted.complete);
        assert!(granted.missing.contains(&"scheduler"));
        assert_ne!(granted.scheduler, "fifo");
        assert_eq!(granted.asked_priority, 100);
    }

    #[test]
    fn locked_memory_is_what_the_kernel_counts() {
        let _alone = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
        let granted = try_out(Wanted { priority: 1, cpu: None });
        assert_eq!(granted.memory_locked, !granted.missing.contains(&"memory"), "{granted:?}");
        assert_eq!(granted.memory_locked, granted.locked_bytes > 0, "{granted:?}");
        assert_eq!(locked(), 0, "trying it out leaves nothing locked");
    }
}
