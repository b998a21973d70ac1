"""The runner of an engine of TensorRT or TensorRT-RTX (not yet run with TensorRT on a GPU)."""

# Source: NVIDIA's documentation of TensorRT 10's Python API: IRuntime, ICudaEngine, IExecutionContext and
# IOutputAllocator. `tensorrt_rtx` has the same classes. The calls that need no GPU are tested with `tensorrt_rtx`.

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.runtimes import devices
from engine.runtimes.execution import Execution
from engine.runtimes.profiles import within
from engine.runtimes.runner import Runner, refuse_missing
from engine.runtimes.tensorrt import api as trt_api
from engine.runtimes.tensorrt import cudart, loading, passport, plugin_libraries
from engine.runtimes.tensorrt import device_times as trt_times
from engine.runtimes.tensorrt import failures as trt_failures
from engine.runtimes.tensorrt import log as trt_log
from engine.runtimes.tensorrt.api import trt
from engine.runtimes.tensorrt.bindings import Bindings, Context, shape_of
from engine.runtimes.tensorrt.cudart import CudaStream
from engine.runtimes.tensorrt.loading import LoadingMachine

if TYPE_CHECKING:
    import numpy as np
    import tensorrt

    from engine.runtimes.runner import DeviceTimes

    Tensors = Mapping[str, np.ndarray]


def runner(
    directory: Path, execution: Execution, *, name: str, threads: int = 0, new_tokens: int | None = None
) -> Runner:
    """Return the runner of the engine `directory/model.plan`.

    Raises ImportError where TensorRT is missing, and StepError where this machine lacks the engine's GPU, or where the
    engine's passport does not fit this machine.
    """
    kind = execution.runtime
    if execution.hardware is None:
        raise StepError(
            "A TensorRT engine runs on the GPU that it was built for, and the recipe names none",
            [f"runtime {kind}, no device"],
            "name the GPU as target.device, with runtime: tensorrt or tensorrt-rtx",
        )
    del threads, new_tokens  # threads are for CPUs, and engines generate no text
    gpu = devices.chosen(execution.hardware)
    version = trt_api.use(kind)
    here = LoadingMachine(
        kind=kind, gpu=gpu.name, sm=gpu.sm, tensorrt=version, os=platform.system(), arch=platform.machine()
    )  # fmt: skip
    engine_passport = passport.load(directory)
    loading.refuse_elsewhere(engine_passport, here)
    if engine_passport.options.get("strip_plan"):
        raise StepError(
            "The TensorRT engine was built without its weights (strip_plan), and nothing here puts them back",
            hint="build no further with --to trt-build and refit it yourself, or take tensorrt.strip_plan out",
        )
    cudart.use(gpu.index)
    plan = (directory / passport.PLAN).read_bytes()
    engine = _Engine(
        plan,
        cuda_graph=execution.options["cuda_graph"],
        host_code=engine_passport.holds_code,
        plugins=plugin_libraries.beside(directory, engine_passport.plugins),
    )
    takes = partial(loading.takes, engine_passport)
    return Runner(name, engine.run, engine.prepare, takes=takes, device_times=engine.device_times)


