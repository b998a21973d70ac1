"""Bench: how fast the built model is, interleaved with what a user would otherwise run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from engine.errors import JudgementError, StepError
from engine.kit import bench_inputs, checkpoint, cpu, devices, gpu_state, onnx_files, runners, stats, torch_runner
from engine.kit.execution import Execution
from engine.kit.interleaving import Budget, Contender, measure
from engine.kit.runner import Runner
from engine.recipe import images
from engine.recipe.images import Images
from engine.recipe.schema import Recipe, Rival, Task
from engine.step import Hardware, Report, Step

Axes = Mapping[str, int]

LATENCIES = "latencies.json"


class Bench(Step):
    """Measure latencies in one process: our model and its rivals take turns, with the same threads and inputs."""

    makes: ClassVar[str] = "measurements"
    facts: ClassVar[tuple[str, ...]] = ("cpu.model", "cpu.isa", "cpu.count", "os", "arch")
    judged: ClassVar[tuple[str, ...]] = ("budgets",)
    exclusive: ClassVar[bool] = True
    reproducible: ClassVar[bool] = False
    budget: ClassVar[Budget] = Budget()

    name_of_ours: str = "onnxruntime-fp32"
    execution: Execution = Execution()
    shapes: tuple[Axes, ...] = ()
    against: tuple[Rival, ...] = ()
    threads: int | None = None
    """None: as many as there are physical cores."""
    task: Task | None = None
    num_labels: int | None = None
    random_head: bool = False
    images: Images | None = None
    """How images come to the original where it is a model of timm, and PyTorch runs it."""
    budgets: tuple[Mapping[str, float], ...] = ()
    """The most milliseconds (`p95_ms` and so on) that our model may take, a mapping for each of `shapes`."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Wanted where the recipe has a `bench`. Shapes that it does not name are the profiles' `opt`."""
        bench, model = recipe.bench, recipe.model
        if bench is None:
            return None
        usual = [{axis: int(extent.opt) for axis, extent in profile.items()} for profile in recipe.profiles]
        # An axis that a shape leaves out is as the first profile has it.
        named = [{**(usual[0] if usual else {}), **shape.axes} for shape in bench.shapes]
        distinct = list({tuple(sorted(axes.items())): axes for axes in usual}.values())
        original = any(rival.runtime == "pytorch" for rival in bench.against)
        return cls(
            name_of_ours=_name(recipe.target.runtime, recipe.precision),
            execution=Execution.for_recipe(recipe),
            shapes=tuple(named or distinct or [{}]),
            against=bench.against,
            threads=bench.threads,
            task=model.task if original else None,
            num_labels=model.num_labels if original else None,
            random_head=model.random_head if original else False,
            images=images.wanted(recipe) if original else None,
            budgets=tuple({str(name): limit for name, limit in shape.budget.items()} for shape in bench.shapes),
        )

    def hardware(self) -> Hardware | None:
        """Return the GPU that runs the model."""
        return self.execution.hardware

    def tools_used(self) -> tuple[str, ...]:
        """Return what runs the models: our runtime and the rivals'."""
        tools = ["onnx", *self.execution.tools]
        for rival in self.against:
            original = ("torch", "transformers" if self.images is None else "timm")
            tools += original if rival.runtime == "pytorch" else ("numpy", "onnxruntime")
        return tuple(dict.fromkeys(tools))

    def facts_used(self) -> tuple[str, ...]:
        """Return what a latency depends on: the CPU, which build of a runtime, and the GPU where there is one."""
        build = ("onnxruntime.build",) if any("onnxruntime" in tool for tool in self.tools_used()) else ()
        return tuple(dict.fromkeys((*self.facts, *self.execution.facts, *build)))

    def inputs_used(self) -> tuple[str, ...]:
        """Return the models that run: the checkpoint only where PyTorch runs it."""
        original = any(rival.runtime == "pytorch" for rival in self.against)
        return tuple(name for name in self.inputs() if original or name != "checkpoint")

    def run(self, out: Path, *, validated: Path, exported: Path, checkpoint: Path | None = None) -> Report:
        """Write `latencies.json`, milliseconds of every call by row, and return the summary of each row.

        `noise` is how far the middle half of the rounds' medians lies apart, as a share; `ratio_to` how many times
        longer each rival takes, as the median over rounds. On a GPU everything runs there: "gpu" says which it is and
        what its clocks did. Raises StepError where a model cannot be run, or not where it should.
        """
        threads = self.threads or cpu.physical_cores()
        gpu = None if self.execution.hardware is None else devices.chosen(self.execution.hardware)
        ours = runners.built(validated, self.execution, name=self.name_of_ours, threads=threads)
        rivals = [self._rival(rival, exported, checkpoint, threads) for rival in self.against]
        graph = onnx_files.load_graph(exported)
        rows: list[dict[str, Any]] = []
        states: list[Mapping[str, str]] = []
        latencies: list[list[list[float]]] = []
        for axes in self.shapes:
            print(f"measuring {_words(axes)}, {threads} threads: {', '.join(each.name for each in (ours, *rivals))}")
            made = self._measured(axes, bench_inputs.draw(graph, axes), ours, rivals)
            rows += [row for row, _ in made]
            latencies += [rounds for _, rounds in made]
            states += gpu_state.look(gpu.name) if gpu else []
            for row, _ in made:
                print(_in_words(row))
        out.mkdir(parents=True, exist_ok=True)
        raw = [{"shape": row["shape"], "runtime": row["runtime"], "ours": row["ours"], "rounds_ms": rounds}
               for row, rounds in zip(rows, latencies, strict=True)]  # fmt: skip
        (out / LATENCIES).write_text(json.dumps(raw) + "\n", "utf-8")
        told = {"gpu": {"name": gpu.name, **gpu_state.report(states)}} if gpu else {}
        return {"threads": threads, "cpu": cpu.model(), **told, "rows": rows}

    def judge(self, report: Report) -> None:
        """Hold our rows against the budgets. Raises JudgementError, which lists every budget that was missed."""
        ours = [row for row in report["rows"] if row["ours"]]
        missed = [
            f"{_words(row['shape'])}: {name} is {row[name]:.3f}, {row[name] - limit:.3f} over its budget of {limit:g}"
            for row, budget in zip(ours, self.budgets, strict=False)
            for name, limit in budget.items()
            if not row[name] <= limit
        ]
        if missed:
            noise = max(row["noise"] for row in ours)
            where = report["gpu"]["name"] if "gpu" in report else f"{report['cpu']}, {report['threads']} threads"
            facts = [*missed[1:], f"on {where}; noise up to {noise:.0%}"]
            raise JudgementError(
                f"A latency is over its budget: {missed[0]}",
                facts,
                "set another budget under bench.shapes, or free the machine",
            )

    def _rival(self, rival: Rival, exported: Path, directory: Path | None, threads: int) -> Runner:
        name = _name(rival.runtime, rival.precision)
        print(f"loading {name}")
        if rival.runtime == "onnxruntime":
            return runners.plain_onnxruntime(exported, self.execution, name=name, threads=threads)
        if directory is None or checkpoint.kind(directory) == "onnx":
            raise StepError(
                "An ONNX file cannot be measured against PyTorch: there is no PyTorch model of it",
                hint="take runtime: pytorch out of bench.against",
            )
        return torch_runner.pytorch(
            directory,
            checkpoint.task(directory, self.task),
            name=name,
            precision=rival.precision,
            hardware=self.execution.hardware,
            threads=threads,
            num_labels=self.num_labels,
            random_head=self.random_head,
            images=self.images,
        )

    def _measured(
        self, axes: Axes, inputs: bench_inputs.Tensors, ours: Runner, rivals: list[Runner]
    ) -> list[tuple[dict[str, Any], list[list[float]]]]:
        """Return a row and its latencies, milliseconds by round, for our model and then each rival."""
        taking_part = {str(number): runner for number, runner in enumerate((ours, *rivals))}
        contenders = {key: Contender(each.prepare(inputs), each.active) for key, each in taking_part.items()}
        seconds = measure(contenders, self.budget)
        rounds = {key: [[round(value * 1e3, 3) for value in turn] for turn in turns] for key, turns in seconds.items()}
        ratios = {each.name: stats.ratio(seconds[key], seconds["0"]) for key, each in taking_part.items() if key != "0"}
        return [
            (
                {
                    "shape": dict(axes),
                    "via": "in-process",
                    "runtime": runner.name,
                    "ours": runner is ours,
                    **stats.summary([[value * 1e3 for value in turn] for turn in seconds[key]]),
                    "ratio_to": ratios if runner is ours else {},
                },
                rounds[key],
            )
            for key, runner in taking_part.items()
        ]


def _name(runtime: str, precision: str) -> str:
    return f"{runtime}-{precision}"


def _words(axes: Axes) -> str:
    return " x ".join(f"{axis} {extent}" for axis, extent in axes.items()) or "the model's own shape"


def _in_words(row: Mapping[str, Any]) -> str:
    ratios = "".join(f", {ratio:.2f} x {name}" for name, ratio in row["ratio_to"].items())
    return f"{row['runtime']}: p50 {row['p50_ms']:.3f} ms, p99 {row['p99_ms']:.3f} ms in {row['runs']} runs{ratios}"
