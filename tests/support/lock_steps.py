"""Steps for the tests of locks: some differ from build to build, some depend on the machine, one waits for a GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from engine.step import REPORT, Device, Hardware, Source, Step, TypedReport, write_report


@dataclass(frozen=True, kw_only=True)
class Counted(TypedReport):
    """A measured number."""

    number: int
    by_name: Mapping[str, int]
    unit: str = ""


class Read(Step):
    """Copies a file from outside the store."""

    makes: ClassVar[str] = "text"
    tools: ClassVar[tuple[str, ...]] = ("pyyaml",)
    source: Source

    def run(self, out: Path, *, source: Path) -> None:
        (out / "text.txt").write_bytes(source.read_bytes())


class Dice(Step):
    """Makes other bytes in every build, and says so."""

    makes: ClassVar[str] = "dice"
    reproducible: ClassVar[bool] = False

    def run(self, out: Path, *, text: Path) -> None:
        (out / "dice.txt").write_bytes(os.urandom(8) + (text / "text.txt").read_bytes())


class After(Step):
    """Copies what the dice made."""

    makes: ClassVar[str] = "after"

    def run(self, out: Path, *, dice: Path) -> None:
        (out / "text.txt").write_bytes((dice / "dice.txt").read_bytes())


class Count(Step):
    """Measures another number in every build; later jobs depend on it."""

    makes: ClassVar[str] = "count"
    reproducible: ClassVar[bool] = False
    facts: ClassVar[tuple[str, ...]] = ("cpu.isa",)
    in_lock: ClassVar[tuple[str, ...]] = ("number", "by_name", "unit")
    report: ClassVar[type[TypedReport] | None] = Counted

    def run(self, out: Path, *, text: Path) -> Counted:
        number = int.from_bytes(os.urandom(6))
        report = Counted(number=number, by_name={"a.b": number, "c": 1}, unit=(text / "text.txt").read_text())
        write_report(out, report.to_json())
        return report


class Decide(Step):
    """Copies the number, so that its output depends on what was measured."""

    makes: ClassVar[str] = "decision"
    in_lock: ClassVar[tuple[str, ...]] = ("chosen",)

    def run(self, out: Path, *, count: Path) -> dict[str, object]:
        (out / "text.txt").write_bytes((count / REPORT).read_bytes())
        return {"chosen": "this one", "more": 1}


class Liar(Step):
    """Makes other bytes in every build, and does not say so."""

    makes: ClassVar[str] = "lie"

    def run(self, out: Path, *, text: Path) -> None:
        (out / "dice.txt").write_bytes(os.urandom(8) + (text / "text.txt").read_bytes())


class Local(Step):
    """Depends on the CPU."""

    makes: ClassVar[str] = "local"
    facts: ClassVar[tuple[str, ...]] = ("cpu.isa",)

    def run(self, out: Path, *, text: Path) -> None:
        (out / "text.txt").write_bytes((text / "text.txt").read_bytes())


class Behind(Step):
    """Depends on the CPU through its input."""

    makes: ClassVar[str] = "behind"

    def run(self, out: Path, *, local: Path) -> None:
        (out / "text.txt").write_bytes((local / "text.txt").read_bytes())


class Elsewhere(Step):
    """Runs on a GPU that no machine has."""

    makes: ClassVar[str] = "elsewhere"
    tools: ClassVar[tuple[str, ...]] = ("tensorrt",)
    facts: ClassVar[tuple[str, ...]] = ("gpu.name",)

    def hardware(self) -> Hardware:
        return Hardware(devices=(Device(name="T4", sm=75),), tool="tensorrt")

    def run(self, out: Path, *, text: Path) -> None:
        (out / "text.txt").write_bytes((text / "text.txt").read_bytes())


class Late(Step):
    """Joins what another job made with a file from outside the store."""

    makes: ClassVar[str] = "late"
    source: Source

    def run(self, out: Path, *, source: Path, local: Path) -> None:
        (out / "text.txt").write_bytes((local / "text.txt").read_bytes() + source.read_bytes())


def source(path: Path) -> Source:
    """Return a file as the source of a step."""
    return Source(uri=f"file:{path}")
