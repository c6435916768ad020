"""This project's own vision-language-action checkpoints: `config.json`, `model.safetensors`, `tokenizer.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interlock.errors import InterlockError
from interlock.ports.reader import Answers, Framework, Reading, SourceView

from .facts import by_convention, choice, contradiction, from_file

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
TYPE = "interlock-vla"
_FORMAT = 1

# The network is never taken from a checkpoint: the declared type chooses a definition that this package ships.
_MODEL = Path(__file__).parents[1] / "arm" / "reach_block" / "model.py"
_SCRIPT = Path(__file__).with_name("vla_child.py")


class OwnVlaReader:
    """Every fact stands in `config.json`."""

    name = "own-vla"
    version = 1
    framework = Framework(kind="child", script=_SCRIPT, model=_MODEL)

    def claims(self, source: SourceView) -> str:
        """A `config.json` of our type."""
        if CONFIG not in source.names:
            return ""
        config = _parse(source.read(CONFIG), strict=False)
        return f"{CONFIG}: type {TYPE}" if config.get("type") == TYPE else ""

    def read(self, source: SourceView, answers: Answers) -> Reading:  # noqa: ARG002  (nothing is asked)
        """Turns the config into a contract.

        Raises:
            InterlockError: `source-contradiction`, `file-missing`.
        """
        config = _parse(source.read(CONFIG), strict=True)
        if config.get("format") != _FORMAT:
            raise contradiction(f"{CONFIG}:format", str(_FORMAT), str(config.get("format"))[:40])
        for name in (WEIGHTS, TOKENIZER):
            if name not in source.names:
                raise InterlockError(
                    code="file-missing",
                    where=name,
                    expected=f"{WEIGHTS} and {TOKENIZER} beside {CONFIG}",
                    got="none",
                    hint="copy the whole checkpoint folder",
                )
        self._same_training(config, source)
        samples = "samples.npz"
        return Reading(
            files=(CONFIG, WEIGHTS, TOKENIZER),
            framework=self.framework,
            tree=_Config(config).tree(),
            samples=samples if samples in source.names else "",
            sample_arrays={"joint_pos": "joint_pos_rad", "text": "task", f"image.{_camera(config)}": "image"},
            sample_joints=tuple(str(name) for name in config["joints"]["order"]),
        )

    def _same_training(self, config: Mapping[str, Any], source: SourceView) -> None:
        """The config names the hashes of what it was written with; the network's definition is ours."""
        declared = config.get("files_sha256")
        found = {
            WEIGHTS: source.read(WEIGHTS),
            TOKENIZER: source.read(TOKENIZER),
            "model.py": _MODEL.read_bytes(),
        }
        for name, content in found.items():
            expected = declared.get(name) if isinstance(declared, Mapping) else None
            actual = hashlib.sha256(content).hexdigest()
            if expected != actual:
                hint = (
                    "this version of interlock ships another definition of the network; use the version of the training"
                    if name == "model.py"
                    else "the files of this checkpoint do not belong together, or were damaged; copy it again"
                )
                raise InterlockError(
                    code="source-contradiction",
                    where=name,
                    expected=f"sha256 {str(expected)[:16]}…, as {CONFIG} says",
                    got=f"{actual[:16]}…",
                    hint=hint,
                )


def _parse(content: bytes, *, strict: bool) -> Mapping[str, Any]:
    try:
        config = json.loads(content)
    except (ValueError, RecursionError) as cause:
        if not strict:
            return {}
        raise contradiction(CONFIG, "JSON", str(cause)[:80]) from None
    if isinstance(config, dict):
        return config
    if strict:
        raise contradiction(CONFIG, "a JSON object", type(config).__name__)
    return {}


def _camera(config: Mapping[str, Any]) -> str:
    """Name of the only camera."""
    cameras = [each.get("camera") for each in config["inputs"].values() if each.get("of") == "image"]
    if len(cameras) != 1:
        raise contradiction(f"{CONFIG}:inputs", "one picture", f"{len(cameras)}")
    return str(cameras[0])


