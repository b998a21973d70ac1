"""A fake of ONNX Runtime's sessions on the CUDA provider: it computes on a CPU, and refuses what the real one refuses.

Sources: ONNX Runtime's documentation, "NVIDIA - CUDA", section "Using CUDA Graphs": a session with graphs needs all
nodes on the GPU, inputs and outputs that are bound, and addresses and shapes that stay; and the run option
`gpu_graph_id`, where -1 runs without a graph, and 0 is ONNX Runtime's own. Stricter than the real one: it captures no
shape that has not run before without a graph.
"""

import threading
from typing import ClassVar

import numpy as np
import onnx
import onnxruntime

CUDA = "CUDAExecutionProvider"
REAL = onnxruntime.InferenceSession


class FakeOrtValue:
    """A tensor in the memory of a GPU that is not there."""

    def __init__(self, array, device, number):
        self.buffer, self.device = array, (device, number)

    @classmethod
    def ortvalue_from_numpy(cls, array, device="cpu", number=0):
        return cls(array.copy(), device, number)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape, dtype, device="cpu", number=0):
        return cls(np.zeros(shape, dtype), device, number)

    def update_inplace(self, array):
        if array.shape != self.buffer.shape or array.dtype != self.buffer.dtype or not array.flags.c_contiguous:
            raise RuntimeError(f"{array.dtype}{array.shape} is copied onto {self.buffer.dtype}{self.buffer.shape}")
        self.buffer[...] = array

    def numpy(self):
        return self.buffer


class FakeBinding:
    """The buffers of a run."""

    def __init__(self):
        self.inputs, self.outputs = {}, {}

    def bind_ortvalue_input(self, name, value):
        self.inputs[name] = value

    def bind_ortvalue_output(self, name, value):
        self.outputs[name] = value

    def synchronize_outputs(self):
        pass

    def addresses(self):
        return {name: id(value.buffer) for name, value in (*self.inputs.items(), *self.outputs.items())}

    def shapes(self):
        return tuple((name, value.buffer.shape) for name, value in sorted(self.inputs.items()))


class FakeCudaSession:
    """A session; `opened` has all of a test. `on_cpu` are operators that have no kernel for CUDA."""

    opened: ClassVar[list] = []
    on_cpu: frozenset = frozenset()
    no_libraries = False
    no_capture: frozenset = frozenset()
    """The numbers of the graphs whose capture fails."""

    def __init__(self, path, options, providers, enable_fallback=1):
        [(name, settings)] = providers
        assert (name, enable_fallback) == (CUDA, 0)
        self.captures = settings.get("enable_cuda_graph") == "1"
        operators = {node.op_type for node in onnx.load(path, load_external_data=False).graph.node}
        if self.captures and operators & (self.on_cpu | {"If", "Loop", "Scan"}):
            raise RuntimeError("all compute graph nodes have not been partitioned to the CUDAExecutionProvider")
        self.settings = settings
        self.real = REAL(path, options, providers=["CPUExecutionProvider"])
        self.graphs, self.ran, self.runs = {}, set(), []
        self.lock = threading.Lock()
        self.opened.append(self)

    def get_providers(self):
        return ["CPUExecutionProvider"] if self.no_libraries else [CUDA, "CPUExecutionProvider"]

    def get_inputs(self):
        return self.real.get_inputs()

    def get_outputs(self):
        return self.real.get_outputs()

    def io_binding(self):
        return FakeBinding()

    def run(self, names, feed, options=None):
        if self.captures and _graph(options) != -1:
            raise RuntimeError("a graph needs bound inputs and outputs")
        shapes = tuple((name, array.shape) for name, array in sorted(feed.items()))
        self.ran.add(shapes)
        self.runs.append((-1, shapes))
        return self.real.run(names, feed)

    def run_with_iobinding(self, binding, options=None):
        if not self.lock.acquire(blocking=False):
            raise RuntimeError("two threads run one session")
        try:
            self._run(binding, _graph(options))
        finally:
            self.lock.release()

    def _run(self, binding, graph):
        for value in (*binding.inputs.values(), *binding.outputs.values()):
            if value.device != ("cuda", int(self.settings["device_id"])):
                raise RuntimeError(f"a buffer lies on {value.device}")
        if graph == 0 or (graph is not None and not self.captures):
            raise RuntimeError(f"no graph can have the number {graph}")
        if self.captures and graph != -1:
            if graph not in self.graphs:
                if binding.shapes() not in self.ran:
                    raise RuntimeError("operation not permitted when stream is capturing: nothing is allocated")
                if graph in self.no_capture:
                    raise RuntimeError("CUDA failure 901: operation failed due to a previous error during capture")
                self.graphs[graph] = binding.addresses()
            if self.graphs[graph] != binding.addresses():
                raise RuntimeError(f"the addresses of graph {graph} have changed")
        else:
            self.ran.add(binding.shapes())
        self.runs.append((graph, binding.shapes()))
        names = list(binding.outputs)
        feed = {name: value.buffer for name, value in binding.inputs.items()}
        for name, array in zip(names, self.real.run(names, feed), strict=True):
            binding.outputs[name].buffer[...] = array


def _graph(options):
    return None if options is None else int(options.get_run_config_entry("gpu_graph_id"))


def install(monkeypatch, **traits):
    """Let ONNX Runtime open such sessions; return their class, with `traits` as its attributes."""
    fake = type("FakeCudaSession", (FakeCudaSession,), {"opened": [], **traits})
    monkeypatch.setattr(onnxruntime, "InferenceSession", fake)
    monkeypatch.setattr(onnxruntime, "OrtValue", FakeOrtValue)
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None)
    return fake
