"""Starts: load time, first call and peak memory of a model, each measured in a fork of the job's process."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.bench.report import ModelStart
from engine.recipe.fields import OF_SAMPLES
from engine.runtimes.runner import Runner
from engine.system import processes
from engine.text import reasons

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import numpy as np

    Tensors = Mapping[str, np.ndarray]
    Values = Mapping[str, tuple[int, ...]]

NamedLoad = tuple[str, Callable[[], Runner]]
"""The name of a model, and the function that loads it."""
SECONDS = 20.0
"""The time limit of one start: a model that is compiled for minutes is not waited for twice."""
_CACHES = "XDG_CACHE_HOME"
"""The variable that names the folder of caches. A start finds none, such as the compiled models of OpenVINO."""
_UNIT = 1 if sys.platform == "darwin" else processes.KIB  # getrusage(2)


@dataclass(frozen=True)
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


def extremes(
    shapes: Sequence[Mapping[str, int | str]], values: Sequence[Values]
) -> list[tuple[dict[str, int], Values | None]]:
    """Return the first and the largest shape that has numbers alone, each with its values of inputs.

    Nothing is returned where all shapes stand for lengths of samples: one of these lengths would be arbitrary.
    """
    sized = [
        ({axis: int(size) for axis, size in axes.items()}, its)
        for axes, its in zip_longest(shapes, values)
        if OF_SAMPLES not in axes.values()
    ]
    largest = [max(sized, key=lambda each: math.prod(each[0].values()))] if sized else []
    return sized[:1] + [each for each in largest if each != sized[0]]


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
            start = ModelStart(runtime=model.name, ours=model.ours, **_forked(model, inputs, caches, seconds))
        print(f"{model.name}: {start}")
        starts.append(start)
    return tuple(starts)


def _forked(model: StartedModel, inputs: Sequence[Tensors], caches: str, seconds: float) -> dict[str, Any]:
    """Return the figures of a start in a fork of this process, or the reason why there are none."""
    if processes.threads() > 1:
        return {"reason": "the measuring process has several threads and is not forked"}
    fork = get_context("fork")
    answers, answer = fork.Pipe(duplex=False)
    child = fork.Process(target=_answer, args=(answer, model, inputs, caches))
    child.start()
    answer.close()
    try:
        figures = answers.recv() if answers.poll(seconds) else {"reason": f"no first call within {seconds:g} s"}
    except EOFError:
        figures = None
    finally:
        child.kill()
        child.join()
        answers.close()
    return figures or {"reason": f"its process ended with the exit code {child.exitcode}"}


def _answer(answer: Connection, model: StartedModel, inputs: Sequence[Tensors], caches: str) -> None:
    """Start a model in this process, send its figures, and end without the exit handlers of its runtime."""
    os.environ[_CACHES] = caches
    try:
        figures = _start(model, inputs)
    except StepError as error:
        figures = {"reason": "; ".join([error.what, *error.facts])}
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is why the model did not start
        figures = {"reason": "; ".join(reasons.facts(error))}
    sys.stdout.flush()
    answer.send(figures)
    os._exit(0)


def _start(model: StartedModel, inputs: Sequence[Tensors]) -> dict[str, Any]:
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
