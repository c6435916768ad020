"""preprocess, infer and decode through the boundary; the worker answers the same."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_plan as tiny

from interlock import _core


def test_joints_are_reordered_on_the_way_in_and_out() -> None:
    pipeline = _core.Pipeline(tiny.text(tiny.plan()), tiny.graph(), tiny.library())
    tensors = pipeline.preprocess(tiny.state((0.3, 0.4)), [])
    np.testing.assert_array_equal(tensors["obs"], np.float32([[0.4, 0.3]]))
    targets = pipeline.infer(tiny.state((0.3, 0.4)), [])
    np.testing.assert_allclose(targets, [[0.3 - 0.01, 0.4 + 0.02]], atol=1e-8)
    np.testing.assert_array_equal(pipeline.last_outputs()["action"], np.float32([[[0.02, -0.01]]]))


def test_decode_takes_outputs_of_another_engine() -> None:
    pipeline = _core.Pipeline(tiny.text(tiny.plan()), None, tiny.library())
    pipeline.preprocess(tiny.state((0.3, 0.4)), [])
    targets = pipeline.decode({"action": np.float32([[[1.0, 2.0]]])})
    np.testing.assert_allclose(targets, [[2.3, 1.4]])


@pytest.mark.parametrize(
    ("outputs", "code"),
    [
        ({"action": np.full((1, 1, 2), np.nan, np.float32)}, "not-finite"),
        ({"action": np.zeros((1, 3), np.float32)}, "dimension"),
        ({}, "dimension"),
    ],
)
def test_unusable_outputs_are_refused(outputs, code) -> None:
    pipeline = _core.Pipeline(tiny.text(tiny.plan()), None, tiny.library())
    pipeline.preprocess(tiny.state(), [])
    with pytest.raises(_core.CoreError) as refusal:
        pipeline.decode(outputs)
    assert refusal.value.code == code


def test_a_graph_of_another_shape_is_refused_at_construction() -> None:
    with pytest.raises(_core.CoreError) as refusal:
        _core.Pipeline(tiny.text(tiny.plan()), tiny.graph(rows=3), tiny.library())
    assert refusal.value.code == "engine-input"


def test_a_plan_that_contradicts_itself_is_refused() -> None:
    wrong = tiny.plan(tick_ns=0)
    for use in (_core.check_plan, lambda text: _core.Pipeline(text, None, tiny.library())):
        with pytest.raises(_core.CoreError) as refusal:
            use(tiny.text(wrong))
        assert refusal.value.code == "bad-plan"


def test_the_engine_says_what_it_is() -> None:
    engine = _core.Engine(tiny.graph(), tiny.library())
    assert engine.inputs() == [("obs", "float32", [1, 2])]
    assert engine.outputs() == [("action", "float32", [1, 1, 2])]
    assert set(engine.effective_providers()) == {"CPUExecutionProvider"}
    np.testing.assert_array_equal(
        engine.run({"obs": np.zeros((1, 2), np.float32)})["action"][0, 0, 0], np.float32(0.02)
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((b"no graph", None), "engine-graph"),
        ((None, "/nonexistent/libonnxruntime.so"), "engine-library"),
    ],
)
def test_a_wrong_graph_or_library_is_refused(arguments, code) -> None:
    with pytest.raises(_core.CoreError) as refusal:
        _core.Engine(arguments[0] or tiny.graph(), arguments[1] or tiny.library())
    assert refusal.value.code == code
