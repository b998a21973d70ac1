"""What earlier releases wrote reads today, or is refused by name, and is never taken for something else."""

import json
import shutil
from pathlib import Path

import pytest
from corpus import make

from engine.builder import jobs, registry
from engine.builder.job import current_report, read_report
from engine.errors import Exit, RecipeError
from engine.events import Ended, Finished, Planned, Started
from engine.lockfile import text as lock_text
from engine.recipe import extends, outline
from engine.recipe.load import load
from engine.report import json_lines
from engine.reporting import TypedReport
from engine.store import layout
from engine.store.sealed import sealed, unsealed
from engine.store.store import Store
from engine.text.places import Text

HERE = Path(__file__).parent
RELEASES = sorted(path for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit())
LIMIT = 500_000
KEYS = {
    "plan": {"event", "version", "recipe", "jobs"},
    "start": {"event", "recipe", "job"},
    "end": {"event", "recipe", "job", "state", "seconds"},
    "build": {"event", "state", "seconds", "exit", "packages"},
}
"""What docs/stability.md promises of each line."""


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request):
    return request.param


def lines(release):
    return [json.loads(line) for line in (release / "build.jsonl").read_text().splitlines()]


def test_the_corpus_of_a_release_is_small(release):
    assert sum(path.stat().st_size for path in release.rglob("*") if path.is_file()) < LIMIT


def test_recipes_say_what_they_said_and_can_be_planned(release):
    was = json.loads((release / "recipes.json").read_text())
    assert was.keys() == {path.name for path in (release / "recipes").glob("*.yaml")}
    for name, variants in was.items():
        found = load(release / "recipes" / name, must_exist=False)
        said = {each.recipe.name: make.said(each.recipe) for each in found}
        assert said == variants, name
        for each in found:
            plan = jobs.plan(each.recipe, registry.steps())
            assert [job.name for job in plan if job.step.delivers], name


def test_the_recipes_have_every_field():
    latest = RELEASES[-1] / "recipes"
    named = {name for path in latest.glob("*.yaml") for name in path.read_text().replace(":", " ").split()}
    assert set(outline.fields_at([]) or ()) - named == set()


def test_a_recipe_without_a_version_is_of_the_first(release):
    one = (release / "recipes" / "tiny.yaml").read_text()
    assert extends.VERSION_FIELD + ":" not in one


def test_a_lock_reads_and_is_written_as_it_was(release):
    path = release / "tiny.lock"
    lock = lock_text.parse(Text(str(path), path.read_text()))
    assert [*lock.variants] == ["tiny"]
    assert lock_text.dump(lock) == path.read_text()


def test_a_lock_of_another_version_is_refused(release):
    changed = (release / "tiny.lock").read_text().replace("lock: 1\n", "lock: 99\n")
    with pytest.raises(RecipeError, match="99"):
        lock_text.parse(Text("tiny.lock", changed))


@pytest.fixture
def store(release, tmp_path):
    store = Store(tmp_path / "cache")
    for path in (release / "records").glob("*.json"):
        shutil.copyfile(path, store.layout.records / path.name)
    return store


def test_records_are_read_as_they_were_written(release, store):
    found = {record.digest: record for record in store.records()}
    assert len(found) == len(list((release / "records").glob("*.json"))) > 0
    for key, record in found.items():
        fields = unsealed((release / "records" / f"{key}.json").read_bytes())
        read = json.loads(json.dumps(record.fields()))
        assert {name: read[name] for name in fields} == fields


def test_reports_read_as_the_types_that_steps_name_or_their_jobs_are_made_again(store):
    kinds = registry.steps()
    typed = [record for record in store.records() if kinds[record.job].report is not None]
    assert typed
    for record in typed:
        current = current_report(kinds[record.job], record)
        assert current is None or isinstance(read_report(kinds[record.job], current), TypedReport)


def test_what_show_says_of_a_build_is_what_was_said(release, store):
    [was] = json.loads((release / "show.json").read_text())
    kinds = registry.steps()
    told = {record.job: current_report(kinds[record.job], record) for record in store.records()}
    for step in was["steps"]:
        record = told[step["job"]]
        if step["job"] == "bench":  # the noise of version 1 was another statistic, and is not read
            step["report"]["rows"] = [{**row, "noise": None} for row in step["report"]["rows"]]
        assert record is None or {**record.report, **step["report"]} == dict(record.report), step["job"]


def test_a_damaged_record_or_one_of_an_unknown_form_is_as_if_it_were_not_there(store):
    for record in list(store.records()):
        path = store.record_path(record.digest)
        whole = path.read_bytes()
        path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        assert store.read(record.digest) is None
        path.write_bytes(sealed({**unsealed(whole), "next_years_field": 1}))
        assert store.read(record.digest) is None
        path.write_bytes(whole)
        assert store.read(record.digest) is not None


def test_the_configurations_of_a_package_are_tritons(release):
    messages = pytest.importorskip("tritonclient.grpc.model_config_pb2")
    text_format = pytest.importorskip("google.protobuf.text_format")
    configs = sorted((release / "package").rglob("config.pbtxt"))
    assert configs
    for path in configs:
        config = text_format.Parse(path.read_text(), messages.ModelConfig())
        assert config.name in ("", path.parent.name)


def test_lines_for_programs_have_the_keys_that_are_promised(release):
    found = lines(release)
    assert {line["event"] for line in found} == KEYS.keys()
    assert all(KEYS[line["event"]] <= line.keys() for line in found)
    assert {line["version"] for line in found if line["event"] == "plan"} == {json_lines.VERSION}


def test_todays_lines_still_say_what_was_said(release):
    events = {
        "plan": lambda line: Planned(line["recipe"], tuple((job["job"], tuple(job["needs"])) for job in line["jobs"])),
        "start": lambda line: Started(line["recipe"], line["job"], Path("log")),
        "end": lambda line: Ended(
            line["recipe"], line["job"], line["state"], line["seconds"], line["key"], line["artifact"],
            Path(line["path"]),
        ),
        "build": lambda line: Finished(
            line["state"], line["seconds"], Exit(line["exit"]), {name: Path(p) for name, p in line["packages"].items()}
        ),
    }  # fmt: skip
    for line in lines(release):
        now = json.loads(json_lines.line(events[line["event"]](line)))
        assert {name: now.get(name) for name in line} == line


def test_the_versions_are_those_that_are_documented():
    page = (HERE.parent.parent / "docs" / "stability.md").read_text()
    rows = {
        line.split("|")[1].strip(): line.split("|")[2].strip() for line in page.splitlines() if line.startswith("|")
    }
    assert rows["the language of recipes"] == str(extends.VERSION)
    assert rows["the lines of `recipe build --json`"] == str(json_lines.VERSION)
    assert rows["the lock"] == lock_text.FORMAT
    assert rows["the store"] == str(layout.FORMAT)
