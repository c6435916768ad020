"""The example observations of the checkpoint: what a user's own dataset would be."""

import io
import zipfile

import numpy as np

from interlock.adapters.arm.plant import TASKS

from .checkpoint import FOLDER
from .episodes import Samples, episode

UNUSED = range(2_000_000, 2_000_006)  # seeds neither trained on nor evaluated on
PER_EPISODE = 4


def write_observations() -> int:
    """Writes `samples.npz` and returns how many observations it holds.

    Arrays: `image` (n, 96, 96, 3) uint8 RGB, `joint_pos_rad` (n, 4) float64, `task` (n,) text.
    """
    picked = [_spread(episode(seed)) for seed in UNUSED]
    arrays = {
        "image": np.concatenate([part.images for part in picked]),
        "joint_pos_rad": np.concatenate([part.positions_rad for part in picked]).astype(np.float64),
        "task": np.array([list(TASKS)[task] for part in picked for task in part.tasks]),
    }
    # Written by hand instead of by numpy.savez: the same bytes every time.
    with zipfile.ZipFile(FOLDER / "samples.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, values in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, values, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, buffer.getvalue())
    return len(arrays["task"])


def _spread(samples: Samples) -> Samples:
    rows = np.linspace(0, len(samples) - 1, PER_EPISODE + 1).astype(int)[1:]
    return Samples(
        images=samples.images[rows],
        positions_rad=samples.positions_rad[rows],
        tasks=samples.tasks[rows],
        targets_rad=samples.targets_rad[rows],
    )
