//! The memory of one ring: made, checked, mapped, unmapped.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::layout::{sizes, Header, SlotHead, HEADER_BYTES, HEAD_BYTES, MAGIC, VERSION};
use crate::error::RtError;

const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A mapped ring. Its size is sealed, so no access inside it can fault.
pub struct Mapping {
    base: NonNull<u8>,
    total: usize,
    stride: usize,
    slots: u32,
    slot_bytes: usize,
    fd: OwnedFd,
    /// One producer per mapping.
    pub(super) claimed: AtomicBool,
}

// SAFETY: the memory behind `base` is touched only through atomics and through views that are checked after use.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

fn layout_error(what: impl Into<String>) -> RtError {
    RtError::new("ring-layout", what, "both ends must come from the same installation of interlock")
}

impl Mapping {
    /// A new ring of zeroes under `name` (shown in /proc only).
    pub fn create(name: &str, slots: u32, slot_bytes: usize) -> Result<Self, RtError> {
        let (stride, total) = sizes(slots, slot_bytes)
            .ok_or_else(|| layout_error(format!("{name}: {slots} slots of {slot_bytes} bytes make no ring")))?;
        let label = CString::new(name).map_err(|_| layout_error("name: contains a NUL byte"))?;
        // SAFETY: `label` is a NUL-terminated string that outlives the call.
        let raw = unsafe { libc::memfd_create(label.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if raw < 0 {
            return Err(RtError::os("ring-memory", "memfd_create"));
        }
        // SAFETY: `raw` was just opened and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        let length = libc::off_t::try_from(total).map_err(|_| layout_error("too large"))?;
        // SAFETY: plain system calls on an owned descriptor.
        if unsafe { libc::ftruncate(raw, length) } != 0 || unsafe { libc::fcntl(raw, libc::F_ADD_SEALS, SEALS) } != 0 {
            return Err(RtError::os("ring-memory", "sizing and sealing"));
        }
        let mapping = Self::map(fd, total, stride, slots, slot_bytes)?;
        let header = mapping.header();
        header.slots.store(slots, Relaxed);
        header.slot_bytes.store(slot_bytes as u64, Relaxed);
        header.stride.store(stride as u64, Relaxed);
        header.version.store(VERSION, Relaxed);
        header.magic.store(MAGIC, std::sync::atomic::Ordering::Release);
        Ok(mapping)
    }

    /// Maps an inherited descriptor after checking that it is a ring whose size cannot change. Keeps a duplicate.
    pub fn attach(raw: RawFd) -> Result<Self, RtError> {
        // SAFETY: duplicating validates `raw`; the duplicate is owned.
        let copy = unsafe { libc::fcntl(raw, libc::F_DUPFD_CLOEXEC, 3) };
        if copy < 0 {
            return Err(layout_error(format!("descriptor {raw}: {}", std::io::Error::last_os_error())));
        }
        // SAFETY: `copy` was just made and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(copy) };
        // SAFETY: plain system calls on an owned descriptor; a zeroed stat is a valid one to write to.
        let (seals, length) = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            let failed = libc::fstat(copy, &raw mut stat) != 0;
            (libc::fcntl(copy, libc::F_GET_SEALS), if failed { -1 } else { stat.st_size })
        };
        let sized = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
        if seals < 0 || seals & sized != sized {
            return Err(layout_error("not a sealed memory file"));
        }
        let total = usize::try_from(length).unwrap_or(0);
        if total < HEADER_BYTES {
            return Err(layout_error(format!("expected at least {HEADER_BYTES} bytes, got {length}")));
        }
        let mut mapping = Self::map(fd, total, 0, 0, 0)?;
        let header = mapping.header();
        let (magic, version) = (header.magic.load(Relaxed), header.version.load(Relaxed));
        if magic != MAGIC || version != VERSION {
            return Err(layout_error(format!(
                "expected ring version {VERSION}, got magic {magic:#x} version {version}"
            )));
        }
        let slots = header.slots.load(Relaxed);
        let slot_bytes = usize::try_from(header.slot_bytes.load(Relaxed)).unwrap_or(0);
        let stride = usize::try_from(header.stride.load(Relaxed)).unwrap_or(0);
        // The sizes are kept privately from here on: what is in shared memory is never believed again.
        if sizes(slots, slot_bytes) != Some((stride, total)) {
            return Err(layout_error(format!("{slots} slots of {slot_bytes} bytes do not make {total} bytes")));
        }
        mapping.slots = slots;
        mapping.slot_bytes = slot_bytes;
        mapping.stride = stride;
        Ok(mapping)
    }

    fn map(fd: OwnedFd, total: usize, stride: usize, slots: u32, slot_bytes: usize) -> Result<Self, RtError> {
        // SAFETY: a fresh shared mapping of an owned descriptor; nothing is replaced.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                total,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(RtError::os("ring-memory", "mmap"));
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or_else(|| RtError::os("ring-memory", "mmap"))?;
        Ok(Mapping { base, total, stride, slots, slot_bytes, fd, claimed: AtomicBool::new(false) })
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the mapping is page aligned and at least HEADER_BYTES long; every field is atomic.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Head and payload of the slot that sequence number `seq` goes to.
    pub(super) fn slot(&self, seq: u64) -> (&SlotHead, *mut u8) {
        let index = usize::try_from(seq % u64::from(self.slots)).unwrap_or(0);
        // SAFETY: `index < slots`, so head and payload lie inside the mapping; the stride is a multiple of 64.
        unsafe {
            let head = self.base.add(HEADER_BYTES + index * self.stride);
            (head.cast::<SlotHead>().as_ref(), head.add(HEAD_BYTES).as_ptr())
        }
    }

    pub(super) fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    pub(super) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `base` and `total` are what mmap returned; no reference into it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.total) };
    }
}
