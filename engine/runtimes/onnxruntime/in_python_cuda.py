"""A session of ONNX Runtime on a GPU inside a Python model: packages for GPUs carry this file as session.py."""

# Sources: ONNX Runtime's documentation, "NVIDIA - CUDA", section "Using CUDA Graphs", and the run option `gpu_graph_id`
# of onnxruntime_run_options_config_keys.h. Capture and replay have run on no GPU yet, only on a fake session.

from __future__ import annotations

import ctypes
import importlib.util
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

GPU = "RECIPE_GPU"
"""The environment variable with the number of the GPU on which Triton has put this instance; model.py sets it."""
_GRAPH, _NO_GRAPH = "gpu_graph_id", -1
"""The run option with the number of the CUDA graph that a run captures or replays; -1 for a run without a graph."""

Tensors = Mapping[str, Any]


class ModelSession:
    """The model of a package, in fixed buffers for each profile of one size; on a GPU it replays a CUDA graph there.

    Settings: `file`, the name of the model's file; `level`, a name of ONNX Runtime's GraphOptimizationLevel; `threads`,
    the threads of an operator on the CPU; `provider`, ONNX Runtime's name of an execution provider, and `options`, its
    options; `graphs`, whether CUDA graphs are captured; `routing`, the facts of routing.py, or null where no profile
    has one size; `device`, the number of the GPU, where it is not the GPU of Triton's instance.

    One thread calls a session at a time. Raises RuntimeError where ONNX Runtime would use another provider.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        facts, plain = settings["routing"], None
        on_gpu = settings["provider"] == "CUDAExecutionProvider"
        device = int(settings.get("device", os.environ.get(GPU, "0"))) if on_gpu else 0
        options = {"device_id": str(device), **settings["options"]} if on_gpu else {}
        if on_gpu and settings["graphs"] and facts:
            try:
                self._session = _opened(folder, settings, {**options, "enable_cuda_graph": "1"})
                plain = _run_options(_NO_GRAPH)
            except Exception as error:  # noqa: BLE001 - ONNX Runtime raises a class per status code
                _log(f"no CUDA graphs, and no padding to their shapes: {error}")
                facts = None
        if plain is None:
            self._session = _opened(folder, settings, options)
        self._plain = plain
        """The options of a run without a graph, in a session that captures graphs; None in any other session."""
        self._routing = _module(folder / "routing.py").Routing(facts) if facts else None
        self._fixed: dict[int, _Fixed] = {}
        """The fixed buffers of each shape, by its index in `routing.fixed`."""
        for index, sizes in enumerate(facts["fixed"] if facts else ()):
            self._prepare(index, sizes, ("cuda" if on_gpu else "cpu", device))

    def _prepare(self, index: int, sizes: Mapping[str, int], memory: tuple[str, int]) -> None:
        """Make the buffers of a shape and capture its graph; a shape that fails runs as any other shape does."""
        shape = " x ".join(f"{axis} {size}" for axis, size in sizes.items())
        begin, free = time.perf_counter(), _free_bytes()
        try:
            graph = None if self._plain is None else index + 1  # ONNX Runtime keeps 0 for itself
            self._fixed[index] = _Fixed(self._session, self._routing.shapes(index), memory, graph)  # type: ignore[union-attr]
        except Exception as error:  # noqa: BLE001 - as above
            _log(f"{shape}: no fixed buffers: {error}")
            return
        if graph is not None:
            left = _free_bytes()
            took = f"in {time.perf_counter() - begin:.2f} s"
            took += "" if free is None or left is None else f", {(free - left) / 1e6:.1f} MB of the GPU's memory"
            _log(f"{shape}: CUDA graph {graph} captured {took}")

    def __call__(self, given: dict[str, Any], outputs: list[str]) -> dict[str, Any]:
        """Return the named outputs of the model. Raises ValueError for shapes that the model does not have."""
        if self._routing is not None:
            sizes = self._routing.sizes({name: given[name].shape for name in self._routing.inputs})
            try:
                index = self._routing.choose(sizes)
            except ValueError:  # larger than every profile
                index = None
            if index in self._fixed:
                padded = self._routing.padded(given, index)
                return dict(self._routing.cropped(self._fixed[index].run(padded, outputs), sizes))
        return dict(zip(outputs, self._session.run(outputs, given, self._plain), strict=True))


class _Fixed:
    """Buffers for the inputs and outputs of one shape, which stay where they are; `graph` is the number of its graph.

    A CUDA graph reads and writes the addresses that it was captured with.
    """

    def __init__(
        self, session: Any, shapes: Mapping[str, Sequence[int]], memory: tuple[str, int], graph: int | None
    ) -> None:
        import numpy as np
        import onnxruntime

        value = onnxruntime.OrtValue
        zeros = {each.name: np.zeros(shapes[each.name], _dtype(each.type)) for each in session.get_inputs()}
        plain = None if graph is None else _run_options(_NO_GRAPH)
        names = [each.name for each in session.get_outputs()]
        answers = dict(zip(names, session.run(names, zeros, plain), strict=True))  # their shapes; also a warm-up
        self._inputs = {name: value.ortvalue_from_numpy(array, *memory) for name, array in zeros.items()}
        self._outputs = {
            name: value.ortvalue_from_shape_and_type(list(array.shape), array.dtype.type, *memory)
            for name, array in answers.items()
        }
        self._dtypes = {name: array.dtype for name, array in zeros.items()}
        self._session, self._binding = session, session.io_binding()
        for name, each in self._inputs.items():
            self._binding.bind_ortvalue_input(name, each)
        for name, each in self._outputs.items():
            self._binding.bind_ortvalue_output(name, each)
        self._options = None if graph is None else _run_options(graph)
        for options in (plain, self._options, self._options):  # allocates; captures; replays, so that an error is seen
            session.run_with_iobinding(self._binding, options)

    def run(self, given: Tensors, outputs: Sequence[str]) -> dict[str, Any]:
        """Return copies of the named outputs for inputs of this shape."""
        import numpy as np

        for name, each in self._inputs.items():
            each.update_inplace(np.ascontiguousarray(given[name], self._dtypes[name]))
        self._session.run_with_iobinding(self._binding, self._options)
        self._binding.synchronize_outputs()
        return {name: np.array(self._outputs[name].numpy()) for name in outputs}


def _opened(folder: Path, settings: Mapping[str, Any], provider_options: Mapping[str, str]) -> Any:
    """Open the model on its provider. Raises RuntimeError where ONNX Runtime would use another one."""
    import onnxruntime

    options, provider = onnxruntime.SessionOptions(), settings["provider"]
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, settings["level"])
    options.intra_op_num_threads = settings["threads"]
    if provider_options:
        onnxruntime.preload_dlls()  # the CUDA libraries of pip
    path = str(folder / settings["file"])
    listed = [(provider, dict(provider_options))]
    session = onnxruntime.InferenceSession(path, options, providers=listed, enable_fallback=0)
    if provider not in session.get_providers():  # ONNX Runtime only warns where libraries or the driver are missing
        raise RuntimeError(
            f"ONNX Runtime does not run on {provider} here, only on {', '.join(session.get_providers())}"
        )
    return session


def _run_options(graph: int) -> Any:
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.add_run_config_entry(_GRAPH, str(graph))
    return options


def _dtype(onnx_type: str) -> str:
    """Return numpy's name of a type as ONNX Runtime writes it: "float32" for "tensor(float)"."""
    name = onnx_type.removeprefix("tensor(").removesuffix(")")
    return {"float": "float32", "double": "float64"}.get(name, name)


def _free_bytes() -> int | None:
    """Return the free bytes of the current GPU, whoever uses the others; None where the driver does not tell."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    except (OSError, AttributeError):
        return None
    return None if failed else free.value


def _log(text: str) -> None:
    print(text, flush=True)  # Triton's log has what a Python model prints


def _module(path: Path) -> Any:
    """Return the module in a file beside this one."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
