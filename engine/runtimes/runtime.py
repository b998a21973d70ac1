"""Runtime: executes models. A runtime is a package of engine/runtimes, or an entry point `recipe.runtimes` names it."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from engine.runtimes.knobs import PRECISION, Knob, first
from engine.runtimes.served import Served, plain
from engine.runtimes.support import Support, Way
from engine.text import canonical

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from engine.gpus.libraries import Libraries
    from engine.runtimes.recipes import ExecutionView, RecipeView, TargetView
    from engine.runtimes.runner import RivalModel, Runner


E = TypeVar("E", bound="ExecutionView")
GPU_FACTS = ("cuda.runtime", "device.name", "device.sm", "gpu.driver")
"""Facts in the key of every job that runs on a GPU.

The driver of the GPU is part of the key, because the driver brings its own compilers and libraries.
"""


class Runtime(Support):
    """Software that executes models: the tools and facts of its keys, and its runner; `Support` says what it supports.

    The module of a runtime's class imports no tool (onnxruntime, tensorrt, ...), as checks of recipes import the
    module. The code that runs models is in the module that `work` names; that module is imported when a model runs. A
    runtime whose code is in a single module leaves `work` empty and overrides the method `runner`, and also the method
    `rival` if the runtime can be a rival.
    """

    title: ClassVar[str] = ""
    """The runtime's name in messages, as "ONNX Runtime"."""
    work: ClassVar[str] = ""
    """The module with the functions `runner` and `rival`, relative to the package of the runtime's class: `.runner`."""
    serving: ClassVar[str] = ""
    """The module with the function `served`, relative to the package of the runtime's class.

    A runtime without a module in `serving` gives plain folders instead of Triton model repositories.
    """
    compares_layers: ClassVar[bool] = False
    """Whether the module `layers` beside the runtime's class makes runners of Polygraphy, for `recipe layers`."""
    options_model: ClassVar[type[Any] | None] = None
    """The pydantic model of the options under `runtimes: {NAME: {...}}`; None for a runtime without options."""

    targets: ClassVar[bool] = True
    """Whether the runtime can be `target.runtime`; if not, it only runs rivals."""
    compile_step: ClassVar[str | None] = None
    """The name of the step that compiles models for the runtime; None where models need no compilation."""
    from_graph: ClassVar[bool] = True
    """Whether the built model is made of the exported ONNX graph; if not, it is made of the checkpoint."""
    rival_of: ClassVar[str | None] = None
    """The form of the original model that the runtime runs as a rival: `exported` (an ONNX file) or `checkpoint`; None
    for a runtime that cannot be a rival."""
    rival_precisions: ClassVar[tuple[str, ...]] = ()
    rival_compiles: ClassVar[tuple[str, ...]] = ()
    """The modes in which the runtime can compile a rival, as `bench.against` names them."""
    compiler_facts: ClassVar[tuple[str, ...]] = ()
    """The names of the facts of the machine on which the latency of a compiled rival depends."""
    rival_served: ClassVar[bool] = False
    """Whether the rival is measured through a server, too, if the built model is measured through a server."""
    ways: ClassVar[tuple[Way, ...]] = ()
    """The ways in which this runtime runs models on a GPU, for `recipe doctor`."""
    tools_for: ClassVar[Mapping[str, str]] = {}
    """Distributions that the runtime needs, each with its purpose, for `recipe doctor`."""

    # A name that stands for several runtimes.

    def candidates(self, recipe: RecipeView) -> tuple[str, ...]:
        """Return the runtimes that a build measures for this recipe, to keep the fastest that validates.

        The first is the default: it is kept where no other is measurably faster. Empty for a runtime that builds as it
        is named. What is installed changes nothing here, so that a recipe means the same on every machine.
        """
        return ()

    def takes_part(self, recipe: RecipeView) -> bool:
        """Return whether this runtime is one of the candidates of a recipe whose runtime stands for several."""
        return True

    def executions(self, execution: E) -> tuple[E, ...]:
        """Return the ways in which the built model may be run: one for each candidate of a runtime that has some."""
        return (execution,)

    def chosen(self, directory: Path, execution: E) -> E:
        """Return how the built model in `directory` is run: by the runtime that its build chose, if it chose one."""
        return execution

    def default_provider(self, target: TargetView) -> str | None:
        """Return the value of `target.provider` that stands for none; None for a runtime without providers."""
        return None

    # What a search may try.

    def knobs(self, recipe: RecipeView) -> tuple[Knob, ...]:
        """Return what a recipe can tell this runtime that changes speed, size or accuracy: its precisions, and more.

        `recipe` may name another runtime. The result is empty where this runtime cannot have the recipe's model, or
        would not be tried unless a recipe names it. A runtime with more knobs adds them to those of this method, which
        are `precision` alone, with the recipe's own as the first.
        """
        return (Knob(PRECISION, first(recipe.precision, self.precisions(recipe.target))),)

    # The options, packages and facts that the results of the runtime depend on.

    def execution(self, recipe: RecipeView) -> Mapping[str, Any]:
        """Return the options with which the recipe's model is run: JSON values, which become rows of keys."""
        options = recipe.runtimes.get(self.name, {})
        return {} if self.options_model is None else canonical.encode(self.options_model.model_validate(options))

    def tool(self, target: TargetView) -> str | None:
        """Return the name of the Python distribution that runs models on the GPU; None on a CPU."""
        return None

    def tool_version(self, recipe: RecipeView) -> str | None:
        """Return the versions of the distribution `tool` that the recipe allows, as "10.x"; None for any version."""
        return None

    def libraries(self, execution: ExecutionView) -> Libraries | None:
        """Return the shared libraries that the distribution `tool` loads and does not bring; None if it brings all."""
        return None

    def tools(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of the distributions that the model's outputs depend on."""
        return ("numpy",)

    def package_tools(self) -> tuple[str, ...]:
        """Return the names of the distributions that the runtime's part of a package depends on."""
        return ()

    def facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of the facts of the machine that the model's outputs depend on."""
        return ("cpu.isa",)

    def latency_facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of further facts of the machine, on which only the model's latency depends."""
        return ()

    def rival_tools(self, *, library: str) -> tuple[str, ...]:
        """Return the names of the distributions that a rival's latency depends on; `library` defines the model."""
        return ()

    def as_rival(self, execution: E) -> E:
        """Return how the runtime runs as a rival: on the device of `execution`, with its default options."""
        return execution.model_copy(update={"runtime": self.name, "options": {}})

    def graphed(self, execution: E) -> E | None:
        """Return how `bench` also runs the model of `execution`, with CUDA graphs; None where it is run in one way."""
        return None

    # The code that runs models: imported when a model runs.

    def code(self) -> tuple[str, ...]:
        """Return the modules that run models; their code is part of the key of each job that runs a model."""
        return self._modules(self.work)

    def code_to_serve(self) -> tuple[str, ...]:
        """Return the modules that tell how a model is served; their code is part of the keys of the step `package`."""
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
        """Return the runner of the built model in `directory`.

        `new_tokens` is the number of tokens that a prepared call generates, None for a model that generates no text.
        Raises StepError where the model cannot run on the device that it is built for, since no other device takes its
        place.
        """
        return self._module(self.work).runner(directory, execution, name=name, threads=threads, new_tokens=new_tokens)  # type: ignore[no-any-return]

    def rival(
        self, original: RivalModel, *, name: str, precision: str, execution: ExecutionView, threads: int
    ) -> Runner:
        """Return the runner of the original model, as a user would run it without a recipe.

        The rival runs on the device of `execution`. Raises StepError where the original model cannot run on the device
        of `execution`.
        """
        work = self._module(self.work)
        return work.rival(  # type: ignore[no-any-return]
            original, name=name, precision=precision, execution=execution, threads=threads
        )

    def served(self, directory: Path, execution: ExecutionView, scratch: Path) -> Served:
        """Return how the built model in `directory` is served: by Triton, or by a program of the user's own."""
        if not self.serving:
            return plain(directory, self.not_triton)
        return self._module(self.serving).served(directory, execution, scratch)  # type: ignore[no-any-return]

    def built_by(self, folder: Path) -> tuple[str, bool, tuple[str, ...]]:
        """Return what built the model in a folder: the version, whether later versions load the model, plugins.

        `folder` is the model's folder in a Triton model repository. The returned version is an empty text where no file
        of the folder tells the runtime's version. The plugins are paths below `folder` of libraries to load before.
        """
        return self._module(self.serving).built_by(folder)  # type: ignore[no-any-return]

    def _modules(self, relative: str) -> tuple[str, ...]:
        """Return the names of the modules of this runtime's class and base classes, and of the module in `relative`."""
        homes = (kind.__module__ for kind in type(self).__mro__ if issubclass(kind, Runtime))
        return tuple(dict.fromkeys((*homes, *([self._absolute(relative)] if relative else ()))))

    def _module(self, relative: str) -> ModuleType:
        return importlib.import_module(self._absolute(relative))

    def _absolute(self, relative: str) -> str:
        """Return the absolute name of a module, for a relative name in the attribute `work` or `serving`.

        A relative name starts at the package of the class that sets the attribute `work` or `serving`.
        """
        own = next(
            kind for kind in type(self).__mro__ if relative in (vars(kind).get("work"), vars(kind).get("serving"))
        )
        return importlib.util.resolve_name(relative, own.__module__.rpartition(".")[0])

    def beside(self, name: str) -> ModuleType:
        """Import a module of this runtime's package, or of that of a base class, by its name, for checks of recipes.

        Keys do not contain the code of the checks of recipes.
        """
        homes = (kind.__module__.rpartition(".")[0] for kind in type(self).__mro__ if issubclass(kind, Runtime))
        places = (f"{home}.{name}" for home in dict.fromkeys(homes))
        return importlib.import_module(next(place for place in places if importlib.util.find_spec(place)))
