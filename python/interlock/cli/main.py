"""`interlock`: the verbs, their help, and how every way to end becomes an exit code."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import traceback
from dataclasses import replace

import typer

from interlock import _core
from interlock.cli.screen import Screen
from interlock.contract.codes import HINTS
from interlock.errors import Exit, InterlockError

EPILOG = """Start with `interlock go demo`: a policy from its checkpoint to a guarded simulated arm, in one command."""

app = typer.Typer(
    name="interlock",
    help="Takes a trained robot policy from its checkpoint to a guarded robot, and keeps it safe there.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run() -> None:
    """Entry point: runs the command line and exits with the design's codes; no traceback reaches a user."""
    from interlock.cli import verbs

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # no name and no locale may end a command
    verbs.register(app)
    screen = Screen(as_json="--json" in sys.argv[1:])
    try:
        ended = app(standalone_mode=False)
    except InterlockError as refusal:
        sys.exit(_refuse(screen, refusal))
    except _core.CoreError as refusal:
        sys.exit(_refuse(screen, InterlockError(code=refusal.code, where=str(refusal), hint=refusal.hint)))
    except typer.TyperException as misuse:
        sys.exit(_misused(screen, misuse))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(int(Exit.INTERRUPTED))
    except BrokenPipeError:
        _let_go_of_the_pipe()
        sys.exit(int(Exit.DONE))
    except OSError as cause:
        sys.exit(_refuse(screen, _internal(cause) if cause.filename is None else _inaccessible(cause)))
    except Exception as fault:  # noqa: BLE001 - the one place that may: everything else is a fault of ours
        sys.exit(_refuse(screen, _internal(fault)))
    sys.exit(ended if isinstance(ended, int) else int(Exit.DONE))


def _let_go_of_the_pipe() -> None:
    """Who read what we wrote has seen enough: what is still in the buffer goes nowhere, without a word at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _refuse(screen: Screen, refusal: InterlockError) -> int:
    """Shows a refusal, whole: whatever was raised deep down, it ends with a hint and the next command."""
    refusal.problems = [
        each if each.hint else replace(each, hint=HINTS.get(each.code) or f"correct this and run {_verb()} again")
        for each in refusal.problems
    ]
    refusal.next = refusal.next or f"{_verb()} --help"
    screen.refuse(refusal)
    return int(refusal.exit)


def _verb() -> str:
    """The command that was typed, without its arguments."""
    words = ["interlock"]
    for word in sys.argv[1:]:
        if word not in {*(each.name for each in app.registered_commands), "robot", "import"}:
            break
        words.append(word)
    return " ".join(words)


def _inaccessible(cause: OSError) -> InterlockError:
    """The operating system refused a file or folder."""
    return InterlockError(
        code="file-access",
        where=os.fsdecode(cause.filename) if isinstance(cause.filename, (str, bytes)) else str(cause.filename),
        expected="a file or folder that can be used",
        got=cause.strerror or type(cause).__name__,
        hint="check its name, its owner and permissions, and the space that is left",
    )


def _misused(screen: Screen, misuse: typer.TyperException) -> int:
    """The parser's own words for a person, the same facts for a machine."""
    show = getattr(misuse, "show", None)
    said = misuse.format_message() if hasattr(misuse, "format_message") else str(misuse)
    if screen.as_json or show is None:
        hint = f"see {_verb()} --help"
        return _refuse(screen, InterlockError(code="usage", where=_verb(), got=said, hint=hint, exit=Exit.USAGE))
    show()
    return int(Exit.USAGE)


def _internal(fault: Exception) -> InterlockError:
    with tempfile.NamedTemporaryFile("w", prefix="interlock-fault-", suffix=".txt", delete=False) as details:
        details.write("".join(traceback.format_exception(fault)))
    return InterlockError(
        code="internal",
        where="interlock",
        got=f"{type(fault).__name__}: {fault}".splitlines()[0],
        hint=f"this is a fault of the program; please report it with {details.name}",
        exit=Exit.INTERNAL,
    )
