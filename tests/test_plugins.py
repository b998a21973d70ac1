"""Plugins: a quick look at the lists of installed packages says whether Python has to parse them all."""

import sys
import zipfile

import pytest

from engine import plugins


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of packages that is the whole import path."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def listed(site, group):
    info = site / "pruning-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pruning\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\nprune = pruning:Prune\n")


@pytest.mark.parametrize("group", plugins.GROUPS)
def test_a_package_with_an_entry_point_of_ours_is_read(site, group):
    listed(site, group)
    [point] = plugins._read()
    assert (point.group, point.name) == (group, "prune")


def test_packages_without_entry_points_of_ours_are_not_parsed(site, monkeypatch):
    listed(site, "console_scripts")
    (site / "plain-1.0.dist-info").mkdir()
    monkeypatch.setattr("importlib.metadata.entry_points", lambda: pytest.fail("Python parsed every list"))
    assert plugins._read() == ()


def test_an_archive_on_the_import_path_is_left_to_python(site, monkeypatch):
    archive = site / "packages.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("pruning-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pruning\nVersion: 1.0\n")
        file.writestr("pruning-1.0.dist-info/entry_points.txt", "[recipe.steps]\nprune = pruning:Prune\n")
    monkeypatch.setattr(sys, "path", [str(archive)])
    assert [point.name for point in plugins._read()] == ["prune"]
