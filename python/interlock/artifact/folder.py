"""`NAME.policy/`: the only thing that is handed around. Relocatable; every byte is hashed as it is used."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from interlock.errors import Exit, InterlockError

from .evidence import Evidence, Verdict
from .files import LARGEST_FILE, list_files, read_file, sha256, staged_folder, write_file
from .lock import LOCK_FILE as LOCK
from .lock import Lock, LockedFile
from .onnx_inline import inline_external

SUFFIX = ".policy"
CONTRACT = "contract.yaml"
GRAPH = "graph/policy.onnx"
_OWN = ("source/", "samples/", "graph/", "engines/", "evidence/")
_LEFTOVER = ".tmp-"  # of a write that a crash interrupted; never read


@dataclass(slots=True)
class PolicyFolder:
    """An opened policy folder.

    Attributes:
        path: Where it lies now.
        lock: What `lock.json` said when it was opened.
        contract_bytes: The contract that is used. It is the only file that a person edits.
    """

    path: Path
    lock: Lock
    contract_bytes: bytes
    _lock_sha256: str
    _rebuilding: tuple[str, ...] = ()
    _cache: dict[str, bytes] = field(default_factory=dict)

    @staticmethod
    def open(path: Path, *, rebuilding: tuple[str, ...] = ()) -> PolicyFolder:
        """Opens a folder and verifies every file that `lock.json` lists.

        Args:
            path: The folder.
            rebuilding: Prefixes that the caller is about to write anew, and that may therefore be damaged.

        Raises:
            InterlockError: `policy-missing`, `lock-malformed`, `file-changed`, `file-missing`, `file-unlisted`,
                `file-kind`, `path-escape`.
        """
        root = path.resolve()
        if not root.is_dir():
            raise InterlockError(
                code="policy-missing",
                where=str(path),
                expected="a policy folder",
                got="a file" if root.exists() else "nothing",
                hint="a policy folder is made from a checkpoint",
                next=f"interlock freeze SOURCE -o {path}",
            )
        present = set(list_files(root))
        if LOCK not in present:
            raise InterlockError(
                code="policy-missing",
                where=str(path),
                expected=f"a policy folder with {LOCK}",
                got="a folder without it",
                hint="a policy folder is made from a checkpoint",
                next=f"interlock freeze {path}",
            )
        written = read_file(root, LOCK, limit=64 << 20)
        contract = read_file(root, CONTRACT, limit=4 << 20)
        folder = PolicyFolder(root, Lock.parse(written), contract, sha256(written), rebuilding)
        folder._verify(present)
        return folder

    def _is_rebuilt(self, name: str) -> bool:
        """Whether the step that opened the folder is about to write this anew."""
        return any(name.startswith(prefix) for prefix in self._rebuilding)

    def _verify(self, present: set[str]) -> None:
        listed = set(self.lock.files)
        for name in sorted(present - listed):
            leftover = name.rpartition("/")[2].startswith(_LEFTOVER)
            if name.startswith(_OWN) and not self._is_rebuilt(name) and not leftover:
                raise InterlockError(
                    code="file-unlisted",
                    where=name,
                    expected=f"only files that {LOCK} lists",
                    got="one more",
                    hint="nothing that was not hashed may lie here; move it away",
                )
        for name in sorted(listed):
            if name != CONTRACT and not self._is_rebuilt(name):
                self._check(name)

    def _check(self, name: str) -> bytes:
        expected = self.lock.files[name]
        content = read_file(self.path, name, limit=min(expected.bytes, LARGEST_FILE) + 1)
        if hashlib.sha256(content).hexdigest() != expected.sha256:
            raise InterlockError(
                code="file-changed",
                where=name,
                expected=f"sha256 {expected.sha256[:16]}…",
                got=f"{sha256(content)[:16]}…",
                hint="the file is not the one that was frozen, built or judged; bring it back or run the step again",
                next=f"interlock {_maker(name)}",
            )
        return content

    @property
    def contract_text(self) -> str:
        """The contract as text.

        Raises:
            InterlockError: `contract-encoding`.
        """
        try:
            return self.contract_bytes.decode("utf-8")
        except UnicodeDecodeError:
            raise InterlockError(
                code="contract-encoding",
                where=CONTRACT,
                expected="UTF-8 text",
                got="other bytes",
                hint="save it as UTF-8 in your editor",
            ) from None

    @property
    def edited(self) -> bool:
        """Whether a person changed the contract since a step last used it."""
        recorded = self.lock.files.get(CONTRACT)
        return recorded is None or recorded.sha256 != sha256(self.contract_bytes)

    def names(self, prefix: str = "") -> tuple[str, ...]:
        """Listed files below a prefix."""
        return tuple(sorted(name for name in self.lock.files if name.startswith(prefix)))

    def digest(self, prefix: str) -> dict[str, str]:
        """Hash of every listed file below a prefix."""
        return {name: self.lock.files[name].sha256 for name in self.names(prefix)}

    def read(self, name: str) -> bytes:
        """Verified bytes of a listed file.

        Raises:
            InterlockError: `file-missing`, `file-changed`.
        """
        if name == CONTRACT:
            return self.contract_bytes
        if name not in self.lock.files:
            raise InterlockError(
                code="file-missing",
                where=name,
                expected=f"a file of {self.path.name}",
                got="none of that name",
                hint=f"there are: {', '.join(self.names()) or 'none'}",
                next=f"interlock {_maker(name)}",
            )
        return self._check(name)

    def graph(self, name: str = GRAPH) -> bytes:
        """A graph with its external data inside, every byte verified: what an engine is to load.

        Raises:
            InterlockError: As `read`; `onnx-external`, `onnx-malformed`.
        """
        if name not in self._cache:
            beside = name.rpartition("/")[0]
            self._cache[name] = inline_external(self.read(name), lambda other: self.read(f"{beside}/{other}"))
        return self._cache[name]

    def evidence(self, gate: str) -> Evidence | None:
        """Evidence of a gate; None where it never ran, or where it is damaged and is being written anew."""
        name = f"evidence/{gate}.json"
        if name not in self.lock.files:
            return None
        try:
            return Evidence.parse(self.read(name), where=name)
        except InterlockError:
            if self._is_rebuilt(name):
                return None
            raise

    def due(self, gate: str, *, subject: Mapping[str, str], inputs: Mapping[str, str]) -> str:
        """Why a gate has to run; empty while its evidence holds for exactly these hashes.

        Evidence that is not PASS never holds: the gate runs again.
        """
        evidence = self.evidence(gate)
        if evidence is None:
            return "never run"
        if evidence.verdict is not Verdict.PASS:
            return f"was {evidence.verdict.value}"
        return _difference(evidence.subject, subject) or _difference(evidence.inputs, inputs)

    def commit(
        self,
        files: Mapping[str, bytes],
        *,
        evidence: Evidence | None = None,
        replacing: tuple[str, ...] = (),
        lock: Lock | None = None,
    ) -> PolicyFolder:
        """Writes files and then the lock that makes them count; returns the folder as it is now.

        A crash before the last write leaves a folder that is refused, never one that is believed.

        Args:
            files: Content by name.
            evidence: Written as `evidence/GATE.json`.
            replacing: Prefixes whose other files go away.
            lock: Takes the place of the old one; its `files` are filled in here.

        Raises:
            InterlockError: `policy-busy` when another command writes at the same time.
        """
        written = dict(files)
        if evidence is not None:
            written[f"evidence/{evidence.gate}.json"] = evidence.content()
        with _exclusive(self.path):
            if sha256(read_file(self.path, LOCK, limit=64 << 20)) != self._lock_sha256:
                raise _busy(self.path)
            present = (*self.lock.files, *list_files(self.path))
            gone = {name for name in present if any(map(name.startswith, replacing))} - set(written)
            table = {name: entry for name, entry in self.lock.files.items() if name not in gone}
            table |= {name: LockedFile(sha256=sha256(each), bytes=len(each)) for name, each in written.items()}
            contract = written.get(CONTRACT, self.contract_bytes)
            edited = (lock or self.lock).contract_edited or (self.edited and CONTRACT not in written)
            table[CONTRACT] = LockedFile(sha256=sha256(contract), bytes=len(contract))
            update = {"files": table, "contract_edited": edited}
            new = (lock or self.lock).model_copy(update=update)
            for name, each in written.items():
                write_file(self.path, name, each)
            write_file(self.path, LOCK, new.content())
            for name in sorted(gone):
                (self.path / name).unlink(missing_ok=True)
        return PolicyFolder(self.path, new, contract, sha256(new.content()))


def create(target: Path, *, lock: Lock, files: Mapping[str, bytes]) -> PolicyFolder:
    """Makes a new policy folder: complete, or not there at all."""
    table = {name: LockedFile(sha256=sha256(each), bytes=len(each)) for name, each in files.items()}
    complete = lock.model_copy(update={"files": table})
    with staged_folder(target) as staging:
        for name, each in files.items():
            if len(each) > LARGEST_FILE:
                raise InterlockError(
                    code="file-size",
                    where=name,
                    expected=f"at most {LARGEST_FILE} bytes",
                    got=f"{len(each)}",
                    hint="split the weights over several files",
                )
            write_file(staging, name, each)
        write_file(staging, LOCK, complete.content())
    return PolicyFolder(target.resolve(), complete, files[CONTRACT], sha256(complete.content()))


def _difference(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    for key in sorted({*old, *new}):
        if key not in old or key not in new:
            return f"{key} is {'new' if key in new else 'gone'}"
        if old[key] != new[key]:
            return f"{key} changed"
    return ""


def _maker(name: str) -> str:
    """The command that writes a file."""
    if name.startswith(("graph/", "engines/")):
        return "build POLICY"
    if name.startswith("evidence/"):
        return f"{name.removeprefix('evidence/').partition('.')[0]} POLICY"
    return "freeze SOURCE"


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(path) from None
        yield
    finally:
        os.close(handle)


def _busy(path: Path) -> InterlockError:
    return InterlockError(
        code="policy-busy",
        where=str(path),
        expected="one command at a time",
        got="another one that writes to this folder",
        hint="wait for it and run the command again",
        exit=Exit.CONFLICT,
    )
