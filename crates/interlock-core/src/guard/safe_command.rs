//! The only thing that may be sent to actuators.

use crate::mode::Mode;

/// What the numbers of a command mean on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Wire {
    /// `target` in rad.
    Position = 0,
    /// `kp * (target - q) - kd * dq + torque` in the drive.
    PositionPd = 1,
    /// `velocity` in rad/s.
    Velocity = 2,
    /// `torque` in N*m.
    Torque = 3,
    /// The drives let go.
    Off = 4,
}

/// One command for every joint, admitted by the guard. SI, robot order.
///
/// It can be read by everybody and made, filled or copied by nobody but the guard:
///
/// ```
/// fn read(command: &interlock_core::guard::SafeCommand) -> f64 {
///     command.target().iter().sum()
/// }
/// ```
///
/// ```compile_fail,E0451
/// use interlock_core::guard::{SafeCommand, Wire};
/// use interlock_core::mode::Mode;
/// let forged = SafeCommand {
///     wire: Wire::Torque, mode: Mode::Running,
///     target: vec![], velocity: vec![], torque: vec![1e9], kp: vec![], kd: vec![],
/// };
/// ```
///
/// ```compile_fail,E0624
/// interlock_core::guard::SafeCommand::new(6);
/// ```
///
/// ```compile_fail,E0308
/// fn keep(command: &interlock_core::guard::SafeCommand) -> interlock_core::guard::SafeCommand {
///     command.clone()
/// }
/// ```
///
/// ```compile_fail,E0277
/// let made: interlock_core::guard::SafeCommand = Default::default();
/// ```
#[derive(Debug, PartialEq)]
pub struct SafeCommand {
    pub(super) wire: Wire,
    pub(super) mode: Mode,
    pub(super) target: Vec<f64>,
    pub(super) velocity: Vec<f64>,
    pub(super) torque: Vec<f64>,
    pub(super) kp: Vec<f64>,
    pub(super) kd: Vec<f64>,
}

impl SafeCommand {
    pub(super) fn new(n: usize) -> Self {
        SafeCommand {
            wire: Wire::Off,
            mode: Mode::Idle,
            target: vec![0.0; n],
            velocity: vec![0.0; n],
            torque: vec![0.0; n],
            kp: vec![0.0; n],
            kd: vec![0.0; n],
        }
    }

    /// What the numbers mean.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// The mode in which it was admitted.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// rad. Position: the set point. `PositionPd`: the far end of the spring. Host-side PD: its target, for the recording.
    pub fn target(&self) -> &[f64] {
        &self.target
    }

    /// rad/s. Velocity: the set point. Position: the velocity of the set point.
    pub fn velocity(&self) -> &[f64] {
        &self.velocity
    }

    /// N*m. Torque: the set point. `PositionPd`: feed-forward, always 0 here.
    pub fn torque(&self) -> &[f64] {
        &self.torque
    }

    /// N*m/rad.
    pub fn kp(&self) -> &[f64] {
        &self.kp
    }

    /// N*m*s/rad.
    pub fn kd(&self) -> &[f64] {
        &self.kd
    }
}
