"""An ONNX file with nothing beside it: the contract is supplied by a person."""

from __future__ import annotations

from interlock.ports.reader import Answers, Framework, GraphFacts, Reading, SourceView, TensorFacts

from .facts import contradiction


class OnnxReader:
    """Takes a contract as given; without one, writes a template in which every fact is `ask`."""

    name = "onnx"
    version = 1
    framework = Framework(kind="onnx")

    def claims(self, source: SourceView) -> str:
        """Any ONNX file."""
        graphs = source.ending(".onnx")
        return f"{graphs[0]}" if len(graphs) == 1 else ""

    def read(self, source: SourceView, answers: Answers) -> Reading:  # noqa: ARG002  (the contract's asks are not ours)
        """The graph says names and shapes only.

        Raises:
            InterlockError: `source-contradiction`.
        """
        graphs = source.ending(".onnx")
        if len(graphs) != 1:
            raise contradiction(source.label, "one ONNX file", ", ".join(graphs) or "none")
        file = graphs[0]
        graph = source.graph(file)
        folder = file.rpartition("/")[0]
        beside = tuple(f"{folder}/{each.name}" if folder else each.name for each in graph.external)
        framework = Framework(kind="onnx", graph=file)
        if source.contract is not None:
            return Reading(files=(file, *beside), framework=framework, text=source.contract)
        return Reading(
            files=(file, *beside),
            framework=framework,
            text=template(source.label, graph),
            notes=("the ONNX file says names and shapes only; a contract written by hand goes to --contract FILE",),
        )


def template(label: str, graph: GraphFacts) -> str:
    """A contract in which everything but the tensors is `ask`."""
    inputs = "\n".join(
        f"  {each.name}:  # {_shape(each)}\n    dtype: {each.dtype}\n    history: ask\n    clip: ask\n    terms: ask"
        for each in graph.inputs
    )
    outputs = "\n".join(
        f"  {each.name}:  # {_shape(each)}\n    role: ask\n    kind: ask\n    unit: ask\n    scale: ask\n"
        "    offset: ask\n    clip: ask"
        for each in graph.outputs
    )
    return f"""# Every `ask` is a fact that the ONNX file does not say.
schema: interlock.contract/1
name: {label.replace("_", "-")}
trained_for: ask
source: {{reader: onnx, files: source/}}

timing: {{control_rate_hz: ask, chunk: ask, action_delay_ms: ask}}

joints:
  order: ask
  unit: ask
  each: ask

inputs:
{inputs}
state: ask
noise: ask
language: ask

outputs:
{outputs}

goals: ask
"""


def _shape(tensor: TensorFacts) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"
