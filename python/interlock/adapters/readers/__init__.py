"""Readers of checkpoints, in the order in which they are tried: the more a reader knows, the earlier it stands."""

from __future__ import annotations

from interlock.ports.reader import Reader

from .holosoma_onnx import HolosomaReader
from .onnx_bare import OnnxReader
from .own_vla import OwnVlaReader
from .unitree_deploy import UnitreeDeployReader

READERS: tuple[Reader, ...] = (OwnVlaReader(), UnitreeDeployReader(), HolosomaReader(), OnnxReader())

__all__ = ["READERS"]
