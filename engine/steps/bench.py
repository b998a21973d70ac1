"""Bench: the latency of the built model and of its rivals, measured in turns."""

from __future__ import annotations

import contextlib
import importlib
import json
import time
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Self

from engine import tasks
from engine.kit.bench import budgets, cuda_graphs, starts
from engine.kit.bench import contenders as contenders_of
from engine.kit.bench.contenders import BuiltModel, of_checkpoint
from engine.kit.bench.interleaving import Budget, Contender, TimedRow
from engine.kit.bench.report import BenchReport, ModelStart, ServerReport, in_words
from engine.kit.bench.sample_report import SampleLengths
from engine.kit.bench.starts import NamedLoad, StartedModel
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import graphs, onnx_files
from engine.kit.triton.serving import Serving
from engine.machine import cpu, gpu_state
from engine.machine.nvml import BoardState
from engine.recipe import image_input, shape_values
from engine.recipe.fields import OF_SAMPLES
from engine.recipe.image_input import Images
from engine.recipe.values import Profile, Rival
from engine.runtimes import devices, recipes, registry
from engine.runtimes.execution import Execution
from engine.runtimes.profiles import fixed, greatest
from engine.runtimes.recipes import IN_PROCESS
from engine.runtimes.runner import RivalModel
from engine.runtimes.threads import measured_threads
from engine.step import Hardware, Section, Source, Step, StepError, TypedReport
from engine.text import lists

if TYPE_CHECKING:
    import onnx

    from engine.kit.bench.sample_rows import SampleRows
    from engine.recipe.schema import Recipe

Axes = Mapping[str, int | str]
"""The size of each axis of a shape; "samples" for the axis whose sizes are the lengths of the samples."""

LATENCIES = "latencies.json"
_SERVER_TOOLS = ("protobuf", "tokenizers", "tritonclient")
_SERVER = "engine.server.measured_server"
_ROWS = "engine.kit.bench.sample_rows"
_BATCHES = "engine.kit.bench.sample_batches"
"""The names of the modules that start servers for measurements, that read samples, and that measure their batches.

The step imports the modules by name, so that their code is in the key only where models are measured through a server,
or on the lengths of samples.
"""


