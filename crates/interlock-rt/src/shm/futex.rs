//! Waiting on a word of shared memory.

use std::sync::atomic::AtomicU32;

use crate::clock;

/// Sleeps while `word` is `seen`, at most until the monotonic clock shows `until_ns`. May return early.
pub fn wait(word: &AtomicU32, seen: u32, until_ns: i64) {
    let until = clock::timespec(until_ns);
    // SAFETY: `word` and `until` outlive the call. FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time; the
    // word is shared between processes, hence no FUTEX_PRIVATE_FLAG.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET,
            seen,
            &raw const until,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        );
    }
}

/// Wakes everyone who waits on `word`.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the kernel uses the address as a key only.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
    }
}
