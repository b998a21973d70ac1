"""Locate and digest sources: files, directories, installed packages and repositories of a hub."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine import digest
from engine.digest import Digest
from engine.errors import StepError
from engine.kit.checkpoints import model_files, weights

if TYPE_CHECKING:
    from engine.builder.job import SourceName
    from engine.step import Source

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
    content = _digest(path, digest_file)
    weights.refuse_pointer(path)
    return Resolved(content, path, (path,))


def _directory(path: Path, digest_file: Callable[[Path], Digest], *, tokenizer: bool) -> Resolved:
    """Return the digest of the files of the model or tokenizer; the step `fetch` checks whether they are complete."""
    if tokenizer:
        chosen, folders = model_files.tokenizer_at(path), model_files.listing(path)[1]
    else:
        chosen, folders = model_files.model_at(path)
    tree = digest.of_tree({name: _digest(path / name, digest_file) for name in chosen})
    return Resolved(tree, path, (*folders, *(path / name for name in chosen)))


def _onnx(path: Path, digest_file: Callable[[Path], Digest]) -> Resolved:
    """Return the digest of an ONNX model with its external weight files, named as the model names them."""
    from engine.kit.onnx import onnx_source

    files = {"model.onnx": path, **{name: path.parent / name for name in onnx_source.data_files(path)}}
    tree = digest.of_tree({name: _digest(file, digest_file) for name, file in files.items()})
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


def _digest(path: Path, digest_file: Callable[[Path], Digest]) -> Digest:
    try:
        return digest_file(path)
    except OSError as error:
        raise StepError(f"{path} cannot be read", [str(error.strerror)]) from error
