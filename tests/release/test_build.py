"""build: what is exported is what was asked for, or nothing is built."""

import json

import numpy as np
import pytest

pytest.importorskip("interlock._core", reason="the extension is not built")
onnx = pytest.importorskip("onnx", reason="the onnx package makes the graphs of these tests")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from conftest import PLAIN, place, tiny_graph  # noqa: E402
from interlock.adapters.readers import READERS  # noqa: E402
from interlock.artifact.evidence import Verdict  # noqa: E402
from interlock.artifact.files import sha256  # noqa: E402
from interlock.artifact.folder import GRAPH, PolicyFolder  # noqa: E402
from interlock.errors import InterlockError  # noqa: E402
from interlock.release import build as module  # noqa: E402
from interlock.release.build import build, engine_record  # noqa: E402


def resized(shape):
    made = onnx.load_from_string(tiny_graph())
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("actions", TensorProto.FLOAT, shape))
    return made.SerializeToString()


def retyped():
    made = onnx.load_from_string(tiny_graph())
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    return made.SerializeToString()


def noisy():
    made = onnx.load_from_string(tiny_graph())
    made.graph.node.insert(0, helper.make_node("RandomNormalLike", ["obs"], ["noise"]))
    return made.SerializeToString()


def with_weight(value):
    made = onnx.load_from_string(tiny_graph())
    weight = numpy_helper.to_array(made.graph.initializer[0]).copy()
    weight.flat[0] = value
    made.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, made.graph.initializer[0].name))
    return made.SerializeToString()


def exported(monkeypatch, graph):
    """An exporter that returns another graph than the one that was asked for."""
    monkeypatch.setattr(module, "_graph", lambda *_: ({GRAPH: graph}, {"exporter": "wrong"}))


def test_the_engine_record_names_options_versions_library_and_effective_providers(built_tiny):
    folder = PolicyFolder.open(built_tiny())
    record = engine_record(folder)
    assert record["graph"] == sha256(folder.graph())
    assert record["options"] == {"threads": 1, "optimize": True, "spinning": False}
    assert list(record["providers"]) == ["CPUExecutionProvider"]
    assert len(record["runtime"]["library_sha256"]) == 64
    assert "/" not in record["runtime"]["library"]
    assert folder.evidence("build").verdict is Verdict.PASS


def test_an_unchanged_policy_is_not_built_again(built_tiny, monkeypatch):
    path = built_tiny()
    monkeypatch.setattr(module, "run_child", lambda *_, **__: pytest.fail("ran again"))
    assert build(path, readers=READERS).is_unchanged


def test_a_damaged_graph_is_built_again(built_tiny):
    path = built_tiny()
    (path / GRAPH).write_bytes((path / GRAPH).read_bytes()[:-1])
    done = build(path, readers=READERS)
    assert not done.is_unchanged
    assert "damaged" in done.why
    PolicyFolder.open(path)


def test_a_changed_target_builds_again_and_says_why(built_tiny):
    done = build(built_tiny(), readers=READERS, target=module.Target(threads=2))
    assert done.why == "target changed"


@pytest.mark.parametrize(
    ("graph", "code"),
    [
        (lambda: tiny_graph(output="renamed"), "tensor-missing"),
        (lambda: tiny_graph(extra=True), "tensor-unknown"),
        (lambda: resized([1, 4]), "shape-mismatch"),
        (lambda: resized(["batch", 3]), "shape-mismatch"),
        (retyped, "dtype-mismatch"),
        (noisy, "random-operator"),
        (lambda: b"not a graph", "onnx-malformed"),
        (lambda: tiny_graph()[:-20], "onnx-malformed"),
        (lambda: with_weight(np.nan), "weights-not-finite"),
    ],
)
def test_a_wrong_export_is_refused_and_nothing_is_written(freeze_tiny, monkeypatch, graph, code):
    path = freeze_tiny()
    before = {each: each.read_bytes() for each in path.rglob("*") if each.is_file()}
    exported(monkeypatch, graph())
    with pytest.raises(InterlockError) as caught:
        build(path, readers=READERS)
    assert code in {each.code for each in caught.value.problems}
    assert all(each.hint for each in caught.value.problems)
    assert {each: each.read_bytes() for each in path.rglob("*") if each.is_file()} == before


def external(seed):
    """The tiny graph with its weights in a file beside it."""
    made = onnx.load_from_string(tiny_graph(seed=seed))
    blob = b""
    for each in made.graph.initializer:
        raw = each.raw_data
        each.ClearField("raw_data")
        each.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "weights.bin"), ("offset", str(len(blob))), ("length", str(len(raw)))):
            entry = each.external_data.add()
            entry.key, entry.value = key, value
        blob += raw
    return made.SerializeToString(), blob


def frozen_external(tmp_path, seed=0):
    from interlock.release.freeze import freeze

    graph, blob = external(seed)
    source = place(tmp_path / "checkpoint", graph)
    (source / "weights.bin").write_bytes(blob)
    return freeze(source, tmp_path / "small.policy", readers=READERS, contract=PLAIN).folder.path


def test_external_data_is_hashed_and_becomes_part_of_what_is_loaded(tmp_path):
    path = frozen_external(tmp_path)
    build(path, readers=READERS)
    folder = PolicyFolder.open(path)
    assert {"graph/policy.onnx", "graph/weights.bin"} <= set(folder.lock.files)
    assert engine_record(folder)["graph"] == sha256(folder.graph())
    assert len(folder.graph()) > len(folder.read(GRAPH))


def test_old_external_data_beside_a_new_graph_is_refused(tmp_path):
    path = frozen_external(tmp_path)
    build(path, readers=READERS)
    (path / "graph" / "weights.bin").write_bytes(external(seed=7)[1])
    with pytest.raises(InterlockError) as caught:
        PolicyFolder.open(path)
    assert (caught.value.code, caught.value.problems[0].where) == ("file-changed", "graph/weights.bin")
    assert caught.value.next


def test_swapped_external_data_of_the_source_is_refused(tmp_path):
    path = frozen_external(tmp_path)
    (path / "source" / "weights.bin").write_bytes(external(seed=7)[1])
    with pytest.raises(InterlockError) as caught:
        build(path, readers=READERS)
    assert caught.value.code == "file-changed"


def test_an_engine_record_of_another_graph_is_stale(built_tiny):
    path = built_tiny()
    folder = PolicyFolder.open(path)
    folder.commit({GRAPH: tiny_graph(seed=5)})
    with pytest.raises(InterlockError) as caught:
        engine_record(PolicyFolder.open(path))
    assert caught.value.code == "engine-stale"


def test_a_node_on_another_provider_is_refused(freeze_tiny, monkeypatch):
    path = freeze_tiny()
    real = module.run_child

    def elsewhere(*args, **extra):
        answer = real(*args, **extra)
        answer.facts["providers"] = {"CPUExecutionProvider": 3, "OtherProvider": 1}
        return answer

    monkeypatch.setattr(module, "run_child", elsewhere)
    with pytest.raises(InterlockError) as caught:
        build(path, readers=READERS)
    assert caught.value.code == "engine-provider"


def test_evidence_lists_the_operators(built_tiny):
    results = json.loads((built_tiny() / "evidence" / "build.json").read_text())["results"]
    assert results["graph"]["operators"] == {"Gemm": 1, "Identity": 1, "MatMul": 1, "Tanh": 1}
