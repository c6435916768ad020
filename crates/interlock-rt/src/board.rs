//! What the control thread tells everybody else: one consistent snapshot, written without locks, read without waiting
//! on either side.

use std::sync::atomic::{
    fence, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// A seqlock around `N` words.
#[derive(Debug)]
pub struct Board<const N: usize> {
    lock: AtomicU64,
    words: [AtomicU64; N],
}

impl<const N: usize> Default for Board<N> {
    fn default() -> Self {
        Board { lock: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; N] }
    }
}

impl<const N: usize> Board<N> {
    /// Shows new words. One thread only.
    pub fn show(&self, words: &[u64; N]) {
        let lock = self.lock.load(Relaxed);
        self.lock.store(lock.wrapping_add(1), Relaxed);
        fence(Release);
        for (slot, word) in self.words.iter().zip(words) {
            slot.store(*word, Relaxed);
        }
        self.lock.store(lock.wrapping_add(2), Release);
    }

    /// The newest complete words.
    pub fn look(&self) -> [u64; N] {
        loop {
            let before = self.lock.load(Acquire);
            let words = std::array::from_fn(|index| self.words.get(index).map_or(0, |word| word.load(Relaxed)));
            fence(Acquire);
            if before.is_multiple_of(2) && self.lock.load(Relaxed) == before {
                return words;
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_reader_never_sees_half_a_snapshot() {
        let (board, stop) = (Board::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut tick = 0;
                while !stop.load(Relaxed) {
                    tick += 1;
                    board.show(&[3 * tick, 2 * tick, tick]);
                }
            });
            for _ in 0..100_000 {
                let [planned, executed, missed] = board.look();
                assert_eq!(planned, executed + missed);
            }
            stop.store(true, Relaxed);
        });
    }
}
