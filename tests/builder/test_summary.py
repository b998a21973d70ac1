"""What is shown of a build follows its plan and what its steps are, not what they are called."""

from types import SimpleNamespace
from typing import ClassVar

from engine.builder.jobs import Job
from engine.builder.summary import Summary
from engine.step import Section, Step


class Load(Step):
    makes: ClassVar[str] = "loaded"
    carries_model: ClassVar[bool] = True
    describes_model: ClassVar[bool] = True

    def run(self, out): ...


class Prune(Step):
    makes: ClassVar[str] = "pruned"
    after: ClassVar[str] = "load"

    def run(self, out, *, loaded): ...


class Time(Step):
    makes: ClassVar[str] = "times"
    section: ClassVar[Section | None] = Section.BENCH

    def run(self, out, *, loaded): ...


class Wrap(Step):
    makes: ClassVar[str] = "wrapped"
    delivers: ClassVar[bool] = True

    def run(self, out, *, pruned): ...


JOBS = (
    Job("r", "load", Load(), {}),
    Job("r", "prune", Prune(), {"loaded": "load"}),
    Job("r", "time", Time(), {"loaded": "load"}),
    Job("r", "wrap", Wrap(), {"pruned": "prune"}),
)


def summary(**records):
    made = {name: SimpleNamespace(name=name, report=report) for name, report in records.items()}
    return Summary(SimpleNamespace(jobs=JOBS), made)


def test_the_model_is_the_last_that_was_made_before_the_package():
    assert summary(load={}, prune={}, time={}, wrap={}).model.name == "prune"
    assert summary(load={}, time={}, wrap={}).model.name == "load"
    assert summary(time={}, wrap={}).model is None


def test_reports_facts_and_package_are_found_by_what_a_step_is():
    shown = summary(load={"parameters": 3}, time={"rows": [1]}, wrap={})
    assert shown.report(Section.BENCH) == {"rows": [1]}
    assert shown.report(Section.VALIDATION) == {}
    assert shown.facts == {"parameters": 3}
    assert shown.delivered.name == "wrap"
    assert shown.taken(Section.BENCH, "loaded").name == "load"
    assert shown.taken(Section.BENCH, "other") is None
    assert summary().taken(Section.VALIDATION, "loaded") is None
