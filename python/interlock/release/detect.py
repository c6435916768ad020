"""Which reader a checkpoint is for."""

from __future__ import annotations

import json
from collections.abc import Sequence

from interlock.artifact.source import MAYBE_PICKLES
from interlock.errors import Exit, InterlockError
from interlock.ports.reader import Reader, SourceView

_BARE = "onnx"  # reads any ONNX file: only where nobody knows more, or where a contract is given


def choose_reader(source: SourceView, readers: Sequence[Reader], wanted: str, *, source_path: str = "") -> Reader:
    """The one reader that claims a source.

    Args:
        source: What was pointed at.
        readers: All readers.
        wanted: Name of the one to use, empty to find out.
        source_path: As it was typed, for the next command.

    Raises:
        InterlockError: `reader-unknown`, `reader-unfit`, `reader-ambiguous`, `reader-missing`, `pickle-refused`.
    """
    typed = source_path or source.label
    if wanted:
        for each in readers:
            if each.name == wanted and each.claims(source):
                return each
            if each.name == wanted:
                raise InterlockError(
                    code="reader-unfit",
                    where=source.label,
                    expected=f"a checkpoint that {wanted} reads",
                    got=", ".join(source.names[:6]),
                    hint="leave --reader out to let the files decide",
                    next=f"interlock freeze {typed}",
                )
        raise InterlockError(
            code="reader-unknown",
            where=f"--reader {wanted}",
            expected=f"one of {', '.join(each.name for each in readers)}",
            got=wanted,
            hint="leave --reader out to let the files decide",
            exit=Exit.USAGE,
        )
    claims = {each.name: each.claims(source) for each in readers}
    able = [each for each in readers if claims[each.name]]
    if source.contract is not None and claims.get(_BARE):
        return next(each for each in able if each.name == _BARE)
    knowing = [each for each in able if each.name != _BARE]
    if len(knowing) > 1:
        shown = "; ".join(f"{each.name}: {claims[each.name]}" for each in knowing)
        raise InterlockError(
            code="reader-ambiguous",
            where=source.label,
            expected="one kind of checkpoint",
            got=shown,
            hint="point at one of them, or say which reader is meant",
            next=f"interlock freeze {typed} --reader {knowing[0].name}",
        )
    if able:
        return (knowing or able)[0]
    raise _nobody(source, typed)


def _nobody(source: SourceView, typed: str) -> InterlockError:
    pickles = [name for name in source.names if name.lower().endswith(MAYBE_PICKLES)]
    if pickles:
        return InterlockError(
            code="pickle-refused",
            where=", ".join(pickles[:3]),
            expected="safetensors or ONNX",
            got="files that may hold a pickle, which can run code",
            hint="export it to ONNX, or save its weights as safetensors, where it was trained",
            next=f"interlock freeze {typed}",
        )
    graphs = source.ending(".onnx")
    got = f"{len(graphs)} ONNX files: {', '.join(graphs[:4])}" if graphs else _declared(source)
    return InterlockError(
        code="reader-missing",
        where=source.label,
        expected="our own checkpoint, unitree deploy.yaml, holosoma ONNX, or one ONNX file with --contract",
        got=got,
        hint="point at one ONNX file" if graphs else "export the policy to ONNX and write its contract",
        next=f"interlock freeze {graphs[0]}" if graphs else "interlock freeze POLICY.onnx --contract contract.yaml",
    )


def _declared(source: SourceView) -> str:
    """What a `config.json` says it is, as far as it can be told safely."""
    if "config.json" in source.names:
        try:
            config = json.loads(source.read("config.json"))
        except (ValueError, RecursionError):
            return "config.json that is no JSON"
        if isinstance(config, dict):
            return f"a checkpoint of type {str(config.get('type'))[:40]!r}, which no reader reads"
    return ", ".join(source.names[:6])
