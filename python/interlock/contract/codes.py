"""Every code with which contract, robot and binding refuse, and what to do about it. A published code never changes."""

from __future__ import annotations

from interlock.errors import Problem

HINTS: dict[str, str] = {
    # Text.
    "yaml-syntax": "this is not YAML; look at the line and the one before it",
    "yaml-empty": "the file holds no value; it may have been cut off",
    "yaml-too-large": "no contract or robot is this large; check that it is the right file",
    "yaml-too-deep": "no contract or robot nests this deep; check that it is the right file",
    "yaml-duplicate-key": "keep one of the two; which one counts must not be a matter of order",
    "yaml-anchor": "write the value out; anchors and aliases are not part of these files",
    "yaml-tag": "remove the tag; nothing a file says is executed",
    "yaml-directive": "remove the line that begins with %",
    "yaml-documents": "one file holds one document; split it",
    "yaml-key": "keys are words",
    "yaml-number": "write the number that is meant; quote it if it is a name",
    "yaml-text": "retype the line; invisible characters can make it read differently from what it says",
    # Shape of a document.
    "schema-version": "this version of interlock reads only the schema it names",
    "missing-key": "add the key: a known absence is written `none`, an unknown fact `ask`",
    "unknown-key": "remove the key or correct its spelling",
    "wrong-type": "write a value of the expected kind",
    "wrong-value": "write a value of the expected kind",
    "unanswered": "write the answer in place of `ask`; `freeze` also takes --answers FILE",
    "answer-unknown": "answers name a path whose value is `ask`",
    "unit-missing": "units are mandatory; write the one the numbers are in",
    "unit-unknown": "units are a closed list",
    "unit-twice": "write the unit once: in the key of a single number, or beside a vector",
    "path-outside": "paths stay inside the folder of the file that names them",
    # Joints and rows.
    "joint-twice": "each joint stands once in `order`",
    "joint-name": "joint names are letters, digits and _ . - / and are not the name of a quantity",
    "pattern-invalid": "patterns are regular expressions without lookaround, backreference or nested repetition",
    "pattern-unmatched": "correct the pattern; it must match the whole name of at least one joint",
    "joint-unmatched": "add a row that matches the whole name of the joint",
    "joint-matched-twice": "make the patterns exclude each other; every joint has exactly one row",
    "rows-differ": "give every row the same fields",
    "range-inverted": "write the lower end first",
    "epsilon-missing": "say what was added to std in training: `eps: 1e-8` for LeRobot, `eps: 0` for nothing",
    "statistics-missing": "a mean/std or min/max pair per joint stands in `joints.each`",
    "not-positive": "this number must be above zero",
    "length-mismatch": "give one number, or as many numbers as the term has elements",
    "like-unknown": "`like` names a block of this file that says the rest",
    # Contract against itself.
    "action-missing": "exactly one output has `role: action`",
    "default-missing": "give every joint row a `default`",
    "goal-missing": "declare under `goals` what the operator may ask, with unit and range",
    "goal-unused": "no input reads this goal; remove it, or add the input that does",
    "state-incomplete": "every recurrent input names the output that feeds it, and that output has `role: state`",
    "language-missing": "declare tokenizer, hash, template, padding side and length under `language`",
    "language-unused": "no input reads tokens; write `language: none`, or add the input that does",
    "shape-mismatch": "correct the shape, or the terms that make it",
    "dtype-mismatch": "correct the dtype; ONNX Runtime converts nothing",
    "tensor-missing": "the graph has other names; a renamed tensor is another contract",
    "tensor-unknown": "declare every tensor of the graph; a tensor nobody declared is a tensor nobody checked",
    "timing-contradiction": "correct `timing`",
    # Robot against itself.
    "pose-unknown": "add the pose under `poses`, in the units of the joints",
    "limit-without-source": "say under `joints.source` where the numbers come from",
    "limit-assumed": "an assumed limit is good enough for a simulated robot only; find the number",
    "limit-unenforced": "enforce the limit, or say under `not_applicable` why not",
    "limit-missing": "add the number to every joint row, or say under `not_applicable` why there is none",
    "limit-not-for-kind": "this kind of command cannot be held to that quantity",
    "damp-gain-missing": "give `damp` a `kd`, in N*m*s/rad per joint",
    "camera-device-twice": "two cameras cannot be one device",
    "estop-missing": "say what stops the robot outside this program, or `by: none` with a reason (simulated robots)",
    # Binding.
    "wrong-robot": "use the robot the policy was trained for; another robot is another contract",
    "joint-unknown": "the robot has no such joint; correct the name, or `name_suffix`",
    "joint-missing": "the policy leaves this joint without a command; it was trained on another robot",
    "unit-mismatch": "these units do not convert into each other",
    "calibration-mismatch": "calibrate again, or use the contract made with this calibration",
    "rate-mismatch": "the control period must be a whole number of driver periods",
    "camera-missing": "give the robot this camera, or correct the name",
    "camera-swapped": "an input that carries a camera's name must read that camera",
    "camera-twice": "two inputs read one camera",
    "camera-slow": "use a faster camera, or a contract trained at its rate",
    "image-mismatch": "a picture of another size, or a resize that training did not do, is another input",
    "sensor-missing": "this robot cannot feed the policy; an observation is never made up",
    "sensor-unit": "joint sensors give the units of `joints.unit`; imu: quat wxyz, ang_vel rad/s, lin_vel m/s",
    "frame-mismatch": "the term and the sensor must speak of the same frame",
    "kind-not-accepted": "the robot takes other commands than the policy gives",
    "kind-not-served": "this kind of action cannot be run yet",
    "not-served": "this is part of the schema but cannot be run yet",
    "gains-missing": "a PD law needs `kp` and `kd` in every joint row",
    "gain-above-maximum": "lower the gain, or find out what the drive really bears",
    "default-outside-limits": "the default pose lies outside the robot's position limits: check units and zero",
    "start-outside-limits": "the start pose lies outside the robot's position limits: check units and zero",
    "start-pose-missing": "say under `choices.start_pose` where the policy starts",
    "floating-base-hold": "a floating base falls when it is held: use damp, or policy with goal zero",
    "behaviour-impossible": "use one of the behaviours that can act in this case",
    "behaviour-not-served": "this robot cannot be commanded to do that",
    "budget-impossible": "raise the budget, or run inference less often",
    # Import of vendor files.
    "xml-syntax": "this is not XML; it may have been cut off",
    "xml-unsafe": "remove the DOCTYPE; entities are never expanded",
    "xml-too-large": "no robot model is this large; check that it is the right file",
    "mjcf-empty": "no hinge or slide joint was found; check that it is a robot model",
    "mjcf-unsupported": "write the model out flat, for example with `mj_saveLastXML`, and import that",
    "mjcf-disagree": "import files of one machine type; put the base file first",
}


def problem(code: str, where: str, *, expected: str = "", got: str = "", hint: str = "") -> Problem:
    """A problem with the hint of its code, unless a better one is known.

    Raises:
        KeyError: The code is not in the registry.
    """
    return Problem(code=code, where=where, expected=expected, got=got, hint=hint or HINTS[code])
