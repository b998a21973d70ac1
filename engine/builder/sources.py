"""Locate and digest sources: files, directories, installed packages and repositories of a hub."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine import digest
from engine.digest import Digest
from engine.errors import StepError
from engine.kit.checkpoints import model_files, weights
from engine.system import regular

if TYPE_CHECKING:
    from engine.builder.job import SourceName
    from engine.step import Source

_T = TypeVar("_T")
_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True)
class Resolved:
    """The location of a source, and the digest or commit of the source's content.

    `row` is the source's value in the key: the digest of the content, or `hf:REPO@COMMIT`. `location` is the path or
    name that `Step.run` receives. `files` are the files and folders that were read to compute `row`; `row` stays valid
    as long as the stat rows of `files` stay the same. `resolution` is the commit of a branch or tag, which the caller
    remembers: ("hf:REPO@main", commit).
    """

    row: str
    location: Path | str
    files: tuple[Path, ...] = ()
    resolution: tuple[str, str] | None = None


def resolve(
    source: Source | SourceName,
    *,
    digest_file: Callable[[Path], Digest],
    remembered: Callable[[str], str | None],
    refresh: bool = False,
) -> Resolved:
    """Return where the source is, and the digest or hub commit of its content.

    `digest_file` returns a file's digest. `remembered` returns the last known commit of a branch or tag, by
    "hf:REPO@REVISION"; with `refresh` the hub is asked for the commit again. Raises StepError if a source is missing or
    unreadable, or if the hub does not know the source.
    """
    tokenizer = source.part == "tokenizer"
    scheme, _, rest = source.uri.partition(":")
    if source.part == "license" and scheme in {"file", "python"}:
        return _licenses(scheme, rest, digest_file)
    if scheme == "file":
        return _local(Path(rest), digest_file, tokenizer=tokenizer)
    if scheme == "python":
        from engine.kit.checkpoints import packages

        folder, folders = packages.locate(rest)
        local = _local(folder, digest_file, tokenizer=tokenizer)
        return Resolved(local.row, local.location, tuple(dict.fromkeys((*folders, *local.files))))
    if scheme in {"hf", "timm"}:
        from engine.recipe import paths

        repository = paths.hub_name(source.uri).partition(":")[2]
        return _on_hub(repository, source.revision or "main", remembered, refresh=refresh)
    raise StepError(
        f"nobody knows how to read the source {source.uri}",
        hint="a source is a path, hf:REPO, timm:NAME or python:PACKAGE[/path]",
    )


def place_of(source: Source | SourceName) -> Path | None:
    """Return the path of a source, None for a hub's repository.

    Raises StepError if the Python package of a source `python:PACKAGE/PATH` is missing.
    """
    scheme, _, rest = source.uri.partition(":")
    if scheme == "python":
        from engine.kit.checkpoints import packages

        return packages.locate(rest)[0]
    return Path(rest) if scheme == "file" else None


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


def _on_hub(repository: str, revision: str, remembered: Callable[[str], str | None], *, refresh: bool) -> Resolved:
    from engine.kit.checkpoints import hub

    if not _REPOSITORY.fullmatch(repository):
        raise StepError(
            f"{repository!r} is no name of a repository", hint="write hf:OWNER/NAME, as the model's page has it"
        )
    if hub.COMMIT.fullmatch(revision):
        named = f"hf:{repository}@{revision}"
        return Resolved(named, named)
    moving = f"hf:{repository}@{revision}"
    commit = None if refresh else remembered(moving)
    if commit is None:
        commit = hub.commit_of(repository, revision)
    named = f"hf:{repository}@{commit}"
    return Resolved(named, named, resolution=(moving, commit))


def _readable(path: Path, read: Callable[[Path], _T]) -> _T:
    try:
        return read(path)
    except OSError as error:
        raise StepError(f"{path} cannot be read", [str(error.strerror)]) from error
