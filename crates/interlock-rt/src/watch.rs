//! Noticing that a process ended, by its process descriptor, in a thread of its own.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::error::RtError;

/// Becomes true when the watched process has ended, and stays so.
#[derive(Debug, Clone, Default)]
pub struct Ended(Arc<AtomicBool>);

impl Ended {
    /// Whether the process has ended.
    pub fn is_set(&self) -> bool {
        self.0.load(Acquire)
    }
}

/// A thread that sleeps until the process ends or the watch is dropped.
#[derive(Debug)]
pub struct Watch {
    ended: Ended,
    cancel: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches the process behind `pidfd`, which stays the caller's.
    pub fn new(name: &str, pidfd: RawFd) -> Result<Self, RtError> {
        // SAFETY: duplicating validates `pidfd`; eventfd makes a new descriptor. Both results are checked and owned.
        let (process, cancel) = unsafe {
            (libc::fcntl(pidfd, libc::F_DUPFD_CLOEXEC, 3), libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))
        };
        if process < 0 || cancel < 0 {
            return Err(RtError::os("watch", &format!("{name}: process descriptor {pidfd}")));
        }
        // SAFETY: both were just opened and belong to nobody else.
        let (process, cancel) = unsafe { (OwnedFd::from_raw_fd(process), OwnedFd::from_raw_fd(cancel)) };
        let ended = Ended::default();
        let (flag, stop) = (ended.clone(), cancel.as_raw_fd());
        let thread = std::thread::Builder::new()
            .name(format!("watch-{name}"))
            .spawn(move || {
                if wait(process.as_raw_fd(), stop) {
                    flag.0.store(true, Release);
                }
            })
            .map_err(|error| RtError::new("watch", error.to_string(), ""))?;
        Ok(Watch { ended, cancel, thread: Some(thread) })
    }

    /// Whether the process has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.is_set()
    }

    /// The flag.
    pub fn ended(&self) -> Ended {
        self.ended.clone()
    }
}

/// True when the process ended, false when the watch was cancelled.
fn wait(process: RawFd, cancel: RawFd) -> bool {
    let watched = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut fds = [watched(process), watched(cancel)];
    loop {
        // SAFETY: `fds` is an exclusive array of two.
        let rc = unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
        if fds[1].revents != 0 {
            return false;
        }
        // POLLNVAL and POLLERR count as ended: what cannot be watched is not trusted.
        if rc > 0 && fds[0].revents != 0 {
            return true;
        }
        if rc < 0 && std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return true;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: eight bytes to an owned eventfd.
        unsafe { libc::write(self.cancel.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        if let Some(thread) = self.thread.take() {
            // The thread only polls and stores; it has nothing to report.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[allow(clippy::cast_possible_truncation)] // descriptors are small
    fn pidfd(pid: u32) -> OwnedFd {
        // SAFETY: a plain system call whose result is owned.
        unsafe { OwnedFd::from_raw_fd(libc::syscall(libc::SYS_pidfd_open, pid, 0) as RawFd) }
    }

    #[test]
    fn a_killed_process_is_noticed() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let watch = Watch::new("child", pidfd(child.id()).as_raw_fd()).unwrap();
        let ended = watch.ended();
        assert!(!ended.is_set());
        child.kill().unwrap();
        while !ended.is_set() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_watch_can_be_dropped_while_the_process_lives() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let watch = Watch::new("child", pidfd(child.id()).as_raw_fd()).unwrap();
        let ended = watch.ended();
        drop(watch);
        assert!(!ended.is_set());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_is_no_descriptor_is_refused() {
        assert_eq!(Watch::new("none", -1).unwrap_err().code, "watch");
    }
}
