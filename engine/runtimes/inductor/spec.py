"""Inductor as a runtime: PyTorch's AOTInductor compiles the original module into one file, for a CPU or a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from engine.runtimes import triton_images
from engine.runtimes.backends import Backend
from engine.runtimes.knobs import Knob
from engine.runtimes.runtime import GPU_FACTS, Runtime
from engine.runtimes.support import Kernels, Unsupported, Way

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.runtimes.recipes import ExecutionView, LoadedRecipeView, RecipeView, TargetView
    from engine.runtimes.triton_images import ImageTag

_HALVES = ("fp32", "fp16", "bf16")
_FIRST_RELEASE = "26.05"
"""The first release of Triton whose PyTorch backend reads the names of a package's tensors from the package.

Source: README of triton-inference-server/pytorch_backend at the commit 266fd38, "AOT Inductor Support (Beta)".
"""


class Inductor(Runtime):
    """The runtime `inductor`."""

    name: ClassVar[str] = "inductor"
    title: ClassVar[str] = "AOTInductor"
    work: ClassVar[str] = ".runner"
    serving: ClassVar[str] = ".triton"
    on_gpus: ClassVar[bool] = True
    compile_step: ClassVar[str | None] = "inductor-build"
    from_graph: ClassVar[bool] = False
    backend: ClassVar[Backend | None] = Backend.PYTORCH
    loads_in_triton: ClassVar[bool] = True
    threads_in_triton: ClassVar[str | None] = "INTRA_OP_THREAD_COUNT"
    """Source: README of triton-inference-server/pytorch_backend, "Parameters"."""
    ways: ClassVar[tuple[Way, ...]] = (Way("inductor", ("torch", "triton")),)
    tools_for: ClassVar[Mapping[str, str]] = {"torch": "export and reference of PyTorch models, and runtime: inductor"}

    def takes_part(self, recipe: RecipeView) -> bool:
        """Return whether the model is one of PyTorch, in a precision of floating point, for an image that loads it."""
        return recipe.precision in _HALVES and bool(self.knobs(recipe))

    def knobs(self, recipe: RecipeView) -> tuple[Knob, ...]:
        """Return the precisions; none for a model that is an ONNX file, and for an image that loads no such package."""
        tag = triton_images.tag_of(recipe)
        served = tag is None or not tag.release or tag.release >= _FIRST_RELEASE
        return super().knobs(recipe) if served and not recipe.model.is_onnx_file else ()

    def kernels(self, target: TargetView) -> Kernels | None:
        """Return the precisions on CPUs; None for a GPU, which decides itself between those that it does not lack."""
        return Kernels(_HALVES, f"{self.name} computes on CPUs in") if self.runs_on_cpu(target) else None

    def lacks(self, gpu: Gpu) -> Sequence[str]:
        """Return every precision but those of floating point: Inductor gets the original module, which has no other."""
        return [dtype for dtype in gpu.dtypes if dtype not in _HALVES]

    def refuse_options(self, loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
        """Raise RecipeError for a model that is an ONNX file."""
        if loaded.recipe.model.is_onnx_file:
            what = f"{self.name} compiles models of PyTorch, and this model is an ONNX file"
            raise loaded.error(what, "model", "source", hint="use runtime: onnxruntime, or name the checkpoint")

    def refuse_installed(self, loaded: LoadedRecipeView, installed: Callable[[str], str | None]) -> None:
        """Raise RecipeError where a model for a CPU is to be compiled, and this machine has no C++ compiler."""
        facts = self.beside("facts")
        if self.runs_on_cpu(loaded.recipe.target) and facts.compiler().value == facts.NO_COMPILER:
            what = f"{self.name} compiles with {facts.COMPILER}, and there is none on the PATH"
            raise loaded.error(what, "target", "runtime", hint="apt install g++, or use runtime: onnxruntime")

    def refuse_image(self, loaded: LoadedRecipeView, named: ImageTag) -> None:
        """Raise RecipeError where the image's PyTorch backend is older than its support of packages of AOTInductor."""
        if named.release and named.release < _FIRST_RELEASE:
            what = f"the PyTorch backend of the image {named.tag} loads no package of AOTInductor"
            hint = f"use {_FIRST_RELEASE}-py3 or later, or another runtime"
            raise loaded.error(what, *triton_images.RECIPE_PATH, hint=hint)

    def not_verified(self, recipe: RecipeView) -> str | None:
        """Return why nobody knows whether an image loads the model; None for a recipe without an image."""
        tag = triton_images.tag_of(recipe)
        why = "no Triton server of this project has loaded a package of AOTInductor, and nothing is known about"
        return None if tag is None else f"{why} the PyTorch of the image {tag.tag}"

    def unsupported(self, recipe: RecipeView) -> Iterator[Unsupported]:
        """Yield `max_batch_size`: Triton's PyTorch backend joins no requests to packages of AOTInductor."""
        yield from super().unsupported(recipe)
        if recipe.package.triton.max_batch_size:
            what = "joining requests to a package of AOTInductor, which Triton's PyTorch backend does not do yet"
            yield Unsupported("package.triton.max_batch_size", what, "max_batch_size: 0")

    def tool(self, target: TargetView) -> str | None:
        """Return the name of the distribution that compiles and runs models."""
        return "torch"

    def tools(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of the distributions that run the model: `numpy` and `torch`."""
        return ("numpy", "torch")

    def facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the facts that the outputs depend on: a GPU with its driver, or the instructions of a CPU."""
        return GPU_FACTS if execution.on_gpu else ("cpu.isa",)
