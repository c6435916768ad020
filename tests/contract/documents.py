"""The documents that the tests of this folder begin from, and how they are made wrong."""

from pathlib import Path

from interlock.contract.edit import answer

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DATA = Path(__file__).with_name("data")

G1_ANSWERS = {"driver.network": "eth0", "safe.estop.bound_ms": 50}


def g1_contract() -> str:
    return (EXAMPLES / "g1" / "contract.yaml").read_text(encoding="utf-8")


def g1_robot() -> str:
    return answer((EXAMPLES / "g1" / "robot.yaml").read_text(encoding="utf-8"), G1_ANSWERS, "robot.yaml")


def so101_contract() -> str:
    return (EXAMPLES / "so101" / "contract.yaml").read_text(encoding="utf-8")


def so101_robot() -> str:
    return (EXAMPLES / "so101" / "robot.yaml").read_text(encoding="utf-8")


def arm_contract() -> str:
    return (DATA / "reach_block.yaml").read_text(encoding="utf-8")


def arm_robot() -> str:
    return (DATA / "tabletop_arm.yaml").read_text(encoding="utf-8")


PAIRS = {
    "g1": (g1_contract, g1_robot),
    "so101": (so101_contract, so101_robot),
    "arm": (arm_contract, arm_robot),
}


def wrong(text: str, *changes: tuple[str, str]) -> str:
    """The text with parts replaced; each part must stand there."""
    for old, new in changes:
        assert old in text, f"the test's own premise is gone: {old!r}"
        text = text.replace(old, new)
    return text
