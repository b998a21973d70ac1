"""`recipe cache ...` as users type it."""

import json
import random

import pytest
from program import Program
from stores import flip, put

from engine.commands import amounts
from engine.store.store import Store

KEYS = [{"options.n": str(number)} for number in range(3)]


@pytest.fixture
def project(tmp_path):
    """A project whose store holds three records of 1.5 kB together."""
    (tmp_path / "pyproject.toml").write_text("")
    store = Store(tmp_path / "cache")
    for number, key in enumerate(KEYS):
        put(store, key, {"model.onnx": str(number) * 500}, job="export")
    store.leave()
    return Program(tmp_path)


def test_a_whole_store_is_called_whole(project):
    output = project("cache", "verify", expect=0).stdout
    assert "3 records, 3 files" in output
    assert "everything is as it was stored" in output


def test_damage_is_named_put_aside_and_counted(project):
    path = next((project.folder / "cache" / "artifacts").rglob("model.onnx"))
    flip(path, random.Random(1))
    output = project("cache", "verify", expect=1).stdout
    assert f"damaged  artifacts/{path.parent.name}: the content of model.onnx is not what was stored" in output
    assert "put aside" in project("cache", "stats", expect=0).stdout
    assert "everything is as it was stored" in project("cache", "verify", expect=0).stdout
    assert "would remove 0 records" in project("cache", "gc", "--dry-run", expect=0).stdout
    project("cache", "gc", expect=0)
    assert list((project.folder / "cache" / "quarantine").iterdir()) == []


def test_machines_read_the_verdict(project):
    path = next((project.folder / "cache" / "records").iterdir())
    flip(path, random.Random(1))
    verdict = json.loads(project("cache", "verify", "--json", expect=1).stdout)
    assert [damage["path"] for damage in verdict["damaged"]] == [f"records/{path.name}"]
    assert verdict["orphans"] == 1


def test_collection_by_size_and_age(project):
    dry = project("cache", "gc", "--max-size", "1kB", "--dry-run", expect=0).stdout
    assert "would remove export" in dry
    assert "would remove 1 records with 500 bytes" in dry
    removed = json.loads(project("cache", "gc", "--max-size", "1kB", "--json", expect=0).stdout)
    assert [record["step"] for record in removed["records"]] == ["export"]
    assert removed["left_bytes"] == 1000
    assert json.loads(project("cache", "gc", "--older-than", "1d", "--json", expect=0).stdout)["records"] == []
    assert len(json.loads(project("cache", "gc", "--older-than", "0s", "--json", expect=0).stdout)["records"]) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gc", "--max-size", "many"], "'many' is no size: write 20GB or 512MiB"),
        (["gc", "--older-than", "yesterday"], "'yesterday' is no age: write 30d, 12h or 2w"),
        (["verify", "-j", "0"], "0 is not from 1 to 1024"),
        (["verify", "--cache", "nowhere"], "there is no store at nowhere"),
        (["gc", "missing.yaml"], "missing.yaml"),
    ],
)
def test_what_makes_no_sense_is_one_error(project, words, message):
    done = project("cache", *words, expect=2)
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("text", "size"), [("20GB", 20 * 10**9), ("512MiB", 512 << 20), ("1.5g", 1_500_000_000), ("7", 7), ("3 kB", 3000)]
)
def test_sizes(text, size):
    assert amounts.size(text) == size


@pytest.mark.parametrize(("text", "seconds"), [("30d", 30 * 86400), ("12h", 43200), ("0.5m", 30), ("2w", 14 * 86400)])
def test_ages(text, seconds):
    assert amounts.age(text) == seconds