class Bench(Step):
    """Measure latencies: the built model and its rivals take turns, with the same inputs and number of threads.

    The measured models run in process, in a server, or in both ways.
    """

    makes: ClassVar[str] = "measurements"
    section: ClassVar[Section | None] = Section.BENCH
    facts: ClassVar[tuple[str, ...]] = ("cpu.model", "cpu.isa", "cpu.count", "os", "arch")
    judged: ClassVar[tuple[str, ...]] = ("budgets",)
    keyed_if_set: ClassVar[tuple[str, ...]] = ("values", "in_graph")
    exclusive: ClassVar[bool] = True
    reproducible: ClassVar[bool] = False
    report: ClassVar[type[TypedReport] | None] = BenchReport
    budget: ClassVar[Budget] = Budget()

    name_of_ours: str = "onnxruntime-fp32"
    execution: Execution = Execution()
    shapes: tuple[Axes, ...] = ()
    against: tuple[Rival, ...] = ()
    threads: int | None = None
    """The number of threads: the recipe's for `bench`, else that of the package, else None for the physical cores."""
    task: str | None = None
    num_labels: int | None = None
    random_head: bool = False
    images: Images | None = None
    """How images are prepared for a timm model that PyTorch runs as a rival."""
    new_tokens: int | None = None
    """The number of tokens that a call of a generating model generates; None stands for `tasks.MEASURED`."""
    via: tuple[str, ...] = (IN_PROCESS,)
    serving: Serving | None = None
    """How the model is served; None where models are not measured through a server."""
    samples: Source | None = None
    """The samples whose lengths a shape stands for; None where all shapes have numbers."""
    longest: int | None = None
    """The number of tokens to which the recipe's profiles cut the samples; None where no profile does."""
    profiles: tuple[Profile, ...] = ()
    """The profiles to which batches of samples are padded, for a model that takes only the shapes of its profiles."""
    values: tuple[Mapping[str, tuple[int, ...]], ...] = ()
    """The values of inputs that the profiles state, for each shape; empty where they state none."""
    in_graph: tuple[bool, ...] = ()
    """For each shape, whether the built model is run in a CUDA graph by default, as a profile has this shape alone.

    Empty where the built model is not measured with and without CUDA graphs.
    """
    budgets: tuple[Mapping[str, float], ...] = ()
    """The budgets of the built model in milliseconds, by name (`p95_ms` and so on); a mapping for each shape.

    A budget changes no measurement, but a latency near its budget is measured longer.
    """

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for a recipe with `bench`; without `bench.shapes` it measures the profiles' `opt` shapes.

        Without profiles, too, it measures the shape that is usual for the model, which is not known here.
        """
        bench, model = recipe.bench, recipe.model
        if bench is None:
            return None
        usual = bench_inputs.optima(recipe)[0]
        # An axis that a shape does not name gets its extent in the first profile.
        named: list[Axes] = [
            {**usual, **shape.axes, **({shape.samples: OF_SAMPLES} if shape.samples else {})} for shape in bench.shapes
        ]
        mixed = next((shape.samples for shape in bench.shapes if shape.samples), None)
        original = any(of_checkpoint(rival) for rival in bench.against)
        shapes: Sequence[Axes] = named or bench_inputs.stated_shapes(recipe)
        execution = Execution.for_recipe(recipe)
        graphed = IN_PROCESS in bench.via and execution.by.graphed(execution) is not None
        return cls(
            name_of_ours=f"{recipe.target.runtime}-{recipe.precision}",
            execution=execution,
            in_graph=tuple(shape in fixed(recipe.profiles) for shape in shapes) if graphed else (),
            shapes=tuple(shapes),
            values=shape_values.usual_of_each(shapes, recipe.profiles, recipe.shape_values),
            against=tuple(
                Rival(runtime=each.runtime, precision=each.precision, compile=each.compile) for each in bench.against
            ),
            threads=measured_threads(recipe),
            task=model.task if original else None,
            num_labels=model.num_labels if original else None,
            random_head=model.random_head if original else False,
            images=recipe.images if original else None,
            new_tokens=recipe.generate.get("max_new_tokens"),
            via=bench.via,
            serving=Serving.for_recipe(recipe) if recipes.served(recipe) else None,
            samples=Source(uri=recipe.bench_samples) if recipe.bench_samples else None,
            longest=None if mixed is None else greatest(recipe.profiles).get(mixed),
            profiles=tuple(recipe.runtime.padded_profiles(recipe)) if mixed else (),
            budgets=tuple({str(name): limit for name, limit in shape.budget.items()} for shape in bench.shapes),
        )

    def options(self) -> Mapping[str, Any]:
        """Return the step's fields that are rows of the key.

        `via` and `serving` are left out without a server, `longest` and `profiles` without samples.
        """
        unused = {"via", "serving"} if self.serving is None else set()
        unused |= {"longest", "profiles"} if self.samples is None else set()
        return {name: value for name, value in super().options().items() if name not in unused}

    def code_used(self) -> tuple[str, ...]:
        rivals = (module for rival in self.against for module in registry.find(rival.runtime).code())
        task = tasks.modules(self.task) if any(map(of_checkpoint, self.against)) else ()
        served = () if self.serving is None else (_SERVER, *self.serving.code_used())
        mixed = () if self.samples is None else (_ROWS, _BATCHES)
        return tuple(dict.fromkeys((*super().code_used(), *self.execution.code, *rivals, *task, *served, *mixed)))

    def hardware(self) -> Hardware | None:
        return self.execution.needs

    def tools_used(self) -> tuple[str, ...]:
        tools = [*onnx_files.TOOLS, *self.execution.tools]
        for rival in self.against:
            tools += registry.find(rival.runtime).rival_tools(library=image_input.library(self.images))
        tools += () if self.serving is None else _SERVER_TOOLS
        tools += () if self.samples is None else ("tokenizers",)
        return tuple(dict.fromkeys(tools))

    def facts_used(self) -> tuple[str, ...]:
        run = (self.execution.by, *(registry.find(rival.runtime) for rival in self.against))
        further = (fact for runtime in run for fact in runtime.latency_facts(self.execution))
        server = () if self.serving is None else ("triton.server",)
        compilers = (registry.find(rival.runtime).compiler_facts for rival in self.against if rival.compile)
        return tuple(dict.fromkeys((*self.facts, *self.execution.facts, *further, *server, *chain(*compilers))))

    def inputs_used(self) -> tuple[str, ...]:
        """Return the names of the inputs; the checkpoint is one only where something needs it.

        PyTorch, a server and samples need it, and a recipe without shapes, for the model's limit of tokens.
        """
        original = self.serving is not None or self.samples is not None or any(map(of_checkpoint, self.against))
        original |= not any(self.shapes)
        return tuple(name for name in self.inputs() if original or name != "checkpoint")

    def run(
        self, out: Path, *, validated: Path, exported: Path, checkpoint: Path | None = None, samples: Path | None = None
    ) -> BenchReport:
        """Write every call's milliseconds to `latencies.json`; return a report with a row per contender and shape.

        A shape of samples has a row for each of two orders of the samples.

        Before that, each model that runs in process is started in a process of its own. A call of a generating model
        generates `new_tokens` tokens for a prompt. All models run on the GPU of the recipe's target, if it has one. A
        rival that cannot run here is not measured, and the report says why. Raises StepError where the built model
        cannot run, or runs on another device, or where no server can be started.
        """
        chosen = self._of_model(validated)
        if chosen is not self:
            return chosen.run(out, validated=validated, exported=exported, checkpoint=checkpoint, samples=samples)
        threads = self.threads or cpu.physical_cores()
        new = (self.new_tokens or tasks.MEASURED) if graphs.generates(exported) else None
        built = BuiltModel(validated, self.execution, self.name_of_ours, threads, new)
        original = RivalModel(
            exported=exported,
            checkpoint=checkpoint,
            task=self.task,
            num_labels=self.num_labels,
            random_head=self.random_head,
            images=self.images,
            new_tokens=new,
            scratch=out.parent,
        )
        in_process = IN_PROCESS in self.via
        loadable = [each for each in self.against if in_process or not registry.find(each.runtime).rival_served]
        loads = contenders_of.rival_loads(loadable, original, self.execution, threads=threads)
        graph = onnx_files.load_graph(exported / graphs.folders(exported)[0])
        shapes = self.shapes if any(self.shapes) else [bench_inputs.usual_shape(graph, checkpoint, new_tokens=new)]
        started = self._started(built, loads, graph, shapes, out.parent) if in_process else ()
        gpu = None if self.execution.hardware is None else devices.chosen(self.execution.hardware)
        ours = [Contender.in_process(built.runner(), ours=True)] if in_process else []
        graphed = built.graphed() if self.in_graph else None
        against, unmeasured = contenders_of.loaded(loads)
        measured: list[TimedRow] = []
        lengths: list[SampleLengths] = []
        states: list[BoardState] = []
        until = time.perf_counter() + budgets.REPEATING_SECONDS
        with contextlib.ExitStack() as stack:
            served, server = self._served(built, original, stack)
            contenders = (*ours, *against, *served)
            for axes, limits, values, by_default in zip_longest(shapes, self.budgets, self.values, self.in_graph):
                print(
                    f"measuring {in_words(axes)}, {lists.counted(threads, 'thread')}: {', '.join(map(str, contenders))}"
                )
                if OF_SAMPLES in axes.values():
                    rows_of_tokens = self._rows_of_tokens(samples, checkpoint or exported, graph)
                    batches = importlib.import_module(_BATCHES)
                    timed, its = batches.measured(
                        axes, rows_of_tokens, contenders, self.budget, limits or {}, until=until
                    )
                    lengths.append(its)
                else:
                    sizes = {axis: int(size) for axis, size in axes.items()}
                    inputs = bench_inputs.of_call(graph, sizes, values, new)
                    fit, unable = contenders_of.able(contenders, inputs, sizes)
                    unmeasured += unable
                    if graphed is not None:
                        fit, unable = cuda_graphs.added(
                            fit, graphed, inputs, sizes, by_default=bool(by_default), stated=values or ()
                        )
                        unmeasured += unable
                    timed = budgets.decided_rows(sizes, inputs, fit, self.budget, limits or {}, until=until)
                rows = [(row if new is None else row.generating(new), rounds) for row, rounds in timed]
                measured += rows
                states += gpu_state.look(gpu.name, gpu.uuid) if gpu else []
                for row, _ in rows:
                    print(row.line([other for other, _ in rows]))
        out.mkdir(parents=True, exist_ok=True)
        raw = [{**row.about(), "rounds_ms": rounds} for row, rounds in measured]
        (out / LATENCIES).write_text(json.dumps(raw) + "\n", "utf-8")
        return BenchReport(
            threads=threads,
            cpu=cpu.model(),
            rows=tuple(row for row, _ in measured),
            gpu=gpu_state.report(gpu.name, states) if gpu else None,
            server=server,
            samples=tuple(lengths),
            unmeasured=tuple(unmeasured),
            starts=started,
        )

    def judge(self, report: BenchReport) -> None:
        """Compare the built model's latencies with the budgets.

        Raises JudgementError, which lists every missed budget, and every budget that the measurement cannot decide.
        """
        budgets.judge(report, self.budgets)

    def _of_model(self, validated: Path) -> Self:
        """Return the step for the runtime that the build chose for the model; the step itself if it chose none."""
        execution = self.execution.of_model(validated)
        if execution == self.execution:
            return self
        ours = execution.runtime + self.name_of_ours.removeprefix(self.execution.runtime)
        return self.model_copy(update={"execution": execution, "name_of_ours": ours})

    def _started(
        self,
        built: BuiltModel,
        loads: Sequence[NamedLoad],
        graph: onnx.ModelProto,
        shapes: Sequence[Axes],
        scratch: Path,
    ) -> tuple[ModelStart, ...]:
        """Start each model in a process of its own, before this process loads one: at the first and largest shape."""
        new, library = built.new_tokens, image_input.library(self.images)
        inputs = [bench_inputs.of_call(graph, *each, new) for each in starts.extremes(shapes, self.values)]
        of_rivals = {rival.name: registry.find(rival.runtime).rival_tools(library=library) for rival in self.against}
        ours = StartedModel(built.name, built.runner, self.execution.tools, ours=True, generates=new is not None)
        rivals = [StartedModel(name, load, of_rivals[name], generates=new is not None) for name, load in loads]
        return starts.measured([ours, *rivals], inputs, scratch) if inputs else ()

    def _rows_of_tokens(self, samples: Path | None, tokenizer: Path, graph: onnx.ModelProto) -> SampleRows:
        if samples is None:
            raise StepError("a shape stands for the lengths of samples, and there are no samples")
        rows: SampleRows = importlib.import_module(_ROWS).read(
            samples,
            tokenizer,
            onnx_files.inputs(graph),
            longest=self.longest,
            profiles=self.profiles,
        )
        return rows

    def _served(
        self, built: BuiltModel, original: RivalModel, stack: contextlib.ExitStack
    ) -> tuple[Sequence[Contender], ServerReport | None]:
        """Start a server that runs until `stack` closes; return the contenders that call the server and its report."""
        if self.serving is None:
            return (), None
        server = importlib.import_module(_SERVER)
        serving = self.serving.of_model(built.directory)
        served = [server.ServedModel(self.name_of_ours, ours=True, serving=serving, directory=built.directory)]
        served += [
            server.plain(serving, original.exported, runtime=runtime, name=rival.name)
            for rival in self.against
            if (runtime := registry.find(rival.runtime)).rival_served
        ]
        started = server.started(
            served,
            checkpoint=original.checkpoint or original.exported,
            scratch=Path(stack.enter_context(TemporaryDirectory(dir=original.scratch))),
            protocols=[way for way in self.via if way != IN_PROCESS],
            threads=built.threads,
        )
        contenders, report = stack.enter_context(started)
        return contenders, report
