"""Runtime: what executes models. Ours are a package each; others join by the entry point `recipe.runtimes`."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from engine.runtimes.served import Served, plain
from engine.runtimes.triton_images import RECIPE_PATH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from engine.gpus import Gpu
    from engine.runtimes.backends import Accelerator, Backend
    from engine.runtimes.preparation import Lowering, Residual
    from engine.runtimes.recipes import ExecutionView, LoadedRecipeView, RecipeView, TargetView
    from engine.runtimes.rival import RivalModel
    from engine.runtimes.runner import Runner
    from engine.runtimes.triton_images import ImageTag


E = TypeVar("E", bound="ExecutionView")
GPU_FACTS = ("cuda.runtime", "device.name", "device.sm", "gpu.driver")
"""A driver brings compilers and libraries of its own, so its version counts wherever something runs on it."""


@dataclass(frozen=True)
class Kernels:
    """Precisions that a runtime computes in whatever the device can do; `fact` stands in front of their list."""

    precisions: tuple[str, ...]
    fact: str
    instead: str = ""
    """What else has the precision where the devices compute in it, as a further hint."""


@dataclass(frozen=True)
class Way:
    """A way to run models on a GPU, for `recipe doctor`: what it needs beside a driver."""

    name: str
    distributions: tuple[str, ...]
    modules: tuple[tuple[str, str], ...] = ()
    """Packages that are asked for by their module: the distribution, the module."""
    libraries: tuple[str, ...] = ()
    """Shared libraries that must be found; pip brings them in packages of their own."""


@dataclass(frozen=True)
class Unsupported:
    """What a recipe may say of a runtime and nothing does yet."""

    field: str
    """The field of the recipe, as in `target.runtime`."""
    what: str
    instead: str


class Runtime:
    """What executes models: which targets and precisions it has, what its results depend on, and how it runs.

    The class is pure: it is read to check a recipe, and imports no tool. What runs a model lies in the module that
    `work` names, which is imported when it is used. A runtime in one file overrides `runner` instead, and `rival`
    where others are measured against it.
    """

    name: ClassVar[str]
    """As recipes write it: `target.runtime`."""
    title: ClassVar[str] = ""
    """As people call it; the name where it is left out."""
    work: ClassVar[str] = ""
    """The module with `runner` and `rival`, relative to this module's package: `.runner`."""
    serving: ClassVar[str] = ""
    """The module with `served`, likewise; without it a package is a plain folder."""
    options_model: ClassVar[type[Any] | None] = None
    """The pydantic model of what a recipe says under `runtimes: {NAME: {...}}`; None where nothing can be said."""

    targets: ClassVar[bool] = True
    """Whether it can be `target.runtime`; otherwise it only runs what ours is measured against."""
    planned: ClassVar[Unsupported | None] = None
    """Why recipes may name it, and nothing builds for it yet."""
    providers: ClassVar[tuple[str, ...]] = ()
    """What `target.provider` may be."""
    on_cpus: ClassVar[bool] = True
    on_gpus: ClassVar[bool] = False
    several: ClassVar[bool] = False
    """Whether one artifact can be for several devices."""
    compile_step: ClassVar[str | None] = None
    """The step that compiles for it."""
    rival_of: ClassVar[str | None] = None
    """The output that it runs as a rival in `bench.against`: `exported`, `checkpoint`; None where it is none."""
    rival_precisions: ClassVar[tuple[str, ...]] = ()
    rival_served: ClassVar[bool] = False
    """Whether it is measured through a server as well, where ours is."""
    backend: ClassVar[Backend | None] = None
    """Triton's backend that overrides are held against; None where Triton has none."""
    loads_in_triton: ClassVar[bool] = False
    not_triton: ClassVar[str] = "no Triton repository: Triton has no backend for it"
    """Why a package is a plain folder, where `loads_in_triton` is false."""
    threads_in_triton: ClassVar[str | None] = None
    """The parameter of Triton's backend that says how many threads an operator takes on a CPU."""
    ways: ClassVar[tuple[Way, ...]] = ()
    """The ways to run on a GPU, for `recipe doctor`."""
    tools_for: ClassVar[Mapping[str, str]] = {}
    """Distributions that it needs, each with what for, for `recipe doctor`."""

    # What a recipe may ask of it. Each `refuse...` raises RecipeError with the nearest thing that works.

    def runs_on_cpu(self, target: TargetView) -> bool:
        """Say whether the target's model runs on a CPU."""
        return target.device == "cpu"

    def refuse_cpu(self, loaded: LoadedRecipeView) -> None:
        """Raise RecipeError where the target is a CPU and the runtime has none of it."""
        if not self.on_cpus:
            what = f"{self.name} runs on NVIDIA GPUs; the target is a cpu"
            hint = "name the GPU (`recipe gpus` lists them), or use runtime: onnxruntime"
            raise loaded.error(what, "target", "runtime", hint=hint)

    def refuse_gpus(self, loaded: LoadedRecipeView, named: Sequence[Gpu]) -> None:
        """Raise RecipeError where it does not run on the GPUs that the recipe names."""
        if not self.on_gpus:
            from engine import gpus

            what = f"{self.name} does not run on {gpus.called(named)}"
            raise loaded.error(what, "target", "runtime", hint="use tensorrt, or device: cpu")

    def builds_for(self, gpu: Gpu) -> bool:
        """Say whether it runs on one kind of GPU at all."""
        return self.on_gpus

    def kernels(self, target: TargetView) -> Kernels | None:
        """Return the precisions that it computes in there; None where that is what the GPU itself computes in."""
        return Kernels(("fp32",), f"{self.name} computes in") if self.runs_on_cpu(target) else None

    def lacks(self, gpu: Gpu) -> Sequence[str]:
        """Return precisions that a GPU computes in and this runtime on it does not."""
        return ()

    def sections(self, target: TargetView) -> Sequence[str]:
        """Return the sections of a recipe that have options for it there, beside `runtimes`."""
        return ()

    def refuse_options(self, loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
        """Raise RecipeError at the first option that cannot be, or would be silently without effect."""

    def refuse_image(self, loaded: LoadedRecipeView, named: ImageTag) -> None:
        """Raise RecipeError where the Triton image of the recipe cannot load what is built."""
        if not self.loads_in_triton:
            what = f"no image of Triton loads what {self.name} runs"
            hint = "use another runtime, or leave the image out"
            raise loaded.error(what, *RECIPE_PATH, hint=hint)

    def refuse_operators(self, loaded: LoadedRecipeView, operators: Mapping[str, Sequence[str]]) -> None:
        """Raise RecipeError for operators that it lacks: {domain: [operator]}, those that are not ONNX's own."""

    def refuse_installed(self, loaded: LoadedRecipeView, installed: Callable[[str], str | None]) -> None:
        """Raise RecipeError where another version than the recipe's is installed; `installed` is None where none is."""

    def unsupported(self, recipe: RecipeView) -> Iterator[Unsupported]:
        """Yield what the recipe asks of it and nothing does yet."""
        if not self.loads_in_triton and recipe.bench is not None and set(recipe.bench.via) - {"in-process"}:
            what = "measuring through a server what Triton has no backend for"
            yield Unsupported("bench.via", what, "via: [in-process]")

    def accelerator(self, target: TargetView) -> Accelerator | None:
        """Return what Triton's ONNX Runtime backend hands the model to there; None for no accelerator."""
        return None

    def generates(self, target: TargetView) -> bool:
        """Say whether it runs models that generate text there."""
        return False

    def fixes_profiles(self, target: TargetView) -> bool:
        """Say whether what is built takes only the shapes of its profiles."""
        return False

    # What is done for it.

    def lowering(self, recipe: RecipeView) -> Lowering | None:
        """Return how the recipe's precision comes into the graph; None where the graph stays as it is."""
        return None

    def fuses(self, target: TargetView) -> Residual | None:
        """Return how transformer operators are fused for it; None where it knows no fused operators."""
        return None

    # What its results depend on.

    def execution(self, recipe: RecipeView) -> Mapping[str, Any]:
        """Return the options with which it runs the recipe's model: JSON values, rows of the keys."""
        said = recipe.runtimes.get(self.name, {})
        return {} if self.options_model is None else self.options_model.model_validate(said).model_dump(mode="json")

    def tool(self, target: TargetView) -> str | None:
        """Return the distribution that drives the GPU; None on a CPU."""
        return None

    def tool_version(self, recipe: RecipeView) -> str | None:
        """Return which versions of that will do, as recipes say it: "10.x"; None for any."""
        return None

    def tools(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the distributions that its answers depend on."""
        return ("numpy",)

    def facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the facts of the machine that its answers depend on."""
        return ("cpu.isa",)

    def latency_facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return further facts that its latency depends on."""
        return ()

    def rival_tools(self, *, library: str) -> tuple[str, ...]:
        """Return the distributions that a rival's latency depends on; `library` has the model for PyTorch."""
        return ()

    def as_rival(self, execution: E) -> E:
        """Return how it runs as a rival, on the same device as `execution`: with nothing but its defaults."""
        return execution.model_copy(update={"runtime": self.name, "options": {}})

    # What runs: imported when it is asked for.

    def code(self) -> tuple[str, ...]:
        """Return the modules that run models, whose code counts in the keys of jobs that do."""
        return self._modules(self.work)

    def code_to_serve(self) -> tuple[str, ...]:
        """Return the modules that say how a model is served, whose code counts in the keys of packages."""
        return self._modules(self.serving)

    def runner(
        self,
        directory: Path,
        execution: ExecutionView,
        *,
        name: str = "built",
        threads: int = 0,
        new_tokens: int | None = None,
    ) -> Runner:
        """Return what answers inputs by the built model in `directory`.

        `new_tokens` says that it generates text, and how much of it a prepared call does. Raises StepError where the
        model cannot run here, on just the device that it is for: no other one is ever taken.
        """
        return self._module(self.work).runner(directory, execution, name=name, threads=threads, new_tokens=new_tokens)  # type: ignore[no-any-return]

    def rival(
        self, original: RivalModel, *, name: str, precision: str, execution: ExecutionView, threads: int
    ) -> Runner:
        """Return what a user would otherwise run, on the device of `execution`. Raises StepError as `runner` does."""
        work = self._module(self.work)
        return work.rival(  # type: ignore[no-any-return]
            original, name=name, precision=precision, execution=execution, threads=threads
        )

    def served(self, directory: Path, execution: ExecutionView, scratch: Path) -> Served:
        """Return how Triton, or a program of one's own, serves the built model in `directory`."""
        if not self.serving:
            return plain(directory, self.not_triton)
        return self._module(self.serving).served(directory, execution, scratch)  # type: ignore[no-any-return]

    def built_by(self, folder: Path) -> tuple[str, bool]:
        """Return the version that built what a model's folder of a repository holds, and whether later ones load it.

        The version is "" where nothing there says it.
        """
        return self._module(self.serving).built_by(folder)  # type: ignore[no-any-return]

    def _modules(self, relative: str) -> tuple[str, ...]:
        """Return this runtime's module, the one named, and the classes that it inherits from."""
        homes = (kind.__module__ for kind in type(self).__mro__ if issubclass(kind, Runtime))
        return tuple(dict.fromkeys((*homes, *([self._absolute(relative)] if relative else ()))))

    def _module(self, relative: str) -> ModuleType:
        return importlib.import_module(self._absolute(relative))

    def _absolute(self, relative: str) -> str:
        """Return a module that is named relative to the package of the class that names it."""
        own = next(
            kind for kind in type(self).__mro__ if relative in (vars(kind).get("work"), vars(kind).get("serving"))
        )
        return importlib.util.resolve_name(relative, own.__module__.rpartition(".")[0])

    def beside(self, name: str) -> ModuleType:
        """Return a module of this package by its name: one that refuses recipes, and counts in no key."""
        return importlib.import_module(f"{type(self).__module__.rpartition('.')[0]}.{name}")
