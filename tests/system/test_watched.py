"""Stat rows of many files in one block: which files changed."""

import os

from engine.system import watched


def files(folder, count):
    for number in range(count):
        (folder / f"{number:05}").write_text("first")
    return [str(folder / f"{number:05}") for number in range(count)]


def rows_of(names):
    return {name: watched.row_of(name) for name in names}


def test_the_changed_and_missing_files_are_named(tmp_path):
    names = files(tmp_path, 300)
    block = watched.packed(rows_of(names))
    assert watched.changed(*block) == []
    changed = [names[0], names[17], names[299]]
    for name in changed[:2]:
        with open(name, "a") as file:
            file.write(" and more")
    os.remove(changed[2])
    assert watched.changed(*block) == changed


def test_a_block_is_unpacked_as_it_was(tmp_path):
    rows = rows_of(files(tmp_path, 3))
    assert watched.unpacked(*watched.packed(rows)) == rows


def test_no_files_are_unchanged():
    assert watched.changed(*watched.packed({})) == []
    assert watched.row_of("/nowhere/at/all") is None
