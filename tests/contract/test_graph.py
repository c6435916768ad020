"""A graph whose tensors are not those of the contract is refused, tensor by tensor."""

import pytest
from documents import arm_contract

from interlock.contract.expand_contract import expand_contract
from interlock.contract.graph import check_graph
from interlock.contract.text import load_contract

INPUTS = [("image", "float32", [1, 3, 96, 96]), ("state", "float32", [1, 4]), ("tokens", "int64", [1, 8])]
OUTPUTS = [("actions", "float32", [1, 16, 4])]


def codes(inputs, outputs):
    return [each.code for each in check_graph(expand_contract(load_contract(arm_contract())), inputs, outputs)]


def test_the_graph_that_was_promised_is_accepted():
    assert codes(INPUTS, OUTPUTS) == []
    assert codes(list(reversed(INPUTS)), OUTPUTS) == []


@pytest.mark.parametrize(
    ("inputs", "outputs", "expected"),
    [
        (INPUTS[:2], OUTPUTS, ["tensor-missing"]),
        ([*INPUTS, ("mask", "int64", [1, 8])], OUTPUTS, ["tensor-unknown"]),
        ([("img", "float32", [1, 3, 96, 96]), *INPUTS[1:]], OUTPUTS, ["tensor-missing", "tensor-unknown"]),
        ([("image", "float32", [1, 96, 96, 3]), *INPUTS[1:]], OUTPUTS, ["shape-mismatch"]),
        ([("image", "float32", ["batch", 3, 96, 96]), *INPUTS[1:]], OUTPUTS, ["shape-mismatch"]),
        ([*INPUTS[:2], ("tokens", "int32", [1, 8])], OUTPUTS, ["dtype-mismatch"]),
        (INPUTS, [("actions", "float16", [1, 4, 16])], ["dtype-mismatch", "shape-mismatch"]),
        (INPUTS, [], ["tensor-missing"]),
    ],
)
def test_a_tensor_that_is_missing_extra_renamed_or_of_another_kind_is_named(inputs, outputs, expected):
    assert codes(inputs, outputs) == expected
