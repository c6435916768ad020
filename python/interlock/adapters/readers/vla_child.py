"""Rebuilds the network of one of our own checkpoints, in a process of its own, for reference actions and for export.

Stands alone, so that another interpreter can run it: needs torch, numpy, safetensors; for export onnx, onnxscript.
The folder that it is given holds verified copies: `config.json`, `model.safetensors`, `tokenizer.json`, and `model.py`,
which is the definition that this package ships and never one from a checkpoint.
"""

import importlib.util
import json
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

JITTER = 1e-6  # relative, on every input tensor
PROBES = 2  # observations whose input tensors are returned, to locate a difference before the graph

F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]


class Refused(Exception):
    """An answer that is a refusal."""

    def __init__(self, **facts: str) -> None:
        super().__init__(facts.get("code", ""))
        self.facts = facts


class Policy:
    """The network with its own pre- and postprocessing."""

    def __init__(self, folder: Path) -> None:
        try:
            import torch
            from safetensors.torch import load
        except ImportError as cause:
            raise Refused(
                code="framework-missing",
                where=str(cause.name),
                expected="torch and safetensors, the framework of this checkpoint",
                got="not installed",
                hint="pip install 'interlock[export]', or name an interpreter that has it with --python",
            ) from None
        torch.manual_seed(0)
        torch.set_num_threads(1)  # one order of summation, and no threads that spin beside each other
        self.torch = torch
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.tokenizer = folder / "tokenizer.json"
        spec = importlib.util.spec_from_file_location("network", folder / "model.py")
        assert spec is not None
        assert spec.loader is not None
        self.code = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.code)
        try:
            self.network = self.code.build(self.config)
            self.network.load_state_dict(load((folder / "model.safetensors").read_bytes()), strict=True)
        except (RuntimeError, KeyError, TypeError, ValueError) as cause:
            raise Refused(
                code="weights-mismatch",
                where="model.safetensors",
                expected="the weights of the network that config.json describes",
                got=" ".join(str(cause).split())[:200],
                hint="config.json and model.safetensors are not of the same training; copy both again",
            ) from None
        self.network.eval()

    def tensors(self, image: U8, joint_pos: F64, task: str) -> tuple[Any, ...]:
        """Input tensors, by the network's own preprocessing."""
        made: tuple[Any, ...] = self.code.preprocess(self.config, image, joint_pos, task, self.tokenizer)
        return made

    def action(self, tensors: tuple[Any, ...], joint_pos: F64) -> F64:
        """Targets in physical units, by the network's own postprocessing."""
        with self.torch.no_grad():
            raw = self.network(*tensors)
        return np.asarray(self.code.postprocess(self.config, raw, joint_pos), dtype=np.float64)


def reference(policy: Policy, request: dict[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Reference actions, what typical mistakes and jitter do to them, and the first input tensors."""
    positions, pictures = arrays["joint_pos"], arrays["image"]
    texts: list[str] = request["texts"]
    cases = list(zip(pictures, positions, texts, strict=True))
    names: list[str] = request["input_names"]
    inputs = [policy.tensors(*case) for case in cases]
    actions = np.stack([policy.action(each, q) for each, q in zip(inputs, positions, strict=True)])
    answer: dict[str, Any] = {"action": actions}
    for index, name in enumerate(names):
        answer[f"input.{name}"] = np.stack([each[index].numpy() for each in inputs[:PROBES]])

    mistakes: dict[str, Callable[[U8, F64], tuple[U8, F64]]] = {
        "colours_swapped": lambda image, q: (np.ascontiguousarray(image[..., ::-1]), q),
        "image_mirrored": lambda image, q: (np.ascontiguousarray(image[:, ::-1]), q),
        "degrees_for_radians": lambda image, q: (image, np.degrees(q)),
        "joints_reversed": lambda image, q: (image, np.ascontiguousarray(q[::-1])),
    }
    if request.get("mistakes"):
        for word, wrong in mistakes.items():
            # The mistake is in what the network is shown; the target is still taken from where the joint really is.
            moved = [
                policy.action(policy.tensors(*wrong(image, q), text), q) - right
                for (image, q, text), right in zip(cases, actions, strict=True)
            ]
            answer[f"mistake.{word}"] = np.abs(np.stack(moved)).max(axis=(0, 1))
        draw = np.random.default_rng(0)
        shaken = [
            policy.action(tuple(_jitter(policy, tensor, draw) for tensor in each), q) - right
            for each, q, right in zip(inputs, positions, actions, strict=True)
        ]
        answer["jitter"] = np.abs(np.stack(shaken)).max(axis=(0, 1))
    return {"versions": versions("torch", "safetensors", "numpy"), "mistakes": sorted(mistakes)}, answer


def _jitter(policy: Policy, tensor: Any, draw: np.random.Generator) -> Any:
    if not tensor.is_floating_point():
        return tensor
    factor = 1.0 + JITTER * draw.choice([-1.0, 1.0], size=tuple(tensor.shape))
    return (tensor.double() * policy.torch.from_numpy(factor)).to(tensor.dtype)


def export(policy: Policy, request: dict[str, Any], folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Writes `policy.onnx` with fixed shapes and everything inside."""
    try:
        import onnx
        import onnxscript  # noqa: F401
    except ImportError as cause:
        raise Refused(
            code="framework-missing",
            where=str(cause.name),
            expected="onnx and onnxscript, the exporter",
            got="not installed",
            hint="pip install 'interlock[export]', or name an interpreter that has it with --python",
        ) from None
    torch = policy.torch
    types = {"float32": torch.float32, "int64": torch.int64}
    inputs = tuple(torch.zeros(*shape, dtype=types[dtype]) for _, dtype, shape in request["inputs"])
    torch.onnx.export(
        policy.network,
        inputs,
        str(folder / "policy.onnx"),
        dynamo=True,
        opset_version=request["opset"],
        input_names=[name for name, _, _ in request["inputs"]],
        output_names=list(request["outputs"]),
        external_data=False,
        dynamic_shapes=None,
        verbose=False,
    )
    _strip(onnx, folder / "policy.onnx")
    return {"versions": versions("torch", "onnx", "onnxscript", "numpy"), "opset": request["opset"]}, {}


def _strip(onnx: Any, path: Path) -> None:
    """Removes stack traces: they hold paths of this very process, and would make every export another file."""
    model = onnx.load(path, load_external_data=False)
    scopes = [model, model.graph, *model.functions]
    for scope in (model.graph, *model.functions):
        scopes.extend([*scope.node, *scope.value_info])
    scopes.extend([*model.graph.input, *model.graph.output, *model.graph.initializer])
    for each in scopes:
        each.ClearField("doc_string")
        each.ClearField("metadata_props")
    path.write_bytes(model.SerializeToString(deterministic=True))


def versions(*packages: str) -> dict[str, str]:
    """Installed versions."""
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # noqa: PERF203
            found[package] = "?"
    return found


def main(folder: Path) -> None:
    """Answers one request."""
    request: dict[str, Any] = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    with np.load(folder / "arrays.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    answers: dict[str, Any] = {}
    try:
        policy = Policy(folder)
        if request["do"] == "export":
            facts, answers = export(policy, request, folder)
        else:
            facts, answers = reference(policy, request, arrays)
    except Refused as refusal:
        facts = {"refusal": refusal.facts}
    np.savez(folder / "answer.npz", **answers)
    (folder / "answer.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
