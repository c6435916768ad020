//! Base orientation.

use crate::code::Code;

/// Direction of gravity in the base frame, `R^T (0, 0, -1)`, for a base orientation `w x y z`.
///
/// # Errors
/// `NotFinite` for a quaternion that is no rotation: NaN, infinite or of length (nearly) zero.
pub fn projected_gravity(quat: [f64; 4]) -> Result<[f64; 3], Code> {
    let [w, x, y, z] = quat;
    let norm2 = w * w + x * x + y * y + z * z;
    // Drivers round to float32 or worse; far from unit length it is not an orientation at all.
    if !(0.25..=4.0).contains(&norm2) {
        return Err(Code::NotFinite);
    }
    let twice = 2.0 / norm2;
    Ok([-twice * (x * z - w * y), -twice * (y * z + w * x), twice * (x * x + y * y) - 1.0])
}

/// Tilt of the base against upright, rad.
///
/// # Errors
/// As [`projected_gravity`].
pub fn tilt_rad(quat: [f64; 4]) -> Result<f64, Code> {
    let [x, y, z] = projected_gravity(quat)?;
    Ok(x.hypot(y).atan2(-z))
}
