"""Measure layouts: a package behind an ensemble and as one Python model, and with padded texts, measured in turns."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Self

from engine.errors import StepError
from engine.kit.bench import interleaving
from engine.kit.bench.interleaving import Budget, Contender
from engine.kit.bench.report import ServerReport, in_words
from engine.kit.choice import candidates
from engine.kit.choice.candidates import Latency, medians
from engine.kit.choice.layouts import LayoutsReport, TimedLayout
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files
from engine.kit.triton import repository
from engine.kit.triton.serving import AUTO, BUCKETS, ENSEMBLE, FUSED, NO_PADDING, Serving
from engine.machine import cpu
from engine.recipe.schema import Recipe
from engine.runtimes import axes
from engine.step import Step, TypedReport, write_report

if TYPE_CHECKING:
    import numpy as np
    import onnx

Axes = Mapping[str, int]
_SERVER = "engine.server.measured"
_CLOSE = 1e-4
"""The largest difference of numbers in two answers that count as equal."""
_REQUESTS, _LEAST_TOKENS = 16, 8
"""How many requests of different lengths several clients send at once, and the fewest tokens of such a text."""


class MeasureLayouts(Step):
    """Measure a package in both layouts and paddings through a real server: latencies, and whether answers agree."""

    makes: ClassVar[str] = "layouts"
    facts: ClassVar[tuple[str, ...]] = ("cpu.model", "cpu.isa", "cpu.count", "os", "arch")
    gates: ClassVar[tuple[str, ...]] = ("validate",)
    exclusive: ClassVar[bool] = True
    reproducible: ClassVar[bool] = False
    in_lock: ClassVar[tuple[str, ...]] = ("cpu", "threads", "layouts", "paddings", "absent", "server")
    report: ClassVar[type[TypedReport] | None] = LayoutsReport
    budget: ClassVar[Budget] = Budget()

    serving: Serving
    shapes: tuple[Axes, ...] = ()
    threads: int | None = None
    """The number of threads; None stands for the number of physical cores of the CPU."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for a recipe with `layout: auto` or `padding: auto`.

        The shapes are those of `bench` that have sizes, or else the `opt` shapes of the profiles.
        """
        if AUTO not in {recipe.package.triton.layout, recipe.package.triton.padding}:
            return None
        usual = [{axis: int(extent.opt) for axis, extent in profile.items()} for profile in recipe.profiles]
        shapes = recipe.bench.shapes if recipe.bench else ()
        named = [{**(usual[0] if usual else {}), **shape.axes} for shape in shapes if shape.samples is None]
        distinct = {tuple(sorted(shape.items())): shape for shape in named or usual or [{}]}
        return cls(
            serving=Serving.for_recipe(recipe),
            shapes=tuple(distinct.values()),
            threads=recipe.bench.threads if recipe.bench else None,
        )

    def tools_used(self) -> tuple[str, ...]:
        """Return the Python packages that write and ask the packages, and those that run the model."""
        tools = (*onnx_files.TOOLS, "protobuf", "tokenizers", "tritonclient", *self.serving.execution.tools)
        return tuple(dict.fromkeys(tools))

    def facts_used(self) -> tuple[str, ...]:
        """Return the names of the facts on which the figures depend: the CPU, the runtime's builds and the server."""
        execution = self.serving.execution
        latency = execution.by.latency_facts(execution)
        return tuple(dict.fromkeys((*self.facts, *execution.facts, *latency, "triton.server")))

    def code_used(self) -> tuple[str, ...]:
        """Return the modules whose code is a row of the key: of the step, the server and what is served."""
        return (*super().code_used(), _SERVER, *self.serving.code_used())

    def run(self, out: Path, *, compiled: Path, exported: Path, checkpoint: Path) -> LayoutsReport:
        """Write the figures of both layouts and paddings, and return them. Raises StepError without a server."""
        threads = self.threads or cpu.physical_cores()
        serving = self.serving.model_copy(update={"execution": self.serving.execution.of_model(compiled)})
        report = LayoutsReport(cpu=cpu.model(), threads=threads, layouts={ENSEMBLE: TimedLayout()})
        graph = onnx_files.load_graph(exported)
        with TemporaryDirectory(dir=out.parent) as folder:
            packages = _Packages(serving, compiled, checkpoint, Path(folder), threads)
            if serving.layout == AUTO:
                report = self._of_layouts(report, packages, graph)
            else:
                report = replace(report, layouts={serving.layout: TimedLayout()})
            if serving.padding == AUTO:
                report = self._of_paddings(report, packages, graph)
        write_report(out, report.to_json())
        return report

    def _of_layouts(self, report: LayoutsReport, packages: _Packages, graph: onnx.ModelProto) -> LayoutsReport:
        """Return the report with the latencies of both layouts: one request after the other, and many at once.

        A server of one client is not the server of many: requests that wait for each other pay every hop again.
        """
        options = {name: packages.named(name, layout=name, padding=NO_PADDING) for name in (ENSEMBLE, FUSED)}
        reason = packages.why_not(options[FUSED])
        if reason is not None:
            return _without(report, FUSED, reason)
        timed: dict[str, list[Latency]] = {name: [] for name in options}
        with packages.started(options) as (contenders, about):
            for shape in self.shapes:
                print(f"measuring {in_words(shape)}, {report.threads} threads: {', '.join(options)}")
                inputs = bench_inputs.draw(graph, shape)
                difference = _difference(contenders, inputs)
                if difference is not None:
                    return _without(report, FUSED, difference)
                _add(timed, shape, interleaving.measure(contenders, inputs, self.budget))
            self._add_crowd(timed, contenders, _of_many_lengths(graph, self.shapes))
        return replace(report, layouts={name: TimedLayout(tuple(each)) for name, each in timed.items()}, server=about)

    def _of_paddings(self, report: LayoutsReport, packages: _Packages, graph: onnx.ModelProto) -> LayoutsReport:
        """Return the report with the times of requests of many lengths at once, in the faster layout."""
        layout = candidates.fastest(report.layouts, next(iter(report.layouts)))[0]
        options = {name: packages.named(name, layout=layout, padding=name) for name in (NO_PADDING, BUCKETS)}
        reason = packages.why_not(options[BUCKETS])
        if reason is not None:
            return _without(report, BUCKETS, reason)
        requests = _of_many_lengths(graph, self.shapes)
        timed: dict[str, list[Latency]] = {name: [] for name in options}
        with packages.started(options) as (contenders, about):
            for request in requests:
                difference = _difference(contenders, request)
                if difference is not None:
                    return _without(report, BUCKETS, difference)
            self._add_crowd(timed, contenders, requests)
        return replace(report, paddings={name: TimedLayout(tuple(each)) for name, each in timed.items()}, server=about)

    def _add_crowd(
        self,
        timed: Mapping[str, list[Latency]],
        contenders: Sequence[Contender],
        requests: Sequence[Mapping[str, np.ndarray]],
    ) -> None:
        """Add the times of requests that clients of their own send at once, until all are answered."""
        print(f"measuring {len(requests)} requests at once: {', '.join(timed)}")
        with ThreadPoolExecutor(len(requests)) as clients:
            crowds = [replace(each, prepare=partial(_at_once, clients, each, requests)) for each in contenders]
            _add(timed, {"requests": len(requests)}, interleaving.measure(crowds, requests[-1], self.budget))


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


