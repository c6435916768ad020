//! A ring of preallocated slots from one thread to one other. Pushing never waits, never allocates, never enters the
//! kernel; a full ring drops the new slot and counts it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Keeps the two counters in cache lines of their own.
#[repr(align(128))]
struct Counter(AtomicU64);

struct Shared<T> {
    slots: Box<[UnsafeCell<T>]>,
    /// Slots ever filled; written by the producer only.
    filled: Counter,
    /// Slots ever emptied; written by the consumer only.
    emptied: Counter,
    dropped: AtomicU64,
}

// SAFETY: a slot is touched by the producer while `filled - emptied < slots` counts it as free, and by the consumer while
// it counts as full; both counters are published with release and read with acquire.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn slot(&self, position: u64) -> *mut T {
        // The remainder is below the length, which fits usize.
        let index = usize::try_from(position % self.slots.len() as u64).unwrap_or(0);
        self.slots[index].get()
    }
}

/// The writing end.
pub(crate) struct Producer<T>(Arc<Shared<T>>);

/// The reading end.
pub(crate) struct Consumer<T>(Arc<Shared<T>>);

/// A ring of as many slots as `make` is called for.
pub(crate) fn ring<T: Send>(slots: usize, mut make: impl FnMut() -> T) -> (Producer<T>, Consumer<T>) {
    let slots = (0..slots.max(1)).map(|_| UnsafeCell::new(make())).collect();
    let counter = || Counter(AtomicU64::new(0));
    let shared = Arc::new(Shared { slots, filled: counter(), emptied: counter(), dropped: AtomicU64::new(0) });
    (Producer(Arc::clone(&shared)), Consumer(shared))
}

impl<T> Producer<T> {
    /// Slots that wait to be taken.
    pub(crate) fn waiting(&self) -> u64 {
        self.0.filled.0.load(Ordering::Relaxed).wrapping_sub(self.0.emptied.0.load(Ordering::Acquire))
    }

    /// Whether the next push would be dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting() >= self.0.slots.len() as u64
    }

    /// Lets `fill` write the next slot, which still holds what it held a round ago. False: full, counted as dropped.
    pub(crate) fn push(&mut self, fill: impl FnOnce(&mut T)) -> bool {
        if self.is_full() {
            self.drop_one();
            return false;
        }
        let position = self.0.filled.0.load(Ordering::Relaxed);
        // SAFETY: the slot is free, so the consumer does not touch it before `filled` moves, and `&mut self` keeps
        // other producers away.
        fill(unsafe { &mut *self.0.slot(position) });
        self.0.filled.0.store(position.wrapping_add(1), Ordering::Release);
        true
    }

    /// Counts something that was not even tried.
    pub(crate) fn drop_one(&self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl<T> Consumer<T> {
    /// Lets `take` have the oldest full slot; what it leaves there is what the producer finds a round later. False: empty.
    pub(crate) fn pop(&mut self, take: impl FnOnce(&mut T)) -> bool {
        let position = self.0.emptied.0.load(Ordering::Relaxed);
        if self.0.filled.0.load(Ordering::Acquire) == position {
            return false;
        }
        // SAFETY: the slot is full, so the producer does not touch it before `emptied` moves, and `&mut self` keeps other
        // consumers away.
        take(unsafe { &mut *self.0.slot(position) });
        self.0.emptied.0.store(position.wrapping_add(1), Ordering::Release);
        true
    }

    /// Slots lost so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_arrives_in_order_and_what_does_not_fit_is_counted() {
        let (mut producer, mut consumer) = ring(3, || 0_u64);
        let accepted: Vec<bool> = (1..=5).map(|value| producer.push(|slot| *slot = value)).collect();
        assert_eq!(accepted, [true, true, true, false, false]);
        let mut seen = vec![];
        while consumer.pop(|slot| seen.push(*slot)) {}
        assert_eq!((seen, consumer.dropped()), (vec![1, 2, 3], 2));
        assert!(producer.push(|slot| *slot = 6));
        assert!(consumer.pop(|slot| assert_eq!(*slot, 6)));
    }

    #[test]
    fn two_threads_neither_lose_nor_tear_a_slot() {
        let (mut producer, mut consumer) = ring(8, || [0_u64; 16]);
        let total = 200_000;
        let writer = std::thread::spawn(move || {
            (1..=total).filter(|&value| producer.push(|slot| slot.fill(value))).count() as u64
        });
        let (mut last, mut count) = (0, 0);
        loop {
            let ended = writer.is_finished();
            let popped = consumer.pop(|slot| {
                assert!(slot.iter().all(|&value| value == slot[0]) && slot[0] > last);
                last = slot[0];
                count += 1;
            });
            if !popped && ended {
                break;
            }
        }
        assert_eq!(writer.join().unwrap(), count);
        assert_eq!(count + consumer.dropped(), total);
    }
}
