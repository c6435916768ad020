//! Publishing and reading.

use std::os::fd::RawFd;
use std::sync::atomic::fence;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::Arc;

use super::mapping::Mapping;
use super::{copy, futex};
use crate::clock;
use crate::error::RtError;

/// Times that a reader tries again when the producer overtook it, before it reports nothing new.
const ATTEMPTS: u32 = 16;

/// Which slot was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Sequence number, from 1.
    pub seq: u64,
    /// The producer's stamp.
    pub stamp_ns: i64,
    /// Bytes of payload.
    pub len: usize,
}

/// A handle on a ring; clones share one mapping.
#[derive(Clone)]
pub struct Ring {
    mapping: Arc<Mapping>,
}

impl Ring {
    /// A new ring.
    pub fn create(name: &str, slots: u32, slot_bytes: usize) -> Result<Self, RtError> {
        Ok(Ring { mapping: Arc::new(Mapping::create(name, slots, slot_bytes)?) })
    }

    /// The ring behind an inherited descriptor, which stays the caller's.
    pub fn attach(fd: RawFd) -> Result<Self, RtError> {
        Ok(Ring { mapping: Arc::new(Mapping::attach(fd)?) })
    }

    /// The descriptor to pass on; valid as long as this ring.
    pub fn fd(&self) -> RawFd {
        self.mapping.fd()
    }

    /// Largest payload.
    pub fn slot_bytes(&self) -> usize {
        self.mapping.slot_bytes()
    }

    /// Refuses a ring whose slots are smaller than `bytes`.
    pub fn expect_bytes(&self, what: &str, bytes: usize) -> Result<(), RtError> {
        if self.slot_bytes() < bytes {
            return Err(RtError::new(
                "ring-layout",
                format!("{what}: expected slots of at least {bytes} bytes, got {}", self.slot_bytes()),
                "create the ring with the size functions of interlock._core",
            ));
        }
        Ok(())
    }

    /// Sequence number of the newest complete slot, 0 before the first.
    pub fn newest(&self) -> u64 {
        self.mapping.header().newest.load(Acquire)
    }

    /// The right to publish. One per mapping, and one live process per ring; a dead producer may be replaced.
    pub fn producer(&self) -> Result<Producer, RtError> {
        let refuse = |what: String| RtError::new("ring-producer", what, "a ring has one producer");
        if self.mapping.claimed.swap(true, AcqRel) {
            return Err(refuse("this handle publishes already".into()));
        }
        let owner = &self.mapping.header().producer;
        let me = std::process::id();
        let seen = owner.load(Acquire);
        if seen != 0 && seen != me && is_alive(seen) {
            self.mapping.claimed.store(false, Release);
            return Err(refuse(format!("process {seen} publishes here")));
        }
        owner.store(me, Release);
        Ok(Producer { ring: self.clone() })
    }

    /// Copies the newest complete payload into `out`; None before the first. A payload longer than `out` is cut.
    pub fn latest(&self, out: &mut [u8]) -> Option<Slot> {
        for _ in 0..ATTEMPTS {
            let seq = self.newest();
            if seq == 0 {
                return None;
            }
            if let Some(slot) = self.read(seq, out) {
                return Some(slot);
            }
        }
        None
    }

    /// Copies the payload of `seq`; None where it is gone or was overwritten meanwhile.
    pub fn read(&self, seq: u64, out: &mut [u8]) -> Option<Slot> {
        let view = self.view(seq)?;
        let slot = view.slot;
        let wanted = slot.len.min(out.len());
        let part = out.get_mut(..wanted)?;
        let (_, payload) = self.mapping.slot(seq);
        // SAFETY: `wanted <= slot_bytes`, the payload is 64-byte aligned and mapped as long as `self`.
        unsafe { copy::load(payload, part) };
        view.is_intact().then_some(slot)
    }

