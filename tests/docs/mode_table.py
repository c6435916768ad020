"""The core's table of modes, read from its source: (mode, event) -> mode, `·` for nothing to do, `refused`."""

from __future__ import annotations

import re

from pages import text_of

SOURCE = "crates/interlock-core/src/mode.rs"
# As people see them, in the order of the page.
EVENTS = {
    "Arm": "`arm`",
    "Start": "`start`",
    "Stop": "`stop`",
    "Recover": "`recover`",
    "Disarm": "`disarm`",
    "Takeover": "`takeover`",
    "Release": "`release`",
    "Quit": "`quit`",
    "TerminalClosed": "terminal closed",
    "PolicyLost": "policy lost",
    "GoalLost": "goal lost",
    "DriverLost": "driver lost",
    "Degrade": "lower level takes over",
    "StopDone": "the stop has ended",
}


def modes() -> list[str]:
    return re.findall(r"^    (\w+) = \d+, \"\w+\";$", text_of(SOURCE), re.MULTILINE)


def steps() -> dict[tuple[str, str], str]:
    body = text_of(SOURCE).split("pub const fn next")[1]
    body = re.sub(r"//.*", "", body)
    found: dict[tuple[str, str], str] = {}
    for mode, arms in re.findall(r"M::(\w+) => match event \{(.*?)\n        \},", body, re.DOTALL):
        for events, step in re.findall(r"((?:E::\w+(?:\(_\))?[\s|]*)+)=>\s*(To\(M::\w+\)|Stay|Refuse)", arms):
            for event in re.findall(r"E::(\w+)", events):
                found[mode, event] = {"Stay": "·", "Refuse": "refused"}.get(step) or step[6:-1]
    return found


def grid() -> list[list[str]]:
    """Rows of the page's table."""
    table = steps()
    return [[words, *(table[mode, event] for mode in modes())] for event, words in EVENTS.items()]


def text() -> str:
    head = ["event", *modes()]
    rows = [head, ["---"] * len(head), *grid()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    print(text())
