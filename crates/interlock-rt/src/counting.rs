//! An allocator that counts per thread, so that a loop can prove that it allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator plus one counter per thread.
pub struct Counting;

fn count() {
    // During the thread's end the counter may be gone; nothing that is measured runs then.
    let _ = COUNT.try_with(|counter| counter.set(counter.get().wrapping_add(1)));
}

// SAFETY: every call goes to the system's allocator unchanged; the counter has no destructor and never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(old, layout) }
    }
}

/// Allocations of the calling thread so far; stays 0 unless [`Counting`] is the program's allocator.
pub fn allocations() -> u64 {
    COUNT.try_with(Cell::get).unwrap_or(0)
}
