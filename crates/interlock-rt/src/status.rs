//! What the loop tells everybody else about itself.

use std::sync::Arc;

use interlock_core::code::Code;
use interlock_core::supervisor::{Counters, Tally};

use crate::board::Board;

macro_rules! snapshot {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// The loop at the end of one tick.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Snapshot { $($(#[doc = $doc])* pub $name: u64,)* }

        const WORDS: usize = [$(stringify!($name),)*].len();

        impl Snapshot {
            fn words(&self) -> [u64; WORDS] {
                [$(self.$name,)*]
            }

            fn from_words([$($name,)*]: [u64; WORDS]) -> Self {
                Snapshot { $($name,)* }
            }

            /// Every number with its name.
            pub fn each(&self) -> [(&'static str, u64); WORDS] {
                [$((stringify!($name), self.$name),)*]
            }
        }
    };
}

snapshot! {
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

/// Where the loop shows its state; clones show and see the same.
#[derive(Debug, Clone, Default)]
pub struct Status(Arc<Boards>);

#[derive(Debug, Default)]
struct Boards {
    snapshot: Board<WORDS>,
    tallies: Board<{ 4 * CODES }>,
}

impl Status {
    /// Shows the numbers of a tick. One thread only.
    pub fn show(&self, snapshot: &Snapshot) {
        self.0.snapshot.show(&snapshot.words());
    }

    /// Shows the counts per code. One thread only.
    pub fn show_tallies(&self, counters: &Counters) {
        self.0.tallies.show(&Tallies::of(counters).0);
    }

    /// The newest numbers.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::from_words(self.0.snapshot.look())
    }

    /// The newest counts per code; up to 64 ticks old while the loop runs.
    pub fn tallies(&self) -> Tallies {
        Tallies(self.0.tallies.look())
    }
}
