"""Writes the checkpoint: weights, the facts a contract needs, tokenizer, example observations."""

import hashlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save
from torch import nn

from interlock.adapters.arm import plant

from .episodes import ACTION_PERIOD_NS, CHUNK

FOLDER = Path(plant.__file__).with_name("reach_block")

EXECUTE = 8  # actions used of each chunk before the next one is due
TOKENS = 8
IMAGE_MEAN = (0.485, 0.456, 0.406)  # ImageNet, by habit of the field
IMAGE_STD = (0.229, 0.224, 0.225)
EPS = 1e-8

Config = dict[str, Any]


def load_model_file() -> ModuleType:
    """Imports the checkpoint's own `model.py`, the one definition of the network."""
    spec = importlib.util.spec_from_file_location("reach_block_model", FOLDER / "model.py")
    if spec is None or spec.loader is None:
        msg = f"no model.py in {FOLDER}"
        raise FileNotFoundError(msg)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_tokenizer() -> str:
    """Writes `tokenizer.json` in the format of Hugging Face tokenizers and returns its SHA-256."""
    words = sorted({word for task in plant.TASKS for word in task.split()})
    special = ["[PAD]", "[UNK]"]
    vocabulary = {word: index for index, word in enumerate([*special, *words])}
    token = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": {
            "strategy": {"Fixed": TOKENS},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
        "added_tokens": [{"id": index, "content": text, **token} for index, text in enumerate(special)],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    text = json.dumps(tokenizer, indent=2) + "\n"
    (FOLDER / "tokenizer.json").write_text(text, encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()


def make_config(positions_rad: NDArray[np.float32], steps_rad: NDArray[np.float32], tokenizer_sha256: str) -> Config:
    """States every fact of the policy.

    Args:
        positions_rad: Measured joint positions of the training data. Shape (n, 4).
        steps_rad: Targets relative to them. Shape (n, 16, 4).
        tokenizer_sha256: Of the file beside the weights.
    """

    def rows(values: NDArray[np.float32]) -> list[dict[str, float]]:
        flat = values.reshape(-1, len(plant.JOINTS)).astype(np.float64)
        pairs = zip(flat.mean(axis=0), flat.std(axis=0), strict=True)
        return [{"mean": round(float(mean), 6), "std": round(float(std), 6)} for mean, std in pairs]

    statistics = zip(plant.JOINTS, rows(positions_rad), rows(steps_rad), strict=True)
    vocabulary = len({word for task in plant.TASKS for word in task.split()}) + 2
    return {
        "type": "interlock-vla",
        "format": 1,
        "name": "reach-block",
        "framework": {"name": "torch", "version": torch.__version__},
        "licence": "Apache-2.0",
        "trained_for": "tabletop_arm",
        "tasks": list(plant.TASKS),
        "timing": {
            "control_rate_hz": 1_000_000_000 // ACTION_PERIOD_NS,
            "chunk": CHUNK,
            "execute": EXECUTE,
            "handover": "replace",
            "action_delay_ms": 0,
        },
        "joints": {
            "order": list(plant.JOINTS),
            "unit": "rad",
            "normalization": "(x - mean) / (std + eps) in, x * std + mean out",
            "eps": EPS,
            "each": {name: {"state": state, "action": action} for name, state, action in statistics},
        },
        "start": dict(zip(plant.JOINTS, plant.HOME_RAD, strict=True)),
        "inputs": {
            "image": {"of": "image", "camera": "front", "dtype": "float32", "shape": [1, 3, 96, 96]},
            "state": {"of": "joint_pos", "dtype": "float32", "shape": [1, 4]},
            "tokens": {"of": "language", "dtype": "int64", "shape": [1, TOKENS]},
        },
        "image": {
            "size_hw": [plant.IMAGE_SIZE, plant.IMAGE_SIZE],
            "color": "rgb",
            "layout": "chw",
            "dtype": "float32",
            "range": [0, 1],
            "resize": "none",
            "mean": list(IMAGE_MEAN),
            "std": list(IMAGE_STD),
            "eps": 0.0,
        },
        "language": {
            "tokenizer": "tokenizer.json",
            "sha256": tokenizer_sha256,
            "template": "{task}",
            "padding_side": "right",
            "length": TOKENS,
            "pad": "[PAD]",
            "unknown": "[UNK]",
        },
        "outputs": {
            "actions": {
                "role": "action",
                "kind": "joint_position_target",
                "relative_to": "current_joint_pos",
                "dtype": "float32",
                "shape": [1, CHUNK, len(plant.JOINTS)],
            }
        },
        "recurrent_state": "none",
        "noise": "none",
        "network": {
            "vocabulary": vocabulary,
            "embedding": 8,
            "text": 32,
            "conv_widths": [16, 32, 32, 48],
            "conv_kernels": [5, 3, 3, 3],
            "conv_strides": [2, 2, 1, 1],
            "hidden": 192,
        },
    }


def write(model: nn.Module, config: Config) -> None:
    """Writes `model.safetensors` and `config.json`, the latter naming the hashes of the files beside it."""
    weights = {name: value.contiguous() for name, value in model.state_dict().items()}
    (FOLDER / "model.safetensors").write_bytes(save(weights))
    files = {name: _sha256(FOLDER / name) for name in ("model.safetensors", "model.py", "tokenizer.json")}
    text = json.dumps({**config, "files_sha256": files}, indent=2) + "\n"
    (FOLDER / "config.json").write_text(text, encoding="utf-8")


def read() -> tuple[nn.Module, Config]:
    """Reads the committed checkpoint."""
    config: Config = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
    model: nn.Module = load_model_file().build(config)
    model.load_state_dict(load_file(FOLDER / "model.safetensors"))
    return model.eval(), config


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
