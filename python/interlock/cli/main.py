"""`interlock`: the verbs, their help, and how every way to end becomes an exit code."""

from __future__ import annotations

import sys
import tempfile
import traceback

import typer

from interlock import _core
from interlock.cli.screen import Screen
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

    verbs.register(app)
    screen = Screen(as_json="--json" in sys.argv[1:])
    try:
        ended = app(standalone_mode=False)
    except InterlockError as refusal:
        screen.refuse(refusal)
        sys.exit(int(refusal.exit))
    except _core.CoreError as refusal:
        wrapped = InterlockError(code=refusal.code, where=str(refusal), hint=refusal.hint)
        screen.refuse(wrapped)
        sys.exit(int(wrapped.exit))
    except typer.TyperException as misuse:
        _show(misuse)
        sys.exit(int(Exit.USAGE))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(int(Exit.INTERRUPTED))
    except BrokenPipeError:
        sys.exit(int(Exit.DONE))
    except Exception as fault:  # noqa: BLE001 - the one place that may: everything else is a fault of ours
        screen.refuse(_internal(fault))
        sys.exit(int(Exit.INTERNAL))
    sys.exit(ended if isinstance(ended, int) else int(Exit.DONE))


def _show(misuse: typer.TyperException) -> None:
    show = getattr(misuse, "show", None)
    if show is None:
        sys.stderr.write(f"{misuse}\n")
    else:
        show()


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
