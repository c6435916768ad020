//! What people and watchers ask of a running loop, and how it reaches the control thread without a lock on its side.

use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::code::Code;
use interlock_core::mode::Event;
use interlock_core::sample::MAX_TOKENS;

use crate::error::RtError;
use crate::record::ring::{ring, Consumer, Producer};
use crate::shm::{Producer as RingProducer, Ring};
use crate::watch::Watch;

/// Messages that may wait: more than a person can give in one tick.
const MESSAGES: usize = 64;

macro_rules! requests {
    ($($(#[doc = $doc:literal])* $name:ident = $value:literal, $word:literal, $event:expr;)*) => {
        /// A request; the number stands in recordings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Request { $($(#[doc = $doc])* $name = $value,)* }

        impl Request {
            /// Every request.
            pub const ALL: &'static [Request] = &[$(Request::$name,)*];

            /// The word by which it is asked for.
            pub const fn word(self) -> &'static str {
                match self { $(Request::$name => $word,)* }
            }

            /// What happens to the supervisor.
            pub const fn event(self) -> Event {
                match self { $(Request::$name => $event,)* }
            }
        }
    };
}

requests! {
    /// Get ready.
    Arm = 1, "arm", Event::Arm;
    /// Let the policy command.
    Start = 2, "start", Event::Start;
    /// Stop.
    Stop = 3, "stop", Event::Stop;
    /// Back to armed after a stop.
    Recover = 4, "recover", Event::Recover;
    /// Send nothing any more.
    Disarm = 5, "disarm", Event::Disarm;
    /// A person takes over.
    Takeover = 6, "takeover", Event::Takeover;
    /// The person lets go.
    Release = 7, "release", Event::Release;
    /// End after the exit behaviour.
    Quit = 8, "quit", Event::Quit;
    /// The terminal went away.
    TerminalClosed = 9, "terminal_closed", Event::TerminalClosed;
    /// The worker's process ended.
    WorkerDead = 10, "worker_dead", Event::PolicyLost(Code::WorkerDead);
    /// The driver's process ended.
    DriverDead = 11, "driver_dead", Event::DriverLost;
}

impl Request {
    /// The request of a word. Refused with the words that exist.
    pub fn parse(word: &str) -> Result<Self, RtError> {
        Request::ALL.iter().copied().find(|request| request.word() == word).ok_or_else(|| {
            let words: Vec<_> = Request::ALL.iter().map(|request| request.word()).collect();
            RtError::new("request", format!("expected one of {}, got {word:?}", words.join(", ")), "")
        })
    }
}

/// What the operator asks of the policy; what is absent stays as it was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GoalRequest {
    /// Sequence number.
    pub seq: u64,
    /// When it was asked.
    pub stamp_ns: i64,
    /// (`lin_vel_x`, `lin_vel_y`, `ang_vel_z`).
    pub velocity: Option<[f64; 3]>,
    /// Token ids and how many of them count.
    pub tokens: Option<([i64; MAX_TOKENS], usize)>,
}

impl GoalRequest {
    /// Refuses a velocity of other than three parts, or too many tokens.
    pub fn new(seq: u64, stamp_ns: i64, velocity: Option<&[f64]>, tokens: Option<&[i64]>) -> Result<Self, RtError> {
        let wrong = |what: String| RtError::new(Code::Dimension.word(), what, "");
        let velocity = velocity
            .map(|parts| {
                parts.try_into().map_err(|_| wrong(format!("velocity: expected 3 values, got {}", parts.len())))
            })
            .transpose()?;
        let pad = |ids: &[i64]| {
            let mut padded = [0; MAX_TOKENS];
            let room = padded.get_mut(..ids.len());
            room.ok_or_else(|| wrong(format!("tokens: expected at most {MAX_TOKENS}, got {}", ids.len())))?
                .copy_from_slice(ids);
            Ok((padded, ids.len()))
        };
        Ok(GoalRequest { seq, stamp_ns, velocity, tokens: tokens.map(pad).transpose()? })
    }
}

/// A worker's end of the exchange, with the watch over its process.
pub struct WorkerLink {
    /// Observations go here.
    pub observation: RingProducer,
    /// Chunks come from here.
    pub chunk: Ring,
    /// Whether the process lives.
    pub watch: Watch,
    /// Which worker it is.
    pub generation: u32,
}

/// What the control thread finds in its mailbox.
pub enum Message {
    /// Nothing.
    Empty,
    /// A request.
    Request(Request),
    /// A goal.
    Goal(Box<GoalRequest>),
    /// Another worker. What is left in its place is dropped by a sender later, never by the control thread.
    Worker(Option<WorkerLink>),
}

/// The senders' end.
#[derive(Clone)]
pub struct Mailbox(Arc<Mutex<Producer<Message>>>);

/// The control thread's end.
pub(crate) type Inbox = Consumer<Message>;

/// A mailbox.
pub(crate) fn mailbox() -> (Mailbox, Inbox) {
    let (producer, consumer) = ring(MESSAGES, || Message::Empty);
    (Mailbox(Arc::new(Mutex::new(producer))), consumer)
}

impl Mailbox {
    /// Leaves a message. Refused when the control thread does not empty its mailbox.
    pub fn send(&self, message: Message) -> Result<(), RtError> {
        // The lock is between senders; the control thread never takes it.
        let mut producer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if producer.push(|slot| *slot = message) {
            return Ok(());
        }
        Err(RtError::new("not-running", "nobody takes requests", "the control loop has ended, or was never started"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_arrive_in_order() {
        let (mailbox, mut inbox) = mailbox();
        for word in ["arm", "start", "terminal_closed"] {
            mailbox.send(Message::Request(Request::parse(word).unwrap())).unwrap();
        }
        let mut got = vec![];
        while inbox.pop(|message| {
            if let Message::Request(request) = message {
                got.push(*request);
            }
        }) {}
        assert_eq!(got, [Request::Arm, Request::Start, Request::TerminalClosed]);
    }

    #[test]
    fn an_unknown_word_is_refused_with_those_that_exist() {
        assert!(Request::parse("go").unwrap_err().what.contains("recover"));
    }

    #[test]
    fn a_full_mailbox_refuses_instead_of_waiting() {
        let (mailbox, _inbox) = mailbox();
        let outcomes: Vec<bool> =
            (0..=MESSAGES).map(|_| mailbox.send(Message::Request(Request::Stop)).is_ok()).collect();
        assert_eq!(outcomes.iter().filter(|sent| **sent).count(), MESSAGES);
    }

    #[test]
    fn a_goal_of_another_size_is_refused() {
        assert!(GoalRequest::new(1, 0, Some(&[0.0; 2]), None).is_err());
        assert!(GoalRequest::new(1, 0, None, Some(&[0; MAX_TOKENS + 1])).is_err());
        let goal = GoalRequest::new(1, 0, Some(&[0.5, 0.0, 0.0]), Some(&[3, 4])).unwrap();
        assert_eq!(goal.tokens.map(|(ids, count)| (ids[1], count)), Some((4, 2)));
    }
}
