"""What mutations do to files: small verbs that tables are written with."""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mutations.mutation import Action
from mutations.workplace import Workplace

_OLD = 946_684_800
"""A time long ago, in seconds."""


def action(act: Callable[..., object]) -> Callable[..., Action]:
    """Let a function be called without its first argument, the place, and return what waits for the place."""

    @functools.wraps(act)
    def waiting(*arguments: Any, **named: Any) -> Action:
        return lambda place: act(place, *arguments, **named) and None

    return waiting


@action
def edit(place: Workplace, name: str, old: str, new: str) -> None:
    """Replace a text, which must occur."""
    text = place.path(name).read_text("utf-8")
    assert old in text, f"{old!r} is not in {name}"
    place.path(name).write_text(text.replace(old, new, 1), "utf-8")


def recipe(old: str, new: str) -> Action:
    """Replace a text in the recipe."""
    return edit("r.yaml", old, new)


@action
def rewrite(place: Workplace, name: str, change: Callable[[str], str]) -> None:
    """Put what a function makes of a file's text in its place."""
    place.path(name).write_bytes(change(place.path(name).read_text("utf-8")).encode())


@action
def settings(place: Workplace, name: str, **values: Any) -> None:
    """Change fields of a JSON file, keeping its layout."""
    document = json.loads(place.path(name).read_text()) | values
    place.path(name).write_text(json.dumps(document, indent=2))


@action
def write(place: Workplace, name: str, content: str | bytes) -> None:
    """Write a file, new or not."""
    place.path(name).parent.mkdir(parents=True, exist_ok=True)
    place.path(name).write_bytes(content.encode() if isinstance(content, str) else content)


def append(name: str, text: str) -> Action:
    """Add text at the end of a file."""
    return rewrite(name, lambda before: before + text)


@action
def flip(place: Workplace, name: str, at: int = -1) -> None:
    """Flip a bit of one byte, and give the file the size and the modification time that it had."""
    path = one(place, name)
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)
    path.chmod(before.st_mode & 0o777)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@action
def swap_text(place: Workplace, name: str, old: str, new: str) -> None:
    """Replace a text by one of equal length, and give the file the modification time that it had."""
    assert len(old) == len(new)
    before = place.path(name).stat()
    edit(name, old, new)(place)
    os.utime(place.path(name), ns=(before.st_atime_ns, before.st_mtime_ns))


@action
def older(place: Workplace, name: str, old: str, new: str) -> None:
    """Put an older file, with another text, in the place of one."""
    edit(name, old, new)(place)
    os.utime(place.path(name), (_OLD, _OLD))


@action
def replaced(place: Workplace, name: str, old: str, new: str, *, by: Callable[[Path, Path], object]) -> None:
    """Put a file with another text in the place of one, by a function of the new file and of the name."""
    fresh = place.path(name).with_name(f"elsewhere-{Path(name).name}")
    fresh.write_text(place.path(name).read_text("utf-8").replace(old, new), "utf-8")
    assert fresh.read_bytes() != place.path(name).read_bytes()
    place.path(name).unlink()
    by(fresh, place.path(name))


@action
def link(place: Workplace, name: str, target: str) -> None:
    """Make a link, or let a link lead somewhere else; `{folder}` in the target stands for the project's."""
    path = place.path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target.replace("{folder}", str(place.folder)))


@action
def as_link(place: Workplace, name: str) -> None:
    """Move a file or folder away and leave a symbolic link to it."""
    path = place.path(name)
    moved = path.rename(path.with_name(f"moved-{path.name}"))
    path.symlink_to(moved.name)


@action
def resolved(place: Workplace, name: str) -> None:
    """Put what a link leads to in the place of the link."""
    path = place.path(name)
    target = path.resolve()
    path.unlink()
    target.rename(path)


@action
def touch(place: Workplace, *names: str, seconds: float | None = None) -> None:
    """Give files, and all below folders, the present time or another one."""
    for name in names:
        path = place.path(name)
        for each in [path, *path.rglob("*")] if path.is_dir() else [path]:
            os.utime(each, None if seconds is None else (seconds, seconds))


def aged(*names: str) -> Action:
    """Give files, and all below folders, a time long ago."""
    return touch(*names, seconds=_OLD)


@action
def mode(place: Workplace, bits: int, *names: str) -> None:
    """Change who may do what with files."""
    for name in names:
        place.path(name).chmod(bits)


@action
def recreate(place: Workplace, name: str) -> None:
    """Make a folder anew, its files in the reverse order."""
    path = place.path(name)
    before = path.rename(path.with_name(f"{path.name}-before"))
    path.mkdir()
    for file in sorted(before.iterdir(), reverse=True):
        shutil.copyfile(file, path / file.name)
    shutil.rmtree(before)


@action
def remove(place: Workplace, *names: str) -> None:
    """Remove files or whole folders, which must be there."""
    for path in [one(place, name) for name in names]:
        (shutil.rmtree if path.is_dir() else os.unlink)(path)


@action
def truncate(place: Workplace, name: str) -> None:
    """Cut a file in half."""
    path = one(place, name)
    path.chmod(0o644)
    os.truncate(path, path.stat().st_size // 2)


@action
def move(place: Workplace, name: str, to: str) -> None:
    """Rename a file or folder."""
    place.path(to).parent.mkdir(parents=True, exist_ok=True)
    place.path(name).rename(place.path(to))


@action
def copy(place: Workplace, name: str, to: str) -> None:
    """Copy a file or folder."""
    place.path(to).parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if place.path(name).is_dir() else shutil.copyfile)(place.path(name), place.path(to))


@action
def new_folder(place: Workplace, name: str) -> None:
    """Make an empty folder."""
    place.path(name).mkdir(parents=True)


def one(place: Workplace, name: str) -> Path:
    """Return the first file that a name, perhaps with wildcards, means."""
    return min(place.folder.glob(name)) if "*" in name else place.path(name)
