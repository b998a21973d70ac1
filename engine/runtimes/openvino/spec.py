"""OpenVINO: a runtime for CPUs. Its models are files of OpenVINO's intermediate representation (IR)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from engine.runtimes.backends import Backend
from engine.runtimes.knobs import Knob, weights_only
from engine.runtimes.runtime import Runtime
from engine.runtimes.support import Kernels, Unsupported

if TYPE_CHECKING:
    from engine.runtimes.recipes import ExecutionView, LoadedRecipeView, RecipeView, TargetView
    from engine.runtimes.triton_images import ImageTag


class OpenVino(Runtime):
    """The runtime `openvino`."""

    name: ClassVar[str] = "openvino"
    title: ClassVar[str] = "OpenVINO"
    work: ClassVar[str] = ".runner"
    serving: ClassVar[str] = ".triton"
    compile_step: ClassVar[str | None] = "openvino-build"
    rival_of: ClassVar[str | None] = "exported"
    rival_precisions: ClassVar[tuple[str, ...]] = ("fp32",)
    backend: ClassVar[Backend | None] = Backend.OPENVINO
    lowers_fp32: ClassVar[bool] = True
    compiles_sizes: ClassVar[bool] = True
    loads_in_triton: ClassVar[bool] = True
    threads_in_triton: ClassVar[str | None] = "INFERENCE_NUM_THREADS"
    """Source: README of triton-inference-server/openvino_backend."""
    tools_for: ClassVar[Mapping[str, str]] = {
        "openvino": "models for the runtime openvino",
        "nncf": "int8 for the runtime openvino",
    }

    def kernels(self, target: TargetView) -> Kernels | None:
        """Return the precisions of OpenVINO on CPUs; whether a CPU computes in bf16 is known when the model runs."""
        return Kernels(("fp32", "bf16", "int8"), f"{self.name} computes here in")

    def refuse_image(self, loaded: LoadedRecipeView, named: ImageTag) -> None:
        """Refuse no image: the images of Triton for x86-64 have the OpenVINO backend."""

    def unsupported(self, recipe: RecipeView) -> Iterator[Unsupported]:
        """Yield `max_batch_size`: Triton's OpenVINO backend computes every batch at its full size, padded."""
        yield from super().unsupported(recipe)
        if recipe.package.triton.max_batch_size:
            what = "joining requests behind Triton's OpenVINO backend, which pads every batch to max_batch_size"
            yield Unsupported("package.triton.max_batch_size", what, "max_batch_size: 0")

    def knobs(self, recipe: RecipeView) -> tuple[Knob, ...]:
        """Return the precisions, and for int8 whether the weights alone have it: faster to build, and more exact."""
        return (*super().knobs(recipe), weights_only(recipe))

    def weights_only(self, recipe: RecipeView) -> bool:
        """Say whether the recipe asks for int8 in the weights alone."""
        return recipe.precision == "int8" and bool(recipe.quantize.get("weights_only"))

    def keeps_in(self, recipe: RecipeView) -> tuple[str, ...]:
        """Return fp32 for int8: NNCF leaves single layers in floating point."""
        return ("fp32",) if recipe.precision == "int8" else ()

    def tools(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of the distributions that run the model: `numpy` and `openvino`."""
        return ("numpy", self.name)

    def package_tools(self) -> tuple[str, ...]:
        """Return OpenVINO, which reads the inputs and outputs of the built model."""
        return (self.name,)

    def rival_tools(self, *, library: str) -> tuple[str, ...]:
        """Return the names of the distributions that run the exported model: `numpy` and `openvino`."""
        return ("numpy", self.name)
