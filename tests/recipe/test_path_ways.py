"""The way to a path: every folder and link that the operating system follows, and nothing else."""

import os

import pytest

from engine.recipe import path_ways


@pytest.fixture
def root(tmp_path):
    return tmp_path.resolve()


def on_the_way(root, path):
    """Return the names of the way below a folder, with the targets of links."""
    way = path_ways.way_to(str(path))
    return {os.path.relpath(place, root): mark for place, mark in way.items() if place.startswith(f"{root}/")}


def test_each_link_of_a_chain_is_on_the_way_and_each_folder_that_it_leads_through(root):
    (root / "shelf" / "v1").mkdir(parents=True)
    (root / "shelf" / "v1" / "file").touch()
    (root / "net").symlink_to("current")
    (root / "current").symlink_to(root / "shelf" / "v1")
    way = on_the_way(root, root / "net" / "file")
    assert way["net"] == "current"
    assert way["current"] == f"{root}/shelf/v1"
    assert way["shelf"] == ((root / "shelf").stat().st_dev, (root / "shelf").stat().st_ino)
    assert way["shelf/v1/file"] == ()
    assert set(way) == {"net", "current", "shelf", "shelf/v1", "shelf/v1/file"}


def test_two_dots_behind_a_link_lead_to_the_folder_above_its_target(root):
    (root / "one" / "inner").mkdir(parents=True)
    (root / "one" / "file").touch()
    (root / "file").touch()
    (root / "hop").symlink_to("one/inner")
    assert set(on_the_way(root, root / "hop" / ".." / "file")) == {"hop", "one", "one/inner", "one/file"}


def test_a_way_that_leads_nowhere_ends_where_nothing_is(root):
    (root / "net").symlink_to("gone/deeper")
    assert on_the_way(root, root / "net" / "file") == {"net": "gone/deeper", "gone": None}


def test_a_loop_of_links_has_an_end(root):
    (root / "one").symlink_to("other")
    (root / "other").symlink_to("one")
    assert on_the_way(root, root / "one") == {"one": "other", "other": "one"}


def test_a_relative_path_begins_in_the_working_folder(root, monkeypatch):
    (root / "file").touch()
    monkeypatch.chdir(root)
    assert on_the_way(root, "./file") == {"file": ()}


@pytest.mark.parametrize(
    "change",
    [
        lambda root: os.remove(root / "net"),
        lambda root: (os.remove(root / "net"), (root / "net").symlink_to("v2")),
        lambda root: (os.remove(root / "net"), (root / "net").mkdir()),
        lambda root: (os.rename(root / "v1", root / "v3"), (root / "v1").mkdir()),
        lambda root: (os.rename(root / "v1", root / "v3"), (root / "v1").symlink_to("v3")),
    ],
    ids=["gone", "another target", "a folder instead", "another folder", "a link instead"],
)
def test_a_way_holds_until_something_on_it_changes(change, root):
    for name in ("v1", "v2"):
        (root / name).mkdir()
    (root / "net").symlink_to("v1")
    way = path_ways.way_to(str(root / "net" / "not there"))
    (root / "v1" / "other").touch()
    assert path_ways.holds(way)
    change(root)
    assert not path_ways.holds(way)


def test_a_file_that_appears_is_noticed(root):
    way = path_ways.way_to(str(root / "file"))
    (root / "file").touch()
    assert not path_ways.holds(way)
