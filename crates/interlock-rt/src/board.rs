//! What the control thread tells everybody else: memory that it alone writes, without locks, and that any process may
//! read without it noticing.
//!
//! The memory is a sealed memfd. Sealed against further writing as well: whoever maps it later, under whatever rights, can
//! read and nothing else. A page of a file on a disk would not do: writing to it can wait for that disk.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{
    fence, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::error::RtError;

const WORD: usize = size_of::<u64>();
/// Times that a reader looks again while the writer is at it. The writer needs well under a microsecond, so what is
/// still half written after this many looks belongs to a writer that was stopped or killed in the middle.
const LOOKS: u32 = 4096;
/// Linux 5.1; not in every libc.
const F_SEAL_FUTURE_WRITE: i32 = 0x0010;
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL;

/// Words of shared memory.
#[derive(Debug)]
pub struct Memory {
    base: NonNull<AtomicU64>,
    words: usize,
    fd: OwnedFd,
}

// SAFETY: the memory behind `base` is touched through atomics only.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

fn refused(what: impl Into<String>) -> RtError {
    RtError::new("board-layout", what, "both ends must come from the same installation of interlock")
}

impl Memory {
    /// New words, all zero, under `name` (shown in /proc only). Nobody else can ever write to them.
    pub fn create(name: &std::ffi::CStr, words: usize) -> Result<Self, RtError> {
        // SAFETY: `name` is a NUL-terminated string that outlives the call.
        let raw = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if raw < 0 {
            return Err(RtError::os("board-memory", "memfd_create"));
        }
        // SAFETY: `raw` was just opened and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        let bytes = words.checked_mul(WORD).and_then(|bytes| libc::off_t::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| refused(format!("{words} words are too many")))?;
        // SAFETY: a plain system call on an owned descriptor.
        if unsafe { libc::ftruncate(raw, bytes) } != 0 {
            return Err(RtError::os("board-memory", "sizing"));
        }
        let memory = Self::map(fd, words, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: a plain system call on an owned descriptor; the mapping made above keeps its right to write.
        if unsafe { libc::fcntl(raw, libc::F_ADD_SEALS, SEALS) } != 0 {
            return Err(RtError::os("board-memory", "sealing"));
        }
        Ok(memory)
    }

    /// Maps the words behind a descriptor, which stays the caller's, for reading. Refused unless they are exactly `words`
    /// whose number cannot change.
    pub fn attach(raw: RawFd, words: usize) -> Result<Self, RtError> {
        // SAFETY: duplicating validates `raw`; the result is checked and owned.
        let copy = unsafe { libc::fcntl(raw, libc::F_DUPFD_CLOEXEC, 3) };
        if copy < 0 {
            return Err(refused(format!("descriptor {raw}: {}", std::io::Error::last_os_error())));
        }
        // SAFETY: `copy` was just made and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(copy) };
        // SAFETY: plain system calls on an owned descriptor; a zeroed stat is a valid one to write to.
        let (seals, length) = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            let failed = libc::fstat(copy, &raw mut stat) != 0;
            (libc::fcntl(copy, libc::F_GET_SEALS), if failed { -1 } else { stat.st_size })
        };
        // What could shrink could end whoever reads it.
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(refused("not a sealed memory file"));
        }
        if usize::try_from(length).ok() != words.checked_mul(WORD) {
            return Err(refused(format!("expected {words} words, got {length} bytes")));
        }
        Self::map(fd, words, libc::PROT_READ)
    }

    fn map(fd: OwnedFd, words: usize, protection: i32) -> Result<Self, RtError> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a fresh shared mapping of an owned descriptor; nothing is replaced.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), words * WORD, protection, flags, fd.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(RtError::os("board-memory", "mmap"));
        }
        let base = NonNull::new(base.cast::<AtomicU64>()).ok_or_else(|| RtError::os("board-memory", "mmap"))?;
        Ok(Memory { base, words, fd })
    }

    /// The descriptor to pass on; valid as long as this memory.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// `count` words from `begin` on; fewer where the memory ends.
    pub fn words(&self, begin: usize, count: usize) -> &[AtomicU64] {
        // SAFETY: the mapping is page aligned, `words` long and lives as long as `self`; every word is atomic.
        let all = unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.words) };
        let begin = begin.min(self.words);
        all.get(begin..begin.saturating_add(count).min(self.words)).unwrap_or(&[])
    }

    /// The halves of `count` words from `begin` on.
    pub fn halves(&self, begin: usize, count: usize) -> &[AtomicU32] {
        let words = self.words(begin, count);
        // SAFETY: the same bytes, twice as many of half the size, with a weaker alignment. An area is used as words or as
        // halves and never as both.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<AtomicU32>(), words.len() * 2) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `base` and its length are what mmap returned; no reference into it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.words * WORD) };
    }
}

