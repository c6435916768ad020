//! What the loop tells everybody else about itself, in this process and in others.
//!
//! One memory: a head that says what it is, then an area for each of numbers of the last tick, counts per code, numbers
//! of the recording, two texts, and a window of the newest samples of each duration. Each area has one writer.

use std::os::fd::RawFd;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::code::Code;
use interlock_core::supervisor::{Counters, Tally};

use crate::board::{look, show, Memory};
use crate::error::RtError;

macro_rules! numbers {
    ($(#[doc = $about:literal])* $type:ident, $count:ident; $($(#[doc = $doc:literal])* $name:ident,)*) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct $type { $($(#[doc = $doc])* pub $name: u64,)* }

        const $count: usize = [$(stringify!($name),)*].len();

        impl $type {
            fn words(&self) -> [u64; $count] {
                [$(self.$name,)*]
            }

            fn from_words([$($name,)*]: [u64; $count]) -> Self {
                $type { $($name,)* }
            }

            /// Every number with its name.
            pub fn each(&self) -> [(&'static str, u64); $count] {
                [$((stringify!($name), self.$name),)*]
            }
        }
    };
}

numbers! {
    /// The loop at the end of one tick.
    Snapshot, TICK_WORDS;
    /// Mode number.
    mode,
    /// Level number.
    level,
    /// Code that led to the mode.
    cause,
    /// Ordinal of the last tick.
    tick,
    /// Ticks released so far; executed and missed together.
    planned,
    /// Ticks executed.
    executed,
    /// Ticks that passed while the one before was not over, or while the thread did not run.
    missed,
    /// Ticks in which the guard limited a command.
    limited,
    /// Ticks in which it refused one.
    refused,
    /// Limited or refused stretches.
    violations,
    /// Commands sent.
    sent,
    /// Observations offered.
    offered,
    /// Chunks that arrived.
    chunks,
    /// Chunks that the schedule took.
    accepted,
    /// Chunks not used.
    dropped,
    /// Synchronous offers without their chunk by the deadline.
    late,
    /// Requests taken, granted or not.
    requests,
    /// Requests that were not granted.
    requests_refused,
    /// Code by which the last one was not, or 0.
    request_code,
    /// Generation whose worker is connected.
    generation,
    /// Goal in force.
    goal_seq,
    /// Newest sample.
    sample_seq,
    /// Heap allocations of the control thread since its first tick.
    control_allocations,
    /// Release of the last tick, monotonic nanoseconds.
    at_ns,
    /// The guard's answer in it: 0 pass, 1 limited, 2 refused.
    ruling,
    /// A command went out in it.
    commanded,
    /// Ticks that wait to be written to the recording.
    record_waiting,
    /// Chunks that wait likewise.
    record_chunks_waiting,
    /// Observations that the worker has not answered yet.
    unanswered,
    /// Actions of the chunk in use that are still to come.
    actions_left,
    /// 1 while the worker is loaded and its process lives.
    worker_alive,
    /// 1 while the driver's process lives.
    driver_alive,
    /// 1 once the loop has ended.
    ended,
    /// 1 if a defect ended it.
    failed,
}

/// Codes lie below this number.
const CODES: usize = 128;

/// Occurrences per code: limited, refused, dropped, lost.
#[derive(Debug, Clone, Copy)]
pub struct Tallies([u64; 4 * CODES]);

impl Tallies {
    fn of(counters: &Counters) -> Self {
        let mut words = [0; 4 * CODES];
        let all = [&counters.limited_by, &counters.refused_by, &counters.dropped_by, &counters.lost_by];
        for (part, tally) in words.chunks_exact_mut(CODES).zip(all) {
            for (code, count) in Tally::iter(tally) {
                part.iter_mut().skip(usize::from(code as u16)).take(1).for_each(|slot| *slot = count);
            }
        }
        Tallies(words)
    }

    /// Name of each tally with the codes that occurred.
    pub fn each(&self) -> Vec<(&'static str, Vec<(&'static str, u64)>)> {
        let names = ["limited_by", "refused_by", "dropped_by", "lost_by"];
        let counted = |part: &[u64]| {
            let count = |code: &Code| part.get(usize::from(*code as u16)).copied().unwrap_or(0);
            Code::ALL.iter().map(|code| (code.word(), count(code))).filter(|(_, count)| *count > 0).collect()
        };
        names.into_iter().zip(self.0.chunks_exact(CODES).map(counted)).collect()
    }
}

numbers! {
    /// The recording as its writer sees it.
    Recorded, RECORD_WORDS;
    /// Monotonic nanoseconds at which this was so.
    at_ns,
    /// Bytes in the file.
    bytes,
    /// Bytes per second over the last second.
    bytes_per_s,
    /// Ticks written.
    ticks,
    /// Ticks lost between control thread and writer.
    ticks_dropped,
    /// Chunks lost likewise.
    chunks_dropped,
    /// Images written.
    images,
    /// Images overtaken or not taken.
    images_dropped,
    /// Goals, requests and log lines lost.
    logs_dropped,
    /// 1: room ran low, no more images.
    images_ended,
    /// 1: room ran out or writing failed, nothing is written any more.
    ended,
    /// Longest single round of the writer.
    writer_longest_ns,
    /// All rounds together.
    writer_busy_ns,
}

/// "ILBOARD1" read as little-endian.
const MAGIC: u64 = u64::from_le_bytes(*b"ILBOARD1");
/// Increases with every change of layout that the sizes in the head do not show.
const VERSION: u64 = 1;
const HEAD: usize = 8;
/// Room of a text, in words of eight bytes.
const FACTS_WORDS: usize = 2048;
const GOAL_WORDS: usize = 512;
/// Newest samples kept of each duration: enough for the percentile 99.9, which needs 6,636.
pub const WINDOW: usize = 8192;
/// Powers of two of nanoseconds by which durations are counted: up to 2^10 (1 us), ..., up to 2^32 (4.3 s), and beyond.
pub const BUCKETS: usize = 24;
const FIRST_BUCKET: u32 = 10;
/// Count, sum, buckets, samples of half a word each.
const SERIES_WORDS: usize = 2 + BUCKETS + WINDOW / 2;

/// Durations that are shown, by name.
pub const SHOWN: [&str; 8] =
    ["lateness_ns", "work_ns", "handoff_ns", "observe_ns", "act_ns", "send_ns", "record_ns", "capture_to_sent_ns"];

const TICK: usize = HEAD;
const TALLY: usize = TICK + 1 + TICK_WORDS;
const RECORD: usize = TALLY + 1 + 4 * CODES;
const FACTS: usize = RECORD + 1 + RECORD_WORDS;
const GOAL: usize = FACTS + 2 + FACTS_WORDS;
const SERIES: usize = (GOAL + 2 + GOAL_WORDS).next_multiple_of(8);
const WORDS: usize = SERIES + SHOWN.len() * SERIES_WORDS;
/// What both ends must agree on.
const LAYOUT: [u64; HEAD] =
    [MAGIC, VERSION, TICK_WORDS as u64, CODES as u64, RECORD_WORDS as u64, SERIES as u64, WORDS as u64, 0];

/// Where the loop shows its state; clones show and see the same.
#[derive(Debug, Clone)]
pub struct Status {
    memory: Arc<Memory>,
    /// Between writers of texts; the control thread writes none.
    texts: Arc<Mutex<()>>,
}

impl Status {
    /// Nothing shown yet.
    pub fn new() -> Result<Self, RtError> {
        let memory = Memory::create(c"interlock-status", WORDS)?;
        for (slot, word) in memory.words(0, HEAD).iter().zip(LAYOUT) {
            slot.store(word, Relaxed);
        }
        Ok(Status { memory: Arc::new(memory), texts: Arc::default() })
    }

    /// What another process shows, by the descriptor of its memory, which stays the caller's. For reading only: a
    /// method that shows something would end this process.
    fn attach(fd: RawFd) -> Result<Self, RtError> {
        let memory = Memory::attach(fd, WORDS)?;
        let head: Vec<u64> = memory.words(0, HEAD).iter().map(|word| word.load(Relaxed)).collect();
        if head != LAYOUT {
            let hint = "watch with the interlock that runs, in the same environment";
            return Err(RtError::new("board-layout", "a run of another version of interlock", hint));
        }
        Ok(Status { memory: Arc::new(memory), texts: Arc::default() })
    }

    /// The descriptor of the memory; valid as long as this status.
    pub fn fd(&self) -> RawFd {
        self.memory.fd()
    }

    /// Shows the numbers of a tick. The control thread only.
    pub fn show(&self, snapshot: &Snapshot) {
        show(self.memory.words(TICK, 1 + TICK_WORDS), &snapshot.words());
    }

    /// Shows the counts per code. The control thread only.
    pub fn show_tallies(&self, counters: &Counters) {
        show(self.memory.words(TALLY, 1 + 4 * CODES), &Tallies::of(counters).0);
    }

    /// Shows how the recording is doing. Its writer only.
    pub fn show_recorded(&self, recorded: &Recorded) {
        show(self.memory.words(RECORD, 1 + RECORD_WORDS), &recorded.words());
    }

    /// Shows what the caller knows of the run: names, processes, what was granted; JSON. Cut where it is too long.
    pub fn show_facts(&self, text: &str) {
        self.show_text(FACTS, FACTS_WORDS, text);
    }

    /// Shows what the operator asks of the policy; JSON.
    pub fn show_goal(&self, text: &str) {
        self.show_text(GOAL, GOAL_WORDS, text);
    }

    fn show_text(&self, begin: usize, room: usize, text: &str) {
        let _one = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        // What does not fit is left out whole: half a JSON text says nothing.
        let text = if text.len() <= room * 8 { text } else { "" };
        let mut words = vec![text.len() as u64];
        words.extend(text.as_bytes().chunks(8).map(|part| {
            let mut word = [0; 8];
            word.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            u64::from_le_bytes(word)
        }));
        show(self.memory.words(begin, 2 + room), &words);
    }

    /// The newest numbers.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::from_words(self.waited(TICK))
    }

    /// The newest counts per code; up to 64 ticks old while the loop runs.
    pub fn tallies(&self) -> Tallies {
        Tallies(self.waited(TALLY))
    }

    /// The words of an area whose writer lives in this process and is never stopped alone.
    fn waited<const N: usize>(&self, begin: usize) -> [u64; N] {
        let mut words = [0; N];
        while !look(self.memory.words(begin, 1 + N), &mut words) {}
        words
    }

    /// Where the samples of a duration are shown; None for a name that is not among [`SHOWN`].
    pub fn window(&self, name: &str) -> Option<Window> {
        let index = SHOWN.iter().position(|shown| *shown == name)?;
        Some(Window { memory: Arc::clone(&self.memory), begin: SERIES + index * SERIES_WORDS })
    }
}

