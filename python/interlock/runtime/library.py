"""Finds the ONNX Runtime shared library without importing its Python package."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from interlock.errors import InterlockError

OVERRIDE = "INTERLOCK_ORT"  # a path to libonnxruntime.so, for a vendor's own build


def onnxruntime_library() -> Path:
    """Path of libonnxruntime: `INTERLOCK_ORT`, else the one that the installed wheel ships."""
    chosen = os.environ.get(OVERRIDE)
    if chosen:
        if Path(chosen).is_file():
            return Path(chosen)
        raise InterlockError(
            code="engine-library",
            where=OVERRIDE,
            expected="a file",
            got=chosen,
            hint=f"unset {OVERRIDE} to use the library of the onnxruntime package",
        )
    spec = find_spec("onnxruntime")
    places = list(spec.submodule_search_locations or []) if spec else []
    found = sorted(path for place in places for path in Path(place, "capi").glob("libonnxruntime.so*"))
    if not found:
        raise InterlockError(
            code="engine-library",
            where="onnxruntime",
            expected="libonnxruntime.so in the installed package",
            got="none",
            hint="install the onnxruntime package, or set INTERLOCK_ORT",
            next="pip install onnxruntime",
        )
    return found[-1]
