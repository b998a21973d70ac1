"""Steps that tell where and when they ran, for the tests of executors."""

from __future__ import annotations

import os
import random
import signal
import time
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from engine.step import Device, Hardware, Report, Step


def wait_for(file: str) -> None:
    """Wait until a test has made a file."""
    while not os.path.exists(file):
        time.sleep(0.01)


class Tell(Step):
    """Takes its time, and tells where and when it ran."""

    makes: ClassVar[str] = "place"
    number: int = 0
    seconds: float = 0.0

    def run(self, out: Path) -> Report:
        began = time.time()
        print("begun", flush=True)
        time.sleep(self.seconds)
        (out / "number").write_text(str(self.number))
        return {"place": str(out), "pid": os.getpid(), "began": began, "ended": time.time()}


class TellAlone(Tell):
    """The same, with nothing beside it on its machine."""

    makes: ClassVar[str] = "place_alone"
    exclusive: ClassVar[bool] = True


class TellLarge(Tell):
    """The same, for a machine with room in its memory. A test says how much."""

    makes: ClassVar[str] = "place_large"
    needs_memory: ClassVar[int] = 0


class TellWide(Tell):
    """The same, on two CPUs."""

    makes: ClassVar[str] = "place_wide"
    needs_cpus: ClassVar[int] = 2


class After(Step):
    """Reads what `Tell` wrote."""

    makes: ClassVar[str] = "after"

    @classmethod
    def for_recipe(cls, recipe):
        return cls()

    def run(self, out: Path, *, place: Path) -> Report:
        (out / "number").write_text((place / "number").read_text() + "!")
        return {"place": str(out), "began": time.time()}


class Allocate(Step):
    """Uses memory."""

    makes: ClassVar[str] = "nothing"
    mib: int = 200

    def run(self, out: Path) -> None:
        block = bytearray(self.mib << 20)
        block[:: 1 << 12] = b"x" * len(block[:: 1 << 12])
        time.sleep(0.5)
        (out / "done").write_text("")


class Endless(Step):
    """Never ends by itself."""

    makes: ClassVar[str] = "end"
    time_limit: ClassVar[float] = 1.0

    def run(self, out: Path) -> None:
        print("waiting", flush=True)
        time.sleep(600)


class DieOnce(Step):
    """Is killed by the system in its first run."""

    makes: ClassVar[str] = "life"
    mark: str

    def run(self, out: Path) -> None:
        if not os.path.exists(self.mark):
            Path(self.mark).write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        (out / "done").write_text("")


PERCENTAGES = (0, 25, 50, 75)
"""What `Gradual` prints."""


class Gradual(Step):
    """Prints how far it is, and goes on as soon as a test that has seen the line has made a file."""

    makes: ClassVar[str] = "whole"
    time_limit: ClassVar[float] = 300.0
    seen: str
    """The name of the files, without the percentage at its end."""

    def run(self, out: Path) -> None:
        for percent in PERCENTAGES:
            print(f"{percent}%  done", flush=True)
            wait_for(f"{self.seen}{percent}")
        (out / "done").write_text("")


class OnT4(Step):
    """Needs a T4, its driver and a tool, waits for a test's file, and writes the tool's version."""

    makes: ClassVar[str] = "t4"
    tools: ClassVar[tuple[str, ...]] = ("toy-tool",)
    facts: ClassVar[tuple[str, ...]] = ("gpu.driver",)
    time_limit: ClassVar[float] = 300.0
    gate: str

    def hardware(self) -> Hardware:
        return Hardware(devices=(Device(name="T4", sm=75),), tool="toy-tool")

    def run(self, out: Path) -> None:
        wait_for(self.gate)
        (out / "tool").write_text(import_module("toy_tool").VERSION)


class Weights(Step):
    """Writes a small file, which is in the record, and a large one, which is a blob that is asked for."""

    makes: ClassVar[str] = "weights"
    number: int = 0

    def run(self, out: Path) -> Report:
        (out / "name").write_text(str(self.number))
        (out / "weights").write_bytes(random.Random(self.number).randbytes(100_000))
        return {"place": str(out), "began": time.time()}


class Shuffle(Step):
    """Turns weights round."""

    makes: ClassVar[str] = "shuffled"

    @classmethod
    def for_recipe(cls, recipe):
        return cls()

    def run(self, out: Path, *, weights: Path) -> Report:
        (out / "shuffled").write_bytes((weights / "weights").read_bytes()[::-1])
        return {"place": str(out), "began": time.time()}


class Ship(Step):
    """Delivers both, with a text of its own options."""

    makes: ClassVar[str] = "shipped"
    delivers: ClassVar[bool] = True
    text: str = ""

    def run(self, out: Path, *, weights: Path, shuffled: Path) -> Report:
        (out / "both").write_bytes((weights / "weights").read_bytes() + (shuffled / "shuffled").read_bytes())
        (out / "text").write_text(self.text)
        return {"place": str(out), "began": time.time()}


class ShipOne(Step):
    """Delivers weights."""

    makes: ClassVar[str] = "shipped_one"
    delivers: ClassVar[bool] = True

    @classmethod
    def for_recipe(cls, recipe):
        return cls()

    def run(self, out: Path, *, weights: Path) -> None:
        (out / "weights").write_bytes((weights / "weights").read_bytes())
