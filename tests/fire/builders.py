"""Starts builders in processes of their own, ends them in all ways, and reads what they said."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from fire.package.fire_steps.telling import PLACE
from fire.project import Delivery, Ground, Project, delivery

_PATIENCE = 300.0
"""Seconds after which a builder counts as stuck."""


class Builder:
    """A running, or ended, program."""

    def __init__(self, builders: Builders, pid: int, output: Path, process: subprocess.Popen[bytes] | None) -> None:
        self.pid = pid
        self.code: int | None = None
        self._builders = builders
        self._output = output
        self._process = process

    def poll(self, timeout: float = 0.0) -> int | None:
        """Return the exit code, or None where it still runs after `timeout` seconds."""
        if self.code is None and self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.code = self._process.wait(timeout)
        elif self.code is None:
            self._builders.hear(self, timeout)
        return self.code

    def wait(self, *, expect: int | None = None) -> Builder:
        """Wait for its end, and hold its exit code against what is expected. No end shows a traceback."""
        if self.poll(_PATIENCE) is None:
            self.kill("all")
            raise AssertionError(f"a builder is stuck\n{self.stdout}\n{self.stderr}")
        assert "Traceback" not in self.stderr, self.stderr
        if expect is not None:
            assert self.code == expect, f"exit {self.code}\n{self.stdout}\n{self.stderr}"
        return self

    def kill(self, what: str) -> bool:
        """Kill the `builder`, a `worker` of it where there is one, or `all` of them; say whether it was alive."""
        workers = children(self.pid)
        doomed = {"builder": [self.pid], "worker": workers[:1] or [self.pid], "all": [self.pid, *workers]}[what]
        if self.poll() is not None:
            return False
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.pid in doomed:
            self.poll(_PATIENCE)
        return True

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    @property
    def stdout(self) -> str:
        return (self._output / "stdout").read_text()

    @property
    def stderr(self) -> str:
        return (self._output / "stderr").read_text()

    @property
    def events(self) -> list[dict]:
        return [json.loads(line) for line in self.stdout.splitlines()]

    def states(self) -> dict[tuple[str, str], str]:
        return {(event["recipe"], event["job"]): event["state"] for event in self.events if event["event"] == "end"}

    def errors(self) -> list[dict]:
        """Return the errors of all jobs that failed, and of the build itself."""
        return [event["error"] for event in self.events if "error" in event]


class Builders:
    """Starts programs for a project: mostly forks of one that has everything imported, now and then real ones."""

    def __init__(self, project: Project, folder: Path, *, prefix: Sequence[str] = ()) -> None:
        """`prefix` is a command that starts another with less rights."""
        self.project = project
        self._folder = folder
        self._count = 0
        self._running: dict[int, Builder] = {}
        self._early: dict[int, int] = {}
        folder.mkdir()
        self._zygote = subprocess.Popen(
            [*prefix, sys.executable, "-P", str(Path(__file__).parent / "zygote.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=project.environment,
        )  # fmt: skip
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._zygote.stdout, selectors.EVENT_READ)
        self._heard = b""

    @property
    def command(self) -> str:
        """The program as a shell calls it."""
        return f"{sys.executable} -m engine"

    def close(self) -> None:
        for running in list(self._running.values()):
            running.kill("all")
        self._zygote.stdin.close()
        self._zygote.wait()
        self._zygote.stdout.close()

    def start(
        self,
        words: tuple[str, ...],
        ground: Ground,
        *,
        hook: str = "",
        real: bool = False,
        environment: Mapping[str, str | None] = MappingProxyType({}),
        **circumstances: object,
    ) -> Builder:
        """Start the program with these words. `hook` goes to `fire_hook.lay`; a real one takes none.

        Of the environment, None takes a variable away. `circumstances` go to `zygote.arrange`.
        """
        self._count += 1
        output = self._folder / str(self._count)
        output.mkdir()
        ground.announcements.mkdir(parents=True, exist_ok=True)
        whole = {**self.project.environment, PLACE: str(ground.announcements), **environment}
        environment = {name: value for name, value in whole.items() if value is not None}
        if real:
            with open(output / "stdout", "wb") as out, open(output / "stderr", "wb") as err:
                process = subprocess.Popen(
                    [sys.executable, "-m", "engine", *words], cwd=self.project.folder, env=environment,
                    stdin=subprocess.DEVNULL, stdout=out, stderr=err, process_group=0,
                )  # fmt: skip
            return Builder(self, process.pid, output, process)
        request = {
            "words": words, "cwd": str(self.project.folder), "environment": environment, "output": str(output),
            "hook": hook, **circumstances,
        }  # fmt: skip
        self._zygote.stdin.write(json.dumps(request).encode() + b"\n")
        self._zygote.stdin.flush()
        self._started: int | None = None
        while self._started is None:
            self._hear(_PATIENCE)
        builder = Builder(self, self._started, output, None)
        if builder.pid in self._early:
            builder.code = self._early.pop(builder.pid)
        else:
            self._running[builder.pid] = builder
        return builder

    def build(self, ground: Ground, *more: str, expect: int | None = 0, hook: str = "", real: bool = False) -> Builder:
        """Run a build to its end."""
        return self.start((*ground.words, *more), ground, hook=hook, real=real).wait(expect=expect)

    def verify(self, ground: Ground, *, expect: int | None = 0) -> dict:
        """Run `recipe cache verify` and return what it says."""
        words = ("cache", "verify", "--json", "--cache", str(ground.cache))
        return self.start(words, ground).wait(expect=expect).events[-1]

    def delivered(self, builder: Builder) -> Delivery:
        """Return what a builder has handed over, byte by byte."""
        return delivery(builder.events, self.project.folder)

    def hear(self, builder: Builder, timeout: float) -> None:
        """Listen until a builder has ended, or the time is over."""
        end = time.monotonic() + timeout
        while builder.code is None:
            left = end - time.monotonic()
            self._hear(max(left, 0.0))
            if left <= 0:
                return

    def _hear(self, timeout: float) -> None:
        if not self._selector.select(timeout):
            return
        read = os.read(self._zygote.stdout.fileno(), 1 << 16)
        if not read:
            raise AssertionError("what starts the builders has died")
        *lines, self._heard = (self._heard + read).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            if "code" not in answer:
                self._started = answer["pid"]
            elif (ended := self._running.pop(answer["pid"], None)) is not None:
                ended.code = answer["code"]
            else:
                self._early[answer["pid"]] = answer["code"]


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and that still run."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        texts = [Path(f"/proc/{pid}/task/{thread}/children").read_text() for thread in threads]
    except OSError:
        return []
    return [int(word) for text in texts for word in text.split()]
