"""Measure runtimes: the accuracy and the latencies of the models that several runtimes run, measured in turns."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from engine import tasks
from engine.kit.accuracy import built_model
from engine.kit.bench import cuda_graphs, interleaving
from engine.kit.bench.contenders import BuiltModel
from engine.kit.bench.interleaving import Budget, Contender
from engine.kit.bench.report import in_words
from engine.kit.choice.candidates import CandidateModel, CandidatesReport, Latency, medians, parameter, without_texts
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files
from engine.machine import cpu
from engine.recipe import shape_values
from engine.runtimes import choice, devices
from engine.runtimes.execution import Execution
from engine.runtimes.profiles import fixed
from engine.runtimes.threads import measured_threads
from engine.step import Hardware, Step, TypedReport, write_report
from engine.text import lists

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

Axes = Mapping[str, int]


class MeasureRuntimes(Step):
    """Measure the models that the candidates of the recipe's runtime run: their distance from the original, and times.

    The candidates take turns, with the same inputs and number of threads. Bounds change nothing here, so that a changed
    bound measures nothing again: the step `choose-runtime` compares the figures with the bounds.
    """

    makes: ClassVar[str] = "measured"
    facts: ClassVar[tuple[str, ...]] = ("cpu.model", "cpu.isa", "cpu.count", "os", "arch")
    exclusive: ClassVar[bool] = True
    reproducible: ClassVar[bool] = False
    in_lock: ClassVar[tuple[str, ...]] = ("cpu", "threads", "gpu", "candidates", "absent")
    report: ClassVar[type[TypedReport] | None] = CandidatesReport
    keyed_if_set: ClassVar[tuple[str, ...]] = ("in_graph", "values")
    budget: ClassVar[Budget] = Budget()

    candidates: tuple[str, ...]
    execution: Execution
    """How the models are run: the options of every candidate."""
    shapes: tuple[Axes, ...] = ()
    threads: int | None = None
    """The number of threads, as in `bench`; None stands for the number of physical cores of the CPU."""
    task: str | None = None
    opt: Mapping[str, int] = {}
    """The extent of each axis for which multiplications are counted."""

    in_graph: tuple[bool, ...] = ()
    """Whether a profile fixes each shape, so that models run it in a CUDA graph; empty without CUDA graphs."""
    values: tuple[Mapping[str, tuple[int, ...]], ...] = ()
    """The values of inputs that the profiles state, for each shape; empty where they state none."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for a runtime that stands for several; None for a runtime that is used as it is named.

        The shapes are those of `bench` that have sizes, or else the `opt` shapes of the profiles. A shape that stands
        for the lengths of samples is not measured here.
        """
        candidates = recipe.runtime.candidates(recipe)
        if not candidates:
            return None
        distinct = bench_inputs.stated_shapes(recipe)
        execution = Execution.for_recipe(recipe)
        graphed = execution.by.graphed(execution) is not None
        return cls(
            candidates=candidates,
            execution=execution,
            shapes=tuple(distinct),
            in_graph=tuple(shape in fixed(recipe.profiles) for shape in distinct) if graphed else (),
            values=shape_values.usual_of_each(distinct, recipe.profiles, recipe.shape_values),
            threads=measured_threads(recipe),
            task=recipe.model.task,
            opt=bench_inputs.optima(recipe)[0],
        )

    def hardware(self) -> Hardware | None:
        return self.execution.needs

    def models_of(self) -> Mapping[str, str]:
        return {parameter(name): name for name in self.candidates}

    def tools_used(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*onnx_files.TOOLS, *self.execution.tools)))

    def facts_used(self) -> tuple[str, ...]:
        latency = self.execution.by.latency_facts(self.execution)
        return tuple(dict.fromkeys((*self.facts, *self.execution.facts, *latency)))

    def code_used(self) -> tuple[str, ...]:
        return (*super().code_used(), *self.execution.code, *tasks.modules(self.task))

    def run(self, out: Path, *, reference: Path, exported: Path, checkpoint: Path, **models: Path) -> CandidatesReport:
        """Write the figures of all candidates, and return them as the report.

        Raises StepError where a candidate cannot run its model.
        """
        threads = self.threads or cpu.physical_cores()
        reasons = {name: choice.refusal(models[parameter(name)]) for name in self.candidates}
        absent = {name: reason for name, reason in reasons.items() if reason is not None}
        runs = {name: self.execution.as_run_by(name) for name in self.candidates if name not in absent}
        accuracies = {
            name: built_model.measure(
                models[parameter(name)],
                execution,
                reference=reference,
                checkpoint=checkpoint,
                task=self.task,
                opt=self.opt,
                what=f"the model for {execution.by.title}",
            )
            for name, execution in runs.items()
        }
        built = [
            BuiltModel(models[parameter(name)], execution, name, threads=threads) for name, execution in runs.items()
        ]
        contenders = [Contender.in_process(each.runner()) for each in built]
        graph = onnx_files.load_graph(exported)
        latencies: dict[str, list[Latency]] = {name: [] for name in runs}
        for axes, values, in_graph in zip_longest(self.shapes, self.values, self.in_graph) if runs else ():
            print(f"measuring {in_words(axes)}, {lists.counted(threads, 'thread')}: {', '.join(runs)}")
            inputs = bench_inputs.draw(graph, axes, values)
            ready = contenders
            if in_graph:
                ready = [
                    cuda_graphs.preferred(contender, each, inputs, axes, stated=values or ())
                    for contender, each in zip(contenders, built, strict=True)
                ]
            measured = interleaving.measure(ready, inputs, self.budget)
            for name, calls in zip(runs, measured, strict=True):
                latencies[name].append(Latency(axes, medians(calls.hot)))
                print(f"{name}: p50 {latencies[name][-1].p50_ms:.3f} ms")
        gpu = self.execution.hardware
        report = CandidatesReport(
            cpu=cpu.model(),
            threads=threads,
            gpu="" if gpu is None else devices.chosen(gpu).name,
            candidates={name: CandidateModel(without_texts(accuracies[name]), tuple(latencies[name])) for name in runs},
            absent=absent,
        )
        write_report(out, report.to_json())
        return report
