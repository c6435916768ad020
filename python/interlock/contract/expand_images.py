"""Image inputs written out."""

from __future__ import annotations

from typing import Any

from interlock.contract.codes import problem
from interlock.contract.conventions import EPSILON
from interlock.contract.expanded import ImageX
from interlock.contract.observation_model import ImageInput, Resize
from interlock.contract.policy_model import Contract
from interlock.errors import Problem

_ALWAYS = ("color", "layout", "dtype", "resize")
_FLOAT_ONLY = ("range", "mean", "std")


def expand_image(name: str, block: ImageInput, contract: Contract, problems: list[Problem]) -> ImageX:
    """One image input with what `like: image` adds."""
    place = contract.where("inputs", name)
    shared = contract.image if block.like else None
    if block.like and shared is None:
        problems.append(problem("like-unknown", place, expected="a block `image`", got="none"))

    def value(key: str) -> Any:
        own = getattr(block, key)
        return own if own is not None or shared is None else getattr(shared, key)

    is_float = value("dtype") == "float32"
    problems.extend(
        problem("missing-key", place, expected=f"the key `{key}`", got="nothing")
        for key in (*_ALWAYS, *(_FLOAT_ONLY if is_float else ()))
        if value(key) is None
    )
    if value("dtype") == "int64":
        problems.append(problem("dtype-mismatch", place, expected="float32 or uint8", got="int64"))
    if not is_float and any(value(key) not in (None, "none") for key in _FLOAT_ONLY):
        expected = "no range, mean, std: a uint8 picture goes in as it is"
        problems.append(problem("dtype-mismatch", place, expected=expected, got="some"))
    resize = value("resize")
    from_hw = resize.from_hw if isinstance(resize, Resize) else block.size_hw
    height, width = block.size_hw
    shape = (1, 3, height, width) if value("layout") == "chw" else (1, height, width, 3)
    if block.shape not in (None, shape):
        problems.append(problem("shape-mismatch", place, expected=str(list(shape)), got=str(list(block.shape or ()))))
    mean, std = value("mean"), value("std")
    return ImageX(
        name=name,
        shape=shape,
        dtype=value("dtype") or "float32",
        camera=block.camera,
        size_hw=block.size_hw,
        from_hw=from_hw,
        color=value("color") or "rgb",
        layout=value("layout") or "chw",
        resize=resize.rule if isinstance(resize, Resize) else "none",
        range=value("range") or (0.0, 1.0),
        mean=(0.0, 0.0, 0.0) if mean in (None, "none") else mean,
        std=(1.0, 1.0, 1.0) if std in (None, "none") else std,
        eps=_epsilon(value("eps"), std, contract, place, problems),
    )


def _epsilon(eps: float | None, std: Any, contract: Contract, place: str, problems: list[Problem]) -> float:
    if std in (None, "none"):
        return 0.0
    if eps is not None:
        return eps
    if contract.source.reader in EPSILON:
        return EPSILON[contract.source.reader]
    problems.append(problem("epsilon-missing", place, got="std without eps"))
    return 0.0