    /// Looks at the payload of `seq` where it lies, without copying; None where it is gone.
    pub fn view(&self, seq: u64) -> Option<View<'_>> {
        let (head, _) = self.mapping.slot(seq);
        if seq == 0 || head.lock.load(Acquire) != seq.wrapping_mul(2) {
            return None;
        }
        let len = usize::try_from(head.len.load(Relaxed)).ok()?.min(self.slot_bytes());
        let slot = Slot { seq, stamp_ns: head.stamp_ns.load(Relaxed), len };
        let view = View { ring: self, slot };
        // The stamp and the length belong to `seq` only if the lock has not moved since.
        view.is_intact().then_some(view)
    }

    /// Waits until a slot newer than `after` exists or the monotonic clock shows `until_ns`.
    pub fn wait_until(&self, after: u64, until_ns: i64) -> bool {
        let header = self.mapping.header();
        if header.newest.load(Acquire) > after {
            return true;
        }
        // Announce first, look again, then sleep: with the producer's order (publish first, then look for waiters)
        // one of the two always sees the other.
        header.waiters.fetch_add(1, SeqCst);
        let came = loop {
            let word = header.word.load(SeqCst);
            if header.newest.load(SeqCst) > after {
                break true;
            }
            if clock::monotonic_ns() >= until_ns {
                break false;
            }
            futex::wait(&header.word, word, until_ns);
        };
        header.waiters.fetch_sub(1, SeqCst);
        came
    }
}

/// The one that publishes.
pub struct Producer {
    ring: Ring,
}

impl Producer {
    /// Copies `payload` into the next slot and returns its sequence number; None when it is longer than a slot.
    /// Enters the kernel only when somebody waits.
    pub fn publish(&mut self, payload: &[u8], stamp_ns: i64) -> Option<u64> {
        if payload.len() > self.ring.slot_bytes() {
            return None;
        }
        let header = self.ring.mapping.header();
        let seq = header.newest.load(Relaxed).wrapping_add(1);
        let (head, bytes) = self.ring.mapping.slot(seq);
        // Odd lock first, visible before any byte of the payload.
        head.lock.store(seq.wrapping_mul(2).wrapping_sub(1), Relaxed);
        fence(Release);
        head.stamp_ns.store(stamp_ns, Relaxed);
        head.len.store(payload.len() as u64, Relaxed);
        // SAFETY: the payload fits the slot, which is 64-byte aligned and mapped as long as `self`.
        unsafe { copy::store(bytes, payload) };
        head.lock.store(seq.wrapping_mul(2), Release);
        header.newest.store(seq, SeqCst);
        #[allow(clippy::cast_possible_truncation)] // the low half is what waiters compare
        header.word.store(seq as u32, SeqCst);
        if header.waiters.load(SeqCst) != 0 {
            futex::wake(&header.word);
        }
        Some(seq)
    }

    /// The ring published to.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.ring.mapping.claimed.store(false, Release);
    }
}

/// A payload where it lies. The producer may overwrite it at any time: whatever was computed from `bytes` counts only
/// if `is_intact` says so afterwards.
pub struct View<'ring> {
    ring: &'ring Ring,
    slot: Slot,
}

impl View<'_> {
    /// Which slot this is.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// The payload.
    ///
    /// The bytes may change under the reader. Nothing here or in the preprocessing takes a decision from a byte (they
    /// are pixels: only arithmetic and table look-ups of 256 entries), so a torn read gives a wrong number, which
    /// `is_intact` rejects, and never an access out of bounds.
    pub fn bytes(&self) -> &[u8] {
        let (_, payload) = self.ring.mapping.slot(self.slot.seq);
        // SAFETY: `len <= slot_bytes`; mapped as long as the ring that this borrows; see above for concurrent writes.
        unsafe { std::slice::from_raw_parts(payload, self.slot.len) }
    }

    /// Whether everything read so far belongs to this slot.
    pub fn is_intact(&self) -> bool {
        fence(Acquire);
        let (head, _) = self.ring.mapping.slot(self.slot.seq);
        head.lock.load(Relaxed) == self.slot.seq.wrapping_mul(2)
    }
}

