"""`recipe tune` on a small model: trials, the front, the choice, and what ends a search before its first trial."""

import json
import re

import pytest
from models import checkpoint
from program import Program

RECIPE = """name: tiny
model: {source: model, task: text-classification}
profiles: [{batch: [1, 1, 4], sequence: [1, 8, 32]}]
validate: {samples: samples.jsonl}
package: {}
"""
OVER = "over: {precision: [fp32, int8]}"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    checkpoint(folder / "model", task="text-classification")
    (folder / "pyproject.toml").write_text("")
    (folder / "samples.jsonl").write_text('{"text": "good"}\n{"text": "not bad"}\n', "utf-8")
    return Program(folder)


@pytest.fixture
def tune(project):
    def write(text, more=""):
        (project.folder / "r.yaml").write_text(f"{RECIPE}{more}tune: {text}\n", "utf-8")
        return project

    return write


@pytest.mark.slow
def test_a_search_of_one_trial_prints_it_beside_the_json_and_chooses_it(tune):
    done = tune("{minimize: size, trials: 1}")("tune", "r.yaml", "--json", expect=0)
    result = json.loads(done.stdout)
    assert "trial 1: as written: cosine " in done.stderr
    assert ([row["point"] for row in result["trials"]], result["chosen"], result["interrupted"]) == ([{}], 1, False)
    assert not any("rule of three" in note for note in result["notes"]), "no bound on the cosine is asked for"


@pytest.mark.slow
@pytest.mark.whole("a search of one trial always runs")
def test_a_search_names_its_front_and_its_choice_and_writes_it(tune, project):
    tune("{minimize: size, subject_to: {cosine: 0.5}, " + OVER + "}")
    done = project("tune", "r.yaml", "--write", "tuned.yaml", "--report", "page.html", expect=0)
    assert "trial 1: as written: cosine " in done.stdout
    assert "trial 2: precision=int8: cosine " in done.stdout
    assert "chosen: trial 2, precision=int8: its model has " in done.stdout
    assert "of 2 samples; at most 100.0% of other samples are expected below 0.5" in done.stdout
    assert "note: validated on 2 samples" in done.stdout
    assert "trial-2" in (project.folder / "page.html").read_text()
    written = (project.folder / "tuned.yaml").read_text()
    assert written.startswith("# Found by `recipe tune` of r.yaml: the smallest size; cosine at least 0.5.\n")
    assert re.search("^precision: int8$", written, re.MULTILINE)
    assert "tune:" not in written
    project("check", "tuned.yaml", expect=0)


@pytest.mark.slow
@pytest.mark.whole("a search of one trial always runs")
def test_the_json_of_a_search_and_the_nearest_values_of_a_missed_bound(tune, project):
    tune("{minimize: size, subject_to: {cosine: 0.5}, " + OVER + "}")
    repeated = project("tune", "r.yaml", "--json", expect=0)
    again = json.loads(repeated.stdout)
    assert "trial 2: precision=int8: cosine " in repeated.stderr
    assert again["notes"][0].startswith("cosine mean ")
    assert [row["point"] for row in again["trials"]] == [{}, {"precision": "int8"}]
    assert again["chosen"] == 2
    tune("{minimize: size, subject_to: {size: 100B}, " + OVER + "}")
    missed = project("tune", "r.yaml", expect=4)
    assert "none of 2 trials keeps the bounds" in missed.stderr
    assert "size at most 100 bytes is asked for; the best is" in missed.stderr


def test_without_the_gpu_of_the_target_a_search_ends_before_its_first_trial(tune):
    project = tune("{minimize: size}", "target: {device: T4, runtime: tensorrt}\nprecision: fp16\n")
    done = project("tune", "r.yaml", expect=3)
    assert "this machine has no T4 (sm_75)" in done.stderr
    assert "trial 1" not in done.stdout


def test_a_recipe_with_several_variants_needs_one_of_them(tune):
    project = tune("{minimize: size}", "matrix: {precision: [fp32, int8]}\n")
    done = project("tune", "r.yaml", expect=2)
    assert "a search is of one variant, and r.yaml has 2" in done.stderr
    assert "choose one: --only precision=fp32" in done.stderr


WRONG_SIZES = [
    ("{minimize: {p95_ms: {batch: 1, sequense: 16}}}", "the model has no axis `sequense`"),
    ("{maximize: {throughput: {sequence: 12800}}}", "12800 tokens are more than the model has positions for"),
]


@pytest.mark.parametrize("command", ["check", "tune"])
@pytest.mark.parametrize(("text", "what"), WRONG_SIZES, ids=["axis", "size"])
def test_what_cannot_be_measured_is_refused_at_its_place_before_the_first_trial(tune, text, what, command):
    done = tune(text)(command, "r.yaml", expect=2)
    assert what in done.stderr
    assert "r.yaml:6:" in done.stderr
    assert "trial 1" not in done.stdout


def test_an_empty_section_is_an_error_at_its_place(tune):
    done = tune("")("tune", "r.yaml", expect=2)
    assert "the section `tune` is missing or empty" in done.stderr
    assert "r.yaml:6:" in done.stderr


def test_a_recipe_without_the_section_says_what_to_add(project):
    (project.folder / "r.yaml").write_text(RECIPE, "utf-8")
    done = project("tune", "r.yaml", expect=2)
    assert "the section `tune` is missing or empty" in done.stderr
    assert "add `tune: {minimize: " in done.stderr


def test_a_file_that_cannot_have_the_result_is_refused_before_the_search(tune):
    project = tune("{minimize: size}")
    (project.folder / "own.yaml").write_text("name: own\n", "utf-8")
    assert "lies in another folder than r.yaml" in project("tune", "r.yaml", "--write", "model/x.yaml", expect=2).stderr
    assert "no search has written it" in project("tune", "r.yaml", "--write", "own.yaml", expect=2).stderr
