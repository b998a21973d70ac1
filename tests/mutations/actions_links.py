"""What mutations do with symbolic links, and with files that are mapped into memory."""

from __future__ import annotations

import mmap

from mutations.actions_around import built
from mutations.mutation import Action
from mutations.workplace import Workplace


def link(name: str, target: str) -> Action:
    """Make a link, or let a link lead somewhere else; `{folder}` in the target stands for the project's."""

    def act(place: Workplace) -> None:
        path = place.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(target.replace("{folder}", str(place.folder)))

    return act


def resolved(name: str) -> Action:
    """Put what a link leads to in the place of the link."""

    def act(place: Workplace) -> None:
        path = place.path(name)
        target = path.resolve()
        path.unlink()
        target.rename(path)

    return act


def answered(place: Workplace) -> None:
    """Build until the snapshot answers, in the middle of a mutation."""
    for _ in range(2):
        built(place)


def mapped(name: str, old: bytes, new: bytes) -> Action:
    """Write through a mapping, build, and write to the same page of the same mapping again."""
    assert len(old) == len(new)

    def act(place: Workplace) -> None:
        with place.path(name).open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
            at = mapping.find(old)
            assert at >= 0
            mapping[at : at + 1] = mapping[at : at + 1]
            answered(place)
            mapping[at : at + len(new)] = new

    return act