/// Where the samples of one duration are shown. One writer.
#[derive(Debug)]
pub struct Window {
    memory: Arc<Memory>,
    begin: usize,
}

impl Window {
    /// Counts one sample and puts it in place of the oldest.
    pub fn push(&self, duration_ns: u32) {
        let [count, sum, buckets @ ..] = self.memory.words(self.begin, 2 + BUCKETS) else { return };
        let bucket = (u32::BITS - duration_ns.saturating_sub(1).leading_zeros()).saturating_sub(FIRST_BUCKET);
        if let Some(bucket) = buckets.get(bucket as usize) {
            add(bucket, 1);
        }
        add(sum, u64::from(duration_ns));
        let seen = count.load(Relaxed);
        let samples = self.memory.halves(self.begin + 2 + BUCKETS, WINDOW / 2);
        if let Some(slot) = samples.get(usize::try_from(seen % WINDOW as u64).unwrap_or(0)) {
            slot.store(duration_ns, Relaxed);
        }
        count.store(seen.wrapping_add(1), Release);
    }

    /// The newest samples, and everything so far as a count, a sum and counts per bucket. While it is written a sample
    /// may be newer than the count says.
    pub fn look(&self) -> Durations {
        let words = self.memory.words(self.begin, 2 + BUCKETS);
        let seen = words.first().map_or(0, |count| count.load(Acquire));
        let kept = usize::try_from(seen).unwrap_or(WINDOW).min(WINDOW);
        let halves = self.memory.halves(self.begin + 2 + BUCKETS, WINDOW / 2);
        let samples = halves.iter().take(kept).map(|sample| i64::from(sample.load(Relaxed))).collect();
        let counts: Vec<u64> = words.iter().skip(1).map(|word| word.load(Relaxed)).collect();
        let (sum_ns, buckets) = counts.split_first().map_or((0, &[][..]), |(sum, buckets)| (*sum, buckets));
        Durations { sum_ns, buckets: buckets.to_vec(), samples }
    }
}