class _Config:
    """Takes keys out of the config and remembers where they stood."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def value(self, *path: str) -> Any:
        found: Any = self._config
        for key in path:
            if not isinstance(found, Mapping) or key not in found:
                raise contradiction(CONFIG, f"the key {'.'.join(path)}", "none")
            found = found[key]
        return found

    def fact(self, *path: str) -> Any:
        return from_file(self.value(*path), f"{CONFIG}:{'.'.join(path)}")

    def tree(self) -> dict[str, Any]:
        """The contract."""
        joints = self.value("joints", "order")
        if not isinstance(joints, list) or not joints:
            raise contradiction(f"{CONFIG}:joints.order", "joint names", str(joints)[:40])
        return {
            "name": self.fact("name"),
            "trained_for": self.fact("trained_for"),
            "source": {
                "reader": by_convention(OwnVlaReader.name, "what read it"),
                "files": by_convention("source/", "policy folder"),
                "framework": from_file(self._framework(), f"{CONFIG}:framework"),
            },
            "timing": {
                key: self.fact("timing", key)
                for key in ("control_rate_hz", "chunk", "execute", "handover", "action_delay_ms")
            },
            "joints": {
                "order": self.fact("joints", "order"),
                "unit": self.fact("joints", "unit"),
                "eps": self.fact("joints", "eps"),
                "each": {str(name): self.fact("joints", "each", str(name)) for name in joints},
            },
            "inputs": self._inputs(),
            "image": {
                key: self.fact("image", key)
                for key in ("color", "layout", "dtype", "range", "resize", "mean", "std", "eps")
            },
            "state": self.fact("recurrent_state"),
            "noise": self.fact("noise"),
            "language": self._language(),
            "outputs": self._outputs(),
            "goals": {"text": {"tasks": self.fact("tasks")}},
            "choices": {
                "max_age_ms": choice({"joints": 30, "cameras": 150}),
                "max_skew_ms": choice(120),
                "latency_budget_ms": choice(200),
                "start_pose": self.fact("start"),
                "start_within": {"joint_pos_rad": choice(0.1)},
            },
        }

    def _framework(self) -> str:
        framework = self.value("framework")
        if isinstance(framework, dict):
            return f"{framework.get('name')} {framework.get('version')}"
        return str(framework)

    def _inputs(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, each in self.value("inputs").items():
            place = f"{CONFIG}:inputs.{name}"
            of = each.get("of") if isinstance(each, dict) else None
            if of == "image":
                found[name] = {
                    "camera": self.fact("inputs", name, "camera"),
                    "size_hw": self.fact("image", "size_hw"),
                    "like": from_file("image", place),
                    "shape": self.fact("inputs", name, "shape"),
                }
            elif of in {"joint_pos", "language"}:
                found[name] = {
                    "of": from_file("tokens" if of == "language" else of, place),
                    "dtype": self.fact("inputs", name, "dtype"),
                    "shape": self.fact("inputs", name, "shape"),
                }
            else:
                raise contradiction(place, "of: image, joint_pos or language", str(each)[:60])
        return found

    def _language(self) -> dict[str, Any]:
        return {
            "tokenizer": from_file(f"source/{self.value('language', 'tokenizer')}", f"{CONFIG}:language.tokenizer"),
            "sha256": self.fact("language", "sha256"),
            "template": self.fact("language", "template"),
            "padding_side": self.fact("language", "padding_side"),
            "length": self.fact("language", "length"),
            "pad_id": from_file(0, f"{TOKENIZER}:padding.pad_id"),
        }

    def _outputs(self) -> dict[str, Any]:
        outputs = self.value("outputs")
        if not isinstance(outputs, dict) or len(outputs) != 1:
            raise contradiction(f"{CONFIG}:outputs", "one output", str(outputs)[:60])
        (name,) = outputs
        return {
            str(name): {
                "role": self.fact("outputs", name, "role"),
                "kind": self.fact("outputs", name, "kind"),
                "like": by_convention("joints", "out x * std + mean, as the config states under joints"),
                "relative_to": self.fact("outputs", name, "relative_to"),
                "dtype": self.fact("outputs", name, "dtype"),
                "shape": self.fact("outputs", name, "shape"),
            }
        }
