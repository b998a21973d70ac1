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
    assert (
        len(json.loads(project("cache", "gc", "--older-than", "0s", "--json", "--yes", expect=0).stdout)["records"])
        == 2
    )


def left(project):
    return len(list((project.folder / "cache" / "records").iterdir()))


@pytest.mark.sample(1)
@pytest.mark.parametrize("limits", [["--max-size", "5B"], ["--older-than", "0s"], ["--max-size", "700B", "--json"]])
def test_without_a_terminal_more_than_half_goes_only_with_yes(project, limits):
    refused = project("cache", "gc", *limits, expect=2)
    assert "this would remove more than half of the store" in refused.stderr
    assert "--yes" in refused.stderr
    assert left(project) == 3
    assert "would remove" in project("cache", "gc", *limits[:2], "--dry-run", expect=0).stdout
    assert left(project) == 3
    project("cache", "gc", *limits, "--yes", expect=0)
    assert left(project) < 2


def test_half_of_the_bytes_count_also_where_they_are_one_record_of_many(project):
    store = Store(project.folder / "cache")
    put(store, {"options.n": "large"}, {"model.onnx": "large" * 5000}, job="export")
    store.leave()
    # The large record is the youngest, so that a limit below its size removes everything.
    assert "4 of 4 records" in project("cache", "gc", "--max-size", "1kB", expect=2).stderr
    assert "removed 2 records" in project("cache", "gc", "--max-size", "25.5kB", expect=0).stdout


@pytest.mark.parametrize(
    ("answer", "code", "count"),
    [
        ("y", 0, 0),
        pytest.param("YES", 0, 0, marks=pytest.mark.whole("the answer y is enough")),
        ("", 2, 3),
        pytest.param("n", 2, 3, marks=pytest.mark.whole("an empty answer is enough")),
    ],
)
def test_on_a_terminal_gc_shows_what_goes_and_asks(project, answer, code, count):
    output, status = project.on_terminal("cache", "gc", "--older-than", "0s", answer=answer)
    assert status == code
    assert output.index("would remove export") < output.index("remove it? [y/N]")
    assert ("nothing was removed" in output) == (code == 2)
    assert left(project) == count


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gc", "--max-size", "many"], "'many' is no size: write 20GB or 512MiB"),
        (["gc", "--max-size", "5"], "'5' has no unit: write 5GiB or 5MiB; 5B if bytes are meant"),
        (["gc", "--max-size", "5000000"], "'5000000' has no unit"),
        (["gc", "--max-size", "5ms"], "'5ms' is no size"),
        (["gc", "--max-size", "-5GB"], "argument --max-size"),
        (["gc", "--older-than", "yesterday"], "'yesterday' is no age: write 30d, 12h or 2w"),
        (["gc", "--older-than", "30"], "'30' has no unit: write 30d for days"),
        (["gc", "--older-than", "1M"], "'1M' may mean minutes or months"),
        (["gc", "--older-than", "5ms"], "'5ms' is no age"),
        (["gc", "--older-than", "nan"], "'nan' is no age"),
        (["verify", "-j", "2x"], "'2x' is no whole number: write 2"),
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
    ("text", "size"),
    [("20GB", 20 * 10**9), ("512MiB", 512 << 20), ("1.5g", 1_500_000_000), ("7B", 7), ("5 gb", 5 * 10**9)],
)
def test_sizes(text, size):
    assert amounts.size(text) == size


@pytest.mark.parametrize(("text", "seconds"), [("30d", 30 * 86400), ("12h", 43200), ("0.5m", 30), ("2w", 14 * 86400)])
def test_ages(text, seconds):
    assert amounts.age(text) == seconds
