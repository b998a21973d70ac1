"""Sources: where files, directories, installed packages and repositories of a hub are, and what they contain."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine import digest
from engine.digest import Digest
from engine.errors import StepError
from engine.kit.checkpoints import model_files, weights
from engine.store.stat_cache import Row, is_settled, settled_row, stat_row
from engine.system import regular
from engine.system.file_systems import tells_changes

if TYPE_CHECKING:
    from engine.builder.job import SourceName
    from engine.step import Source
    from engine.store.store import Store

_T = TypeVar("_T")
_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
_CHANGED = 4
"""The index of the change time in a stat row."""
_MOST_READINGS = 4
"""How often a source is read in a row while a program adds files to the folders of the source."""


@dataclass(frozen=True)
class Resolved:
    """The location of a source, and the digest or commit of the source's content.

    `row` is the source's value in the key: the digest of the content, or `hf:REPO@COMMIT`. `location` is the path or
    name that `Step.run` receives. `files` are the files and folders that were read to compute `row`; `row` stays valid
    as long as the stat rows of `files` stay the same. `parts` are the digests of the image files among samples by their
    names: each is a row of the key beside `row`, which stands for the list of these files.
    """

    row: str
    location: Path | str
    files: tuple[Path, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)

    def rows(self, name: str) -> dict[str, str]:
        """Return the values of the source and of its parts in a key, where the source is the input `name`."""
        return {name: self.row, **{f"{name}/{part}": value for part, value in self.parts.items()}}


@dataclass
class _Reading:
    """A source, with the stat rows that its files had when their content was read, and the digests of the files."""

    resolved: Resolved
    rows: Mapping[Path, Row] = field(default_factory=dict)
    digests: Mapping[Path, Digest] = field(default_factory=dict)


class SourceReadings:
    """The sources that a build has read. A build reads each source only once."""

    def __init__(
        self,
        store: Store,
        *,
        refresh: bool = False,
        pinned: Mapping[str, str] | None = None,
        placed: Mapping[SourceName, Resolved] | None = None,
    ) -> None:
        """`pinned` maps "hf:REPO@REVISION" to a commit, so that the hub is not asked for the revision's commit.

        With `refresh`, the hub is asked for the commits that earlier builds have learnt. `placed` are sources that need
        no reading: nobody else writes where they are.
        """
        self._store = store
        self._commits = {**({} if refresh else store.notes.get("resolutions", "hub")), **(pinned or {})}
        self._known = {source: _Reading(resolved) for source, resolved in (placed or {}).items()}

    def resolved(self, source: SourceName) -> Resolved:
        """Return the location of a source, and the digest or commit of the source's content."""
        known = self._known.get(source)
        if known is None:
            known = self._known[source] = self._settled(source)
        return known.resolved

    def files(self, sources: Iterable[SourceName]) -> set[str]:
        """Return the files and folders of those of the sources that were read."""
        return {str(path) for each in sources if each in self._known for path in self._known[each].rows}

    def changed_file(self, sources: Iterable[SourceName] | None = None) -> Path | None:
        """Return a file of some sources, or of all, that changed after it was read; None if no file changed."""
        readings = map(self._known.get, self._known if sources is None else sources)
        rows = ((reading, *each) for reading in readings if reading is not None for each in reading.rows.items())
        changed = (path for reading, path, row in rows if differs(path, row) or _reads_differently(path, reading))
        return next(changed, None)

    def _settled(self, source: SourceName) -> _Reading:
        """Read a source; read it again where a folder changed meanwhile, because a file may have been added."""
        for _ in range(_MOST_READINGS):
            began_ns = time.time_ns()
            reading = self._read_source(source)
            rows = [row for path, row in reading.rows.items() if path not in reading.digests]
            # A change time in the future is not waited for: the clock was set back.
            if all(is_settled(row, began_ns) or row[_CHANGED] > time.time_ns() for row in rows):
                break
        return reading

    def _read_source(self, source: SourceName) -> _Reading:
        rows: dict[Path, Row] = {}
        digests: dict[Path, Digest] = {}

        def digest_file(path: Path) -> Digest:
            settled_row(path)  # a change while the content is read gets another change time
            rows[path], digests[path] = self._store.contents.read(path)
            return digests[path]

        known = self._commits.copy()
        resolved = resolve(source, digest_file=digest_file, commits=self._commits)
        if new := dict(self._commits.items() - known.items()):
            notes = self._store.notes
            notes.keep("resolutions", "hub", {**notes.get("resolutions", "hub"), **new})
        return _Reading(resolved, {path: rows.get(path) or settled_row(path) for path in resolved.files}, digests)


def differs(path: Path, row: Row) -> bool:
    """Say whether a file has another stat row than `row`, or is missing."""
    try:
        return stat_row(path) != row
    except OSError:
        return True


def _reads_differently(path: Path, reading: _Reading) -> bool:
    """Read a file again whose stat row may not show a change; say whether its digest is another than that of before."""
    content = reading.digests.get(path)
    try:
        return content is not None and not tells_changes(path) and digest.of_file(path) != content
    except OSError:
        return True


