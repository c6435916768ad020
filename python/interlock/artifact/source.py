"""What a person points `freeze` at: looked at file by file, hashed as it is read, nothing in it executed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from interlock.errors import InterlockError
from interlock.ports.reader import GraphFacts, RobotNames, SourceView

from .files import list_files, read_file, sha256
from .onnx_file import read_graph

PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".npy")
MAYBE_PICKLES = (*PICKLES, ".bin", ".zip")  # also names of plain weights beside an ONNX file
_EXPORTED = "exported"  # Isaac Lab's exporter puts the graph here and its side file in a folder beside it


@dataclass(slots=True)
class Source:
    """An opened checkpoint.

    Attributes:
        root: Folder that every name is relative to.
        label: Name of what was pointed at, without suffix.
        names: Every regular file that may be looked at.
    """

    root: Path
    label: str
    names: tuple[str, ...]
    _content: dict[str, bytes] = field(default_factory=dict)
    _graphs: dict[str, GraphFacts] = field(default_factory=dict)

    @staticmethod
    def open(path: Path) -> Source:
        """Opens a folder, or a single file with what stands beside it.

        Raises:
            InterlockError: `source-missing`, `source-empty`, `pickle-refused`.
        """
        place = path.resolve()
        if not place.exists():
            raise InterlockError(
                code="source-missing",
                where=str(path),
                expected="a checkpoint folder or an ONNX file",
                got="nothing",
                hint="check the path",
                next="interlock freeze SOURCE",
            )
        if place.is_file():
            return _single(place)
        root = place
        if place.name == _EXPORTED and (place.parent / "params").is_dir():
            root = place.parent
        names = list_files(root, links="skip")
        if not names:
            raise InterlockError(
                code="source-empty",
                where=str(path),
                expected="the files of a checkpoint",
                got="an empty folder, or links only",
                hint="copy the files themselves; links are not followed",
                next="interlock freeze SOURCE",
            )
        return Source(root, root.name.removesuffix(".policy"), tuple(names))

    def read(self, name: str) -> bytes:
        """Bytes of a file, read once: what is hashed is what is used.

        Raises:
            InterlockError: `pickle-refused`, `file-missing`, `file-kind`, `file-size`, `path-escape`.
        """
        if name not in self._content:
            refuse_pickle(name)
            content = read_file(self.root, name)
            if not content:
                raise InterlockError(
                    code="file-empty", where=name, expected="content", got="0 bytes", hint="copy the checkpoint again"
                )
            self._content[name] = content
        return self._content[name]

    def graph(self, name: str) -> GraphFacts:
        """Facts of an ONNX file; its external data must lie inside the source and be whole.

        Raises:
            InterlockError: As `read_graph`; `onnx-external`.
        """
        if name not in self._graphs:
            facts = read_graph(self.read(name))
            folder = name.rpartition("/")[0]
            for each in facts.external:
                beside = f"{folder}/{each.name}" if folder else each.name
                size = len(read_file(self.root, beside))
                if size < each.end:
                    raise InterlockError(
                        code="onnx-external",
                        where=beside,
                        expected=f"at least {each.end} bytes, for {each.tensors} tensors",
                        got=f"{size}",
                        hint="the graph and its external data are not of the same export",
                    )
            self._graphs[name] = facts
        return self._graphs[name]

    def view(self, *, robot: RobotNames | None, contract: str | None) -> SourceView:
        """What readers may see."""
        return SourceView(
            label=self.label,
            names=self.names,
            read=self.read,
            graph=self.graph,
            robot=robot,
            contract=contract,
        )

    def digests(self, names: tuple[str, ...]) -> dict[str, str]:
        """Hashes of the files that the policy consists of."""
        return {name: sha256(self.read(name)) for name in names}


def refuse_pickle(name: str) -> None:
    """Refuses to open what may hold a pickle.

    Raises:
        InterlockError: `pickle-refused`.
    """
    if name.lower().endswith(PICKLES):
        raise InterlockError(
            code="pickle-refused",
            where=name,
            expected="safetensors or ONNX",
            got="a file that may hold a pickle, which can run code",
            hint="export it to ONNX, or save its weights as safetensors, where it was trained",
            next="interlock freeze SOURCE",
        )


def _single(place: Path) -> Source:
    refuse_pickle(place.name)
    if place.suffix.lower() != ".onnx":
        raise InterlockError(
            code="source-kind",
            where=place.name,
            expected="a checkpoint folder or an ONNX file",
            got=f"a file that ends in {place.suffix or 'nothing'}",
            hint="point at the folder of the checkpoint",
            next=f"interlock freeze {place.parent}",
        )
    facts = read_graph(read_file(place.parent, place.name))
    beside = tuple(each.name for each in facts.external)
    return Source(place.parent, place.stem, (place.name, *beside))
