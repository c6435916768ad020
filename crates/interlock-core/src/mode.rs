//! Modes and what moves between them: one table.

use crate::code::Code;

macro_rules! modes {
    ($($(#[doc = $doc:literal])* $name:ident = $value:literal, $word:literal;)*) => {
        /// What the supervisor is doing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Mode { $($(#[doc = $doc])* $name = $value,)* }

        impl Mode {
            /// Every mode, in order.
            pub const ALL: &'static [Mode] = &[$(Mode::$name,)*];

            /// The stable word.
            pub const fn word(self) -> &'static str {
                match self { $(Mode::$name => $word,)* }
            }

            /// The mode of a stored number.
            pub const fn from_u8(value: u8) -> Option<Mode> {
                match value { $($value => Some(Mode::$name),)* _ => None }
            }
        }
    };
}

modes! {
    /// Nothing is sent.
    Idle = 0, "idle";
    /// Everything is ready; the robot is held, or moves to the start pose.
    Armed = 1, "armed";
    /// The policy commands through the guard.
    Running = 2, "running";
    /// A person commands through the guard.
    Takeover = 3, "takeover";
    /// A lower level of the ladder commands through the guard.
    Degraded = 4, "degraded";
    /// A safe behaviour is on its way.
    Stopping = 5, "stopping";
    /// The safe behaviour has arrived and goes on until somebody decides.
    Holding = 6, "holding";
    /// The driver is gone: nothing can be sent.
    Faulted = 7, "faulted";
}

/// What happens to the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Operator: get ready.
    Arm,
    /// Operator: let the policy command.
    Start,
    /// Operator: stop.
    Stop,
    /// Operator: back to armed after a stop.
    Recover,
    /// Operator: send nothing any more.
    Disarm,
    /// Operator: a person takes over.
    Takeover,
    /// Operator: the person lets go.
    Release,
    /// The program is to end.
    Quit,
    /// The terminal or the operator's connection closed.
    TerminalClosed,
    /// The policy in charge is late, dead, refused or blind.
    PolicyLost(Code),
    /// The goal is too old and its loss stops the robot.
    GoalLost,
    /// The driver's process ended.
    DriverLost,
    /// A lower level takes over.
    Degrade(Code),
    /// The stopping behaviour has arrived.
    StopDone,
}

impl Event {
    /// One of each kind.
    pub const ALL: &'static [Event] = &[
        Event::Arm,
        Event::Start,
        Event::Stop,
        Event::Recover,
        Event::Disarm,
        Event::Takeover,
        Event::Release,
        Event::Quit,
        Event::TerminalClosed,
        Event::PolicyLost(Code::WorkerDead),
        Event::GoalLost,
        Event::DriverLost,
        Event::Degrade(Code::FrozenImage),
        Event::StopDone,
    ];

    /// The code to show for a stop that this event causes.
    pub const fn cause(self) -> Code {
        match self {
            Event::PolicyLost(code) | Event::Degrade(code) => code,
            Event::GoalLost => Code::GoalLost,
            Event::DriverLost => Code::DriverDead,
            Event::TerminalClosed => Code::TerminalClosed,
            Event::Quit => Code::OrderlyEnd,
            Event::Stop | Event::Disarm | Event::Takeover | Event::Release => Code::OperatorStop,
            Event::Arm | Event::Start | Event::Recover | Event::StopDone => Code::None,
        }
    }
}

/// What the table answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Go to this mode, or begin it again.
    To(Mode),
    /// Nothing to do.
    Stay,
    /// A request that this mode does not allow: `WrongMode`.
    Refuse,
}

/// The table. Only `Start` leads to Running, and only from Armed; out of Holding leads only a person's decision; out of
/// Stopping nothing but its own end and the loss of the driver.
pub const fn next(mode: Mode, event: Event) -> Step {
    use Event as E;
    use Mode as M;
    use Step::{Refuse, Stay, To};
    match mode {
        M::Idle => match event {
            E::Arm => To(M::Armed),
            E::DriverLost => To(M::Faulted),
            E::Start | E::Recover | E::Takeover | E::Release => Refuse,
            E::Stop
            | E::Disarm
            | E::Quit
            | E::TerminalClosed
            | E::PolicyLost(_)
            | E::GoalLost
            | E::Degrade(_)
            | E::StopDone => Stay,
        },
        M::Armed => match event {
            E::Start => To(M::Running),
            E::Takeover => To(M::Takeover),
            E::Disarm => To(M::Idle),
            E::Stop | E::Quit | E::TerminalClosed | E::PolicyLost(_) => To(M::Stopping),
            E::DriverLost => To(M::Faulted),
            E::Recover | E::Release => Refuse,
            E::Arm | E::GoalLost | E::Degrade(_) | E::StopDone => Stay,
        },
        M::Running => match event {
            E::Stop | E::Quit | E::TerminalClosed | E::PolicyLost(_) | E::GoalLost => To(M::Stopping),
            E::Takeover => To(M::Takeover),
            E::Degrade(_) => To(M::Degraded),
            E::DriverLost => To(M::Faulted),
            E::Arm | E::Recover | E::Disarm | E::Release => Refuse,
            E::Start | E::StopDone => Stay,
        },
        M::Takeover => match event {
            E::Release | E::Stop | E::Quit | E::TerminalClosed | E::GoalLost => To(M::Stopping),
            E::DriverLost => To(M::Faulted),
            E::Arm | E::Start | E::Recover | E::Disarm => Refuse,
            E::Takeover | E::PolicyLost(_) | E::Degrade(_) | E::StopDone => Stay,
        },
        M::Degraded => match event {
            E::Stop | E::Quit | E::TerminalClosed | E::PolicyLost(_) | E::GoalLost => To(M::Stopping),
            E::Takeover => To(M::Takeover),
            E::Degrade(_) => To(M::Degraded),
            E::DriverLost => To(M::Faulted),
            E::Arm | E::Start | E::Recover | E::Disarm | E::Release => Refuse,
            E::StopDone => Stay,
        },
        M::Stopping => match event {
            E::StopDone => To(M::Holding),
            // Only while the behaviour itself needs the policy.
            E::PolicyLost(_) => To(M::Stopping),
            E::DriverLost => To(M::Faulted),
            E::Arm | E::Start | E::Recover | E::Disarm | E::Takeover | E::Release => Refuse,
            E::Stop | E::Quit | E::TerminalClosed | E::GoalLost | E::Degrade(_) => Stay,
        },
        M::Holding => match event {
            E::Recover => To(M::Armed),
            E::Disarm => To(M::Idle),
            E::Quit | E::TerminalClosed | E::PolicyLost(_) => To(M::Stopping),
            E::DriverLost => To(M::Faulted),
            E::Arm | E::Start | E::Takeover | E::Release => Refuse,
            E::Stop | E::GoalLost | E::Degrade(_) | E::StopDone => Stay,
        },
        M::Faulted => match event {
            E::Disarm => To(M::Idle),
            E::Arm | E::Start | E::Recover | E::Takeover | E::Release => Refuse,
            E::Stop
            | E::Quit
            | E::TerminalClosed
            | E::DriverLost
            | E::PolicyLost(_)
            | E::GoalLost
            | E::Degrade(_)
            | E::StopDone => Stay,
        },
    }
}
