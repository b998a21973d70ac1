"""What a CI shows: annotations of GitHub at their place, its summary, and the jobs as tests of GitLab."""

import xml.etree.ElementTree as ET

import pytest

from engine import cli
from engine.errors import RecipesError, StepError
from engine.events import Ended, Refused
from engine.recipe.load import load
from engine.report import ci

ON_GITHUB = {"GITHUB_ACTIONS": "true"}


def wrong(path, text):
    """Return the error of a recipe with this text."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    with pytest.raises(Exception, match="yaml") as refused:
        load(path)
    return refused.value


def test_each_wrong_recipe_has_an_annotation_at_its_line_and_only_on_github(tmp_path):
    misspelt = wrong(tmp_path / "recipes" / "r.yaml", "name: a\nmodel: {source: 'hf:a/b'}\nprecison: int8\n")
    other = StepError("50% failed", ["a, b: c", "line\nbreak"])
    environment = {**ON_GITHUB, "GITHUB_WORKSPACE": str(tmp_path)}
    first, second = ci.github_commands(RecipesError([misspelt, other], recipes=2), environment)
    assert first.startswith("::error file=recipes/r.yaml,line=3,col=1::unknown field `precison`")
    assert "%0Ahint: did you mean `precision`?" in first
    assert second == "::error::50%25 failed%0Aa, b: c%0Aline%0Abreak"
    [odd_name] = ci.github_commands(wrong(tmp_path / "a,b:c.yaml", "name: [\n"), ON_GITHUB)
    assert "a%2Cb%3Ac.yaml,line=" in odd_name
    assert ci.github_commands(misspelt, {}) == []


def test_the_summary_of_a_job_grows_and_no_error_stops_a_build(tmp_path):
    summary = tmp_path / "summary"
    ci.summarize_for_github("built", "table", {"GITHUB_STEP_SUMMARY": str(summary)})
    assert not summary.exists()
    environment = {**ON_GITHUB, "GITHUB_STEP_SUMMARY": str(summary)}
    ci.summarize_for_github("recipe build: built", "p50  1 ms\n", environment)
    ci.summarize_for_github("recipe build: up to date", "", environment)
    assert summary.read_text() == (
        "### recipe build: built\n\n```text\np50  1 ms\n```\n\n### recipe build: up to date\n\n"
    )
    ci.summarize_for_github("built", "table", {**ON_GITHUB, "GITHUB_STEP_SUMMARY": str(tmp_path)})


EVENTS = (
    Ended("net", "export", "built", seconds=1.5),
    Ended("net", "fuse", "failed", seconds=0.5, error=StepError("no\x07 node <x>", ["a fact"], "mend it")),
    Ended("net", "bench", "skipped"),
    Ended("other", "trt-build", "waiting", waits_for="T4", advice="run it there"),
    Refused("wrong.yaml", StepError("it is wrong")),
)


@pytest.fixture
def report(tmp_path, monkeypatch):
    """Let the process run in GitLab's CI; return a function that reads the report."""
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path))
    return lambda: ET.parse(tmp_path / ci.JUNIT_FILE).getroot()


def test_each_job_is_a_case_with_its_time_its_file_and_its_error(report):
    ci.write_junit(EVENTS, {"net": "recipes/net.yaml"})
    suites = {suite.get("name"): suite for suite in report()}
    assert list(suites) == ["net", "other", "wrong.yaml"]
    net = suites["net"]
    assert [net.get(name) for name in ("tests", "failures", "skipped", "time")] == ["3", "1", "1", "2.000"]
    export, fuse, bench = net
    assert export.attrib == {"name": "export", "classname": "net", "time": "1.500", "file": "recipes/net.yaml"}
    assert fuse.find("failure").get("message") == "no\ufffd node <x>"
    assert "hint: mend it" in fuse.find("failure").text
    assert bench.find("skipped") is not None
    assert suites["other"][0].find("skipped").get("message") == "waits for T4; run it there"
    assert suites["wrong.yaml"].get("failures") == "1"


def test_a_later_command_replaces_its_own_suites_and_an_unreadable_report(report, tmp_path):
    (tmp_path / ci.JUNIT_FILE).write_text("<not xml")
    ci.write_junit(EVENTS[:1], {})
    ci.write_junit([Ended("net", "export", "cached"), Ended("third", "export", "built")], {})
    assert [(suite.get("name"), suite.get("time")) for suite in report()] == [("net", "0.000"), ("third", "0.000")]


def test_outside_of_gitlab_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITLAB_CI", raising=False)
    ci.write_junit(EVENTS, {})
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_recipe_is_a_case_with_its_file(report, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.yaml").write_text("nam: a\n")
    with pytest.raises(SystemExit):
        cli.main(["check", "r.yaml"])
    (suite,) = report()
    assert suite.get("name") == "r.yaml"
    assert "did you mean `name`?" in suite[0].find("failure").text
