"""A folder in which packages would damage something is refused before anything is built."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.builder import destination
from engine.builder.job import SourceName
from engine.errors import StoreError, UsageError


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project in which a recipe was built once, as the working folder."""
    folder = tmp_path / "project"
    for name in ("cache/artifacts/12", "models/net", "recipes", "docs", "build/net", "home"):
        (folder / name).mkdir(parents=True)
    (folder / "recipes" / "net.yaml").write_text("name: net\n")
    (folder / "models" / "net" / "config.json").write_text("{}")
    (folder / "build" / "net" / "config.pbtxt").write_text("")
    (folder / "build" / ".net.artifact").write_text("")
    (folder / "docs" / "page.md").write_text("mine")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder / "home"))
    return folder


def refuse(out, *, chosen=True, name="net"):
    source = SourceName(f"file:{Path('models/net').absolute()}", None, "model")
    job = SimpleNamespace(traits=SimpleNamespace(delivers=True, sources={"source": source}))
    variant = SimpleNamespace(name=name, jobs=[job], loaded=SimpleNamespace(files=(Path("recipes/net.yaml"),)))
    destination.refuse(Path(out), chosen=chosen, store=Path("cache"), variants=[variant])


REFUSED = {
    "cache": "cache is the store",
    "cache/artifacts": "lies in the store",
    "cache/artifacts/12": "lies in the store",
    "cache/new": "lies in the store",
    ".": "contains the store",
    "..": "contains the store",
    "recipes": "contains the recipe",
    "models": "contains a source",
    "models/net": "is a source",
    "models/net/new": "lies in a source",
    "/": "root of the file system",
    "home": "home folder",
    "build/.previous": "builds move older packages to folders `.previous`",
    "elsewhere/.previous/new": "builds move older packages to folders `.previous`",
    "recipes/net.yaml": "net.yaml is no folder",
    "recipes/net.yaml/new": "net.yaml is no folder",
    "to-store": "lies in the store",
    "to-nothing": "a link that leads to no folder",
    "to-file": "a link that leads to no folder",
    "to-itself": "a link that leads to no folder",
    "pipe": "pipe is no folder",
    "pipe/below": "pipe is no folder",
    "/dev/null": "/dev/null is no folder",
    "/proc/packages": "nothing can be written to /proc",
}


@pytest.mark.parametrize("out", REFUSED)
def test_a_folder_that_packages_would_damage_is_refused(out, project):
    (project / "to-store").symlink_to("cache/artifacts")
    (project / "to-nothing").symlink_to("gone")
    (project / "to-file").symlink_to("docs/page.md")
    (project / "to-itself").symlink_to("to-itself")
    os.mkfifo(project / "pipe")
    with pytest.raises(UsageError) as refused:
        refuse(out)
    assert REFUSED[out] in str(refused.value), str(refused.value)
    assert "-o" in refused.value.hint


@pytest.mark.parametrize("out", ["build", "new", "new/deep", "docs", "to-build", "../beside", "cache2"])
def test_any_other_folder_is_fine(out, project):
    (project / "to-build").symlink_to("build")
    refuse(out)
    assert not (project / "new").exists()


def test_a_package_in_the_place_of_something_else_is_refused_also_in_the_default_folder(project):
    (project / "build" / "mine").mkdir()
    (project / "build" / "mine" / "file").write_text("mine")
    with pytest.raises(StoreError, match="is in the way"):
        refuse("build", chosen=False, name="mine")
    with pytest.raises(UsageError, match="cannot go to"):
        refuse(".", chosen=False, name="models")
    with pytest.raises(UsageError, match="cannot go to"):
        refuse(".", chosen=False, name="cache")
    refuse(".", chosen=False, name="other")
