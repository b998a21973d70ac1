"""The JUnit report for GitLab: a suite for each recipe, a case for each job, and nothing outside of GitLab's CI."""

import xml.etree.ElementTree as ET

import pytest

from engine import cli
from engine.errors import StepError
from engine.events import Ended, Refused
from engine.report import junit

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
    return lambda: ET.parse(tmp_path / junit.FILE).getroot()


def test_each_job_is_a_case_with_its_time_its_file_and_its_error(report):
    junit.write(EVENTS, {"net": "recipes/net.yaml"})
    suites = {suite.get("name"): suite for suite in report()}
    assert list(suites) == ["net", "other", "wrong.yaml"]
    net = suites["net"]
    assert {name: net.get(name) for name in ("tests", "failures", "skipped", "time")} == {
        "tests": "3", "failures": "1", "skipped": "1", "time": "2.000",
    }  # fmt: skip
    export, fuse, bench = net
    assert export.attrib == {
        "name": "export", "classname": "net", "time": "1.500", "file": "recipes/net.yaml",
    }  # fmt: skip
    assert fuse.find("failure").get("message") == "no\ufffd node <x>"
    assert "hint: mend it" in fuse.find("failure").text
    assert bench.find("skipped") is not None
    assert suites["other"][0].find("skipped").get("message") == "waits for T4; run it there"
    assert suites["wrong.yaml"].get("failures") == "1"


def test_a_later_command_replaces_its_own_suites_and_keeps_the_others(report):
    junit.write(EVENTS[:1], {})
    junit.write([Ended("net", "export", "cached"), Ended("third", "export", "built")], {})
    assert [(suite.get("name"), suite.get("time")) for suite in report()] == [("net", "0.000"), ("third", "0.000")]


def test_an_unreadable_report_is_replaced(report, tmp_path):
    (tmp_path / junit.FILE).write_text("<not xml")
    junit.write(EVENTS[:1], {})
    assert len(report()) == 1


def test_outside_of_gitlab_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITLAB_CI", raising=False)
    junit.write(EVENTS, {})
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_recipe_is_a_case_with_its_file(report, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.yaml").write_text("nam: a\n")
    with pytest.raises(SystemExit):
        cli.main(["check", "r.yaml"])
    (suite,) = report()
    assert suite.get("name") == "r.yaml"
    assert "did you mean `name`?" in suite[0].find("failure").text
