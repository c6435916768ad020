//! Copies between private and shared memory, word by word, so that a concurrent writer is never a data race.

use std::sync::atomic::{AtomicU64, AtomicU8, Ordering::Relaxed};

const WORD: usize = 8;

/// Copies `from` to shared memory.
///
/// # Safety
/// `to` is 8-byte aligned, valid for `from.len()` bytes for the whole call, and other threads and processes touch it
/// only atomically or through a [`super::View`], which is checked after use.
#[allow(clippy::cast_ptr_alignment)] // promised by the caller
pub unsafe fn store(to: *mut u8, from: &[u8]) {
    let (words, tail) = from.as_chunks::<WORD>();
    let target = to.cast::<AtomicU64>();
    for (index, word) in words.iter().enumerate() {
        // SAFETY: `index * 8 + 8 <= from.len()`, so this word lies inside and is aligned.
        unsafe { &*target.add(index) }.store(u64::from_ne_bytes(*word), Relaxed);
    }
    let done = from.len() - tail.len();
    for (index, byte) in tail.iter().enumerate() {
        // SAFETY: `done + index < from.len()`.
        unsafe { &*to.add(done + index).cast::<AtomicU8>() }.store(*byte, Relaxed);
    }
}

/// Copies from shared memory to `to`.
///
/// # Safety
/// As for [`store`], with `from` valid for `to.len()` bytes.
#[allow(clippy::cast_ptr_alignment)] // promised by the caller
pub unsafe fn load(from: *const u8, to: &mut [u8]) {
    let len = to.len();
    let (words, tail) = to.as_chunks_mut::<WORD>();
    let source = from.cast::<AtomicU64>();
    for (index, word) in words.iter_mut().enumerate() {
        // SAFETY: `index * 8 + 8 <= to.len()`, so this word lies inside and is aligned.
        *word = unsafe { &*source.add(index) }.load(Relaxed).to_ne_bytes();
    }
    let done = len - tail.len();
    for (index, byte) in tail.iter_mut().enumerate() {
        // SAFETY: `done + index < to.len()`.
        *byte = unsafe { &*from.add(done + index).cast::<AtomicU8>() }.load(Relaxed);
    }
}
