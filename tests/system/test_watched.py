"""Stat rows of many files in one block: which files changed."""

import os
from pathlib import Path

from engine.system import watched


def test_the_changed_and_missing_files_are_named(tmp_path):
    names = [str(tmp_path / f"{number:05}") for number in range(300)]
    for name in names:
        Path(name).write_text("first")
    rows = {name: watched.row_of(name) for name in names}
    block = watched.packed(rows)
    assert watched.unpacked(*block) == rows
    assert watched.changed(*block) == watched.changed(*watched.packed({})) == []
    changed = [names[0], names[17], names[299]]
    for name in changed[:2]:
        with open(name, "a") as file:
            file.write(" and more")
    os.remove(changed[2])
    assert watched.changed(*block) == changed
    assert watched.row_of(changed[2]) is None
