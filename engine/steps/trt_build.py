"""TRT build: the ONNX graph compiled by TensorRT on the GPU that it is for (not yet run on hardware)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, Self

from engine.errors import StepError
from engine.kit import hardware, onnx_files, runners, trt
from engine.recipe.schema import Profile, Recipe
from engine.step import Hardware, Report, Step


class TrtBuild(Step):
    """Build a native TensorRT engine. Its bytes differ from build to build: the key is what it is made of."""

    makes: ClassVar[str] = "compiled"
    tools: ClassVar[tuple[str, ...]] = ("onnx", hardware.TENSORRT)
    facts: ClassVar[tuple[str, ...]] = ("arch", "gpu.name", "os")
    variables: ClassVar[tuple[str, ...]] = ("CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE")
    reproducible: ClassVar[bool] = False

    device: str
    precision: Literal["fp32", "fp16"] = "fp32"
    profiles: tuple[Profile, ...] = ()
    version: str | None = None
    memory_pool: Mapping[str, int] = {}
    """Bytes by the name of the pool, as `MemoryPoolType` has it in small letters."""
    optimization_level: int | None = None
    compatibility: Literal["none", "same-compute-capability"] = "none"

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Wanted for the runtime tensorrt."""
        if recipe.target.runtime != "tensorrt":
            return None
        said = {key: value for key, value in recipe.tensorrt.items() if key in cls.model_fields}
        return cls.model_validate(
            {"device": recipe.target.device, "precision": recipe.precision, "profiles": recipe.profiles, **said}
        )

    def hardware(self) -> Hardware:
        """Return the GPU that the engine is for: only it can build one."""
        return hardware.on([self.device], tool=hardware.TENSORRT, version=self.version)

    def run(self, out: Path, *, quantized: Path) -> Report:
        """Write `model.plan` and what it takes and gives; return {"bytes", "tensorrt", "profiles"}.

        Raises StepError where TensorRT is missing or of another version, where a profile does not fit the model,
        and with TensorRT's own words where it cannot read the graph or build the engine.
        """
        try:
            import tensorrt
        except ImportError as error:
            raise StepError(
                "TensorRT is not installed", [str(error)], "pip install 'recipe[tensorrt]' on the machine with the GPU"
            ) from error
        trt.check_version(tensorrt.__version__, self.version)
        graph = onnx_files.load_graph(quantized)
        inputs = onnx_files.inputs(graph)
        shapes = [trt.profile_shapes(inputs, profile) for profile in self.profiles] or [trt.profile_shapes(inputs, {})]
        print(f"building with TensorRT {tensorrt.__version__} for {self.device}, {len(self.profiles)} profiles")
        plan = trt.build(tensorrt, quantized / onnx_files.MODEL, shapes, self._options())
        out.mkdir(parents=True, exist_ok=True)
        (out / runners.PLAN).write_bytes(plan)
        trt.save_description(out, trt.description(graph, len(self.profiles)))
        return {"bytes": len(plan), "tensorrt": str(tensorrt.__version__), "profiles": len(self.profiles)}

    def _options(self) -> trt.Options:
        return trt.Options(
            fp16=self.precision == "fp16",
            memory_pool=self.memory_pool,
            optimization_level=self.optimization_level,
            same_compute_capability=self.compatibility == "same-compute-capability",
        )
