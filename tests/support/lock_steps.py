"""Steps for the tests of locks: some differ from build to build, some depend on the machine, one waits for a GPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from engine.step import Device, Hardware, Source, Step


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
