"""Runtime: executes models. A runtime is a package of engine/runtimes, or an entry point `recipe.runtimes` names it."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from engine.runtimes import recipes
from engine.runtimes.served import Served, plain
from engine.runtimes.support import Kernels, Unsupported, Way
from engine.runtimes.triton_images import RECIPE_PATH
from engine.text import canonical

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from engine.gpus import Gpu
    from engine.gpus.libraries import Libraries
    from engine.runtimes.backends import Accelerator, Backend
    from engine.runtimes.preparation import Lowering, Residual
    from engine.runtimes.recipes import ExecutionView, LoadedRecipeView, RecipeView, TargetView
    from engine.runtimes.runner import RivalModel, Runner
    from engine.runtimes.triton_images import ImageTag


E = TypeVar("E", bound="ExecutionView")
GPU_FACTS = ("cuda.runtime", "device.name", "device.sm", "gpu.driver")
"""Facts in the key of every job that runs on a GPU.

The driver of the GPU is part of the key, because the driver brings its own compilers and libraries.
"""


_EXPORTED = 20
"""The opset of the models that the step `export` writes, which every supported server reads."""


class Runtime:
    """Software that executes models: its targets, its precisions, the tools and facts of its keys, and its runner.

    The module of a runtime's class imports no tool (onnxruntime, tensorrt, ...), as checks of recipes import the
    module. The code that runs models is in the module that `work` names; that module is imported when a model runs. A
    runtime whose code is in a single module leaves `work` empty and overrides the method `runner`, and also the method
    `rival` if the runtime can be a rival.
    """

    name: ClassVar[str]
    """The runtime's name in recipes, a value of `target.runtime`."""
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
    providers: ClassVar[tuple[str, ...]] = ()
    """The values of `target.provider` that belong to this runtime."""
    on_cpus: ClassVar[bool] = True
    on_gpus: ClassVar[bool] = False
    several: ClassVar[bool] = False
    """Whether one built model can be for several devices."""
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
    backend: ClassVar[Backend | None] = None
    """Triton's backend for the built model, used to check overrides; None where Triton has no backend for it."""
    lowers_fp32: ClassVar[bool] = False
    """Whether the runtime may compute a model in fp32 in a lower precision, as some CPUs have faster instructions."""
    takes_lengths: ClassVar[bool] = False
    """Whether the runtime reads the mask of a text as the text's length: all tokens of a row stand before its padding.

    Such a runtime is not validated on masks that hide tokens at the beginning or in the middle of a row, or all tokens.
    """
    compiles_sizes: ClassVar[bool] = False
    """Whether a profile with one size for each axis is compiled apart, and so runs faster than free shapes."""
    loads_in_triton: ClassVar[bool] = False
    not_triton: ClassVar[str] = "no Triton repository: Triton has no backend for it"
    """The reason why the runtime's packages are plain folders, where `loads_in_triton` is false."""
    threads_in_triton: ClassVar[str | None] = None
    """The parameter of Triton's backend with the number of threads of an operator on a CPU; None for no parameter."""
    runs_in_python: ClassVar[bool] = False
    """Whether a Python model of Triton can run the built model on a CPU in its own process (`layout: fused`)."""
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

    # Limits of the runtime. Each method `refuse...` raises RecipeError with a hint that names a setting that works.

    def runs_on_cpu(self, target: TargetView) -> bool:
        """Say whether the target's model runs on a CPU."""
        return target.device == "cpu"

    def refuse_cpu(self, loaded: LoadedRecipeView) -> None:
        """Raise RecipeError where the runtime does not run on CPUs.

        `refuse_cpu` is called only where the recipe's target is a CPU.
        """
        if not self.on_cpus:
            what = f"{self.name} runs on NVIDIA GPUs; the target is a cpu"
            hint = "name the GPU (`recipe gpus` lists them), or use runtime: onnxruntime"
            raise loaded.error(what, "target", "runtime", hint=hint)

    def refuse_gpus(self, loaded: LoadedRecipeView, named: Sequence[Gpu]) -> None:
        """Raise RecipeError where the runtime does not run on the GPUs that the recipe names."""
        if not self.on_gpus:
            from engine import gpus

            what = f"{self.name} does not run on {gpus.called(named)}"
            raise loaded.error(what, "target", "runtime", hint="use tensorrt, or device: cpu")

    def builds_for(self, gpu: Gpu) -> bool:
        """Return True if the runtime builds models for a kind of GPU."""
        return self.on_gpus

    def kernels(self, target: TargetView) -> Kernels | None:
        """Return the precisions that the runtime computes in on a target; None where the GPU alone decides."""
        return Kernels(("fp32",), f"{self.name} computes in") if self.runs_on_cpu(target) else None

    def lacks(self, gpu: Gpu) -> Sequence[str]:
        """Return the precisions that a GPU supports, and that this runtime does not support on that GPU."""
        return ()

    def tf32_choices(self, target: TargetView) -> Sequence[bool]:
        """Return the values of `tf32` that the runtime can be told for this target; none for one without the switch."""
        return ()

    def tf32_of(self, recipe: RecipeView) -> bool | None:
        """Return the recipe's `tf32`; None for the default of the runtime.

        `tf32: false` is as good as no `tf32` where no GPU of the recipe has TF32.
        """
        if recipe.tf32 is not False:
            return recipe.tf32
        from engine import gpus

        named = filter(None, map(gpus.known, recipe.target.devices))
        return False if any("tf32" in gpu.dtypes for gpu in named) else None

    def sections(self, target: TargetView) -> Sequence[str]:
        """Return the sections of a recipe, besides `runtimes`, whose options the runtime reads for this target."""
        return ()

    def refuse_options(self, loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
        """Raise RecipeError at the first option of the recipe that the runtime would ignore or does not allow."""

    def refuse_image(self, loaded: LoadedRecipeView, named: ImageTag) -> None:
        """Raise RecipeError where the Triton image of the recipe cannot load the built model."""
        if not self.loads_in_triton:
            what = f"no image of Triton loads what {self.name} runs"
            hint = "use another runtime, or leave the image out"
            raise loaded.error(what, *RECIPE_PATH, hint=hint)

    def not_verified(self, recipe: RecipeView) -> str | None:
        """Return what nobody knows about the Triton image of the recipe; None where the image loads the model."""
        return None

    def refuse_operators(self, loaded: LoadedRecipeView, operators: Mapping[str, Sequence[str]]) -> None:
        """Raise RecipeError for operators of the model that the runtime does not have.

        `operators` maps each domain other than ONNX's own to the names of the model's operators in that domain.
        """

    def refuse_quantized(self, loaded: LoadedRecipeView, types: Sequence[str], devices: Sequence[Gpu]) -> None:
        """Raise RecipeError for a model with Q/DQ operators that the runtime would not compute as the recipe says.

        `types` are the types to which the model is quantized, as recipes call them; `devices` are the GPUs of the
        recipe.
        """

    def refuse_installed(self, loaded: LoadedRecipeView, installed: Callable[[str], str | None]) -> None:
        """Raise RecipeError where the installed version of the runtime is not the version that the recipe requests.

        `installed` returns the version of a distribution, or None for a distribution that is not installed.
        """

    def unsupported(self, recipe: RecipeView) -> Iterator[Unsupported]:
        """Yield each value of the recipe that no step supports for this runtime yet."""
        if recipes.served(recipe) and not self.loads_in_triton:
            what = "measuring through a server what Triton has no backend for"
            yield Unsupported("bench.via", what, "via: [in-process]")

    def runs_in_python_on(self, target: TargetView) -> bool:
        """Say whether a Python model of Triton can run the built model for this target in its own process.

        A runtime that can do so on GPUs overrides this.
        """
        return self.runs_in_python and self.runs_on_cpu(target)

    def accelerator(self, target: TargetView) -> Accelerator | None:
        """Return the accelerator that Triton's ONNX Runtime backend uses for the target; None for no accelerator."""
        return None

    def generates(self, target: TargetView) -> bool:
        """Say whether the runtime runs models that generate text on this target."""
        return False

    def fixes_profiles(self, target: TargetView) -> bool:
        """Say whether the built model takes only the shapes of its profiles."""
        return False

    def padded_profiles(self, recipe: RecipeView) -> Sequence[Mapping[str, Any]]:
        """Return the profiles of which one must hold each batch; none for a model that takes any shape.

        A batch is padded to the smallest profile that holds the batch.
        """
        fixed = self.fixes_profiles(recipe.target)
        return recipe.profiles if fixed or (self.compiles_sizes and _are_sizes(recipe.profiles)) else ()

    # How a graph is prepared for the runtime.

    def lowering(self, recipe: RecipeView) -> Lowering | None:
        """Return the way in which the graph gets the recipe's precision; None where the graph keeps its precision."""
        return None

    def keeps_in(self, recipe: RecipeView) -> tuple[str, ...]:
        """Return the precisions in which single layers can be kept, where the graph gets the recipe's precision."""
        from engine.runtimes.preparation import Lowering

        lowering = self.lowering(recipe)
        has_fp16 = lowering is Lowering.IN_THE_GRAPH and recipe.precision not in ("fp16", "bf16")
        return () if lowering is None else ("fp32", "fp16") if has_fp16 else ("fp32",)

    def newest_opset(self, recipe: RecipeView) -> int:
        """Return the newest opset of ONNX that a model for the recipe may have, wherever it is served."""
        return _EXPORTED

    def fuses(self, target: TargetView) -> Residual | None:
        """Return how transformer operators are fused for the target; None where the runtime has no fused operators."""
        return None

    def biases_attention(self, recipe: RecipeView) -> bool:
        """Say whether fused attention is faster with an additive bias than with the mask that the bias is made of."""
        return False

    def sums_in_fp32(self, recipe: RecipeView) -> tuple[str, ...]:
        """Return the normalizations whose kernels for fp16 are known to sum in fp32."""
        return ()

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
        """Import a module of this runtime's package by its name, for checks of recipes.

        Keys do not contain the code of the checks of recipes.
        """
        return importlib.import_module(f"{type(self).__module__.rpartition('.')[0]}.{name}")


def _are_sizes(profiles: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether every profile has one size for each axis."""
    return all(extent.min == extent.max for profile in profiles for extent in profile.values())
