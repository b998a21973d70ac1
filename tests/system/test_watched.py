"""Stat rows of many files in parts: which files changed, and parts in which a few rows are replaced."""

import os

from engine.system import watched


def files(folder, count):
    for number in range(count):
        (folder / f"{number:05}").write_text("first")
    return [str(folder / f"{number:05}") for number in range(count)]


def rows_of(names):
    return {name: watched.row_of(name) for name in names}


def flat(parts):
    return {name: row for part in parts for name, row in watched.unpacked(*part)}


def test_the_changed_and_missing_files_are_named_in_whichever_part_they_are(tmp_path):
    names = files(tmp_path, 3000)
    parts = watched.packed(rows_of(names))
    assert len(parts) == 3
    assert watched.changed(parts) == []
    changed = [names[0], names[1023], names[1024], names[2999]]
    for name in changed[:3]:
        with open(name, "a") as file:
            file.write(" and more")
    os.remove(changed[3])
    assert sorted(watched.changed(parts)) == changed


def test_rows_are_replaced_added_and_dropped_and_all_others_stay(tmp_path):
    rows = rows_of(files(tmp_path, 2500))
    names = list(rows)
    put = {names[1500]: (1, 2, 3, 4, 5), "/new": (6, 7, 8, 9, 10), names[3]: (0, 0, 0, 0, 0)}
    edited = watched.edited(watched.packed(rows), {names[3], names[2400]}, put)
    expected = {**rows, **put}
    del expected[names[2400]]
    assert flat(edited) == expected


def test_no_files_are_unchanged():
    assert watched.changed([]) == []
    assert watched.edited([], set(), {}) == []
    assert watched.row_of("/nowhere/at/all") is None
