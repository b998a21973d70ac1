"""Each job of the shipped recipes has exactly the rows of the snapshot in its key: a row that gets lost is noticed."""

from pathlib import Path

import pytest

from engine.api import plan
from engine.builder.live_rows import LiveRows
from engine.builder.lookup import Lookup
from engine.builder.sources import Resolved
from engine.machine import local_gpus, tools
from engine.machine.local_gpus import LocalGpu
from engine.store.store import Store

RECIPES = sorted((Path(__file__).parent.parent.parent / "recipes").glob("*.yaml"))


@pytest.fixture
def lookup(tmp_path, monkeypatch):
    """Return a look-up on a machine with a T4 and ONNX Runtime for CPUs, which reads no source."""
    monkeypatch.setitem(tools._versions, "onnxruntime-gpu", tools.MISSING)
    monkeypatch.setattr(local_gpus, "gpus", lambda: (LocalGpu("Tesla T4", 75, "550.54"),))
    monkeypatch.setattr(Lookup, "source", lambda self, source: Resolved("content", "place"))
    return Lookup(Store(tmp_path / "cache"))


def test_the_keys_of_the_shipped_recipes_have_these_rows(lookup, snapshot):
    assert RECIPES
    rows = {}
    for path in RECIPES:
        for variant in plan(path):
            for job in variant.jobs:
                names = lookup.key(job, dict.fromkeys(job.needs, "content"))
                rows.setdefault(job.name, {}).setdefault(" ".join(names), []).append(variant.name)
    lines = []
    for name, kinds in sorted(rows.items()):
        for names, variants in kinds.items():
            lines += [f"{name} of {', '.join(variants)}", *(f"  {row}" for row in names.split())]
    assert "\n".join(lines) == snapshot


def test_a_secret_is_a_digest_in_a_key_and_its_change_shows(tmp_path, monkeypatch):
    rows = []
    for value in ("open-sesame-1", "open-sesame-2"):
        monkeypatch.setenv("TEAM_TOKEN", value)
        monkeypatch.setenv("SEED", value)
        rows.append(LiveRows(Store(tmp_path / "cache")).variables(["TEAM_TOKEN", "SEED"]))
        assert rows[-1]["SEED"] == value
        assert "sesame" not in rows[-1]["TEAM_TOKEN"]
    assert rows[0]["TEAM_TOKEN"] != rows[1]["TEAM_TOKEN"]
