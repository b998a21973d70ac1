"""Plugins of pydantic that are installed beside the program are not asked how a recipe is read."""

import pytest

PLUGIN = """\
from pathlib import Path

Path("imported").touch()
raise ImportError("only its import is watched")
"""
RECIPE = "name: r\nmodel: {source: model}\nprecision: int9\n"


@pytest.fixture
def with_plugin(empty):
    folder = empty.folder / "installed"
    listing = folder / "listener-1.dist-info"
    listing.mkdir(parents=True)
    (listing / "METADATA").write_text("Metadata-Version: 2.1\nName: listener\nVersion: 1\n")
    (listing / "entry_points.txt").write_text("[pydantic]\nlistener = listener:plugin\n")
    (folder / "listener.py").write_text(PLUGIN)
    (empty.folder / "r.yaml").write_text(RECIPE)
    empty.environment["PYTHONPATH"] = str(folder)
    return empty


@pytest.mark.parametrize(("variables", "is_imported"), [({}, False), ({"PYDANTIC_DISABLE_PLUGINS": ""}, True)])
def test_a_recipe_is_read_without_plugins_unless_a_user_wants_them(with_plugin, variables, is_imported):
    with_plugin.environment |= variables
    assert "precision" in with_plugin("check", "r.yaml", expect=2).stderr
    assert (with_plugin.folder / "imported").exists() is is_imported