class _Engine:
    """A loaded engine, with an execution context for each profile that has been used."""

    def __init__(self, plan: bytes, *, cuda_graph: bool, host_code: bool = False, plugins: Sequence[Path] = ()) -> None:
        """Load an engine. With `host_code`, TensorRT may run libraries that are inside the engine.

        `plugins` are the libraries with the plugins that the engine needs and does not hold. Raises StepError where
        TensorRT refuses a library or the engine.
        """
        logger, self._log = trt_log.begin()
        # TensorRT-RTX compiles kernels during the first runs, and then captures CUDA graphs by itself.
        self._captures_itself = hasattr(trt, "CudaGraphStrategy")
        if not self._captures_itself:  # TensorRT-RTX has no plugins of its own
            plugin_libraries.register_own(logger)
        self._runtime = trt.Runtime(logger)
        plugin_libraries.load(self._runtime, self._log, plugins)
        if host_code:
            self._runtime.engine_host_code_allowed = True
        engine: tensorrt.ICudaEngine | None = self._runtime.deserialize_cuda_engine(plan)
        if engine is None:
            raise StepError(
                "TensorRT cannot load the engine",
                trt_failures.reasons(self._log.problems),
                "an engine runs with the TensorRT and on the GPU that it was built for: `recipe show` says which",
            )
        self._engine = engine
        self._stream = CudaStream()
        self._contexts: dict[int, Context] = {}
        self._cuda_graph = cuda_graph

    def run(self, inputs: Tensors) -> dict[str, np.ndarray]:
        """Run the engine, and return every output by name, copied to the host's memory."""
        bindings = self._bindings(inputs)
        bindings.execute()
        return bindings.outputs()

    def prepare(self, inputs: Tensors) -> Callable[[], object]:
        """Return a function that runs the engine and waits for the GPU; inputs and outputs stay in the GPU's memory."""
        enqueue = self._enqueuing(self._bindings(inputs))

        def call() -> None:
            enqueue()
            self._stream.wait()

        return call

    def device_times(self, inputs: Tensors) -> DeviceTimes:
        """Return how long the GPU computes and copies, by CUDA events."""
        bindings = self._bindings(inputs)
        return trt_times.measure(bindings, self._stream, self._enqueuing(bindings), lambda: self._lane(inputs))

    def _enqueuing(self, bindings: Bindings) -> Callable[[], None]:
        """Return the function that enqueues one run: a CUDA graph where the recipe has one, else a call of TensorRT."""
        bindings.execute()  # raises errors, and does the one-time work that must not happen during a capture
        stream = self._stream
        stream.wait()
        captured = self._cuda_graph and not self._captures_itself and not bindings.allocates
        if not captured:
            return bindings.execute
        graph = stream.captured(bindings.execute)
        return lambda: graph.launch(stream)  # the graph writes the outputs into the memory of `bindings`

    def _lane(self, inputs: Tensors) -> tuple[Bindings, CudaStream]:
        """Return bindings of an execution context of their own, and its stream."""
        stream = CudaStream()
        return self._bindings(inputs, stream), stream

    def _bindings(self, inputs: Tensors, stream: CudaStream | None = None) -> Bindings:
        """Return the bindings of the inputs; those of a stream of their own have a context of their own, too."""
        engine = self._engine
        tensors = [engine.get_tensor_name(number) for number in range(engine.num_io_tensors)]
        takes = [name for name in tensors if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT]
        refuse_missing(takes, inputs)
        profile = self._profile({name: inputs[name] for name in takes})
        context = self._context(profile) if stream is None else self._new_context(profile, stream)
        gives = [name for name in tensors if name not in takes]
        return Bindings(context, stream or self._stream, inputs={name: inputs[name] for name in takes}, gives=gives)

    def _profile(self, inputs: Tensors) -> int:
        """Return the number of the profile that takes inputs of these shapes and has the nearest opt shapes.

        The values of a shape tensor must lie within the profile, too.

        Where several profiles take the inputs, Triton's TensorRT backend also chooses the profile whose opt shapes are
        nearest ("Model Configuration", "TensorRT Optimization Profile").
        """
        shapes = {name: tuple(array.shape) for name, array in inputs.items()}
        sizes = {name: _values_of(array) for name, array in inputs.items() if self._engine.is_shape_inference_io(name)}
        fitting: dict[int, int] = {}
        ranges: list[str] = []
        for number in range(max(1, self._engine.num_optimization_profiles)):
            ends = {name: self._engine.get_tensor_profile_shape(name, number) for name in shapes}
            values = {name: self._engine.get_tensor_profile_values(number, name) for name in sizes}
            fits = all(within(shapes[name], shape_of(low), shape_of(high)) for name, (low, _, high) in ends.items())
            if fits and all(within(sizes[name], low, high) for name, (low, _, high) in values.items()):
                fitting[number] = sum(_distance(shapes[name], usual) for name, (_, usual, _) in ends.items())
            ranges += [f"profile {number}, {name}: {shape_of(least)} to {shape_of(greatest)}"
                       for name, (least, _, greatest) in ends.items()]  # fmt: skip
            ranges += [f"profile {number}, values of {name}: {[*least]} to {[*greatest]}"
                       for name, (least, _, greatest) in values.items()]  # fmt: skip
        if not fitting:
            given_shapes = [f"{name}: {list(shape)}" for name, shape in shapes.items()]
            given_shapes += [f"values of {name}: {values}" for name, values in sizes.items()]
            raise StepError("No profile of the engine takes these shapes", [*given_shapes, *ranges], "widen a profile")
        return min(fitting, key=lambda number: (fitting[number], number))

    def _context(self, profile: int) -> Context:
        if profile not in self._contexts:
            self._contexts[profile] = self._new_context(profile, self._stream)
        return self._contexts[profile]

    def _new_context(self, profile: int, stream: CudaStream) -> Context:
        context = self._created()
        if context is None or not context.set_optimization_profile_async(profile, stream.handle):
            raise StepError(
                f"TensorRT gives no execution context for profile {profile}",
                trt_failures.reasons(self._log.problems),
                "is there memory left on the GPU?",
            )
        stream.wait()
        return Context(self._engine, context)

    def _created(self) -> tensorrt.IExecutionContext | None:
        if not (self._cuda_graph and self._captures_itself):
            return self._engine.create_execution_context()
        config: Any = self._engine.create_runtime_config()
        rtx_module: Any = trt  # Any: only TensorRT-RTX has CudaGraphStrategy
        config.cuda_graph_strategy = rtx_module.CudaGraphStrategy.WHOLE_GRAPH_CAPTURE
        return self._engine.create_execution_context(config)


def _values_of(array: np.ndarray) -> list[int]:
    """Return the values of a shape tensor, of which an input without axes has one."""
    return [int(value) for value in array.reshape(-1)]


def _distance(shape: tuple[int, ...], usual: Any) -> int:
    return sum(abs(size - other) for size, other in zip(shape, usual, strict=True))
