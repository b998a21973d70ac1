"""The files of a git commit, written into another folder: no hook, filter or program of the repository runs."""

# `git worktree add` and `git archive` are not used: they run hooks and filters, and the first one writes into `.git`.
# Only three commands of git are called, which print objects. The work tree and the index stay as they are.

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from engine.errors import UsageError

_GIT = (
    "git", "--no-optional-locks", "--no-replace-objects",
    "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "protocol.allow=never",
)  # fmt: skip
_LINK, _FILE, _PROGRAM = b"120000", b"100644", b"100755"
_SECONDS = 60.0


@dataclass(frozen=True)
class Commit:
    """A commit of a repository."""

    top: Path
    """The root of the work tree."""
    id: str
    """The full name of the commit."""


@dataclass(frozen=True)
class _Entry:
    mode: bytes
    id: bytes
    path: bytes


def find(revision: str, beside: Path) -> Commit:
    """Return the commit that a revision names, in the repository around the folder `beside`.

    Raises UsageError if there is no git, no repository or no such commit.
    """
    if shutil.which("git") is None:
        raise UsageError("git is missing, and a revision is named", hint="install git, or name two files")
    done = _run(beside, "rev-parse", "--show-toplevel")
    if done.returncode != 0:  # no repository, or one of another user, which git refuses to read
        reason = done.stderr.decode(errors="replace").strip().splitlines()[:1]
        raise UsageError(f"{beside} is in no git repository, and the revision {revision!r} is named", reason)
    top = os.fsdecode(done.stdout).rstrip("\n")
    commit = _printed(beside, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise UsageError(f"there is no commit {revision!r} in {top}", hint="`git fetch` brings commits of a remote")
    return Commit(Path(top), commit)


def write(commit: Commit, folder: Path) -> None:
    """Write the files of a commit into the empty folder `folder`, as git stores them.

    Submodules are left out. Raises UsageError for names that lead out of the folder.
    """
    entries = [each for each in _entries(commit) if each.mode in (_LINK, _FILE, _PROGRAM)]
    for entry in entries:
        if any(part in (b"", b".", b"..") or part.lower() == b".git" for part in entry.path.split(b"/")):
            raise UsageError(f"the commit {commit.id} has a file called {os.fsdecode(entry.path)!r}")
    links: list[tuple[bytes, bytes]] = []
    with subprocess.Popen(  # noqa: S603 - the words are fixed
        [*_GIT, "-C", str(commit.top), "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as batch:
        source, answers = batch.stdin, batch.stdout
        assert source is not None and answers is not None  # noqa: S101, PT018 - both are pipes
        for entry in entries:
            source.write(entry.id + b"\n")
            source.flush()
            size = int(answers.readline().split()[2])
            path = os.path.join(os.fsencode(folder), entry.path)
            if entry.mode == _LINK:
                links.append((answers.read(size), path))
            else:
                _copy(answers, size, path)
            answers.read(1)
        source.close()
    for target, path in links:  # last, so that no file is written through a link
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)


def untracked(top: Path) -> list[str]:
    """Return the files and whole folders of a work tree that git does not track, ignored ones too, relative to it."""
    listed = _printed(top, "ls-files", "--others", "--directory", "--no-empty-directory", "-z") or ""
    return [name.rstrip("/") for name in listed.split("\0") if name]


def _copy(answers: IO[bytes], size: int, path: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb") as file:
        left = size
        while left:
            part = answers.read(min(left, 1 << 20))
            if not part:
                raise UsageError("git ended early")
            file.write(part)
            left -= len(part)


def _entries(commit: Commit) -> list[_Entry]:
    listed = _run(commit.top, "ls-tree", "-r", "-z", "--full-tree", commit.id)
    rows = (row.split(b"\t", 1) for row in listed.stdout.split(b"\0") if row)
    return [_Entry(about.split()[0], about.split()[2], path) for about, path in rows]


def _printed(folder: Path, *words: str) -> str | None:
    """Return what git prints, without the line's end; None if git fails."""
    done = _run(folder, *words)
    return os.fsdecode(done.stdout).rstrip("\n") if done.returncode == 0 else None


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [*_GIT, "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - fixed words
