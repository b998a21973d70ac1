"""What mutations do to samples beyond a file's text."""

from __future__ import annotations

import os

from mutations import projects
from mutations.mutation import Action
from mutations.workplace import Workplace


def drawn(name: str, *, seed: int, keeps_time: bool = False) -> Action:
    """Write tensors anew, as many as before."""

    def act(place: Workplace) -> None:
        before = place.path(name).stat()
        projects.tensors(place.path(name), seed=seed)
        assert place.path(name).stat().st_size == before.st_size
        if keeps_time:
            os.utime(place.path(name), ns=(before.st_atime_ns, before.st_mtime_ns))

    return act


def link_switched(name: str, old: str, new: str) -> Action:
    """Reach a file through a link, build, and let the link lead to another file of the same age."""

    def act(place: Workplace) -> None:
        path = place.path(name)
        first, second = path.with_name("first.jsonl"), path.with_name("second.jsonl")
        path.rename(first)
        second.write_text(first.read_text().replace(old, new))
        path.symlink_to(first.name)
        for _ in range(2):
            place.build()
        path.unlink()
        path.symlink_to(second.name)

    return act
