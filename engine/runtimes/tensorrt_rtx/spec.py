"""TensorRT-RTX as a runtime: engines are built without a GPU, for one or several kinds of GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from engine import gpus
from engine.runtimes import releases, triton_images
from engine.runtimes.support import Way
from engine.runtimes.tensorrt.spec import CUDA_BINDINGS, Engines
from engine.runtimes.tensorrt_values import TENSORRT_RTX, Product
from engine.text import versions

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.runtimes.recipes import LoadedRecipeView
    from engine.runtimes.triton_images import ImageTag

_TURING = 75
"""The compute capability, times ten, of GPUs of the Turing architecture."""


class TensorRTRTX(Engines):
    """The runtime `tensorrt-rtx`: NVIDIA TensorRT for RTX."""

    product: ClassVar[Product] = TENSORRT_RTX
    name: ClassVar[str] = TENSORRT_RTX.name
    title: ClassVar[str] = TENSORRT_RTX.title
    several: ClassVar[bool] = True
    majors: ClassVar[tuple[str, ...]] = ("1",)
    not_triton: ClassVar[str] = "no Triton repository: Triton's TensorRT backend does not load TensorRT-RTX engines"
    ways: ClassVar[tuple[Way, ...]] = (Way("tensorrt-rtx", ("tensorrt_rtx",), (CUDA_BINDINGS,)),)
    tools_for: ClassVar[Mapping[str, str]] = {"tensorrt_rtx": "TensorRT-RTX engines, built without a GPU"}

    def builds_for(self, gpu: Gpu) -> bool:
        """Say whether TensorRT-RTX builds for the GPU."""
        return gpu.tensorrt_rtx

    def refuse_gpus(self, loaded: LoadedRecipeView, named: Sequence[Gpu]) -> None:
        """Raise RecipeError for GPUs that TensorRT-RTX does not build for."""
        without = [gpu for gpu in named if not self.builds_for(gpu)]
        if not without:
            return
        able = sorted({gpu.sm for gpu in gpus.CATALOGUE if gpu.tensorrt_rtx})
        what = f"TensorRT-RTX builds nothing for {gpus.called(without)}"
        facts = [f"it builds for {', '.join(f'SM{sm}' for sm in able)}"]
        hint = "use runtime: tensorrt"
        if len(named) > 1:
            hint = f"leave {' and '.join(gpu.name for gpu in without)} out, or use runtime: tensorrt for each"
        raise loaded.error(what, "target", "runtime", facts=facts, hint=hint)

    def lacks(self, gpu: Gpu) -> Sequence[str]:
        """Return fp32 for SM75, as TensorRT-RTX has no kernels for fp32 matrix products on SM75.

        Source: the error "FP32 GEMM is not supported" of TensorRT-RTX 1.7.
        """
        return ("fp32",) if gpu.sm == _TURING else ()

    def refuse_image(self, loaded: LoadedRecipeView, named: ImageTag) -> None:
        """Raise RecipeError, because no image of Triton has a backend for engines of TensorRT-RTX."""
        what = "no image of Triton loads the engines of TensorRT-RTX: its backend is TensorRT's"
        hint = "use runtime: tensorrt, or leave the image out"
        raise loaded.error(what, *triton_images.RECIPE_PATH, hint=hint)

    def refuse_installed(self, loaded: LoadedRecipeView, installed: Callable[[str], str | None]) -> None:
        """Raise RecipeError where the installed version of TensorRT-RTX is not the version that the recipe requests.

        TensorRT-RTX builds without a GPU, so this machine is expected to build the engine and to have the requested
        version.
        """
        requested, version = loaded.recipe.tensorrt.get("version"), installed(self.product.module)
        if version is None or requested is None or versions.agrees(requested, version):
            return
        what = f"the recipe asks for {self.title} {requested}, and {version} is installed"
        hint = f'pip has no such release of {self.product.package}: say version: "{version}"'
        if releases.exists(self.product.package, requested):
            hint = f'pip install {releases.requirement(self.product.package, requested)}, or say version: "{version}"'
        raise loaded.error(what, "tensorrt", "version", hint=hint)
