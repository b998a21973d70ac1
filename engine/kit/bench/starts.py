"""Starts: load time, first call and peak memory of a model, each measured in a fork of the job's process."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NoReturn

from engine.errors import StepError
from engine.kit.bench.report import ModelStart
from engine.runtimes.runner import Runner
from engine.system import processes
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]

SECONDS = 20.0
"""The time limit of one start: a model that is compiled for minutes is not waited for twice."""
_CACHES = "XDG_CACHE_HOME"
"""The variable that names the folder of caches. A start finds none, such as the compiled models of OpenVINO."""
_CHUNK = 1 << 16
_UNIT = 1 if sys.platform == "darwin" else processes.KIB  # getrusage(2)


@dataclass(frozen=True, kw_only=True)
class StartedModel:
    """A model that is started: its name, the function that loads it, and the tools that its process imports before."""

    name: str
    load: Callable[[], Runner]
    tools: Sequence[str] = ()
    ours: bool = False
    generates: bool = False
    """Whether a call generates text."""

    def first(self, runner: Runner, inputs: Tensors) -> None:
        """Call the model once; a prepared call of most models has run the model before."""
        if self.generates:
            runner.prepare(inputs)()
        else:
            runner.run(inputs)


def measured(
    models: Sequence[StartedModel], inputs: Sequence[Tensors], scratch: Path, *, seconds: float = SECONDS
) -> tuple[ModelStart, ...]:
    """Start each model in a process of its own, at most `seconds` each; a model that cannot start has the reason.

    The first of `inputs` is that of the first call; the peak of the memory counts a call of each of them that the model
    takes. Call this before the process loads a model: a process with several threads is not forked.
    """
    starts = []
    for model in models:
        with TemporaryDirectory(dir=scratch) as caches:
            start = _forked(model, inputs, caches, seconds)
        print(f"{model.name}: {start}")
        starts.append(start)
    return tuple(starts)


def _forked(model: StartedModel, inputs: Sequence[Tensors], caches: str, seconds: float) -> ModelStart:
    about = {"runtime": model.name, "ours": model.ours}
    if processes.threads() > 1:
        return ModelStart.from_json({**about, "reason": "the measuring process has several threads and is not forked"})
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _answer(writer, model, inputs, caches)
    os.close(writer)
    try:
        text = _line(reader, time.monotonic() + seconds)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or leads no group yet
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if text is None:
        return ModelStart.from_json({**about, "reason": f"no first call within {seconds:g} s"})
    figures = json.loads(text) if text else {"reason": f"its process ended with the exit code {status}"}
    return ModelStart.from_json({**about, **figures})


def _line(reader: int, end: float) -> str | None:
    """Return the line that a process writes; "" where it ends without one, None where it takes longer."""
    data = b""
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([reader], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return None
        chunk = os.read(reader, _CHUNK)
        if not chunk:
            return ""
        data += chunk
    return data.decode()


def _answer(writer: int, model: StartedModel, inputs: Sequence[Tensors], caches: str) -> NoReturn:
    """Start a model in this process, write its figures as a line of JSON, and end."""
    code = 1
    try:
        os.setsid()
        os.environ[_CACHES] = caches
        try:
            figures: Mapping[str, object] = _start(model, inputs)
        except StepError as error:
            figures = {"reason": "; ".join([error.what, *error.facts])}
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is why the model did not start
            figures = {"reason": "; ".join(reasons.facts(error))}
        sys.stdout.flush()
        os.write(writer, json.dumps(figures).encode() + b"\n")
        code = 0
    finally:
        os._exit(code)


def _start(model: StartedModel, inputs: Sequence[Tensors]) -> dict[str, object]:
    for tool in model.tools:
        with contextlib.suppress(ImportError):  # a tool whose module has another name is imported with the model
            importlib.import_module(tool.partition("-")[0])
    before = _peak()
    began = time.perf_counter()
    runner = model.load()
    loaded = time.perf_counter()
    with runner.active():
        model.first(runner, inputs[0])
        called = time.perf_counter()
        for others in inputs[1:]:
            with contextlib.suppress(StepError):  # a rival that cannot run at a shape
                model.first(runner, others)
    return {
        "load_s": round(loaded - began, 4),
        "first_ms": round((called - loaded) * 1e3, 4),
        "peak_mib": round((_peak() - before) / (1 << 20), 1),
    }


def _peak() -> int:
    """Return the peak of the resident memory of this process so far, in bytes; after a fork it begins anew (Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
