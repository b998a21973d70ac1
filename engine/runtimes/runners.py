"""Runners by what is run: the built model of a recipe, or what a user would otherwise run."""

from __future__ import annotations

from pathlib import Path

from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import generation as driver
from engine.runtimes.onnxruntime import runner as ort_runner
from engine.runtimes.runner import Runner
from engine.runtimes.tensorrt import passport
from engine.runtimes.tensorrt import runner as trt_runner

__all__ = ["Runner", "built", "plain_onnxruntime"]

_CPU = Execution()


def built(
    directory: Path,
    execution: Execution = _CPU,
    *,
    name: str = "built",
    threads: int = 0,
    new_tokens: int | None = None,
) -> Runner:
    """Return the runner of a built model, with the options that it was saved for.

    `new_tokens` says that it generates text, and how much of it a prepared call does (`driver.runner`).
    Raises StepError where it cannot run here, on just the device that it is for: no other one is ever taken.
    """
    if new_tokens is not None:
        return driver.runner(directory, name=name, threads=threads, new_tokens=new_tokens)
    if (directory / passport.PLAN).is_file():
        return trt_runner.runner(directory, execution, name=name)
    return ort_runner.runner(directory, execution, name=name, threads=threads)


def plain_onnxruntime(
    directory: Path, execution: Execution = _CPU, *, name: str, threads: int, new_tokens: int | None = None
) -> Runner:
    """Return the runner of an exported model as a user would open it: every optimisation that is on by default.

    On a GPU that is the CUDA provider. Raises StepError as `built` does.
    """
    if new_tokens is not None:
        return driver.runner(directory, name=name, threads=threads, new_tokens=new_tokens)
    plain = _CPU if execution.hardware is None else Execution(provider="cuda", hardware=execution.hardware)
    return ort_runner.runner(directory, plain, name=name, threads=threads)