def resolve(source: Source | SourceName, *, digest_file: Callable[[Path], Digest], commits: dict[str, str]) -> Resolved:
    """Return where the source is, and the digest or hub commit of its content.

    `digest_file` returns a file's digest. `commits` has the known commits of branches and tags, by "hf:REPO@REVISION";
    the hub is asked for any other, which is added. Raises StepError if a source is missing or unreadable, or if the hub
    does not know the source.
    """
    tokenizer = source.part == "tokenizer"
    scheme, _, rest = source.uri.partition(":")
    if source.part == "license" and scheme in {"file", "python"}:
        return _licenses(scheme, rest, digest_file)
    read = _samples if source.part == "samples" else partial(_local, tokenizer=tokenizer)
    if scheme == "file":
        return read(Path(rest), digest_file)
    if scheme == "python":
        from engine.kit.checkpoints import packages

        folder, folders = packages.locate(rest)
        local = read(folder, digest_file)
        return replace(local, files=tuple(dict.fromkeys((*folders, *local.files))))
    if scheme in {"hf", "timm"}:
        from engine.recipe import paths

        repository = paths.hub_name(source.uri).partition(":")[2]
        return _on_hub(repository, source.revision or "main", commits)
    raise StepError(
        f"nobody knows how to read the source {source.uri}",
        hint="a source is a path, hf:REPO, timm:NAME or python:PACKAGE[/path]",
    )


def path_of(source: Source | SourceName) -> Path | None:
    """Return the path of a source, None for a hub's repository.

    Raises StepError if the Python package of a source `python:PACKAGE/PATH` is missing.
    """
    scheme, _, rest = source.uri.partition(":")
    if scheme == "python":
        from engine.kit.checkpoints import packages

        return packages.locate(rest)[0]
    return Path(rest) if scheme == "file" else None


def _samples(path: Path, digest_file: Callable[[Path], Digest]) -> Resolved:
    """Return the digest of samples; for a folder of image files that of their names, with each image as a part."""
    from engine.kit.inputs import image_samples

    images, folders = image_samples.files(path)
    parts = {name: _readable(image, digest_file) for name, image in images.items()}
    if path.is_dir():
        return Resolved(digest.of_rows((name, "") for name in parts), path, (*folders, *images.values()), parts)
    own = _local(path, digest_file, tokenizer=False)
    return replace(own, files=(*own.files, *images.values()), parts=parts)


def _local(path: Path, digest_file: Callable[[Path], Digest], *, tokenizer: bool) -> Resolved:
    if path.is_dir():
        return _directory(path, digest_file, tokenizer=tokenizer)
    if path.exists() and not path.is_file():
        raise StepError(f"{path} is neither a file nor a directory")
    if not path.is_file():
        raise StepError(f"{path} does not exist", hint="paths in a recipe are relative to the recipe")
    if path.suffix == ".onnx":
        return _onnx(path, digest_file)
    content = _readable(path, digest_file)
    weights.refuse_pointer(path)
    return Resolved(content, path, (path,))


def _directory(path: Path, digest_file: Callable[[Path], Digest], *, tokenizer: bool) -> Resolved:
    """Return the digest of the files of the model or tokenizer; the step `fetch` checks whether they are complete."""
    if tokenizer:
        chosen, folders = model_files.tokenizer_at(path), model_files.listing(path)[1]
    else:
        chosen, folders = model_files.model_at(path)
    tree = digest.of_tree({name: _readable(path / name, digest_file) for name in chosen})
    return Resolved(tree, path, (*folders, *(path / name for name in chosen)))


def _licenses(scheme: str, rest: str, digest_file: Callable[[Path], Digest]) -> Resolved:
    """Return the digest of what says something about a model's licence; of nothing for a single file.

    A licence text counts as it is. A model card counts by its statements: its prose changes no job.
    """
    from engine.kit.checkpoints import licenses, packages

    path, searched = packages.locate(rest) if scheme == "python" else (Path(rest), ())
    folders: list[Path] = []
    files: dict[str, Path] = {}
    if path.is_dir():
        names, folders = model_files.listing(path)
        files = {name: path / name for name in model_files.licenses_of(names)}
    distribution = licenses.distribution_of(rest.strip("/").partition("/")[0]) if scheme == "python" else None
    if distribution is not None:
        files |= {f"package/{file.name}": file for file in licenses.files_of(distribution)}
    digests = {name: _readable(file, digest_file) for name, file in files.items() if name != licenses.CARD}
    if licenses.CARD in files:
        digests |= _statements(files[licenses.CARD])
    read = tuple(dict.fromkeys((*searched, *folders, *files.values())))
    return Resolved(digest.of_tree(digests), path, read)


def _statements(card: Path) -> dict[str, Digest]:
    """Return the digest of what a model card says about the licence; nothing for a card that says nothing."""
    from engine.kit.checkpoints import licenses

    content = _readable(card, regular.read).decode("utf-8", "replace")
    statements = [astuple(statement) for statement in licenses.of_card(content)]
    return {licenses.CARD: digest.of_bytes(json.dumps(statements).encode())} if statements else {}


def _onnx(path: Path, digest_file: Callable[[Path], Digest]) -> Resolved:
    """Return the digest of an ONNX model with its external weight files, named as the model names them."""
    from engine.kit.onnx import onnx_source

    files = {"model.onnx": path, **{name: path.parent / name for name in onnx_source.data_files(path)}}
    tree = digest.of_tree({name: _readable(file, digest_file) for name, file in files.items()})
    return Resolved(tree, path, tuple(files.values()))


def _on_hub(repository: str, revision: str, commits: dict[str, str]) -> Resolved:
    from engine.kit.checkpoints import hub

    if not _REPOSITORY.fullmatch(repository):
        raise StepError(
            f"{repository!r} is no name of a repository", hint="write hf:OWNER/NAME, as the model's page has it"
        )
    named = f"hf:{repository}@{revision}"
    if not hub.COMMIT.fullmatch(revision):
        if named not in commits:
            commits[named] = hub.commit_of(repository, revision)
        named = f"hf:{repository}@{commits[named]}"
    return Resolved(named, named)


def _readable(path: Path, read: Callable[[Path], _T]) -> _T:
    try:
        return read(path)
    except OSError as error:
        raise StepError(f"{path} cannot be read", [str(error.strerror)]) from error
