"""Checks that the policy exports to ONNX and computes the same there."""

import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

from . import checkpoint

OPSET = 18


def export_difference() -> float:
    """Exports at fixed shapes and returns the largest difference over the example observations, normalised.

    Raises:
        ValueError: The graph has other inputs, outputs, shapes or operators than asked for.
    """
    model, config = checkpoint.read()
    file = checkpoint.load_model_file()
    tokenizer = checkpoint.FOLDER / "tokenizer.json"
    with np.load(checkpoint.FOLDER / "samples.npz", allow_pickle=False) as arrays:
        rows = list(zip(arrays["image"], arrays["joint_pos_rad"], arrays["task"], strict=True))
    samples = [file.preprocess(config, image, position, str(task), tokenizer) for image, position, task in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.onnx"
        torch.onnx.export(
            model,
            samples[0],
            path,
            dynamo=True,
            opset_version=OPSET,
            input_names=list(config["inputs"]),
            output_names=list(config["outputs"]),
            external_data=False,
            verbose=False,
        )
        _check_shapes(onnx.load(path), config)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        worst = 0.0
        for inputs in samples:
            feed = {name: value.numpy() for name, value in zip(config["inputs"], inputs, strict=True)}
            with torch.no_grad():
                wanted = model(*inputs).numpy()
            worst = max(worst, float(np.abs(session.run(None, feed)[0] - wanted).max()))
    return worst


def _check_shapes(graph: onnx.ModelProto, config: checkpoint.Config) -> None:
    for asked, found in ((config["inputs"], graph.graph.input), (config["outputs"], graph.graph.output)):
        shapes = {value.name: [size.dim_value for size in value.type.tensor_type.shape.dim] for value in found}
        if shapes != {name: spec["shape"] for name, spec in asked.items()}:
            msg = f"exported graph: expected {asked}, got {shapes}"
            raise ValueError(msg)
    random = [
        node.op_type for node in graph.graph.node if node.op_type.startswith(("Random", "Bernoulli", "Multinomial"))
    ]
    if random:
        msg = f"exported graph: expected no random operator, got {random}"
        raise ValueError(msg)
