"""TRT build: the ONNX graph compiled by TensorRT, on the GPU that it is for, or by TensorRT-RTX anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from engine import gpus
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.onnx import onnx_files
from engine.machine import cuda
from engine.recipe.schema import Profile, Recipe
from engine.runtimes import devices, hardware, registry
from engine.runtimes import profiles as trt_profiles
from engine.runtimes.tensorrt import api as trt_api
from engine.runtimes.tensorrt import builder as trt_builder
from engine.runtimes.tensorrt import cudart, memory, passport
from engine.runtimes.tensorrt import failures as trt_failures
from engine.runtimes.tensorrt import inspector as trt_inspector
from engine.runtimes.tensorrt import options as trt_options
from engine.runtimes.tensorrt import passport_writer as trt_passport
from engine.runtimes.tensorrt.options import BuilderOptions
from engine.runtimes.tensorrt.passport import Precision
from engine.runtimes.tensorrt.spec import Engines
from engine.step import KEPT, Hardware, Source, Step, TypedReport

if TYPE_CHECKING:
    import onnx

    from engine.runtimes.devices import CudaGpu
    from engine.runtimes.tensorrt.builder import Order

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
"""What a native engine depends on of its machine, by how far it is compatible."""
_NOT_KEYED = ("devices", "version")
"""Which GPU and which version are facts."""


@dataclass(frozen=True, kw_only=True)
class BuildReport(TypedReport):
    """What was compiled, by what and for which GPUs; layers by precision."""

    bytes: int
    tensorrt: str
    gpu: tuple[str, ...]
    profiles: int
    network: Mapping[str, int]
    engine: Mapping[str, int] | None
    """None where only the GPU could tell."""


class TrtBuild(Step, BuilderOptions):
    """Build an engine. Its bytes differ from build to build: the key is what it is made of."""

    makes: ClassVar[str] = "compiled"
    carries_model: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = ("onnx",)
    report: ClassVar[type[TypedReport] | None] = BuildReport
    variables: ClassVar[tuple[str, ...]] = ("NVIDIA_TF32_OVERRIDE",)
    reproducible: ClassVar[bool] = False
    kept_by: ClassVar[tuple[str, ...]] = ("facts.cuda.runtime", "facts.device.name", "tools.tensorrt")
    time_limit: ClassVar[float] = 4 * 3600.0

    runtime: trt_api.EngineRuntime
    devices: tuple[str, ...]
    precision: str = "fp32"
    """What the recipe asks for: only said in the passport."""
    profiles: tuple[Profile, ...] = ()
    version: str | None = None
    sms: tuple[int, ...] = ()
    """Of TensorRT-RTX: the compute capabilities that the engine is for, times ten."""
    timing_cache: Source | None = None
    plugins: tuple[Source, ...] = ()

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Wanted for the runtimes that name it. Raises UsageError for a GPU that nobody knows."""
        target, runtime = recipe.target, registry.of(recipe)
        if runtime.compile_step != cls.step_name() or not isinstance(runtime, Engines):
            return None
        said: dict[str, Any] = {name: value for name, value in recipe.tensorrt.items() if name in cls.model_fields}
        if path := said.get("timing_cache"):
            said["timing_cache"] = Source(uri=path)
        said["plugins"] = tuple(Source(uri=path) for path in said.get("plugins", ()))
        if not runtime.anywhere:
            said["version"] = runtime.tool_version(recipe)
        sms = sorted({gpus.find(name).sm for name in target.devices}) if runtime.anywhere else ()
        return cls.model_validate({
            **said, "runtime": target.runtime, "devices": target.devices, "precision": recipe.precision,
            "profiles": recipe.profiles, "sms": tuple(sms),
        })  # fmt: skip

    def hardware(self) -> Hardware | None:
        """Return the GPUs that a native engine is for: only they can build one. TensorRT-RTX builds anywhere."""
        if self.sms:
            return None
        return hardware.on(self.devices, tool=trt_api.engine_runtime(self.runtime).module, version=self.version)

    def tools_used(self) -> tuple[str, ...]:
        """Return the TensorRT that is meant; of a version-compatible engine only its major counts, which is a fact."""
        own = () if self.version_compatible else (trt_api.engine_runtime(self.runtime).module,)
        return (*self.tools, *own)

    def facts_used(self) -> tuple[str, ...]:
        """Return what NVIDIA's checks of an engine look at; for TensorRT-RTX the GPU is an option."""
        if self.sms:
            return _SYSTEM
        return (*_FACTS[self.compatibility], *(("tensorrt.major",) if self.version_compatible else ()))

    def code_used(self) -> tuple[str, ...]:
        """Return this module, and what the runtime says of itself: what runs an engine changes none."""
        return (*super().code_used(), type(trt_api.engine_runtime(self.runtime)).__module__)

    def options(self) -> Mapping[str, Any]:
        """Return the rows: all but what facts and inputs say already."""
        return {name: value for name, value in super().options().items() if name not in _NOT_KEYED}

    def inputs_used(self) -> tuple[str, ...]:
        """Return the graph; without profiles also the model, which says how long its inputs may be."""
        return tuple(name for name in self.inputs() if name != "checkpoint" or not self.profiles)

    def run(
        self,
        out: Path,
        *,
        checked: Path,
        checkpoint: Path | None = None,
        timing_cache: Path | None = None,
        **plugins: Path,
    ) -> BuildReport:
        """Write `model.plan` and its passport.

        Raises StepError where TensorRT is missing or of another version, where the GPU is another one, where a
        profile does not fit the model, and with TensorRT's own words where it cannot read the graph or build it.
        Without profiles the one is taken that suits most text models (`profiles.usual`).
        """
        found = trt_api.use(self.runtime)
        trt_api.check_version(self.runtime, found, self.version)
        trt_options.refuse(self, self.runtime)
        gpu = self._gpu()
        graph = onnx_files.load_graph(checked)
        trt_failures.refuse_fused(graph)
        order = self._order(
            checked,
            graph,
            profiles=self.profiles or _usual(graph, checkpoint),
            kept=out.parent / KEPT,
            given=timing_cache,
            plugins=list(plugins.values()),
        )
        print(f"building with {self.runtime} {found} for {' and '.join(self.devices)}; {order.forecast}", flush=True)
        built = trt_builder.build(order)
        layers, unknown = (
            (None, "only where it runs can TensorRT-RTX tell") if self.sms else trt_inspector.layer_types(built.plan)
        )
        out.mkdir(parents=True, exist_ok=True)
        (out / passport.PLAN).write_bytes(built.plan)
        if built.timing_cache is not None:
            (out.parent / KEPT).write_bytes(built.timing_cache)
        said = Precision(asked=self.precision, network=built.network, engine=layers, unknown=unknown)
        written = trt_passport.write(
            order, built, runtime=self.runtime, version=found, precision=said, graph=graph, targets=self.devices,
            gpu=gpu,
        )  # fmt: skip
        passport.save(out, written)
        return BuildReport(
            bytes=written.bytes,
            tensorrt=found,
            gpu=tuple(written.gpu),
            profiles=len(written.profiles),
            network=dict(built.network),
            engine=None if layers is None else dict(layers),
        )

    def _gpu(self) -> CudaGpu | None:
        """Return the GPU that a native build works on, made the current one; None where none is needed."""
        meant = self.hardware()
        if meant is None:
            return None
        gpu = devices.chosen(meant)
        if len(cuda.devices()) > 1:
            cudart.use(gpu.index)
        return gpu

    def _order(
        self,
        model: Path,
        graph: onnx.ModelProto,
        *,
        profiles: Sequence[Profile],
        kept: Path,
        given: Path | None,
        plugins: Sequence[Path],
    ) -> Order:
        before = given or (kept if kept.is_file() else None)
        return trt_builder.Order(
            model=model / onnx_files.MODEL,
            shapes=trt_profiles.shapes(onnx_files.inputs(graph), profiles),
            options=self,
            sms=self.sms,
            plugins=plugins,
            timing_cache=None if self.sms else before.read_bytes() if before else b"",
            forecast=memory.forecast(graph, trt_profiles.greatest(profiles)),
        )


def _usual(graph: onnx.ModelProto, checkpoint: Path | None) -> tuple[Profile, ...]:
    """Return the profile of a recipe that says none, as `recipe check` has it for the model."""
    if checkpoint is None or checkpoints.kind(checkpoint) == "onnx":
        return ()
    axes = (axis for value in onnx_files.inputs(graph).values() for axis in value.shape if isinstance(axis, str))
    return trt_profiles.usual(tuple(dict.fromkeys(axes)), checkpoints.max_sequence(checkpoint))