/// One writer, so no read-modify-write is needed.
fn add(word: &AtomicU64, value: u64) {
    word.store(word.load(Relaxed).wrapping_add(value), Relaxed);
}

/// Samples of one duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durations {
    /// All of them together, nanoseconds.
    pub sum_ns: u64,
    /// How many per bucket: up to 2^10 ns, up to 2^11 ns, ..., up to 2^32 ns, beyond.
    pub buckets: Vec<u64>,
    /// The newest, nanoseconds, in no order.
    pub samples: Vec<i64>,
}

/// What another process shows, for reading only.
pub struct Watched(Status);

impl Watched {
    /// By the descriptor of its memory, which stays the caller's. Refused with `board-layout`.
    pub fn attach(fd: RawFd) -> Result<Self, RtError> {
        Ok(Watched(Status::attach(fd)?))
    }

    fn looked<const N: usize>(&self, begin: usize) -> Option<[u64; N]> {
        let mut words = [0; N];
        look(self.0.memory.words(begin, 1 + N), &mut words).then_some(words)
    }

    /// The newest numbers; None: the writer was stopped in the middle of writing.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.looked(TICK).map(Snapshot::from_words)
    }

    /// The newest counts per code.
    pub fn tallies(&self) -> Option<Tallies> {
        self.looked(TALLY).map(Tallies)
    }

    /// The recording.
    pub fn recorded(&self) -> Option<Recorded> {
        self.looked(RECORD).map(Recorded::from_words)
    }

    /// What the run's maker knows of it.
    pub fn facts(&self) -> String {
        self.text::<{ 1 + FACTS_WORDS }>(FACTS)
    }

    /// What the operator asks.
    pub fn goal(&self) -> String {
        self.text::<{ 1 + GOAL_WORDS }>(GOAL)
    }

    fn text<const N: usize>(&self, begin: usize) -> String {
        let words: [u64; N] = self.looked(begin).unwrap_or([0; N]);
        let bytes: Vec<u8> = words.iter().skip(1).flat_map(|word| word.to_le_bytes()).collect();
        let len = words.first().and_then(|len| usize::try_from(*len).ok()).unwrap_or(0);
        String::from_utf8_lossy(bytes.get(..len).unwrap_or(&[])).into_owned()
    }

    /// Samples of every duration, by name.
    pub fn durations(&self) -> Vec<(&'static str, Durations)> {
        SHOWN.iter().filter_map(|name| Some((*name, self.0.window(name)?.look()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_sees_what_was_shown() {
        let status = Status::new().unwrap();
        status.show(&Snapshot { planned: 7, executed: 5, missed: 2, ..Snapshot::default() });
        status.show_recorded(&Recorded { bytes: 9, ..Recorded::default() });
        status.show_facts("{\"policy\": \"reach\"}");
        status.show_goal("réach");
        let watched = Watched::attach(status.fd()).unwrap();
        assert_eq!(watched.snapshot().unwrap(), status.snapshot());
        assert_eq!(watched.recorded().unwrap().bytes, 9);
        assert_eq!((watched.facts().as_str(), watched.goal().as_str()), ("{\"policy\": \"reach\"}", "réach"));
        status.show_goal(&"x".repeat(8 * GOAL_WORDS + 1));
        assert_eq!(watched.goal(), "", "half a text is none");
    }

    #[test]
    fn durations_are_counted_and_the_newest_kept() {
        let status = Status::new().unwrap();
        let window = status.window("work_ns").unwrap();
        for sample in [1, 1024, 1025, 2048, 5_000_000, u32::MAX] {
            window.push(sample);
        }
        let found = Watched::attach(status.fd()).unwrap().durations();
        let (_, work) = found.iter().find(|(name, _)| *name == "work_ns").unwrap();
        assert_eq!(work.samples, [1, 1024, 1025, 2048, 5_000_000, i64::from(u32::MAX)]);
        assert_eq!(work.buckets[..3], [2, 2, 0]);
        assert_eq!(work.buckets.iter().sum::<u64>(), 6);
        assert_eq!(work.buckets[22], 1, "2^32 ns holds everything that is kept");
        (0..WINDOW).for_each(|_| window.push(3));
        let work = window.look();
        assert_eq!((work.samples.len(), work.samples.iter().max()), (WINDOW, Some(&3)));
        assert!(status.window("nothing").is_none());
    }

    #[test]
    fn a_board_of_another_layout_is_refused() {
        let memory = Memory::create(c"other", WORDS).unwrap();
        assert_eq!(Watched::attach(memory.fd()).err().unwrap().code, "board-layout");
    }
}
