"""Measure layouts: a package behind an ensemble and as one Python model, and with padded texts, measured in turns."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Self

from engine.errors import StepError
from engine.kit.bench import closed_loop, stats
from engine.kit.bench.interleaving import Budget, Call, Contender
from engine.kit.bench.report import ServerReport
from engine.kit.choice import layouts
from engine.kit.choice.candidates import Latency
from engine.kit.choice.layouts import CLIENTS, LENGTHS, LayoutsReport, TimedLayout
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files
from engine.kit.triton import repository
from engine.kit.triton.serving import AUTO, BUCKETS, ENSEMBLE, FUSED, NO_PADDING, Serving
from engine.machine import cpu
from engine.runtimes import axes, devices
from engine.runtimes.execution import Execution
from engine.runtimes.threads import measured_threads
from engine.step import Hardware, Step, TypedReport, write_report

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from engine.recipe.schema import Recipe

Axes = Mapping[str, int]
_SERVER = "engine.server.measured_server"
_CLOSE, _CLOSE_ON_GPUS = 1e-4, 1e-2
"""The largest difference of numbers in two answers that count as equal, on CPUs and on GPUs.

On a GPU, numbers in fp16 and TF32 have 10 bits behind the point, and a padded shape may get other kernels.
"""
_CLIENTS = (1, 8)
"""How many clients send one request after the other, each its own."""
_LENGTHS, _LEAST_TOKENS = 8, 8
"""How many different lengths mixed texts have at most, and how many tokens the shortest has."""


class MeasureLayouts(Step):
    """Measure a package in both layouts and paddings through a real server: latencies, and whether answers agree."""

    makes: ClassVar[str] = "layouts"
    facts: ClassVar[tuple[str, ...]] = ("cpu.model", "cpu.isa", "cpu.count", "os", "arch")
    gates: ClassVar[tuple[str, ...]] = ("validate",)
    exclusive: ClassVar[bool] = True
    reproducible: ClassVar[bool] = False
    in_lock: ClassVar[tuple[str, ...]] = ("cpu", "threads", "gpu", "layouts", "paddings", "absent", "server")
    report: ClassVar[type[TypedReport] | None] = LayoutsReport
    keyed_if_set: ClassVar[tuple[str, ...]] = ("gpu",)
    budget: ClassVar[Budget] = Budget(seconds=6.0, rounds=8)
    """For each case; there are six cases for a model of texts."""

    serving: Serving
    shapes: tuple[Axes, ...] = ()
    threads: int | None = None
    """The number of threads, as in `bench`; None stands for the number of physical cores of the CPU."""
    gpu: Hardware | None = None
    """The GPU that runs the packages; None for a CPU."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for a recipe with `layout: auto` or `padding: auto`.

        The shapes are those of `bench` that have sizes, or else the `opt` shapes of the profiles.
        """
        if AUTO not in {recipe.package.triton.layout, recipe.package.triton.padding}:
            return None
        return cls(
            serving=Serving.for_recipe(recipe),
            shapes=tuple(bench_inputs.stated_shapes(recipe)),
            threads=measured_threads(recipe),
            gpu=Execution.for_recipe(recipe).needs,
        )

    def hardware(self) -> Hardware | None:
        return self.gpu

    @property
    def _execution(self) -> Execution:
        return self.serving.execution.model_copy(update={"hardware": self.gpu})

    def tools_used(self) -> tuple[str, ...]:
        tools = (*onnx_files.TOOLS, "protobuf", "tokenizers", "tritonclient", *self._execution.tools)
        return tuple(dict.fromkeys(tools))

    def facts_used(self) -> tuple[str, ...]:
        execution = self._execution
        latency = execution.by.latency_facts(execution)
        return tuple(dict.fromkeys((*self.facts, *execution.facts, *latency, "triton.server")))

    def code_used(self) -> tuple[str, ...]:
        return (*super().code_used(), _SERVER, *self.serving.code_used())

    def run(self, out: Path, *, compiled: Path, exported: Path, checkpoint: Path) -> LayoutsReport:
        """Write the figures of both layouts and paddings, and return them. Raises StepError without a server."""
        threads = self.threads or cpu.physical_cores()
        serving = self.serving.model_copy(update={"execution": self.serving.execution.of_model(compiled)})
        gpu = None if self.gpu is None else devices.chosen(self.gpu).name
        report = LayoutsReport(cpu=cpu.model(), gpu=gpu, threads=threads, layouts={ENSEMBLE: TimedLayout()})
        graph = onnx_files.load_graph(exported)
        with TemporaryDirectory(dir=out.parent) as folder:
            packages = _Packages(serving, compiled, checkpoint, Path(folder), threads)
            cases = cache(partial(_cases, graph, self.shapes))  # drawn once, where a package can be served
            if serving.layout == AUTO:
                report = self._of_layouts(report, packages, cases)
            else:
                report = replace(report, layouts={serving.layout: TimedLayout()})
            if serving.padding == AUTO:
                report = self._of_paddings(report, packages, cases)
        write_report(out, report.to_json())
        return report

    def _of_layouts(self, report: LayoutsReport, packages: _Packages, cases: _Cases) -> LayoutsReport:
        """Return the report with the times of both layouts in all cases."""
        options = {name: packages.named(name, layout=name, padding=NO_PADDING) for name in (ENSEMBLE, FUSED)}
        reason = packages.why_not(options[FUSED])
        if reason is not None:
            return _without(report, FUSED, reason)
        timed, about = self._timed(packages, options, cases())
        return (
            _without(report, FUSED, timed) if isinstance(timed, str) else replace(report, layouts=timed, server=about)
        )

    def _of_paddings(self, report: LayoutsReport, packages: _Packages, cases: _Cases) -> LayoutsReport:
        """Return the report with the times of many clients' texts of many lengths, in the chosen layout.

        One client could not show a gain: padded texts are slower, and only requests that Triton joins make up for it.
        """
        layout, _ = layouts.chosen(report.layouts)
        options = {name: packages.named(name, layout=layout, padding=name) for name in (NO_PADDING, BUCKETS)}
        reason = packages.why_not(options[BUCKETS])
        if reason is not None:
            return _without(report, BUCKETS, reason)
        joined = [case for case in cases() if LENGTHS in case.shape and case.clients > 1]
        if not joined:
            return _without(report, BUCKETS, "all texts have one length")
        timed, about = self._timed(packages, options, joined)
        if isinstance(timed, str):
            return _without(report, BUCKETS, timed)
        return replace(report, paddings=timed, server=about)

    def _timed(
        self, packages: _Packages, options: Mapping[str, Serving], cases: Sequence[_Case]
    ) -> tuple[dict[str, TimedLayout] | str, ServerReport]:
        """Return the times of packages in all cases, or how their answers differ; and the server."""
        timed: dict[str, list[Latency]] = {name: [] for name in options}
        with packages.started(options) as (contenders, about):
            calls: dict[int, list[list[Call]]] = {}
            for requests in {id(case.requests): case.requests for case in cases}.values():
                calls[id(requests)] = [[contender.prepare(each) for each in requests] for contender in contenders]
                for ours, theirs in zip(*calls[id(requests)], strict=True):
                    difference = _difference(ours(), theirs(), close=_CLOSE if self.gpu is None else _CLOSE_ON_GPUS)
                    if difference is not None:
                        return difference, about
            for case in cases:
                print(f"measuring {layouts.in_words(case.shape)}, {packages.threads} threads: {', '.join(options)}")
                took = closed_loop.rounds(calls[id(case.requests)], clients=case.clients, budget=self.budget)
                for (name, latencies), seconds in zip(timed.items(), took, strict=True):
                    rounds_ms = tuple(round(each * 1e3, stats.MS_DIGITS) for each in seconds)
                    latencies.append(Latency(case.shape, rounds_ms))
                    print(f"{name}: an answer every {latencies[-1].p50_ms:.3f} ms")
        return {name: TimedLayout(tuple(each)) for name, each in timed.items()}, about


@dataclass(frozen=True)
class _Case:
    """What clients send, and how many clients there are."""

    sizes: Mapping[str, int]
    requests: Sequence[Mapping[str, np.ndarray]]
    clients: int

    @property
    def shape(self) -> Mapping[str, int]:
        """How the report names the case."""
        return {**self.sizes, CLIENTS: self.clients}


@dataclass(frozen=True)
class _Packages:
    """Packages of one built model that differ in how they are served."""

    serving: Serving
    compiled: Path
    checkpoint: Path
    scratch: Path
    threads: int

    def named(self, name: str, **options: str) -> Serving:
        """Return how a package is served; packages lie in one repository, so their models need other names."""
        model = f"{self.serving.model_name}_{name}"
        return self.serving.model_copy(update={"model_name": model, "ensemble": f"{model}_text", **options})

    def why_not(self, serving: Serving) -> str | None:
        """Return why the built model cannot be served so; None where it can."""
        try:
            with TemporaryDirectory(dir=self.scratch) as folder:
                repository.write(Path(folder) / "tried", serving, validated=self.compiled, checkpoint=self.checkpoint)
        except StepError as reason:
            return ": ".join([reason.what, *reason.facts[:1]])
        return None

    @contextlib.contextmanager
    def started(self, options: Mapping[str, Serving]) -> Iterator[tuple[tuple[Contender, ...], ServerReport]]:
        """Serve the packages until the block ends; yield a contender for each, and the report on the server."""
        measured = importlib.import_module(_SERVER)
        models = [
            measured.ServedModel(name, ours=True, serving=each, directory=self.compiled)
            for name, each in options.items()
        ]
        with TemporaryDirectory(dir=self.scratch) as folder:
            way = {"checkpoint": self.checkpoint, "scratch": Path(folder), "ways": ["triton-grpc"]}
            with measured.started(models, threads=self.threads, **way) as started:
                yield started


_Cases = Callable[[], list[_Case]]


def _cases(graph: onnx.ModelProto, shapes: Sequence[Axes]) -> list[_Case]:
    """Return what users may send: the smallest and the largest request and texts of many lengths, by one and by many.

    Which layout is faster depends on it: a hop is a share of the time of short texts only, and requests that wait for
    each other pay every hop again.
    """
    by_work = sorted(shapes, key=lambda shape: math.prod(shape.values()))
    ends = [by_work[0]] if by_work[0] == by_work[-1] else [by_work[0], by_work[-1]]
    kinds: list[tuple[Axes, list[dict[str, np.ndarray]]]] = [
        (shape, [bench_inputs.draw(graph, shape)]) for shape in ends
    ]
    mixed = _of_many_lengths(graph, shapes)
    if len(mixed) > 1:
        kinds.append(({LENGTHS: len(mixed)}, mixed))
    return [_Case(sizes, requests, clients) for sizes, requests in kinds for clients in _CLIENTS]


def _of_many_lengths(graph: onnx.ModelProto, shapes: Sequence[Axes]) -> list[dict[str, np.ndarray]]:
    """Return a request of one row for each of several lengths, up to the greatest in `shapes`; none for one length.

    Each length is the same number of times longer than the one before: clients send short texts more often.
    """
    specs = onnx_files.inputs(graph)
    named = [axes.by_name(shape, axes.shapes(specs)) for shape in shapes]
    batch, tokens = specs["input_ids"].shape
    if not isinstance(tokens, str):
        return []
    most = max(shape.get(tokens, 1) for shape in named)
    least = min(_LEAST_TOKENS, most)
    lengths = sorted({round(least * (most / least) ** (part / (_LENGTHS - 1))) for part in range(_LENGTHS)})
    one = {batch: 1} if isinstance(batch, str) else {}
    return [bench_inputs.draw(graph, {**named[0], **one, tokens: length}) for length in lengths]


def _without(report: LayoutsReport, name: str, reason: str) -> LayoutsReport:
    print(f"{name} is not possible: {reason}")
    return replace(report, absent={**report.absent, name: reason})


def _difference(first: object, second: object, *, close: float = _CLOSE) -> str | None:
    """Return how two answers to one request differ; None where they agree."""
    if not isinstance(first, dict) or not isinstance(second, dict) or first.keys() != second.keys():
        return "its answers have other outputs than those of the other package"
    different = [name for name in first if not _equal(first[name], second[name], close)]
    return f"its {' and '.join(different)} differ from the other package's" if different else None


def _equal(first: Any, second: Any, close: float) -> bool:
    import numpy as np

    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if np.issubdtype(first.dtype, np.floating):
        return bool(np.allclose(first, second, rtol=close, atol=close))
    return bool((first == second).all())
