"""TRT build: TensorRT compiles the ONNX graph on the target GPU, or TensorRT-RTX compiles the graph on any machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Self

from engine import gpus, tasks
from engine.errors import JudgementError
from engine.kit.accuracy import thresholds
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import usual_shapes
from engine.kit.onnx import onnx_files
from engine.kit.triton import embedding
from engine.machine import cuda
from engine.recipe.shape_values import Values
from engine.recipe.values import Bound, Profile
from engine.runtimes import axes, devices, hardware
from engine.runtimes import profiles as trt_profiles
from engine.runtimes.tensorrt import api as trt_api
from engine.runtimes.tensorrt import builder as trt_builder
from engine.runtimes.tensorrt import cudart, libraries, memory, passport, plan_proof, sparsity
from engine.runtimes.tensorrt import failures as trt_failures
from engine.runtimes.tensorrt import inspector as trt_inspector
from engine.runtimes.tensorrt import options as trt_options
from engine.runtimes.tensorrt import passport_writer as trt_passport
from engine.runtimes.tensorrt.options import BuilderOptions
from engine.runtimes.tensorrt.passport import Precision
from engine.runtimes.tensorrt.report import EngineReport
from engine.runtimes.tensorrt.spec import Engines
from engine.step import KEPT, Hardware, Section, Source, Step, TypedReport

if TYPE_CHECKING:
    import onnx

    from engine.recipe.schema import Recipe
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
"""The facts of the machine that a native engine depends on, by the option `compatibility`."""
_NOT_KEYED = ("devices", "version")
"""Options that are no rows of the key, because other rows of the key name the GPU and the version of TensorRT."""


class TrtBuild(Step, BuilderOptions):
    """Build a TensorRT engine.

    The bytes of an engine differ from build to build, so the keys of later steps contain the key of the engine instead
    of its bytes.
    """

    makes: ClassVar[str] = "compiled"
    carries_model: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = onnx_files.TOOLS
    report: ClassVar[type[TypedReport] | None] = EngineReport
    section: ClassVar[Section | None] = Section.ENGINE
    judged: ClassVar[tuple[str, ...]] = ("precision_share",)
    variables: ClassVar[tuple[str, ...]] = ("NVIDIA_TF32_OVERRIDE",)
    reproducible: ClassVar[bool] = False
    kept_by: ClassVar[tuple[str, ...]] = ("facts.cuda.runtime", "facts.device.name", "tools.tensorrt")
    time_limit: ClassVar[float] = 4 * 3600.0

    runtime: trt_api.EngineRuntime
    devices: tuple[str, ...]
    precision: str = "fp32"
    """The precision in the recipe, which is written into the passport only: the graph sets the precision."""
    profiles: tuple[Profile, ...] = ()
    shape_values: tuple[Mapping[str, Values], ...] = ()
    """The values of inputs that the profiles state; empty where they state none."""
    version: str | None = None
    sms: tuple[int, ...] = ()
    """The compute capabilities of a TensorRT-RTX engine, times ten; empty for TensorRT."""
    precision_share: Bound | None = None
    timing_cache: Source | None = None
    plugins: tuple[Source, ...] = ()
    embeds: bool = False
    """Whether the engine computes the embedding of each text, if the checkpoint says how its hidden states are pooled.

    Otherwise a server copies the hidden states of all tokens to the CPU for the same.
    """
    task: str | None = None
    """The task that the recipe names, where `embeds` is true; None where the checkpoint's config names the task."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for TensorRT and TensorRT-RTX; None for a runtime without engines.

        Raises UsageError for an unknown GPU.
        """
        target, runtime = recipe.target, recipe.runtime
        if runtime.compile_step != cls.step_name() or not isinstance(runtime, Engines):
            return None
        options: dict[str, Any] = {name: value for name, value in recipe.tensorrt.items() if name in cls.model_fields}
        options["tf32"] = runtime.tf32_of(recipe)
        timing_cache = options.get("timing_cache")
        if timing_cache:
            options["timing_cache"] = Source(uri=timing_cache)
        options["plugins"] = tuple(Source(uri=path) for path in options.get("plugins", ()))
        if not runtime.anywhere:
            options["version"] = runtime.tool_version(recipe)
            triton, task = recipe.package.triton, recipe.model.task
            answers = triton.tokenizer and triton.postprocess
            options["embeds"] = answers and (task is None or tasks.find(task).embeds)
            options["task"] = task if options["embeds"] else None
        sms = sorted({gpus.find(name).sm for name in target.devices}) if runtime.anywhere else ()
        return cls.model_validate({
            **options, "runtime": target.runtime, "devices": target.devices, "precision": recipe.precision,
            "profiles": recipe.profiles, "shape_values": recipe.shape_values, "sms": tuple(sms),
            "precision_share": recipe.validation.precision_share,
        })  # fmt: skip

    def hardware(self) -> Hardware | None:
        """Return the GPUs on one of which TensorRT must build the engine; None for TensorRT-RTX, which needs no GPU."""
        if self.sms:
            return None
        return hardware.on(self.devices, tool=trt_api.engine_runtime(self.runtime).module, version=self.version)

    def tools_used(self) -> tuple[str, ...]:
        """Return the names of the Python packages whose versions are rows of the key.

        The version of TensorRT's package is no row of the key for a version-compatible engine, whose key has TensorRT's
        major version as a fact.
        """
        own = () if self.version_compatible else (trt_api.engine_runtime(self.runtime).module,)
        return (*self.tools, *own)

    def facts_used(self) -> tuple[str, ...]:
        """Return the names of the machine's facts that TensorRT compares when it loads an engine.

        For TensorRT-RTX, no property of a GPU is among the facts, because the option `sms` names the generations of the
        GPUs.
        """
        if self.sms:
            return _SYSTEM
        return (*_FACTS[self.compatibility], *(("tensorrt.major",) if self.version_compatible else ()))

    def code_used(self) -> tuple[str, ...]:
        """Return the modules whose code is part of the key: the step's own, and the module that specifies the runtime.

        The code that runs engines is no part of the key, because running an engine does not change the engine.
        """
        return (*super().code_used(), type(trt_api.engine_runtime(self.runtime)).__module__)

    def options(self) -> Mapping[str, Any]:
        """Return the options that are rows of the key; options that facts or inputs already cover are left out."""
        unused = _NOT_KEYED if self.embeds else (*_NOT_KEYED, "embeds", "task")
        unused = unused if self.tf32 is not None else (*unused, "tf32")
        unused = unused if self.shape_values else (*unused, "shape_values")
        return {name: value for name, value in super().options().items() if name not in unused}

    def inputs_used(self) -> tuple[str, ...]:
        """Return the inputs; the checkpoint states the longest input of a recipe without profiles, and the pooling."""
        return tuple(name for name in self.inputs() if name != "checkpoint" or self.embeds or not self.profiles)

    def run(
        self,
        out: Path,
        *,
        checked: Path,
        checkpoint: Path | None = None,
        timing_cache: Path | None = None,
        **plugins: Path,
    ) -> EngineReport:
        """Build the engine, and write the engine as `model.plan` and its passport into `out`.

        Without profiles in the recipe, the engine gets the usual profile of text models (`profiles.usual`). Raises
        StepError where TensorRT is missing or has another version, where the GPU is another, or where a profile does
        not fit the model. Where TensorRT cannot read or build the graph, the StepError has TensorRT's own message.
        """
        version = trt_api.use(self.runtime)
        trt_api.check_version(self.runtime, version, self.version)
        trt_options.refuse(self, self.runtime)
        gpu = self._gpu()
        with TemporaryDirectory(dir=out.parent) as folder:
            model = self._with_embedding(checked, checkpoint, Path(folder) / "pooled")
            graph = onnx_files.load_graph(model)
            trt_failures.refuse_fused(graph)
            order = self._order(
                model,
                graph,
                profiles=self.profiles or usual_shapes.profiles(graph, checkpoint),
                kept=out.parent / KEPT,
                own=timing_cache,
                plugins=list(plugins.values()),
            )
            sparse = sparsity.counted(model) if self.sparse_weights else None
            return replace(self._built(out, order, graph, version=version, gpu=gpu), sparse=sparse)

    def _built(
        self, out: Path, order: Order, graph: onnx.ModelProto, *, version: str, gpu: CudaGpu | None
    ) -> EngineReport:
        """Build the engine, and write the engine and its passport into `out`."""
        print(f"building with {self.runtime} {version} for {' and '.join(self.devices)}; {order.forecast}", flush=True)
        tf32 = trt_options.tf32_words(self, self.precision, self.sms or (() if gpu is None else (gpu.sm,)))
        if tf32:
            print(tf32, flush=True)
        built = trt_builder.build(order)
        layers, unknown = (
            (None, "only where it runs can TensorRT-RTX tell")
            if self.sms
            else trt_inspector.layer_types(built.plan, () if self.version_compatible else order.plugins)
        )
        out.mkdir(parents=True, exist_ok=True)
        (out / passport.PLAN).write_bytes(built.plan)
        libraries.keep(out, order.plugins, inside=self.version_compatible)
        if built.timing_cache is not None:
            (out.parent / KEPT).write_bytes(built.timing_cache)
        precision = Precision(asked=self.precision, network=built.network, engine=layers, unknown=unknown)
        proof, unread = (
            plan_proof.prove(built.plan, self.precision, built.products) if self.sms else (None, "it is no RTX engine")
        )
        written = trt_passport.write(
            order, built, runtime=self.runtime, version=version, precision=precision, graph=graph, targets=self.devices,
            gpu=gpu, plan=proof,
        )  # fmt: skip
        passport.save(out, written)
        return EngineReport(
            bytes=written.bytes,
            tensorrt=version,
            gpu=tuple(written.gpu),
            profiles=len(written.profiles),
            network=dict(built.network),
            engine=None if layers is None else dict(layers),
            plan=proof,
            plan_unknown=unread if self.sms else "",
            tf32=tf32,
        )

    def judge(self, report: EngineReport) -> None:
        """Raise JudgementError where the text of an engine shows that too few products kept the recipe's precision.

        The bound is the recipe's on `precision_share`. An engine whose text is not known passes.
        """
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

    def _with_embedding(self, checked: Path, checkpoint: Path | None, out: Path) -> Path:
        """Return the folder of the graph to compile: of a graph that computes embeddings, where the answers are those.

        Hidden states stay on the GPU then, unless a client requests them.
        """
        if not self.embeds or checkpoint is None or checkpoints.kind(checkpoint) == "onnx":
            return checked
        embeds = tasks.find(checkpoints.task(checkpoint, self.task)).embeds
        return embedding.pooled(checked, checkpoint, out) if embeds else checked

    def _gpu(self) -> CudaGpu | None:
        """Return the GPU on which an engine is built, after selecting it for CUDA; None where no GPU is needed."""
        targets = self.hardware()
        if targets is None:
            return None
        gpu = devices.chosen(targets)
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
        own: Path | None,
        plugins: Sequence[Path],
    ) -> Order:
        inputs = onnx_files.inputs(graph)
        cache = own or (kept if kept.is_file() else None)
        timings = cache.read_bytes() if cache else b""
        return trt_builder.Order(
            model=model / onnx_files.MODEL,
            shapes=trt_profiles.shapes(inputs, profiles),
            options=self,
            values=self.shape_values,
            sms=self.sms,
            plugins=plugins,
            timing_cache=None if self.sms else timings,
            forecast=memory.forecast(graph, axes.by_name(trt_profiles.greatest(profiles), axes.shapes(inputs))),
        )
