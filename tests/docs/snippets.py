"""Runs the console blocks of a page in one shell, one after another, and holds their output against what is shown.

`$ ` begins a command, a trailing backslash continues it, `# exit N` behind it is the exit code that it must have (0
without). The lines below are the output: `…` inside a line stands for anything, a line of nothing but `…` for any lines.
Lines that say that a step has begun (they end in ` …`) are not compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from pages import blocks

MARK = "--ended-with--"


@dataclass
class Command:
    """One command of a page, the exit code it must have and the output that is shown for it."""

    text: str
    line: int
    code: int = 0
    shown: list[str] = field(default_factory=list)


def commands(page: str) -> list[Command]:
    found: list[Command] = []
    for block in blocks(page, "console"):
        is_continued = False
        for number, line in enumerate(block.text.splitlines(), block.line):
            if is_continued:
                found[-1].text += f"\n{line}"
            elif line.startswith("$ "):
                found.append(Command(line[2:], number))
            else:
                found[-1].shown.append(line)
                continue
            is_continued = found[-1].text.endswith("\\")
            if (code := re.search(r"# exit (\d+)$", found[-1].text)) is not None:
                found[-1].code = int(code[1])
    return found


def fits(shown: list[str], said: str) -> bool:
    """Whether the output is as shown."""
    pattern = ""
    for line in shown:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.rstrip().split("…")) + r" *\n"
    text = "".join(f"{line.rstrip()}\n" for line in said.splitlines() if not line.endswith(" …"))
    return re.fullmatch(pattern, text) is not None


def run(page: str, folder: Path) -> None:
    """Runs every command of a page in `folder`. Raises AssertionError at the first that does not do what is shown."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "400"}
    shell = subprocess.Popen(
        ["bash"], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, errors="replace",
    )  # fmt: skip
    assert shell.stdin is not None
    assert shell.stdout is not None
    with shell:
        for command in commands(page):
            shell.stdin.write(f"{{ {command.text}\n}} </dev/null\nended=$?; echo; echo {MARK}$ended\n")
            shell.stdin.flush()
            said = []
            for line in shell.stdout:
                if line.startswith(MARK):
                    code = int(line.removeprefix(MARK))
                    break
                said.append(line)
            else:
                raise AssertionError(f"line {command.line}: the shell ended: {''.join(said)}")
            text = "".join(said).removesuffix("\n")
            assert code == command.code, f"line {command.line}: {command.text}: ended with {code}:\n{text}"
            if command.shown:
                shown = "\n".join(command.shown)
                assert fits(command.shown, text), (
                    f"line {command.line}: {command.text}: shows\n{shown}\nand says\n{text}"
                )
        shell.stdin.close()
