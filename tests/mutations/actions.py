"""What mutations do to files: small verbs that tables are written with."""

from __future__ import annotations

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


def edit(name: str, old: str, new: str) -> Action:
    """Replace a text, which must occur."""

    def act(place: Workplace) -> None:
        text = place.path(name).read_text("utf-8")
        assert old in text, f"{old!r} is not in {name}"
        place.path(name).write_text(text.replace(old, new, 1), "utf-8")

    return act


def recipe(old: str, new: str) -> Action:
    """Replace a text in the recipe."""
    return edit("r.yaml", old, new)


def rewrite(name: str, change: Callable[[str], str]) -> Action:
    """Put what a function makes of a file's text in its place."""
    return lambda place: _put(place.path(name), change(place.path(name).read_text("utf-8")).encode())


def settings(name: str, **values: Any) -> Action:
    """Change fields of a JSON file, keeping its layout; None removes one."""

    def act(place: Workplace) -> None:
        document = json.loads(place.path(name).read_text())
        for field, value in values.items():
            document[field] = value
            if value is None:
                del document[field]
        place.path(name).write_text(json.dumps(document, indent=2))

    return act


def write(name: str, content: str | bytes) -> Action:
    """Write a file, new or not."""
    data = content.encode() if isinstance(content, str) else content
    return lambda place: _put(place.path(name), data)


def append(name: str, text: str) -> Action:
    """Add text at the end of a file."""
    return lambda place: _put(place.path(name), place.path(name).read_bytes() + text.encode())


def flip(name: str, at: int = -1) -> Action:
    """Flip a bit of one byte, and give the file the size and the modification time that it had."""

    def act(place: Workplace) -> None:
        path = one(place, name)
        before = path.stat()
        path.chmod(0o644)
        with open(path, "r+b") as file:
            file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))
        path.chmod(before.st_mode & 0o777)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return act


def swap_text(name: str, old: str, new: str) -> Action:
    """Replace a text by one of equal length, and give the file the modification time that it had."""
    assert len(old) == len(new)

    def act(place: Workplace) -> None:
        before = place.path(name).stat()
        edit(name, old, new)(place)
        os.utime(place.path(name), ns=(before.st_atime_ns, before.st_mtime_ns))

    return act


def older(name: str, old: str, new: str) -> Action:
    """Put an older file, with another text, in the place of one."""

    def act(place: Workplace) -> None:
        edit(name, old, new)(place)
        os.utime(place.path(name), (_OLD, _OLD))

    return act


def by_rename(name: str, old: str, new: str) -> Action:
    """Replace a file by another that is renamed over it."""

    def act(place: Workplace) -> None:
        fresh = place.path(f"{name}.fresh")
        fresh.write_text(place.path(name).read_text("utf-8").replace(old, new), "utf-8")
        assert fresh.read_bytes() != place.path(name).read_bytes()
        fresh.replace(place.path(name))

    return act


def by_link(name: str, old: str, new: str, *, hard: bool = False) -> Action:
    """Replace a file by a link to another one."""

    def act(place: Workplace) -> None:
        other = place.path(name).with_name("elsewhere-" + Path(name).name)
        other.write_text(place.path(name).read_text("utf-8").replace(old, new), "utf-8")
        place.path(name).unlink()
        if hard:
            os.link(other, place.path(name))
        else:
            place.path(name).symlink_to(other.name)

    return act


def as_link(name: str) -> Action:
    """Move a file or folder away and leave a symbolic link to it."""

    def act(place: Workplace) -> None:
        path = place.path(name)
        moved = path.with_name(f"moved-{path.name}")
        path.rename(moved)
        path.symlink_to(moved.name)

    return act


def touch(*names: str) -> Action:
    """Give files, or all below folders, the present time."""

    def act(place: Workplace) -> None:
        for name in names:
            for path in _all(place.path(name)):
                os.utime(path)

    return act


def touch_folder(name: str) -> Action:
    """Give a folder alone the present time."""
    return lambda place: os.utime(place.path(name))


def aged(*names: str) -> Action:
    """Give files, or all below folders, a time long ago."""

    def act(place: Workplace) -> None:
        for name in names:
            for path in _all(place.path(name)):
                os.utime(path, (_OLD, _OLD))

    return act


def mode(bits: int, *names: str) -> Action:
    """Change who may do what with files."""
    return lambda place: [place.path(name).chmod(bits) for name in names] and None


def recreate(name: str) -> Action:
    """Make a folder anew, its files in the reverse order."""

    def act(place: Workplace) -> None:
        path = place.path(name)
        before = path.rename(path.with_name(f"{path.name}-before"))
        path.mkdir()
        for file in sorted(before.iterdir(), reverse=True):
            shutil.copyfile(file, path / file.name)
        shutil.rmtree(before)

    return act


def remove(*names: str) -> Action:
    """Remove files or whole folders, which must be there."""

    def act(place: Workplace) -> None:
        for name in names:
            path = one(place, name)
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    return act


def truncate(name: str) -> Action:
    """Cut a file in half."""

    def act(place: Workplace) -> None:
        path = one(place, name)
        path.chmod(0o644)
        os.truncate(path, path.stat().st_size // 2)

    return act


def move(name: str, to: str) -> Action:
    """Rename a file or folder."""

    def act(place: Workplace) -> None:
        place.path(to).parent.mkdir(parents=True, exist_ok=True)
        place.path(name).rename(place.path(to))

    return act


def copy(name: str, to: str) -> Action:
    """Copy a file or folder."""

    def act(place: Workplace) -> None:
        source = place.path(name)
        if source.is_dir():
            shutil.copytree(source, place.path(to))
        else:
            _put(place.path(to), source.read_bytes())

    return act


def one(place: Workplace, name: str) -> Path:
    """Return the first file that a name, perhaps with wildcards, means."""
    if "*" not in name:
        return place.path(name)
    return min(place.folder.glob(name))


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _all(path: Path) -> list[Path]:
    return [path, *path.rglob("*")] if path.is_dir() else [path]
