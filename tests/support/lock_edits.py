"""Edits of locks: one line at a time, as people and merges make them, or with a digest that suits the edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.lockfile import text as lock_text

MARK = "\ndigest: "


def edit(path: Path, old: str, new: str) -> None:
    """Replace a part of a lock, and give it the digest that suits: `recipe lock` might have written it."""
    write(path, replaced(path.read_text(), old, new))


def write(path: Path, text: str) -> None:
    """Write a lock with the digest that suits its lines."""
    path.write_text(lock_text.sealed(text.rpartition(MARK)[0] + "\n"))


def unsealed(text: str) -> str:
    """Return the text of a lock in the older form, which has no digest."""
    return replaced(text.rpartition(MARK)[0], "lock: 2\n", "lock: 1\n") + "\n...\n"


def replaced(text: str, old: str, new: str) -> str:
    """Return a text with its first `old` replaced, which must be there."""
    assert old in text
    return text.replace(old, new, 1)


def edits(text: str) -> Iterator[tuple[str, str]]:
    """Yield what each edit of one line does, and the text after it: delete, change, duplicate and swap."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        before, after = lines[:number], lines[number + 1 :]
        changes = {"delete": [], "change": [_changed(line)], "duplicate": [line, line]}
        for kind, own in changes.items():
            yield f"{kind} {line.strip()}", "\n".join([*before, *own, *after]) + "\n"
        if after and after[0] != line:
            yield f"swap {line.strip()}", "\n".join([*before, after[0], line, *after[1:]]) + "\n"


def _changed(line: str) -> str:
    """Return a line with another last character: a digit or letter of its value, or of its name."""
    end = max(index for index, character in enumerate(line) if character.isalnum()) if line.strip(" .") else -1
    return line + "x" if end < 0 else f"{line[:end]}{'1' if line[end] != '1' else '2'}{line[end + 1 :]}"