/// Shows words in an area of which the first word is its lock. One thread only; what does not fit is left out.
pub fn show(area: &[AtomicU64], words: &[u64]) {
    let Some((lock, slots)) = area.split_first() else { return };
    let before = lock.load(Relaxed);
    lock.store(before.wrapping_add(1), Relaxed);
    fence(Release);
    for (slot, word) in slots.iter().zip(words) {
        slot.store(*word, Relaxed);
    }
    lock.store(before.wrapping_add(2), Release);
}

/// Reads the newest complete words of an area into `out`. False: the writer was stopped while it wrote, and `out` is
/// worth nothing.
pub fn look(area: &[AtomicU64], out: &mut [u64]) -> bool {
    let Some((lock, slots)) = area.split_first() else { return false };
    for _ in 0..LOOKS {
        let before = lock.load(Acquire);
        for (word, slot) in out.iter_mut().zip(slots) {
            *word = slot.load(Relaxed);
        }
        fence(Acquire);
        if before.is_multiple_of(2) && lock.load(Relaxed) == before {
            return true;
        }
        // A writer that shares our processor must get to run.
        std::thread::yield_now();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn memory(words: usize) -> Memory {
        Memory::create(c"test", words).unwrap()
    }

    #[test]
    fn a_reader_never_sees_half_of_what_was_shown() {
        let (memory, stop) = (memory(4), AtomicBool::new(false));
        let reader = Memory::attach(memory.fd(), 4).unwrap();
        let mut seen = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut tick = 0;
                while !stop.load(Relaxed) {
                    tick += 1;
                    show(memory.words(0, 4), &[3 * tick, 2 * tick, tick]);
                }
            });
            let mut words = [0; 3];
            for _ in 0..100_000 {
                if look(reader.words(0, 4), &mut words) {
                    assert_eq!(words[0], words[1] + words[2]);
                    seen += 1;
                }
            }
            stop.store(true, Relaxed);
        });
        assert!(seen > 0);
    }

    #[test]
    fn what_a_killed_writer_left_half_written_is_not_taken_for_whole() {
        let memory = memory(3);
        let area = memory.words(0, 3);
        show(area, &[1, 2]);
        area[0].store(3, Relaxed);
        assert!(!look(area, &mut [0; 2]));
    }

    #[test]
    fn nobody_who_maps_it_later_can_write() {
        let memory = memory(8);
        // SAFETY: plain system calls; a mapping that is made in spite of the seal is a failure of the test.
        unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let mapped = libc::mmap(std::ptr::null_mut(), 64, protection, libc::MAP_SHARED, memory.fd(), 0);
            assert_eq!(mapped, libc::MAP_FAILED);
            assert_eq!(libc::write(memory.fd(), [1_u8].as_ptr().cast(), 1), -1);
            assert_ne!(libc::ftruncate(memory.fd(), 0), 0);
        }
        show(memory.words(0, 2), &[7]);
        let reader = Memory::attach(memory.fd(), 8).unwrap();
        let mut word = [0];
        assert!(look(reader.words(0, 2), &mut word) && word == [7], "who made it still writes");
    }

    #[test]
    fn what_is_no_board_is_refused() {
        let ring = crate::shm::Ring::create("ring", 2, 64).unwrap();
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        for fd in [-1, ring.fd(), file.as_raw_fd()] {
            assert_eq!(Memory::attach(fd, 8).unwrap_err().code, "board-layout");
        }
    }
}
