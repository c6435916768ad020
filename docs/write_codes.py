"""Writes the page of codes beside this file; `python docs/write_codes.py` after a change of the codes."""  # noqa: INP001

from pathlib import Path

from interlock import _core
from interlock.cli.show import CORE_CODES
from interlock.contract.codes import HINTS

PAGE = Path(__file__).with_name("codes.md")


def page() -> str:
    """The whole page."""
    numbers = [f"| {number} | `{word}` | {CORE_CODES[word]} |" for number, word in sorted(_core.code_words().items())]
    hints = [f"| `{code}` | {hint} |" for code, hint in HINTS.items()]
    return "\n".join(
        [
            "# Codes",
            "",
            "Every refusal, loss and limit has a stable code. `interlock show CODE` says what it means. A refusal that",
            "is not listed here prints its own hint. Made by `python docs/write_codes.py`.",
            "",
            "## On the tick",
            "",
            "What the guard, the schedule and the watchers say about one tick. The number stands in recordings.",
            "",
            "| number | code | what it means, what to look at |",
            "|---|---|---|",
            *numbers,
            "",
            "## Contract, robot and binding",
            "",
            "| code | hint |",
            "|---|---|",
            *hints,
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
