"""Stores are opened in one place, which checks whose they are and puts the remote behind them."""

import ast
import shutil
from pathlib import Path

import pytest

import engine
from engine.errors import UsageError
from engine.store.opening import open_store


def nodes(*names):
    """Yield the syntax nodes of the program that may be about one of these names, each with its module."""
    folder = Path(engine.__file__).parent
    for path in folder.rglob("*.py"):
        text = path.read_text()
        if any(name in text for name in names):
            yield from ((path.relative_to(folder).as_posix(), node) for node in ast.walk(ast.parse(text)))


def calling(name):
    """Return the modules of the program that call a function or class of this name."""
    called = ((module, node.func) for module, node in nodes(f"{name}(") if isinstance(node, ast.Call))
    return {module for module, each in called if name in (getattr(each, "id", None), getattr(each, "attr", None))}


def naming_aside(name):
    """Return the modules that import a class under another name, or inherit from it."""
    return {
        module
        for module, node in nodes(f"{name} as", f"({name}")
        if (isinstance(node, ast.ImportFrom) and any(each.name == name and each.asname for each in node.names))
        or (isinstance(node, ast.ClassDef) and any(getattr(base, "id", None) == name for base in node.bases))
    }


def test_one_module_makes_stores_and_every_command_asks_it_and_remotes_are_made_there_and_for_archives():
    assert calling("Store") == {"store/opening.py"}
    assert naming_aside("Store") == set()
    assert {"api.py", "builder/plan_cache.py", "commands/cache_sharing.py"} <= calling("open_store")
    assert calling("Tier") == {"store/opening.py", "commands/cache_sharing.py"}


def test_a_store_of_somebody_else_is_not_opened(tmp_path, monkeypatch):
    monkeypatch.delenv("RECIPE_TRUST_CACHE")
    own = open_store(tmp_path / "cache")
    own.write(own.layout.records / "x.json", b"{}")
    own.leave()
    assert open_store(tmp_path / "cache").root == tmp_path / "cache"
    shutil.copytree(tmp_path / "cache", tmp_path / "copy")
    before = sorted(path.name for path in (tmp_path / "copy").rglob("*"))
    with pytest.raises(UsageError, match="is not yours: nothing in it was read"):
        open_store(tmp_path / "copy")
    assert sorted(path.name for path in (tmp_path / "copy").rglob("*")) == before


def test_the_remote_of_the_settings_is_behind_a_store_of_a_project(tmp_path, monkeypatch):
    monkeypatch.setenv("RECIPE_REMOTE", f"file://{tmp_path}/shared")
    assert open_store(tmp_path / "cache").tier is None
    store = open_store(tmp_path / "cache", project=tmp_path)
    assert store.tier.settings.url == f"file://{tmp_path}/shared"
    store.tier.close()
