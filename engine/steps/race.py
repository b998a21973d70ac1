"""Race: the validated models of several points of a search are timed in turns, and compared with the first of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from engine import tasks
from engine.errors import StepError
from engine.kit.bench import cuda_graphs, race
from engine.kit.bench.contenders import BuiltModel, unmeasured
from engine.kit.bench.interleaving import Budget, Contender
from engine.kit.bench.race import Entrant, RaceReport
from engine.kit.bench.report import Unmeasured
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import graphs, onnx_files
from engine.machine import cpu
from engine.recipe import shape_values
from engine.runtimes import devices, requirements
from engine.runtimes.execution import Execution
from engine.runtimes.profiles import fixed
from engine.runtimes.threads import measured_threads
from engine.step import Frozen, Hardware, Step, TypedReport

if TYPE_CHECKING:
    import onnx

    from engine.recipe.schema import Recipe

_LATENCIES = "latencies.json"


class Contestant(Frozen):
    """How the model of one point of a search is run and called."""

    execution: Execution
    axes: Mapping[str, int]
    """The shape of the inputs. The contestants of a race may have other batches."""
    values: Mapping[str, tuple[int, ...]] = {}
    """The values of inputs that a profile states."""
    in_graph: bool = False
    """Whether a profile fixes the shape, so that the model runs it in a CUDA graph."""
    threads: int | None = None
    """The number of threads of each copy of the model; None for an equal share of the physical cores of the CPU."""
    instances: int = 1
    """How many copies of the model are called at once, each again as soon as it is done."""
    new_tokens: int | None = None
    """The number of tokens that a call of a generating model generates; None stands for `tasks.MEASURED`."""

    @classmethod
    def for_recipe(cls, recipe: Recipe, axes: Mapping[str, int], *, instances: int = 1) -> Self:
        """Return the contestant for a point of a search, of which `recipe` has the fields."""
        execution = Execution.for_recipe(recipe)
        sizes = {**bench_inputs.optima(recipe)[0], **axes}
        return cls(
            execution=execution,
            axes=sizes,
            values=shape_values.usual_at(sizes, recipe.profiles, recipe.shape_values),
            in_graph=sizes in fixed(recipe.profiles) and execution.by.graphed(execution) is not None,
            threads=measured_threads(recipe),
            instances=instances,
            new_tokens=recipe.generate.get("max_new_tokens"),
        )


class Race(Step):
    """Time the validated models of several points of a search in turns, and compare them with the first of them.

    No recipe has the step: `recipe tune` and `recipe bisect` join the plans of the points in one job of it. The names
    of the points are no rows of the key, and the report has them in the order of `contestants`.
    """

    makes: ClassVar[str] = "raced"
    facts: ClassVar[tuple[str, ...]] = ("cpu.model", "cpu.isa", "cpu.count", "os", "arch")
    exclusive: ClassVar[bool] = True
    reproducible: ClassVar[bool] = False
    report: ClassVar[type[TypedReport] | None] = RaceReport
    budget: ClassVar[Budget] = Budget(seconds=3.0, warm_up=1.0)
    """For each contestant."""

    contestants: tuple[Contestant, ...]
    """The first is the baseline."""
    cut: float | None = None
    """How many times slower than the baseline a contestant may be before it is timed no further; None for any."""
    by: Literal["p50_ms", "p95_ms", "rows_per_s"] = "p50_ms"
    """The figure that `cut` is about."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:  # noqa: ARG003 - a race is of several points, never of a recipe
        """Return None: a recipe has no race."""
        return None

    def hardware(self) -> Hardware | None:
        """Return the hardware of the baseline, with the packages that drive the GPU for all contestants."""
        needs = {each.execution.runtime: need for each in self.contestants if (need := each.execution.needs)}
        return requirements.of_all(needs) if len(needs) > 1 else next(iter(needs.values()), None)

    def models_of(self) -> Mapping[str, str]:
        """Return the parameters of the contestants' models, with their places among the contestants."""
        return {f"model_{number}": str(number) for number in range(len(self.contestants))}

    def tools_used(self) -> tuple[str, ...]:
        return _union(onnx_files.TOOLS, *(each.execution.tools for each in self.contestants))

    def facts_used(self) -> tuple[str, ...]:
        used = [each.execution for each in self.contestants]
        return _union(self.facts, *(each.facts for each in used), *(each.by.latency_facts(each) for each in used))

    def code_used(self) -> tuple[str, ...]:
        return _union(super().code_used(), *(each.execution.code for each in self.contestants))

    def run(self, out: Path, *, exported: Path, **models: Path) -> RaceReport:
        """Write the milliseconds of every call to `latencies.json`, and return the figures of all contestants.

        A contestant that cannot run here is not timed, and the report says why. Raises StepError where the baseline
        cannot run.
        """
        graph = onnx_files.load_graph(exported / graphs.folders(exported)[0])
        generates = graphs.generates(exported)
        entrants: dict[int, Entrant] = {}
        absent: dict[int, Unmeasured] = {}
        for number, contestant in enumerate(self.contestants):
            model = models[f"model_{number}"]
            execution = contestant.execution.of_model(model)
            new = (contestant.new_tokens or tasks.MEASURED) if generates else None
            threads = contestant.threads or max(1, cpu.physical_cores() // contestant.instances)
            built = BuiltModel(model, execution, execution.runtime, threads, new)
            try:
                entrants[number] = _entrant(contestant, built, graph)
            except (StepError, ImportError, OSError, RuntimeError) as error:  # a lack of memory is a RuntimeError
                if number == 0:
                    raise
                absent[number] = unmeasured(execution.runtime, error, contestant.axes)
        count, each = len(entrants), self.budget
        budget = replace(each, seconds=each.seconds * count, warm_up=each.warm_up * count)
        timed = dict(zip(entrants, race.run(list(entrants.values()), budget, cut=self.cut, by=self.by), strict=True))
        out.mkdir(parents=True, exist_ok=True)
        (out / _LATENCIES).write_text(json.dumps({number: raw for number, (_, raw) in timed.items()}) + "\n", "utf-8")
        for row, _ in timed.values():
            print(row.line())
        gpu = self.contestants[0].execution.hardware
        return RaceReport(
            cpu=cpu.model(),
            gpu="" if gpu is None else devices.chosen(gpu).name,
            rows=tuple(absent.get(number) or timed[number][0] for number in range(len(self.contestants))),
        )


def _union(*groups: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain(*groups)))


def _entrant(contestant: Contestant, built: BuiltModel, graph: onnx.ModelProto) -> Entrant:
    """Return a contestant with its model loaded. Raises an error if it cannot run."""
    axes, values = contestant.axes, contestant.values
    inputs = bench_inputs.of_call(graph, axes, values, built.new_tokens)

    def copy() -> Contender:
        contender = Contender.in_process(built.runner())
        if contestant.in_graph:
            contender = cuda_graphs.preferred(contender, built, inputs, axes, stated=values)
        with contender.active():
            call = contender.prepare(inputs)
            call()
        return replace(contender, prepare=lambda _: call)

    first, *others = (copy() for _ in range(contestant.instances))
    return Entrant(
        contender=replace(first, copies=tuple(others)),
        shape=axes,
        rows=next((array.shape[0] for array in inputs.values() if array.ndim), 1),
        threads=built.threads,
    )
