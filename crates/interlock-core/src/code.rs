//! Stable codes. The number goes over the hot path and into recordings, the word is what people read.

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $value:literal, $word:literal;)*) => {
        /// Why something was limited, refused, dropped or lost.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Code { $($(#[doc = $doc])* $name = $value,)* }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The stable word.
            pub const fn word(self) -> &'static str {
                match self { $(Code::$name => $word,)* }
            }

            /// The code of a stored number.
            pub const fn from_u16(value: u16) -> Option<Code> {
                match value { $($value => Some(Code::$name),)* _ => None }
            }
        }
    };
}

codes! {
    /// Nothing to say.
    None = 0, "none";
    /// Chunk of a generation that is no longer in charge.
    RetiredGeneration = 10, "retired-generation";
    /// Chunk older than one already accepted.
    OldSequence = 11, "old-sequence";
    /// NaN or infinity.
    NotFinite = 12, "not-finite";
    /// Wrong number of values.
    Dimension = 13, "dimension";
    /// Joint or IMU sample older than allowed.
    StaleState = 14, "stale-state";
    /// Image older than allowed.
    StaleImage = 15, "stale-image";
    /// Capture times inside one observation too far apart.
    Skew = 16, "skew";
    /// No action of any chunk is valid now.
    NoValidAction = 17, "no-valid-action";
    /// Position limit.
    Position = 20, "position";
    /// Velocity limit.
    Velocity = 21, "velocity";
    /// Acceleration limit.
    Acceleration = 22, "acceleration";
    /// Jerk limit.
    Jerk = 23, "jerk";
    /// Torque limit.
    Torque = 24, "torque";
    /// PD target moved too far within one policy period.
    TargetStep = 25, "target-step";
    /// Measured velocity.
    MeasuredVelocity = 26, "measured-velocity";
    /// Gain above the robot's maximum.
    Gain = 27, "gain";
    /// Net travel within 250 ms.
    WindowTravel = 28, "window-travel";
    /// Commanded position too far from the measured one.
    Distance = 29, "distance";
    /// Change of torque per second.
    TorqueRate = 30, "torque-rate";
    /// Worker process ended.
    WorkerDead = 40, "worker-dead";
    /// Worker missed its deadline.
    WorkerLate = 41, "worker-late";
    /// Worker reported an error for this inference.
    WorkerError = 42, "worker-error";
    /// Driver process ended.
    DriverDead = 43, "driver-dead";
    /// No new joint sample.
    DriverStuck = 44, "driver-stuck";
    /// Operator's goal too old.
    GoalLost = 45, "goal-lost";
    /// Operator asked to stop.
    OperatorStop = 46, "operator-stop";
    /// Terminal or operator connection closed.
    TerminalClosed = 47, "terminal-closed";
    /// Images identical for too long.
    FrozenImage = 48, "frozen-image";
    /// Measured state outside the start envelope.
    OutsideStart = 60, "outside-start";
    /// Measured state outside the robot's limits.
    OutsideLimits = 61, "outside-limits";
    /// Something that must be there before arming is not.
    NotReady = 62, "not-ready";
    /// Request not allowed in this mode.
    WrongMode = 63, "wrong-mode";
    /// Recording unavailable (disk full).
    NoRecording = 64, "no-recording";
    /// The program was asked to end in order.
    OrderlyEnd = 65, "orderly-end";
    /// The plan contradicts itself.
    BadPlan = 80, "bad-plan";
}
