"""Layout: joins several packages into one model repository, which exists as long as a server needs it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import StepError, UsageError
from engine.kit.triton import config as configs
from engine.store import file_lock

_PREFIX = ".serving-"


@dataclass(frozen=True)
class BuiltPackage:
    """A package that was built: the name of its recipe, for messages, and the folder of the package."""

    recipe: str
    folder: Path

    @property
    def models(self) -> list[str]:
        """The names of the package's models: Triton loads each folder of the package as a model."""
        return sorted(path.name for path in self.folder.iterdir() if path.is_dir())


@contextlib.contextmanager
def together(packages: Sequence[BuiltPackage], beside: Path) -> Iterator[Path]:
    """Write one repository with the models of all packages, and remove the repository when the block ends.

    The repository is a new folder in the directory `beside`. The files of the model repository are links to the files
    of the packages, without copies. The folders of the repository are new, so that a file which a server writes beside
    a model, such as compiled Python, gets into no package. Model repositories that killed processes left behind are
    removed. Raises UsageError where two packages hold a model of one name, StepError for a package that Triton cannot
    load.
    """
    _refuse(packages)
    _sweep(beside)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=beside.absolute()))
    except OSError as error:
        raise StepError(
            f"no model repository can be written in {beside}: {error.strerror}", hint="name a writable folder with -o"
        ) from error
    with file_lock.hold(folder):
        try:
            for package in packages:
                _link(package.folder.absolute(), folder)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def targets(repository: Path) -> list[Path]:
    """Return a list with the folder that holds the targets of all links in a repository; empty without links."""
    folders = {str(path.resolve().parent) for path in repository.rglob("*") if path.is_symlink()}
    return [Path(os.path.commonpath(folders))] if folders else []


def _refuse(packages: Sequence[BuiltPackage]) -> None:
    """Raise UsageError for two models of one name, then StepError for a folder that is no model of Triton."""
    owners: dict[str, str] = {}
    for package in packages:
        for model in package.models:
            if model in owners:
                raise UsageError(
                    f"two packages hold a model called {model!r}",
                    [owners[model], package.recipe],
                    "in one recipe, give package.triton.name (and package.triton.ensemble, if set) another value",
                )
            owners[model] = package.recipe
    for package in packages:
        bare = [model for model in package.models if not (package.folder / model / configs.FILE).is_file()]
        if bare:
            raise StepError(f"{package.recipe}: {bare[0]} is no model of Triton: Triton has no backend that runs it")


def _link(package: Path, repository: Path) -> None:
    for source in sorted(package.rglob("*")):
        if source.parent == package and not source.is_dir():
            continue  # NOTICE, licences and the bill of materials: two packages have files of the same names
        target = repository / source.relative_to(package)
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.symlink_to(source)


def _sweep(beside: Path) -> None:
    """Remove the repositories of dead processes: a living process holds a lock on its folder."""
    with contextlib.suppress(OSError):  # where nothing can be written, making the new repository says why
        dead = [folder for folder in beside.glob(f"{_PREFIX}*") if not file_lock.is_locked(folder)]
        # Without file locks, the repositories of dead and of living processes look the same.
        if dead and file_lock.are_supported(beside):
            for folder in dead:
                shutil.rmtree(folder, ignore_errors=True)