def _of_many_lengths(graph: onnx.ModelProto, shapes: Sequence[Axes]) -> list[dict[str, np.ndarray]]:
    """Return a request of one row for each of many lengths, up to the greatest length in `shapes`."""
    specs = onnx_files.inputs(graph)
    named = [axes.by_name(shape, axes.shapes(specs)) for shape in shapes]
    batch, tokens = map(str, specs["input_ids"].shape)
    most = max(shape.get(tokens, 1) for shape in named)
    lengths = sorted({max(min(_LEAST_TOKENS, most), most * part // _REQUESTS) for part in range(1, _REQUESTS + 1)})
    return [bench_inputs.draw(graph, {**named[0], batch: 1, tokens: length}) for length in lengths]


def _at_once(
    clients: ThreadPoolExecutor, contender: Contender, requests: Sequence[Mapping[str, np.ndarray]], _inputs: object
) -> Callable[[], object]:
    """Return a call that sends all requests at the same time and waits for all answers."""
    calls = [contender.prepare(request) for request in requests]
    return lambda: list(clients.map(lambda call: call(), calls))


def _add(timed: Mapping[str, list[Latency]], shape: Axes, rounds: Sequence[Sequence[Sequence[float]]]) -> None:
    """Add the measured rounds of each contender, and print them."""
    for (name, latencies), each in zip(timed.items(), rounds, strict=True):
        latencies.append(Latency(shape, medians(each)))
        print(f"{name}: p50 {latencies[-1].p50_ms:.3f} ms")


def _without(report: LayoutsReport, name: str, reason: str) -> LayoutsReport:
    print(f"{name} is not possible: {reason}")
    return replace(report, absent={**report.absent, name: reason})


def _difference(contenders: Sequence[Contender], inputs: Mapping[str, np.ndarray]) -> str | None:
    """Return how the answers of two contenders to one request differ; None where they agree."""
    first, second = (contender.prepare(inputs)() for contender in contenders)
    if not isinstance(first, dict) or not isinstance(second, dict) or first.keys() != second.keys():
        return "its answers have other outputs than those of the other package"
    different = [name for name in first if not _equal(first[name], second[name])]
    return f"its {' and '.join(different)} differ from the other package's" if different else None


def _equal(first: Any, second: Any) -> bool:
    import numpy as np

    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if np.issubdtype(first.dtype, np.floating):
        return bool(np.allclose(first, second, rtol=_CLOSE, atol=_CLOSE))
    return bool((first == second).all())
