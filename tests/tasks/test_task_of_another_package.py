"""A task of another installed package: one file and an entry point, and recipes may say it."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import models
import pytest
from program import Program

GUIDE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text().partition("## Add a task\n")[2]
[TASK] = re.findall(r"```python\n(.*?)```", GUIDE.partition("\n## ")[0], flags=re.DOTALL)
"""What the guide shows is what is tried."""
[POINT] = re.findall(r"```toml\n(.*?)```", GUIDE.partition("\n## ")[0], flags=re.DOTALL)
[(GROUP, POINTS)] = tomllib.loads(POINT)["project"]["entry-points"].items()
ENTRY = "\n".join(f"{name} = {value}" for name, value in POINTS.items())
RECIPE = "name: pairs\nmodel: {source: model, task: next-sentence}\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A project with the package installed beside it, built."""
    folder = tmp_path_factory.mktemp("next-sentence")
    (folder / "pyproject.toml").write_text("")
    project = Program(folder)
    install(folder, project)
    models.checkpoint(folder / "model", "bert", task="next-sentence")
    (folder / "r.yaml").write_text(RECIPE)
    project("build", "r.yaml", expect=0)
    return project


def install(folder, project, *, entry=ENTRY, code=TASK):
    site = folder / "site"
    info = site / "next_sentence-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "next_sentence.py").write_text(code)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: next-sentence\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{entry}\n")
    project.environment["PYTHONPATH"] = str(site)


@pytest.fixture
def project(tmp_path, built):
    """A copy of it, to change."""
    shutil.copytree(built.folder, tmp_path / "copy")
    copy = Program(tmp_path / "copy")
    copy.environment["PYTHONPATH"] = str(tmp_path / "copy" / "site")
    return copy


def test_its_recipe_builds_and_is_validated_on_pairs(built):
    [summary] = json.loads(built("show", "r.yaml", "--json", expect=0).stdout)
    assert "built-in" in json.dumps(summary)
    config = (built.folder / "build" / "pairs" / "pairs_text" / "config.pbtxt").read_text()
    assert "next-sentence" in config
    assert "dims: 2" in config


def test_its_package_gives_its_own_answers(built):
    folder = built.folder / "build" / "pairs" / "pairs_postprocess" / "1"
    assert json.loads((folder / "settings.json").read_text())["labels"] == ["follows", "random"]


def test_a_build_has_nothing_to_do_afterwards(built):
    assert set(built.states("r.yaml").values()) == {"cached"}


@pytest.mark.whole
def test_an_edit_of_it_rebuilds_the_jobs_that_use_it_and_a_comment_none(project):
    file = project.folder / "site" / "next_sentence.py"
    file.write_text(TASK + "\n# a remark\n")
    assert {reasons["state"] for reasons in project.why("r.yaml").values()} == {"cached"}
    file.write_text(TASK.replace('"random"]', '"unrelated"]'))
    reasons = project.why("r.yaml")
    stale = {job for job, finding in reasons.items() if finding["state"] == "stale"}
    assert stale == {"export", "reference"}
    assert {change["row"] for job in stale for change in reasons[job]["changes"]} == {"code"}
    states = project.states("r.yaml")
    assert {job for job, state in states.items() if state == "built"} == {"export", "reference", "validate", "package"}


def test_check_lists_it_beside_our_own(project):
    (project.folder / "r.yaml").write_text(RECIPE.replace("next-sentence", "next-sentense"))
    error = project("check", "r.yaml", expect=2).stderr
    assert "r.yaml:2:30: `model.task` cannot be the text 'next-sentense'" in error
    assert "did you mean `next-sentence`?" in error
    assert "next-sentence" in project("schema", expect=0).stdout


def test_without_the_package_the_recipe_is_refused_at_its_place(project):
    del project.environment["PYTHONPATH"]
    error = project("check", "r.yaml", expect=2).stderr
    assert "r.yaml:2:30: `model.task` cannot be the text 'next-sentence'" in error


def test_its_place_in_the_table_of_parts_is_kept(project):
    (project.folder / "r.yaml").write_text(RECIPE + "package: {triton: {models: {stream: {max_batch_size: 1}}}}\n")
    error = project("check", "r.yaml", expect=2).stderr
    assert "a package for next-sentence has no model `stream`" in error


@pytest.mark.parametrize(
    ("entry", "code", "says"),
    [
        ("fill-mask = next_sentence:TASK", TASK, "two tasks are called 'fill-mask'"),
        ("next-sentence = next_sentence:LABELS", TASK, "does not hold the task 'next-sentence'"),
        ("next-sentence = next_sentence:TASK", "import nothing_of_this_name", "the task 'next-sentence' of"),
    ],
)
@pytest.mark.sample(1)
def test_what_is_no_task_of_its_own_names_its_package(project, entry, code, says):
    shutil.rmtree(project.folder / "site")
    install(project.folder, project, entry=entry, code=code)
    error = project("check", "r.yaml", expect=1).stderr
    assert says in error
    assert "next_sentence" in error
