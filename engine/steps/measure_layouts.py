"""Measure layouts: the latencies of a package behind an ensemble and as one Python model, measured in turns."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Self

from engine.errors import StepError
from engine.kit.bench import interleaving
from engine.kit.bench.interleaving import Budget, Contender
from engine.kit.bench.report import in_words
from engine.kit.choice.candidates import Latency, medians
from engine.kit.choice.layouts import LayoutsReport, TimedLayout
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files
from engine.kit.triton import repository
from engine.kit.triton.serving import AUTO, ENSEMBLE, FUSED, Serving
from engine.machine import cpu
from engine.recipe.schema import Recipe
from engine.step import Step, TypedReport, write_report

if TYPE_CHECKING:
    import numpy as np
    import onnx

Axes = Mapping[str, int]
_SERVER = "engine.server.measured"
_CLOSE = 1e-4
"""The largest difference of numbers in two answers that count as equal."""


class MeasureLayouts(Step):
    """Measure a package in both layouts through a real server: the latencies over gRPC, and whether answers agree."""

    makes: ClassVar[str] = "layouts"
    facts: ClassVar[tuple[str, ...]] = ("cpu.model", "cpu.isa", "cpu.count", "os", "arch")
    gates: ClassVar[tuple[str, ...]] = ("validate",)
    exclusive: ClassVar[bool] = True
    reproducible: ClassVar[bool] = False
    in_lock: ClassVar[tuple[str, ...]] = ("cpu", "threads", "layouts", "absent", "server")
    report: ClassVar[type[TypedReport] | None] = LayoutsReport
    budget: ClassVar[Budget] = Budget()

    serving: Serving
    shapes: tuple[Axes, ...] = ()
    threads: int | None = None
    """The number of threads; None stands for the number of physical cores of the CPU."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for a recipe with `layout: auto`.

        The shapes are those of `bench` that have sizes, or else the `opt` shapes of the profiles.
        """
        if recipe.package.triton.layout != AUTO:
            return None
        usual = [{axis: int(extent.opt) for axis, extent in profile.items()} for profile in recipe.profiles]
        shapes = recipe.bench.shapes if recipe.bench else ()
        named = [{**(usual[0] if usual else {}), **shape.axes} for shape in shapes if shape.samples is None]
        distinct = {tuple(sorted(axes.items())): axes for axes in named or usual or [{}]}
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
        """Write the figures of both layouts, and return them as the report. Raises StepError without a server."""
        threads = self.threads or cpu.physical_cores()
        serving = self.serving.model_copy(update={"execution": self.serving.execution.of_model(compiled)})
        options = {layout: _named(serving, layout) for layout in (ENSEMBLE, FUSED)}
        report = LayoutsReport(cpu=cpu.model(), threads=threads, layouts={ENSEMBLE: TimedLayout()})
        with TemporaryDirectory(dir=out.parent) as folder:
            scratch = Path(folder)
            try:
                repository.write(scratch / "tried", options[FUSED], validated=compiled, checkpoint=checkpoint)
            except StepError as reason:
                report = _without_fused(report, ": ".join([reason.what, *reason.facts[:1]]))
            else:
                models = [
                    importlib.import_module(_SERVER).ServedModel(name, ours=True, serving=each, directory=compiled)
                    for name, each in options.items()
                ]
                report = self._measured(report, models, onnx_files.load_graph(exported), checkpoint, scratch)
        write_report(out, report.to_json())
        return report

    def _measured(
        self, report: LayoutsReport, models: Sequence[Any], graph: onnx.ModelProto, checkpoint: Path, scratch: Path
    ) -> LayoutsReport:
        names = [model.runtime for model in models]
        timed: dict[str, list[Latency]] = {name: [] for name in names}
        started = importlib.import_module(_SERVER).started(
            models, checkpoint=checkpoint, scratch=scratch, ways=["triton-grpc"], threads=report.threads
        )
        with started as (contenders, about):
            for axes in self.shapes:
                print(f"measuring {in_words(axes)}, {report.threads} threads: {', '.join(names)}")
                inputs = bench_inputs.draw(graph, axes)
                difference = _difference(contenders, inputs)
                if difference is not None:
                    return _without_fused(report, difference)
                rounds = interleaving.measure(contenders, inputs, self.budget)
                for name, each in zip(names, rounds, strict=True):
                    timed[name].append(Latency(axes, medians(each)))
                    print(f"{name}: p50 {timed[name][-1].p50_ms:.3f} ms")
        layouts = {name: TimedLayout(tuple(latencies)) for name, latencies in timed.items()}
        return replace(report, layouts=layouts, server=about)


def _named(serving: Serving, layout: str) -> Serving:
    """Return the options of one layout; the two packages lie in one repository, so their models need other names."""
    name = f"{serving.model_name}_{layout}"
    return serving.model_copy(update={"layout": layout, "model_name": name, "ensemble": f"{name}_text"})


def _without_fused(report: LayoutsReport, reason: str) -> LayoutsReport:
    print(f"{FUSED} is not possible: {reason}")
    return LayoutsReport(cpu=report.cpu, threads=report.threads, layouts=report.layouts, absent={FUSED: reason})


def _difference(contenders: Sequence[Contender], inputs: Mapping[str, np.ndarray]) -> str | None:
    """Return how the answers of two contenders to one request differ; None where they agree."""
    first, second = (contender.prepare(inputs)() for contender in contenders)
    if not isinstance(first, dict) or not isinstance(second, dict) or first.keys() != second.keys():
        return "its answers have other outputs than those of the ensemble"
    different = [name for name in first if not _equal(first[name], second[name])]
    return f"its {' and '.join(different)} differ from the ensemble's" if different else None


def _equal(first: Any, second: Any) -> bool:
    import numpy as np

    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if np.issubdtype(first.dtype, np.floating):
        return bool(np.allclose(first, second, rtol=_CLOSE, atol=_CLOSE))
    return bool((first == second).all())
