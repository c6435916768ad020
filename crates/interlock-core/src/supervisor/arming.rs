//! What must hold before a robot may be armed, started or recovered.

use crate::code::Code;
use crate::plan::{Behaviour, Start};
use crate::sample::Sample;

/// A quaternion is one if its norm is 1 within this.
const UNIT: f64 = 1e-2;

/// What the outside knows to be there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Readiness {
    /// The worker has loaded, warmed up and passed its golden samples.
    pub worker: bool,
    /// The driver's process lives and its alive check holds.
    pub driver: bool,
    /// The recording can be written, or none was asked for.
    pub recording: bool,
}

impl Readiness {
    pub(super) fn check(self) -> Result<(), Code> {
        if !self.recording {
            Err(Code::NoRecording)
        } else if self.worker && self.driver {
            Ok(())
        } else {
            Err(Code::NotReady)
        }
    }
}

/// Whether the measured state lies inside the start envelope.
pub(super) fn check_start(start: &Start, sample: &Sample) -> Result<(), Code> {
    let reach = start.pose.iter().zip(&start.within_pos);
    let is_near = |(position, (pose, within)): (&f64, (&f64, &f64))| (position - pose).abs() <= *within;
    let is_there = sample.pos.len() == start.pose.len() && sample.pos.iter().zip(reach).all(is_near);
    let is_upright = start.within_tilt_rad.is_none_or(|most| tilt(sample.quat).is_some_and(|tilt| tilt <= most));
    if is_there && is_upright {
        Ok(())
    } else {
        Err(Code::OutsideStart)
    }
}

/// Angle between the base's up and the world's, rad; `None` for what is no rotation.
fn tilt([w, x, y, z]: [f64; 4]) -> Option<f64> {
    let norm = (w * w + x * x + y * y + z * z).sqrt();
    let is_rotation = (norm - 1.0).abs() <= UNIT;
    is_rotation.then(|| {
        let up = 1.0 - 2.0 * (x * x + y * y) / (norm * norm);
        up.clamp(-1.0, 1.0).acos()
    })
}

/// A floating base falls in a held pose, and a lost policy cannot act.
pub(super) fn check_policy_lost(behaviour: &Behaviour, is_floating: bool) -> Result<(), Code> {
    match behaviour {
        Behaviour::StopAndHold if is_floating => Err(Code::BadPlan),
        Behaviour::PolicyZeroGoal => Err(Code::BadPlan),
        Behaviour::StopAndHold | Behaviour::Damp { .. } | Behaviour::GoTo { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tilt_is_the_angle_from_upright() {
        let half = 0.5_f64.sqrt();
        assert!(tilt([1.0, 0.0, 0.0, 0.0]).unwrap().abs() < 1e-12);
        assert!((tilt([half, half, 0.0, 0.0]).unwrap() - std::f64::consts::FRAC_PI_2).abs() < 1e-12);
        assert!(tilt([half, 0.0, 0.0, half]).unwrap().abs() < 1e-7, "turning about the vertical is no tilt");
        assert!((tilt([0.0, 1.0, 0.0, 0.0]).unwrap() - std::f64::consts::PI).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_rotation_has_no_tilt() {
        assert_eq!(tilt([0.0; 4]), None);
        assert_eq!(tilt([f64::NAN; 4]), None);
    }
}
