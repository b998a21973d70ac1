"""Runner: one interface to a model that is ready to run, whichever runtime runs it, and what it counts and measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.errors import StepError
from engine.text import sizes

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.onnx.onnx_files import Input

    Tensors = Mapping[str, np.ndarray]


def refuse_missing(names: Iterable[str], inputs: Tensors) -> None:
    """Raise StepError where `inputs` lacks an input of the model."""
    missing = [name for name in names if name not in inputs]
    if missing:
        raise StepError(
            f"The model asks for inputs that are not there: {', '.join(missing)}", [f"there are: {', '.join(inputs)}"]
        )


class Runner(NamedTuple):
    """A model that is ready to run, with the functions that run and measure it.

    `run` takes inputs by name and returns outputs by name. `prepare` takes inputs, does all work that is not timed, and
    returns a function that computes the outputs of the inputs and waits for the outputs. Prepared calls are made inside
    the context manager that `active` returns.
    """

    name: str
    run: Callable[[Tensors], dict[str, np.ndarray]]
    prepare: Callable[[Tensors], Callable[[], object]]
    active: Callable[[], AbstractContextManager[object]] = nullcontext
    takes: Callable[[Mapping[str, tuple[int, ...]]], bool] = lambda _: True
    """Tells whether the model takes inputs of the shapes in a mapping from an input's name to its shape.

    An engine takes the shapes that its profiles allow.
    """
    inputs: Mapping[str, Input] | None = None
    """The inputs of a model whose `work` depends on the shapes of its inputs alone; None for any other model."""
    work: Callable[[Tensors], Mapping[str, int]] | None = None
    """Counts the multiplications of one run by the precision of the kernels; None where the runtime cannot tell."""
    device_times: Callable[[Tensors], DeviceTimes] | None = None
    """Measures the times of one call on the GPU by CUDA events; None where the runtime cannot, and on CPUs."""
    capture: Callable[[Tensors], BoundCall] | None = None
    """Captures a call into a CUDA graph, or raises StepError and is of no use any more; None for a model without."""


@dataclass(frozen=True, kw_only=True)
class CapturedGraph:
    """What capturing a CUDA graph took, as measured."""

    capture_s: float
    """The seconds of the first call: the runs before the capture, the capture itself, and the first replay."""
    memory_bytes: int | None = None
    """By how many bytes the GPU's free memory fell, for buffers, working memory and graph; None where not known."""

    def __str__(self) -> str:
        memory = "memory not known" if self.memory_bytes is None else sizes.binary(self.memory_bytes)
        return f"captured in {self.capture_s:.2f} s, {memory}"


class BoundCall(NamedTuple):
    """A call of a model whose inputs and outputs stay in the device's memory, at the same addresses."""

    run: Callable[[], object]
    """Computes the outputs of the inputs that are in the device's memory, and waits for them."""
    answers: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]
    """Copies inputs of the same shapes into the device's memory, runs the call, and returns every output by name."""
    graph: CapturedGraph | None = None
    """The CUDA graph that the call replays; None for a call without one."""


@dataclass(frozen=True, kw_only=True)
class DeviceTimes:
    """Median times of one call in milliseconds, with the names of trtexec's summary.

    "Pinned" copies are from and to page-locked memory of the host, "pageable" copies from and to ordinary memory.
    """

    enqueue_ms: float
    """trtexec: Enqueue Time. The time in which the host hands the call to the GPU."""
    gpu_compute_ms: float
    """trtexec: GPU Compute Time. The time between two CUDA events around the call, without copies."""
    h2d_pageable_ms: float
    h2d_pinned_ms: float
    """trtexec: H2D Latency. The copy of the inputs to the GPU."""
    d2h_pageable_ms: float
    d2h_pinned_ms: float
    """trtexec: D2H Latency. The copy of the outputs to the host."""
    latency_pageable_ms: float
    latency_pinned_ms: float
    """trtexec: Latency. The sum of H2D, GPU compute and D2H."""
    spin_wait_ms: float
    """The time that a host needs for a call without copies, if it asks in a loop whether the GPU is done."""
    queries_per_s: Mapping[str, float] = field(default_factory=dict)
    """trtexec: Throughput. The number of streams -> calls per second without copies, each stream with its context."""


class RivalModel(NamedTuple):
    """The original model that a rival runs: exported to ONNX, and as a checkpoint where there is a checkpoint."""

    exported: Path
    checkpoint: Path | None = None
    task: str | None = None
    """The task that the recipe names; None where the checkpoint's config names the task."""
    num_labels: int | None = None
    random_head: bool = False
    images: Any = None
    """The section `images` of the recipe, for a model of timm: the size and normalization of images."""
    new_tokens: int | None = None
    """The number of tokens that a measured call generates; None for a model that generates no text."""
    compile: str | None = None
    """The mode in which the runtime compiles the model for each shape; None for a model that is not compiled."""
    scratch: Path | None = None
    """The folder for the files of compilers; None for the folder of the runtime."""


def no_checkpoint(title: str) -> StepError:
    """Return the error for an ONNX file as the model of a rival that runs checkpoints; `title` names the runtime."""
    return StepError(
        f"An ONNX file cannot be measured against {title}: there is no {title} model of it",
        hint=f"take runtime: {title.lower()} out of bench.against",
    )


Original = RivalModel
"""The former name of `RivalModel`, which runtimes of other packages may still use (docs/stability.md)."""


class Tally(dict[str, int]):
    """The name of each precision -> the number of multiplications in this precision; equal to a plain mapping.

    `operators` maps the kind of an operator, such as "Conv", to the number of its operators in each precision.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operators: dict[str, Counter[str]] = {}

    def add(self, kind: str, precision: str, multiplications: int, *, seen: bool = False) -> None:
        """Count one operator; one that was `seen` in an earlier run counts its multiplications only."""
        self[precision] = self.get(precision, 0) + multiplications
        if not seen:
            self.operators.setdefault(kind, Counter())[precision] += 1


def operators(counts: Mapping[str, int]) -> Mapping[str, Mapping[str, int]]:
    """Return the operators of a tally; none for a plain mapping, as the runtimes of other packages may return."""
    return counts.operators if isinstance(counts, Tally) else {}
