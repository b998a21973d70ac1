"""Flipped bits, truncations, deletions, swaps in the store: never served by a build, healed by it, found by `verify`.

With `--whole`: 100 of each, half of them with the modification time kept, in about five minutes. Otherwise a seeded
sample.
"""

import os
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HURTS = ("flip", "truncate", "delete", "swap")
PLACES = ("artifacts", "files", "records", "logs", "heads", "stat", "snapshots", "plans", "format")
NOTES = {"heads", "stat", "snapshots", "plans"}
"""That one of these was deleted nobody can know, and nobody needs to."""


def files_of(ground, place):
    """Return the files of a place that hold something."""
    root = ground.cache / place
    files = [root] if root.is_file() else [path for path in sorted(root.rglob("*")) if path.is_file()]
    return [path for path in files if path.stat().st_size]


def hurt(ground, how, chance, *, keep):
    """Hurt one file of the store, or two; `keep` restores their modification times. Return them."""
    while True:
        filled = [place for place in PLACES if files_of(ground, place)]
        place = chance.choice(filled)
        path = chance.choice(files_of(ground, place))
        if how != "swap":
            _hurt(path, how, chance, keep=keep)
            return [path]
        # Mostly with one of its kind, sometimes with anything.
        other = chance.choice(files_of(ground, chance.choice([place, place, *filled])))
        if path.read_bytes() != other.read_bytes():
            _swap(path, other)
            return [path, other]


def _hurt(path, how, chance, *, keep):
    before = path.stat()
    mode = before.st_mode
    match how:
        case "flip":
            with open(path, "r+b") as file:
                place = chance.randrange(before.st_size)
                file.seek(place)
                [byte] = file.read(1)
                file.seek(place)
                file.write(bytes([byte ^ 1 << chance.randrange(8)]))
        case "truncate":
            os.truncate(path, chance.randrange(before.st_size))
        case "delete":
            path.unlink()
            return
    path.chmod(mode)
    if keep:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _swap(one, other):
    aside = one.with_name(f"{one.name}.aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def names_by_file(ground):
    """Return path -> all names of the same file in the store, relative to it."""
    names = defaultdict(list)
    paths = {path: path.stat().st_ino for place in PLACES for path in files_of(ground, place)}
    for path, inode in paths.items():
        names[inode].append(path.relative_to(ground.cache))
    return {path: names[inode] for path, inode in paths.items()}


@pytest.mark.parametrize("how", HURTS)
@pytest.mark.sample(1)
def test_damage_is_never_served_and_always_found(how, tier, field, tmp_path):
    ground = field.undisturbed.copy(tmp_path / "ground")
    for number in range(100 if tier.whole else 1):
        keep = number % 2 == 0
        field.builders.build(ground)
        assert field.builders.build(ground).events[-1]["state"] == "up to date"
        assert files_of(ground, "snapshots")
        names = names_by_file(ground)
        hurt_files = hurt(ground, how, tier.chance, keep=keep)
        what = f"{number}: {how} {[str(path.relative_to(ground.cache)) for path in hurt_files]}, times kept: {keep}"
        print(what)
        copy = ground.copy(tmp_path / "copy")

        healed = field.builders.build(ground)
        assert field.builders.delivered(healed) == field.expected, what

        check_verify(field.builders, copy, [names[path] for path in hurt_files], what, notes_may_go=how == "delete")
        assert field.builders.delivered(field.builders.build(copy)) == field.expected, what
        shutil.rmtree(copy.folder)


def check_verify(builders, ground, hurt_files, what, *, notes_may_go):
    """A verification names every hurt file by one of its names, or its artifact; a second one finds nothing."""
    verdict = builders.verify(ground, expect=None)
    named = {Path(damage["path"]) for damage in verdict["damaged"]}
    unnamed = [names for names in hurt_files if not any({name, *name.parents} & named for name in names)]
    if notes_may_go:
        unnamed = [names for names in unnamed if names[0].parts[0] not in NOTES]
    assert not unnamed, f"{what}: {verdict}"
    assert builders.verify(ground)["damaged"] == [], what
