"""Support: what a runtime supports on a target, and what it refuses: precisions, GPUs, options, images and graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from engine.runtimes import recipes
from engine.runtimes.preparation import Lowering
from engine.runtimes.triton_images import RECIPE_PATH

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.runtimes.backends import Accelerator, Backend
    from engine.runtimes.preparation import Residual
    from engine.runtimes.recipes import LoadedRecipeView, RecipeView, TargetView
    from engine.runtimes.triton_images import ImageTag

_PRECISIONS = ("fp32", "fp16", "bf16", "int8", "fp8", "int4")
_EXPORTED = 20
"""The opset of the models that the step `export` writes, which every supported server reads."""


class Kernels(NamedTuple):
    """Precisions that a runtime computes in on every device.

    An error message names the precisions after the text `fact`, for example "onnxruntime computes in fp32".
    """

    precisions: tuple[str, ...]
    fact: str
    instead: str = ""
    """The setting that a hint proposes where the devices support the recipe's precision and this runtime does not."""
    not_for: tuple[str, ...] = ()
    """The precisions for which `instead` does not help."""


class Way(NamedTuple):
    """A way to run models on a GPU, for `recipe doctor`, with everything that it needs besides a driver."""

    name: str
    distributions: tuple[str, ...]
    modules: tuple[tuple[str, str], ...] = ()
    """Pairs (distribution, module). `recipe doctor` takes a distribution as installed if Python finds the module."""
    libraries: tuple[str, ...] = ()
    """Shared libraries that the way to run models needs.

    Each library comes from a distribution that is not listed in `distributions`.
    """


class Unsupported(NamedTuple):
    """The value of a recipe's field, where recipes may have the value and no step supports it yet."""

    field: str
    """The path of a recipe's field, for example `target.runtime`."""
    what: str
    instead: str


class Support:
    """What a runtime supports: a base of `Runtime`.

    Each method `refuse...` raises RecipeError with a hint that names a setting that works.
    """

    name: ClassVar[str]
    """The runtime's name in recipes, a value of `target.runtime`."""
    on_cpus: ClassVar[bool] = True
    on_gpus: ClassVar[bool] = False
    several: ClassVar[bool] = False
    """Whether one built model can be for several devices."""
    providers: ClassVar[tuple[str, ...]] = ()
    """The values of `target.provider` that belong to this runtime."""
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

    def precisions(self, target: TargetView) -> tuple[str, ...]:
        """Return the precisions that a recipe for this target can name, if every GPU that it names is known."""
        kernels = self.kernels(target)
        return self.precisions_on(known_gpus(target)) if kernels is None else kernels.precisions

    def precisions_on(self, devices: Iterable[Gpu]) -> tuple[str, ...]:
        """Return the precisions in which each of the GPUs computes with this runtime."""
        lacking = [(gpu.dtypes, self.lacks(gpu)) for gpu in devices]
        return tuple(each for each in _PRECISIONS if all(each in has and each not in lacks for has, lacks in lacking))

    def tf32_choices(self, target: TargetView) -> Sequence[bool]:
        """Return the values of `tf32` that the runtime can be told for this target; none for one without the switch."""
        return ()

    def tf32_of(self, recipe: RecipeView) -> bool | None:
        """Return the recipe's `tf32`; None for the default of the runtime.

        `tf32: false` is as good as no `tf32` where no GPU of the recipe has TF32.
        """
        if recipe.tf32 is not False:
            return recipe.tf32
        return False if any("tf32" in gpu.dtypes for gpu in known_gpus(recipe.target)) else None

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
        extents = (extent for profile in recipe.profiles for extent in profile.values())
        compiles = self.compiles_sizes and all(extent.min == extent.max for extent in extents)
        return recipe.profiles if compiles or self.fixes_profiles(recipe.target) else ()

    def lowering(self, recipe: RecipeView) -> Lowering | None:
        """Return the way in which the graph gets the recipe's precision; None where the graph keeps its precision."""
        return None

    def weights_only(self, recipe: RecipeView) -> bool:
        """Say whether the recipe's precision is that of the stored weights alone."""
        return self.lowering(recipe) is Lowering.WEIGHTS_ONLY

    def keeps_in(self, recipe: RecipeView) -> tuple[str, ...]:
        """Return the precisions in which single layers can be kept, where the graph gets the recipe's precision."""
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


def known_gpus(target: TargetView) -> list[Gpu]:
    """Return those of a target's GPUs that the catalogue knows."""
    from engine import gpus

    return [gpu for gpu in map(gpus.known, target.devices) if gpu is not None]
