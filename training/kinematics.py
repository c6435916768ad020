"""Closed-form inverse kinematics of the tabletop arm, hand pointing straight down."""

import numpy as np
from numpy.typing import NDArray

# scene.xml: height of the shoulder axis, then the lengths to elbow, wrist and fingertip.
SHOULDER_M = 0.12
UPPER_ARM_M = 0.20
FOREARM_M = 0.20
HAND_M = 0.12


def reach(tip_m: NDArray[np.float64], pitch_rad: float = np.pi) -> NDArray[np.float64]:
    """Joint positions that bring the fingertip to a point. Shape (4,), rad.

    Args:
        tip_m: Where the fingertip should be in the base's frame. Shape (3,).
        pitch_rad: Direction of the hand: 0 is up, pi straight down.
    """
    x, y, z = tip_m
    radius = np.hypot(x, y) - HAND_M * np.sin(pitch_rad)
    height = z - SHOULDER_M - HAND_M * np.cos(pitch_rad)
    squared = radius**2 + height**2
    bend = (squared - UPPER_ARM_M**2 - FOREARM_M**2) / (2 * UPPER_ARM_M * FOREARM_M)
    elbow = np.arccos(np.clip(bend, -1.0, 1.0))
    lean = np.arctan2(FOREARM_M * np.sin(elbow), UPPER_ARM_M + FOREARM_M * np.cos(elbow))
    shoulder = np.arctan2(radius, height) - lean
    return np.array([np.arctan2(y, x), shoulder, elbow, pitch_rad - shoulder - elbow])


def fingertip(position_rad: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the fingertip is in the base's frame. Shape (3,), m."""
    yaw, shoulder, elbow, wrist = position_rad
    pitches = np.cumsum([shoulder, elbow, wrist])
    lengths = np.array([UPPER_ARM_M, FOREARM_M, HAND_M])
    radius = float(lengths @ np.sin(pitches))
    return np.array([radius * np.cos(yaw), radius * np.sin(yaw), SHOULDER_M + float(lengths @ np.cos(pitches))])
