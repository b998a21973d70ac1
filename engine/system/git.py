"""Git, asked about any repository: no hook, filter or program of the repository runs, and nothing is written."""

# The config of a repository may name programs, and an unpacked archive may bring a config. So in a repository only
# commands that print are called: `git worktree add`, `git archive` and `git checkout-index` run hooks and filters.

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import UsageError
from engine.system import regular

_GIT = (
    "git", "--no-optional-locks", "--no-replace-objects",
    "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}",
)  # fmt: skip
_NOTHING_FETCHED = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
"""A missing object is an error: git would start programs of the config to fetch it."""
_NO_CONFIG = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_COUNT": "0"}
_AS_STORED = "* -text -ident -filter -working-tree-encoding\n"
"""Attributes with which git changes no content. They count before those of the commit."""
_FORMATS = {40: "sha1", 64: "sha256"}
"""The length of an object's name -> the format of the repository's objects."""
_SECONDS = 300.0
_WHOLE_NAMES = (b"dirc\0\0\0\2", b"dirc\0\0\0\3")
"""The beginnings, in lower case, of indexes that have each name in one piece; those of version 4 have not."""


@dataclass(frozen=True)
class Commit:
    """A commit of a repository."""

    top: Path
    """The root of the work tree."""
    id: str
    """The full name of the commit."""


def tracked(top: str, folder: str, starts: Iterable[str]) -> list[str]:
    """Return the files that git tracks in a work tree and whose names begin with one of `starts`, in any case.

    `top` is the root of the work tree, and `folder` has its index. Both are named to git, so the folder's owner and
    `core.worktree` do not matter. Raises OSError and ValueError where it is not known which files git tracks.
    """
    beginnings = tuple(start.lower() for start in starts)
    if is_missing():
        _refuse_names(folder, [os.fsencode(start) for start in beginnings])
        return []
    listed = _run(top, f"--git-dir={folder}", f"--work-tree={top}", "ls-files", "-z")
    if listed.returncode:
        raise ValueError(listed.stderr.decode(errors="replace").strip())
    return [name for name in os.fsdecode(listed.stdout).split("\0") if name.lower().startswith(beginnings)]


def is_missing() -> bool:
    """Say whether git is not installed."""
    return shutil.which("git") is None


def _refuse_names(folder: str, starts: list[bytes]) -> None:
    """Raise ValueError if the bytes of an index have one of `starts`, or may have it in pieces. Raises OSError."""
    for path in (os.path.join(folder, "index"), *map(str, Path(folder).glob("sharedindex.*"))):
        content = regular.read(path).lower()
        if not content.startswith(_WHOLE_NAMES) or any(start in content for start in starts):
            raise ValueError(f"git is not installed, and {path} may list such files")


def find(revision: str, beside: Path) -> Commit:
    """Return the commit that a revision names, in the repository around the folder `beside`.

    Raises UsageError if there is no git, no repository or no such commit.
    """
    if is_missing():
        raise UsageError("git is missing, and a revision is named", hint="install git, or name two files")
    done = _run(beside, "rev-parse", "--show-toplevel")
    if done.returncode:  # no repository, or one of another user, which git refuses to read
        reason = done.stderr.decode(errors="replace").strip().splitlines()[:1]
        raise UsageError(f"{beside} is in no git repository, and the revision {revision!r} is named", reason)
    top = os.fsdecode(done.stdout).rstrip("\n")
    done = _run(beside, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if done.returncode:
        raise UsageError(f"there is no commit {revision!r} in {top}", hint="`git fetch` brings commits of a remote")
    return Commit(Path(top), done.stdout.decode().strip())


def write(commit: Commit, folder: Path) -> None:
    """Write the files of a commit into the empty folder `folder`, as git stores them. Submodules stay empty.

    A bare repository without a config and hooks of the user's or of the repository borrows the objects for that. Raises
    UsageError for a commit that git cannot write, for example with names that lead out of the folder.
    """
    objects = os.fsdecode(_run(commit.top, "rev-parse", "--git-path", "objects").stdout).rstrip("\n")
    variables = {"GIT_OBJECT_DIRECTORY": os.path.join(commit.top, objects), **_NO_CONFIG}
    with tempfile.TemporaryDirectory(prefix="recipe-git-") as bare:
        done = _run(bare, "init", "--bare", "--template=", f"--object-format={_FORMATS[len(commit.id)]}", **variables)
        os.makedirs(os.path.join(bare, "info"), exist_ok=True)
        Path(bare, "info", "attributes").write_text(_AS_STORED)
        places = (f"--git-dir={bare}", f"--work-tree={folder}", "-c", "core.bare=false")
        if not done.returncode:
            done = _run(folder, *places, "read-tree", "-u", "--reset", commit.id, **variables)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[:1]
        raise UsageError(f"git cannot write the files of the commit {commit.id}", reason)


def untracked(top: Path) -> list[str]:
    """Return the files and whole folders of a work tree that git does not track, ignored ones too, relative to it."""
    listed = _run(top, "ls-files", "--others", "--directory", "--no-empty-directory", "-z").stdout
    return [name.rstrip("/") for name in os.fsdecode(listed).split("\0")[:-1]]


def _run(folder: str | Path, *words: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, with the user's variables except those that lead it to another repository.

    Raises OSError, also where git does not end in time.
    """
    kept = {name: value for name, value in os.environ.items() if name[:4] != "GIT_" or name.startswith("GIT_CONFIG")}
    try:
        return subprocess.run(  # noqa: S603 - fixed words
            [*_GIT, "-C", str(folder), *words],
            capture_output=True, timeout=_SECONDS, check=False, env=kept | _NOTHING_FETCHED | variables,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(str(error)) from None
