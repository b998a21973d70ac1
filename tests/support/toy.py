"""Small steps that make and break things quickly, for the tests of everything around steps."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path
from typing import Any, ClassVar

from engine.errors import JudgementError, StepError
from engine.step import Report, Source, Step


class Begin(Step):
    """Writes a text."""

    makes: ClassVar[str] = "text"
    text: str = "hello"

    def run(self, out: Path) -> Report:
        print("writing")
        (out / "text.txt").write_text(self.text)
        return {"length": len(self.text)}


class Read(Step):
    """Copies a file from outside the store."""

    makes: ClassVar[str] = "text"
    source: Source

    def run(self, out: Path, *, source: Path) -> None:
        (out / "text.txt").write_bytes(source.read_bytes())


class ReadLate(Step):
    """Copies a file of an input as soon as a file `go` lies in the folder of the job's log, and then writes `read`."""

    makes: ClassVar[str] = "copied"
    source: Source
    file: str = ""

    def run(self, out: Path, *, source: Path) -> None:
        copy_late(source / self.file, out)


class ShoutLate(Step):
    """Copies the text of an earlier job as `ReadLate` does."""

    makes: ClassVar[str] = "copied"

    def run(self, out: Path, *, text: Path) -> None:
        copy_late(text / "text.txt", out)


def copy_late(file: Path, out: Path) -> None:
    Path("began").touch()
    while "go" not in os.listdir():
        time.sleep(0.005)
    content = file.read_bytes()
    Path("read").touch()
    (out / "text.txt").write_bytes(content)


class Shout(Step):
    """Turns the text into capitals."""

    makes: ClassVar[str] = "shouted"

    def run(self, out: Path, *, text: Path) -> None:
        (out / "text.txt").write_text((text / "text.txt").read_text().upper())


class Measure(Step):
    """Measures the length; a bound is judged afterwards."""

    makes: ClassVar[str] = "measured"
    judged: ClassVar[tuple[str, ...]] = ("at_most",)
    at_most: int = 1000

    def run(self, out: Path, *, shouted: Path) -> Report:
        length = (shouted / "text.txt").stat().st_size
        (out / "length").write_text(str(length))
        return {"length": length}

    def judge(self, report: Report) -> None:
        if report["length"] > self.at_most:
            raise JudgementError(f"the text has {report['length']} letters, {self.at_most} are allowed")


class Close(Step):
    """Comes after the measurement, but does not read it."""

    makes: ClassVar[str] = "closed"
    gates: ClassVar[tuple[str, ...]] = ("measure",)

    def run(self, out: Path, *, shouted: Path) -> None:
        (out / "done").write_bytes((shouted / "text.txt").read_bytes())


class Misbehave(Step):
    """Fails in the way that it is told to."""

    makes: ClassVar[str] = "trouble"
    how: str
    time_limit: ClassVar[float] = 3.0

    def run(self, out: Path, **_: Any) -> None:
        (out / "half").write_text("half")
        print("about to misbehave", flush=True)
        match self.how:
            case "raise":
                raise StepError("this cannot be", ["fact one"], "do it otherwise")
            case "bug":
                raise ValueError("unforeseen")
            case "segfault":
                ctypes.string_at(0)
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "sleep":
                time.sleep(60)
            case "exit":
                os._exit(7)
            case "secret":
                print("token is " + os.environ["HF_TOKEN"])
            case "secret error":
                raise StepError("no " + os.environ["TOY_TOKEN"])
            case "symlink":
                (out / "link").symlink_to("/etc/passwd")


class Slow(Step):
    """Takes its time, and tells which process it ran in."""

    makes: ClassVar[str] = "slow"
    seconds: float = 0.2
    number: int = 0

    def run(self, out: Path) -> Report:
        time.sleep(self.seconds)
        (out / "number").write_text(str(self.number))
        return {"pid": os.getpid()}


class Listen(Step):
    """Writes down what it sees of the environment."""

    makes: ClassVar[str] = "heard"
    variables: ClassVar[tuple[str, ...]] = ("TOY_LETTER",)

    def run(self, out: Path) -> None:
        (out / "heard").write_text(f"{os.environ.get('TOY_LETTER')}, {os.environ.get('OTHER')}")


class Environment(Step):
    """Reports its whole environment."""

    makes: ClassVar[str] = "environment"

    def run(self, out: Path) -> Report:
        (out / "done").touch()
        return dict(os.environ)


class Spoil(Step):
    """Rewrites its input in place, at the same size, as some quantizers do."""

    makes: ClassVar[str] = "spoiled"

    def run(self, out: Path, *, text: Path) -> None:
        file = text / "text.txt"
        file.chmod(0o644)
        file.write_text(file.read_text()[::-1])
        (out / "done").write_text("")


class Deliver(Step):
    """Delivers the text to the user, after the measurement has passed."""

    makes: ClassVar[str] = "delivered"
    delivers: ClassVar[bool] = True
    gates: ClassVar[tuple[str, ...]] = ("measure",)

    def run(self, out: Path, *, shouted: Path) -> None:
        (out / "model").mkdir()
        (out / "model" / "text.txt").write_bytes((shouted / "text.txt").read_bytes())


class Clocked(Begin):
    """Writes the number of this run into one of two files, as a step that forgets a time does."""

    makes = "text"
    text: str = "hello"

    def run(self, out):
        super().run(out)
        place = out.parents[3] / "count"
        number = int(place.read_text()) + 1 if place.exists() else 0
        place.write_text(str(number))
        (out / "clock.txt").write_text(f"run {number}")


class Drifting(Clocked):
    """Differs, and says so."""

    reproducible = False
