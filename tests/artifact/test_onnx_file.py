"""The walker that looks into ONNX files without the onnx package."""

import numpy as np
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.artifact.onnx_file import read_graph, require_deterministic
from interlock.artifact.onnx_inline import inline_external
from interlock.errors import InterlockError

onnx = pytest.importorskip("onnx", reason="the onnx package makes the files for these tests")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def model(nodes=None, initializers=(), opset=18, inputs=None, outputs=None, metadata=None):
    value = helper.make_tensor_value_info
    inputs = inputs or [value("x", TensorProto.FLOAT, [1, 4])]
    outputs = outputs or [value("y", TensorProto.FLOAT, [1, 4])]
    nodes = nodes or [helper.make_node("Relu", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="test", ir_version=8)
    for key, text in (metadata or {}).items():
        entry = made.metadata_props.add()
        entry.key, entry.value = key, text
    return made


def with_external(location="weights.bin", extra=(), offset="0", length="16"):
    made = model(
        nodes=[helper.make_node("Add", ["x", "w"], ["y"])],
        initializers=[numpy_helper.from_array(np.arange(4, dtype=np.float32)[None], "w")],
    )
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in [("location", location), ("offset", offset), ("length", length), *extra]:
        entry = tensor.external_data.add()
        entry.key, entry.value = key, text
    return made.SerializeToString()


def test_the_walker_agrees_with_the_onnx_package():
    made = model(metadata={"kp": "[1]"}, initializers=[numpy_helper.from_array(np.ones(4, np.float32), "w")])
    facts = read_graph(made.SerializeToString())
    assert [(t.name, t.dtype, t.shape) for t in facts.inputs] == [("x", "float32", (1, 4))]
    assert [(t.name, t.dtype, t.shape) for t in facts.outputs] == [("y", "float32", (1, 4))]
    assert facts.opset == 18
    assert facts.metadata == {"kp": "[1]"}
    assert facts.operators == {"Relu": 1}


def test_symbolic_and_unknown_sizes_are_told_apart():
    value = helper.make_tensor_value_info
    made = model(inputs=[value("x", TensorProto.FLOAT, ["batch", None, 3])])
    assert read_graph(made.SerializeToString()).inputs[0].shape == ("batch", None, 3)


@pytest.mark.parametrize("operator", ["RandomNormal", "RandomNormalLike", "RandomUniform", "Multinomial", "Bernoulli"])
def test_a_random_operator_is_found_even_inside_a_branch(operator):
    inside = helper.make_graph(
        [helper.make_node(operator, ["x"], ["b"])], "then", [], [helper.make_tensor_value_info("b", 1, [1, 4])]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=inside, else_branch=inside)
    facts = read_graph(model(nodes=[node]).SerializeToString())
    with pytest.raises(InterlockError) as caught:
        require_deterministic(facts, where="graph")
    assert caught.value.code == "random-operator"


@pytest.mark.parametrize(("training", "random"), [(True, True), (False, False)])
def test_dropout_counts_as_random_only_while_training(training, random):
    flag = numpy_helper.from_array(np.array(training), "t")
    ratio = numpy_helper.from_array(np.array(0.5, np.float32), "r")
    made = model(nodes=[helper.make_node("Dropout", ["x", "r", "t"], ["y"])], initializers=[flag, ratio])
    assert bool(read_graph(made.SerializeToString()).random_operators) is random


def test_dropout_whose_mode_is_computed_counts_as_random():
    made = model(nodes=[helper.make_node("Dropout", ["x", "", "x"], ["y"])])
    assert read_graph(made.SerializeToString()).random_operators


def test_external_data_is_listed():
    facts = read_graph(with_external())
    assert [(e.name, e.tensors, e.end) for e in facts.external] == [("weights.bin", 1, 16)]


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "a/../../b", "a\\b", "", "x\x00y", "./../z"])
def test_external_data_outside_the_folder_is_refused(location):
    with pytest.raises(InterlockError) as caught:
        read_graph(with_external(location=location))
    assert caught.value.code in {"path-escape", "onnx-external"}


@pytest.mark.parametrize("extra", [[("__class__", "x")], [("location", "again")], [("offset", "9")]])
def test_external_data_with_strange_keys_is_refused(extra):
    with pytest.raises(InterlockError) as caught:
        read_graph(with_external(extra=extra))
    assert caught.value.code == "onnx-external"


@pytest.mark.parametrize(("offset", "length"), [("-1", "16"), ("0", "1e3"), ("٣", "16"), ("0", "9" * 20)])
def test_senseless_places_of_external_data_are_refused(offset, length):
    with pytest.raises(InterlockError) as caught:
        read_graph(with_external(offset=offset, length=length))
    assert caught.value.code == "onnx-external"


def test_inlined_external_data_computes_the_same():
    weights = np.array([[1, 2, 3, 4]], dtype=np.float32)
    content = inline_external(with_external(), {"weights.bin": weights.tobytes()}.__getitem__)
    assert read_graph(content).external == ()
    session = onnxruntime.InferenceSession(content)
    np.testing.assert_array_equal(session.run(None, {"x": np.zeros((1, 4), np.float32)})[0], weights)


def test_external_data_that_is_too_short_is_refused():
    with pytest.raises(InterlockError) as caught:
        inline_external(with_external(), {"weights.bin": b"\0" * 12}.__getitem__)
    assert caught.value.code == "onnx-external"


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.float64])
def test_weights_that_are_not_numbers_are_refused(kind):
    made = model(initializers=[numpy_helper.from_array(np.array([1, np.nan], kind), "w")])
    with pytest.raises(InterlockError) as caught:
        read_graph(made.SerializeToString())
    assert caught.value.code == "weights-not-finite"


def test_an_infinite_mask_is_no_fault():
    made = model(initializers=[numpy_helper.from_array(np.array([-np.inf], np.float32), "mask")])
    read_graph(made.SerializeToString())


def test_whole_numbers_that_a_builder_would_narrow_are_counted():
    made = model(initializers=[numpy_helper.from_array(np.array([1, 2**62]), "end")])
    assert read_graph(made.SerializeToString()).wide_integers == 1


def refused_as(refusal, *codes):
    assert refusal.code in codes


WHOLE = model(initializers=[numpy_helper.from_array(np.ones((3, 4), np.float32), "w")]).SerializeToString()


@pytest.mark.parametrize("size", range(len(WHOLE) - 1))
def test_a_truncated_file_is_refused_or_read_but_never_crashes(size):
    try:
        read_graph(WHOLE[:size])
    except InterlockError as refusal:
        refused_as(refusal, "onnx-malformed", "weights-not-finite")


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_flipped_bytes_never_crash_the_walker(flips):
    content = bytearray(WHOLE)
    for at, value in flips:
        content[at] = value
    try:
        read_graph(bytes(content))
        inline_external(bytes(content), lambda name: b"")
    except InterlockError as refusal:
        refused_as(refusal, "onnx-malformed", "onnx-external", "path-escape", "weights-not-finite")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_noise_never_crashes_the_walker(content):
    try:
        read_graph(content)
    except InterlockError as refusal:
        refused_as(refusal, "onnx-malformed", "onnx-external", "path-escape", "weights-not-finite")
