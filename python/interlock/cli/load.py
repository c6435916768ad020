"""Policy folder and robot file, opened, verified and bound."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interlock.artifact.folder import PolicyFolder
from interlock.cli.given import given_text
from interlock.contract.bind import bind
from interlock.contract.binding import Binding
from interlock.contract.text import load_contract, load_robot
from interlock.errors import InterlockError, Problem
from interlock.ports.reader import RobotNames
from interlock.release.verified import require_verified
from interlock.runtime.bound import Bound
from interlock.runtime.library import onnxruntime_library
from interlock.runtime.tokens import Tokenizer

LARGEST_TEXT = 4 << 20  # bytes of a robot, contract or answers file


def robot_text(path: Path) -> str:
    """A robot file's text. Raises `InterlockError` when there is none."""
    return given_text(
        path,
        kind="robot",
        limit=LARGEST_TEXT,
        hint="name it with --robot, or make one from a model",
        next="interlock robot import model.xml -o robot.yaml",
    )


@contextmanager
def named(policy: Path, robot: Path) -> Iterator[None]:
    """Puts what was typed into the next command of a refusal from steps that know neither name."""
    try:
        yield
    except InterlockError as refusal:
        refusal.next = refusal.next.replace("POLICY", str(policy)).replace("ROBOT", str(robot))
        raise


def load_binding(folder: PolicyFolder, robot: Path) -> Binding:
    """Binds the folder's contract to a robot file. Raises `InterlockError` with everything that does not fit."""
    contract = load_contract(folder.contract_text, "contract.yaml")
    binding = bind(contract, load_robot(robot_text(robot), robot.name))
    problems = edited_problems(folder, binding)
    if problems:
        raise InterlockError(problems=problems, next="interlock check POLICY --robot ROBOT")
    return binding


def edited_problems(folder: PolicyFolder, binding: Binding) -> list[Problem]:
    """Where a contract that was edited contradicts the checkpoint that it came with."""
    if not (folder.edited or folder.lock.contract_edited):
        return []
    from interlock.adapters.readers import READERS
    from interlock.release.contradict import folder_contradictions

    names = RobotNames(type=binding.robot.type, joints=binding.robot.names)
    return folder_contradictions(folder, binding.contract, READERS, names)


def load_bound(policy: Path, robot: Path) -> Bound:
    """Everything that a run needs. Raises `InterlockError` at the first thing that is missing or was changed."""
    folder = PolicyFolder.open(policy)
    return bound_from(folder, load_binding(folder, robot), robot)


def load_verified(policy: Path, robot: Path) -> Bound:
    """The same, and `verify` passed for exactly this graph, engine, contract and robot. Raises `not-verified`."""
    folder = PolicyFolder.open(policy)
    binding = load_binding(folder, robot)
    require_verified(folder, binding)
    return bound_from(folder, binding, robot)


def bound_from(folder: PolicyFolder, binding: Binding, robot: Path, *, graph: bytes | None = None) -> Bound:
    """The same from parts already loaded."""
    plan = binding.plan()
    return Bound(
        name=binding.contract.name,
        plan=plan,
        graph=folder.graph() if graph is None else graph,
        library=onnxruntime_library(),
        tokenizer=tokenizer_of(folder, binding),
        robot=binding.robot.as_json(),
        robot_folder=robot.resolve().parent,
    )


def next_command(command: str) -> str:
    """How the next command is shown."""
    return f"next: {command}"


def tokenizer_of(folder: PolicyFolder, binding: Binding) -> Tokenizer | None:
    """The tokenizer that the contract names; None for a policy without language."""
    language = binding.contract.language
    if language is None:
        return None
    name = str(language["tokenizer"])
    return Tokenizer(folder.read(name).decode("utf-8"), where=name, length=int(language["length"]))
