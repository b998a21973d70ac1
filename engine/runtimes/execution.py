"""Execution: what runs the built model of a recipe, where, and all that its answers and latencies depend on."""

from __future__ import annotations

from typing import Literal, Self

from engine.recipe.schema import Profile, Recipe, Runtime
from engine.runtimes import hardware as gpus
from engine.step import Frozen, Hardware

Provider = Literal["cpu", "cuda", "tensorrt"]

_CPU_FACTS = ("cpu.isa", "onnxruntime.build")
_GPU_FACTS = ("cuda.runtime", "device.name", "device.sm", "gpu.driver")
"""A driver brings compilers and libraries of its own, so its version counts wherever something runs on it."""


class Execution(Frozen):
    """A runtime with its options. Only those that it has are set: the others must not change a key."""

    runtime: Runtime = "onnxruntime"
    provider: Provider | None = "cpu"
    """ONNX Runtime's; None for any other runtime."""
    hardware: Hardware | None = None
    """The GPU that runs the model; None for a CPU."""
    cuda_graph: bool = False
    profiles: tuple[Profile, ...] = ()
    """What the TensorRT provider builds its engine for. An engine that was built before has its own."""
    workspace: int | None = None
    """Bytes that the TensorRT provider may use while it builds and runs."""
    optimization_level: int | None = None
    """The TensorRT provider's, 0 to 5."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return how the model of a recipe is run."""
        target, said = recipe.target, recipe.tensorrt
        gpu = gpus.wanted(recipe)
        if target.runtime != "onnxruntime":
            return cls(
                runtime=target.runtime, provider=None, hardware=gpu, cuda_graph=bool(said.get("cuda_graph", False))
            )
        provider: Provider = target.provider or ("cpu" if target.device == "cpu" else "cuda")
        if provider == "cpu":
            return cls()
        if provider == "cuda":
            return cls(provider="cuda", hardware=gpu)
        return cls(
            provider="tensorrt",
            hardware=gpu,
            cuda_graph=bool(said.get("cuda_graph", False)),
            profiles=recipe.profiles,
            workspace=said.get("memory_pool", {}).get("workspace"),
            optimization_level=said.get("optimization_level"),
        )

    def anywhere(self) -> Self:
        """Return it without the device, for what is the same whichever one it is."""
        return self.model_copy(update={"hardware": None})

    @property
    def tools(self) -> tuple[str, ...]:
        """The distributions that run it."""
        return ("numpy", "onnxruntime" if self.hardware is None else self.hardware.tool)

    @property
    def facts(self) -> tuple[str, ...]:
        """What chooses the kernels: the CPU's instructions and the build that runs on it, or the GPU and its driver."""
        if self.hardware is None:
            return _CPU_FACTS
        # A fact and no tool: a machine without the GPU, which looks for what was made on one, need not have it.
        return (*_GPU_FACTS, "tensorrt.version") if self.provider == "tensorrt" else _GPU_FACTS
