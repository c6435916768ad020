"""Facts that an exporter never writes because it always does the same. Each is printed where it is used."""

from __future__ import annotations

# LeRobot adds 1e-8 to every std on the way in, and nothing on the way out (lerobot, normalize_processor.py).
EPSILON: dict[str, float] = {"lerobot": 1e-8}
