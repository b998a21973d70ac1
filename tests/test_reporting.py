"""Reports: written as JSON, and read back as equal values or refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pytest

from engine.builder.job import current_report, read_report, report_version
from engine.reporting import WRITTEN, TypedReport, lines, measured, numbers, significant
from engine.step import Step


@dataclass(frozen=True)
class Part:
    name: str
    share: float | str

    def line(self, number):
        return f"{number.label} {self.name}"


@dataclass(frozen=True, kw_only=True)
class Whole(TypedReport):
    version: ClassVar[int] = 3

    count: int
    kind: Literal["a", "b"]
    parts: tuple[Part, ...] = ()
    pair: tuple[int, float] | None = None
    by_name: Mapping[str, Part] = field(default_factory=dict)
    unknown: str | None = field(default=None, metadata=WRITTEN)
    took: float | None = field(default=None, metadata=measured("took", unit="ms", digits=2))
    first: Part | None = field(default=None, metadata=significant("first", digits=2))
    inner: Whole | None = None

    @classmethod
    def migrated(cls, raw, version):
        if version != 2:
            return super().migrated(raw, version)
        return {("count" if name == "number" else name): value for name, value in raw.items()}  # it was renamed


FULL = Whole(
    count=2, kind="b", parts=(Part("x", 0.5), Part("y", "infinite")), pair=(1, 2.5), by_name={"z": Part("z", 1)},
    unknown="no", took=1.2345, first=Part("x", 1.0), inner=Whole(count=0, kind="a"),
)  # fmt: skip
LEAST = Whole(count=1, kind="a")


@pytest.mark.parametrize("report", [FULL, LEAST])
def test_a_report_reads_back_from_its_json_as_what_it_was(report):
    assert Whole.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_what_has_its_default_is_left_out_but_for_what_is_said_anyway():
    assert LEAST.to_json() == {"count": 1, "kind": "a", "unknown": None}


@pytest.mark.parametrize(
    "change",
    [
        {"count": "1"}, {"count": True}, {"count": 1.5}, {"kind": "c"}, {"parts": [{"name": "x"}]},
        {"parts": {"name": "x", "share": 1}}, {"pair": [1]}, {"pair": [1, None]}, {"by_name": []}, {"took": "1"},
        {"renamed": 1},
    ],
)  # fmt: skip
def test_what_is_no_report_of_the_type_is_refused(change):
    with pytest.raises(ValueError, match=r"is no|is none of|are not the fields|has not|lacks"):
        Whole.from_json({**LEAST.to_json(), **change})


def test_a_field_without_a_default_must_be_there():
    with pytest.raises(ValueError, match="Whole lacks count"):
        Whole.from_json({"kind": "a"})


def test_only_labelled_fields_that_are_known_are_shown_each_with_its_digits_and_unit():
    assert list(lines(FULL)) == ["took 1.23 ms", "first x"]
    assert list(lines(LEAST)) == []
    assert list(numbers(Whole)) == ["took", "first"]


class Typed(Step):
    makes: ClassVar[str] = "typed"
    report: ClassVar[type[TypedReport] | None] = Whole

    def run(self, out): ...


class Plain(Step):
    makes: ClassVar[str] = "plain"

    def run(self, out): ...


@dataclass(frozen=True)
class Filed:
    report: Mapping[str, object]
    report_version: int


def test_a_record_of_an_older_version_reads_by_its_migration_and_is_shown_as_of_this_one():
    old = Filed({"kind": "a", "number": 4}, 2)
    assert read_report(Typed, old) == Whole(count=4, kind="a")
    assert current_report(Typed, old) == Filed({"count": 4, "kind": "a", "unknown": None}, 3)


@pytest.mark.parametrize(
    "old",
    [Filed(LEAST.to_json(), 1), Filed(LEAST.to_json(), 4), Filed({"kind": "a", "number": "x"}, 2), Filed({}, 3)],
    ids=["too old", "newer", "migrated to nonsense", "damaged"],
)
def test_a_record_that_does_not_read_counts_as_not_there(old):
    assert current_report(Typed, old) is None


def test_a_step_without_a_type_has_its_report_as_it_was_filed():
    filed = Filed({"anything": [1, {"a": None}]}, 1)
    assert read_report(Plain, filed) == filed.report
    assert current_report(Plain, filed) is filed
    assert (report_version(Plain), report_version(Typed)) == (1, 3)
