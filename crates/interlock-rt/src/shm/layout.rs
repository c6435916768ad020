//! Where things stand in a ring's memory. Both ends are built from one source; the version says so.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// "ILRING01" read as little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ILRING01");
/// Increases with every change of layout.
pub const VERSION: u32 = 1;
/// A cache line: the producer's counters and every payload start on one.
pub const LINE: usize = 64;

/// First bytes of a ring. Everything in the first line is written once, before the ring is shared.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// Number of slots, at least 2.
    pub slots: AtomicU32,
    /// Largest payload in bytes.
    pub slot_bytes: AtomicU64,
    /// Bytes from one slot to the next.
    pub stride: AtomicU64,
    /// Process that publishes; 0 before the first.
    pub producer: AtomicU32,
    reserved: [u32; 7],
    /// Sequence number of the newest complete slot; 0 before the first.
    pub newest: AtomicU64,
    /// Low half of `newest`: what waiters sleep on.
    pub word: AtomicU32,
    /// How many wait; a waiter that was killed stays counted and costs one system call per publish.
    pub waiters: AtomicU32,
}

/// First bytes of a slot; the payload follows on the next line.
#[repr(C, align(64))]
pub struct SlotHead {
    /// `2 * seq` when complete, `2 * seq - 1` while being written.
    pub lock: AtomicU64,
    /// Stamp given by the producer.
    pub stamp_ns: AtomicI64,
    /// Bytes of payload.
    pub len: AtomicU64,
}

/// Bytes of the header in the file.
pub const HEADER_BYTES: usize = size_of::<Header>();
/// Bytes before a payload in its slot.
pub const HEAD_BYTES: usize = size_of::<SlotHead>();

/// Bytes from slot to slot and of the whole file; None where the sizes overflow or make no ring.
pub fn sizes(slots: u32, slot_bytes: usize) -> Option<(usize, usize)> {
    if slots < 2 || slot_bytes == 0 {
        return None;
    }
    let payload = slot_bytes.checked_next_multiple_of(LINE)?;
    let stride = payload.checked_add(HEAD_BYTES)?;
    let total = stride.checked_mul(usize::try_from(slots).ok()?)?.checked_add(HEADER_BYTES)?;
    isize::try_from(total).is_ok().then_some((stride, total))
}
