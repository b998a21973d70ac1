"""TRT build: TensorRT compiles the ONNX graph on the target GPU, or TensorRT-RTX compiles the graph on any machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from engine import gpus
from engine.errors import JudgementError
from engine.kit.accuracy import thresholds
from engine.recipe.values import Bound
from engine.runtimes import requirements
from engine.runtimes.tensorrt import api as trt_api
from engine.runtimes.tensorrt.compilation import Compilation
from engine.runtimes.tensorrt.report import EngineReport
from engine.runtimes.tensorrt.spec import Engines
from engine.step import Hardware, Section, Source

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

_SYSTEM = ("os", "arch")
_DEVICE = (
    "device.name", "device.sm", "device.sm_count", "device.memory_bus_width", "device.l2_bytes",
    "device.shared_memory_per_block", "device.shared_memory_per_sm", "device.memory", "device.ecc", "device.mig",
    "device.integrated",
)  # fmt: skip
_FACTS = {
    "none": (*_DEVICE, *_SYSTEM, "cuda.runtime"),
    "same-compute-capability": ("device.sm", *_SYSTEM, "cuda.runtime"),
    "ampere-plus": ("device.ampere_plus", *_SYSTEM, "cuda.runtime"),
}
"""The facts of the machine that a native engine depends on, by the option `compatibility`."""
_NOT_KEYED = ("devices", "version")
"""Options that are no rows of the key, because other rows of the key name the GPU and the version of TensorRT."""


class TrtBuild(Compilation):
    """Build a TensorRT engine.

    The bytes of an engine differ from build to build, so the keys of later steps contain the key of the engine instead
    of its bytes.
    """

    work: ClassVar[type[Compilation] | None] = Compilation
    carries_model: ClassVar[bool] = True
    section: ClassVar[Section | None] = Section.ENGINE
    judged: ClassVar[tuple[str, ...]] = ("precision_share", "candidate")
    variables: ClassVar[tuple[str, ...]] = ("NVIDIA_TF32_OVERRIDE",)
    reproducible: ClassVar[bool] = False
    kept_by: ClassVar[tuple[str, ...]] = ("facts.cuda.runtime", "facts.device.name", "tools.tensorrt")
    time_limit: ClassVar[float] = 4 * 3600.0

    version: str | None = None
    precision_share: Bound | None = None

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for TensorRT and TensorRT-RTX; None for a runtime without engines.

        Raises UsageError for an unknown GPU.
        """
        target, runtime = recipe.target, recipe.runtime
        if not isinstance(runtime, Engines):
            return None
        options: dict[str, Any] = {name: value for name, value in recipe.tensorrt.items() if name in cls.model_fields}
        options["tf32"] = runtime.tf32_of(recipe)
        timing_cache = options.get("timing_cache")
        if timing_cache:
            options["timing_cache"] = Source(uri=timing_cache)
        options["plugins"] = tuple(Source(uri=path) for path in options.get("plugins", ()))
        if not runtime.product.anywhere:
            options["version"] = runtime.tool_version(recipe)
        sms = sorted({gpus.find(name).sm for name in target.devices}) if runtime.product.anywhere else ()
        return cls.model_validate({
            **options, "runtime": target.runtime, "devices": target.devices, "precision": recipe.precision,
            "sms": tuple(sms), "precision_share": recipe.validation.precision_share,
        })  # fmt: skip

    def hardware(self) -> Hardware | None:
        """Return the GPUs on one of which TensorRT must build the engine; None for TensorRT-RTX, which needs no GPU."""
        if self.sms:
            return None
        return requirements.on(self.devices, tool=trt_api.product(self.runtime).module, version=self.version)

    def tools_used(self) -> tuple[str, ...]:
        """Return the name of TensorRT's package, whose version is a row of the key.

        It is none for a version-compatible engine, whose key has TensorRT's major version as a fact.
        """
        return () if self.version_compatible else (trt_api.product(self.runtime).module,)

    def facts_used(self) -> tuple[str, ...]:
        """Return the names of the machine's facts that TensorRT compares when it loads an engine.

        For TensorRT-RTX, no property of a GPU is among the facts, because the option `sms` names the generations of the
        GPUs.
        """
        if self.sms:
            return _SYSTEM
        return (*_FACTS[self.compatibility], *(("tensorrt.major",) if self.version_compatible else ()))

    def options(self) -> Mapping[str, Any]:
        """Return the options that are rows of the key; options that facts already cover are left out."""
        unused = _NOT_KEYED if self.tf32 is not None else (*_NOT_KEYED, "tf32")
        return {name: value for name, value in super().options().items() if name not in unused}

    def as_candidate(self) -> Self:
        return self.model_copy(update={"candidate": True})

    def judge(self, report: EngineReport) -> None:
        """Raise JudgementError where the text of an engine shows that too few products kept the recipe's precision.

        The bound is the recipe's on `precision_share`. An engine whose text is not known passes. The error for a graph
        that TensorRT cannot read is raised unless the plan has other models.
        """
        if report.refused and not self.candidate:
            hint = "use runtime: onnxruntime, or runtime: auto, which uses it where TensorRT cannot have the model"
            raise JudgementError("TensorRT cannot have this model", [report.refused], hint)
        proof = report.plan
        if proof is None or proof.share is None:
            return
        default = None if proof.precision == "fp32" else Bound(at_least=thresholds.PRECISION_SHARE)
        name = f"the share of the graph's {proof.precision} products (precision_share)"
        if misses := thresholds.missed(name, proof.share, self.precision_share or default):
            raise JudgementError(
                f"The engine computes too little in {proof.precision}: {misses[0]}",
                [f"the engine's own text says so, for {' and '.join(report.gpu)}", *proof.lost],
                "build it in the precision that the engine uses, or leave out the GPUs without such kernels",
            )