/// Whether a process runs; one that ended and was not reaped yet does not.
fn is_alive(pid: u32) -> bool {
    // Field 3 of stat, after the name in parentheses.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| stat.rsplit_once(')').map(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X'])))
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    const FAR: i64 = i64::MAX / 2;

    fn filled(seq: u64, len: usize) -> Vec<u8> {
        seq.to_le_bytes().into_iter().cycle().take(len).collect()
    }

    #[test]
    fn readers_get_the_newest_payload_with_its_stamp() {
        let ring = Ring::create("t", 3, 100).unwrap();
        let mut out = [0_u8; 100];
        assert_eq!(ring.latest(&mut out), None);
        let mut producer = ring.producer().unwrap();
        for seq in 1..=7_u64 {
            assert_eq!(producer.publish(&filled(seq, 99), 1000 + seq.cast_signed()), Some(seq));
        }
        let other = Ring::attach(ring.fd()).unwrap();
        assert_eq!(other.latest(&mut out), Some(Slot { seq: 7, stamp_ns: 1007, len: 99 }));
        assert_eq!(out[..99], filled(7, 99));
        assert!(other.read(5, &mut out).is_some());
        assert!(other.read(4, &mut out).is_none(), "three slots keep three");
        assert!(other.read(8, &mut out).is_none());
        assert_eq!(producer.publish(&[0; 101], 0), None);
    }

    #[test]
    fn an_overwritten_view_says_so() {
        let ring = Ring::create("t", 2, 64).unwrap();
        let mut producer = ring.producer().unwrap();
        producer.publish(&filled(1, 64), 0).unwrap();
        let view = ring.view(1).unwrap();
        producer.publish(&filled(2, 64), 0).unwrap();
        assert!(view.is_intact());
        assert_eq!(view.bytes(), filled(1, 64));
        producer.publish(&filled(3, 64), 0).unwrap();
        assert!(!view.is_intact());
    }

    #[test]
    fn a_view_shows_the_bytes_where_the_producer_put_them_and_copies_none() {
        const LEN: usize = 3 * 640 * 480;
        let ring = Ring::create("t", 2, LEN).unwrap();
        let reader = Ring::attach(ring.fd()).unwrap();
        let mut producer = ring.producer().unwrap();
        let seq = producer.publish(&filled(1, LEN), 0).unwrap();
        let view = reader.view(seq).unwrap();
        let (_, place) = reader.mapping.slot(seq);
        assert_eq!(view.bytes().as_ptr(), place.cast_const(), "the slot itself, in the reader's own mapping");
        assert_eq!(view.bytes().len(), LEN);
        // What the producer's side changes in that memory is what the view shows: there is no second place.
        let (_, written) = ring.mapping.slot(seq);
        // SAFETY: inside the slot, which lives as long as `ring`; nobody reads it meanwhile.
        unsafe { written.add(LEN - 1).write_volatile(0xA5) };
        assert_eq!(view.bytes().last(), Some(&0xA5));
    }

    #[test]
    fn a_half_written_slot_is_never_seen_and_the_next_producer_takes_it_over() {
        let ring = Ring::create("t", 2, 64).unwrap();
        let mut producer = ring.producer().unwrap();
        producer.publish(&filled(1, 64), 11).unwrap();
        // What a producer killed in the middle of publishing 2 leaves behind.
        let (head, bytes) = ring.mapping.slot(2);
        head.lock.store(3, SeqCst);
        unsafe { copy::store(bytes, &[9; 32]) };
        drop(producer);
        let mut out = [0; 64];
        assert_eq!(ring.latest(&mut out), Some(Slot { seq: 1, stamp_ns: 11, len: 64 }));
        assert!(ring.view(2).is_none());
        assert_eq!(ring.producer().unwrap().publish(&filled(2, 64), 12), Some(2));
        assert_eq!(ring.latest(&mut out).unwrap().seq, 2);
        assert_eq!(out[..], filled(2, 64));
    }

    #[test]
    fn a_ring_has_one_producer() {
        let ring = Ring::create("t", 2, 8).unwrap();
        let first = ring.producer().unwrap();
        assert_eq!(ring.producer().err().unwrap().code, "ring-producer");
        drop(first);
        assert!(ring.producer().is_ok());
    }

    #[test]
    fn what_is_not_a_ring_is_refused() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        for fd in [-1, std::os::fd::AsRawFd::as_raw_fd(&file)] {
            assert_eq!(Ring::attach(fd).err().unwrap().code, "ring-layout");
        }
        let ring = Ring::create("t", 2, 8).unwrap();
        ring.mapping.header().version.store(99, SeqCst);
        assert_eq!(Ring::attach(ring.fd()).err().unwrap().code, "ring-layout");
        ring.mapping.header().version.store(super::super::layout::VERSION, SeqCst);
        ring.mapping.header().slots.store(1 << 30, SeqCst);
        assert_eq!(Ring::attach(ring.fd()).err().unwrap().code, "ring-layout");
        assert!(Ring::create("t", 1, 8).is_err());
        assert!(Ring::create("t", 2, usize::MAX - 10).is_err());
    }

    #[test]
    fn a_reader_under_a_racing_producer_never_accepts_a_torn_payload() {
        const LEN: usize = 4096;
        let ring = Ring::create("t", 2, LEN).unwrap();
        let stop = AtomicBool::new(false);
        let (mut accepted, mut torn) = (0_u32, 0_u32);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut producer = ring.producer().unwrap();
                let mut seq = 0_u64;
                while !stop.load(Relaxed) {
                    seq += 1;
                    producer.publish(&filled(seq, LEN), seq.cast_signed()).unwrap();
                }
            });
            let reader = Ring::attach(ring.fd()).unwrap();
            let mut out = vec![0; LEN];
            while accepted < 20_000 {
                let seq = reader.newest();
                match reader.read(seq, &mut out) {
                    Some(slot) => {
                        assert_eq!(slot.stamp_ns, seq.cast_signed());
                        assert!(out == filled(seq, LEN), "torn payload accepted");
                        accepted += 1;
                    }
                    None => torn += 1,
                }
            }
            stop.store(true, Relaxed);
        });
        println!("accepted {accepted}, retried {torn}");
    }

    #[test]
    fn no_wake_up_is_lost() {
        let (there, back) = (Ring::create("a", 2, 8).unwrap(), Ring::create("b", 2, 8).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut producer = back.producer().unwrap();
                for seq in 0..5_000 {
                    assert!(there.wait_until(seq, FAR));
                    producer.publish(&[0; 8], 0).unwrap();
                }
            });
            let mut producer = there.producer().unwrap();
            for seq in 0..5_000 {
                producer.publish(&[0; 8], 0).unwrap();
                assert!(back.wait_until(seq, FAR));
            }
        });
        assert!(!there.wait_until(5_000, clock::monotonic_ns() + 1_000_000));
        assert_eq!(there.mapping.header().waiters.load(SeqCst), 0);
    }

    #[test]
    fn a_producer_killed_while_publishing_leaves_a_complete_slot() {
        const LEN: usize = 1 << 20;
        let ring = Ring::create("t", 2, LEN).unwrap();
        let (odd, even) = (vec![1_u8; LEN], vec![2_u8; LEN]);
        for _ in 0..10 {
            let before = ring.newest();
            // SAFETY: the child only copies into memory that was allocated before and is then killed.
            let pid = unsafe { libc::fork() };
            assert!(pid >= 0);
            if pid == 0 {
                let Ok(mut producer) = ring.producer() else { unsafe { libc::_exit(1) } };
                loop {
                    let seq = ring.newest() + 1;
                    producer.publish(if seq % 2 == 1 { &odd } else { &even }, seq.cast_signed());
                }
            }
            assert!(ring.wait_until(before + 3, FAR));
            // SAFETY: our own child.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
            let mut out = vec![0; LEN];
            let slot = ring.latest(&mut out).unwrap();
            assert_eq!(slot.stamp_ns, slot.seq.cast_signed());
            assert!(out == if slot.seq % 2 == 1 { &odd[..] } else { &even[..] });
        }
        assert!(ring.producer().is_ok(), "a dead producer can be replaced");
    }
}
