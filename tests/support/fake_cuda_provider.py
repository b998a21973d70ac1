"""A fake of ONNX Runtime's CUDA provider: its sessions compute on a CPU, and refuse what the real provider refuses.

A session with graphs needs all nodes on the GPU and no control flow, inputs and outputs that are bound, and addresses
that stay. The run option `gpu_graph_id` is -1 for a run without a graph, and 0 is ONNX Runtime's own. No operator waits
for the GPU during a capture; every run after such a capture fails. Stricter than the real one: it captures no shape
that has not run before without a graph. It proves order and bookkeeping, and no number.

Sources: ONNX Runtime's documentation, "NVIDIA - CUDA", section "Using CUDA Graphs"; `InferenceSession::Initialize` and
`::Run`, `CUDAExecutionProvider::OnRunStart` and `::OnRunEnd`, and `CUDAGraphManager` of microsoft/onnxruntime.
"""

import threading
import types

import numpy as np
import onnx
import onnxruntime

from engine.machine import cuda
from engine.runtimes.onnxruntime.providers import CPU, CUDA

NAME = "Tesla T4"
BYTES_OF_A_GRAPH = 1 << 20
REAL = onnxruntime.InferenceSession
_WITHOUT_GRAPH = -1
_REFUSED = "This session cannot use the graph capture feature as requested by the user as"


class FakeCudaError(Exception):
    """Stands for the error classes of ONNX Runtime, which derive from Exception."""


class FakeDevice:
    """The GPU: its free memory, what it lacks and refuses, the sessions that are open, and a diary of them."""

    def __init__(self, **traits):
        self.free, self.opened, self.diary = 1 << 30, [], []
        self.no_libraries = False
        self.on_cpu = set()
        """Operators that have no kernel for CUDA."""
        self.waiting = set()
        """Operators that cannot be captured."""
        self.no_capture = set()
        """The numbers of the graphs whose capture fails, which does no harm to later runs."""
        self.replays_answer = lambda outputs: outputs
        """What a replay writes, for a model whose graph answers otherwise."""
        vars(self).update(traits)


class FakeOrtValue:
    """A tensor in the memory of the GPU; its identity stands for its address."""

    device = None

    def __init__(self, array, kind, number):
        assert kind == "cuda"
        self.array, self.number = np.array(array), number
        self.device.free -= self.array.nbytes

    @classmethod
    def ortvalue_from_numpy(cls, array, kind, number):
        return cls(array, kind, number)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape, dtype, kind, number):
        return cls(np.zeros(shape, dtype), kind, number)

    def update_inplace(self, array):
        if (array.shape, array.dtype) != (self.array.shape, self.array.dtype) or not array.flags.c_contiguous:
            raise FakeCudaError(f"{array.dtype}{array.shape} is copied onto {self.array.dtype}{self.array.shape}")
        self.array[...] = array

    def numpy(self):
        return self.array.copy()


class FakeBinding:
    """Inputs and outputs of a run, at their addresses."""

    def __init__(self):
        self.inputs, self.outputs = {}, {}

    def bind_ortvalue_input(self, name, value):
        self.inputs[name] = value

    def bind_ortvalue_output(self, name, value):
        self.outputs[name] = value

    def synchronize_outputs(self):
        pass

    def values(self):
        return {**self.inputs, **self.outputs}

    def feed(self):
        return {name: value.array for name, value in self.inputs.items()}


class FakeCudaSession:
    """A session of the CUDA provider, or a real session where only the CPU provider is named."""

    device = None

    def __new__(cls, model, settings, *, providers, **options):
        if providers[0][0] != CUDA:
            return REAL(model, settings, providers=providers, **options)
        return super().__new__(cls)

    def __init__(self, model, settings, *, providers, enable_fallback, **options):
        assert not enable_fallback
        self._real = REAL(model, settings, providers=[CPU], **options)
        self._types = [node.op_type for node in onnx.load(model, load_external_data=False).graph.node]
        self.settings = providers[0][1]
        self.captures = self.settings.get("enable_cuda_graph") == "1"
        self.graphs, self.runs = {}, []
        """The addresses of each captured graph by its number, and the graph (-1: none) and the shapes of each run."""
        self._prepared, self._broken, self._lock = set(), False, threading.Lock()
        self.device.diary.append(f"open {'with' if self.captures else 'without'} graphs")
        if self.captures and self.device.on_cpu & set(self._types):
            raise FakeCudaError(f"{_REFUSED} all compute graph nodes have not been partitioned to the {CUDA}")
        self.device.opened.append(self)

    def get_providers(self):
        return [CPU] if self.device.no_libraries else [CUDA, CPU]

    def get_provider_graph_assignment_info(self):
        by_cpu = [kind for kind in self._types if kind in self.device.on_cpu]
        by_gpu = [kind for kind in self._types if kind not in self.device.on_cpu]
        return [_part(CUDA, by_gpu), *([_part(CPU, by_cpu)] if by_cpu else [])]

    def get_inputs(self):
        return self._real.get_inputs()

    def get_outputs(self):
        return self._real.get_outputs()

    def io_binding(self):
        return FakeBinding()

    def run(self, names, feed, options=None):
        if self._graph_of(options) != _WITHOUT_GRAPH:
            raise FakeCudaError("a CUDA graph needs inputs and outputs that are bound to the memory of the GPU")
        self._note(_WITHOUT_GRAPH, feed)
        return self._real.run(names, feed)

    def run_with_iobinding(self, binding, options=None):
        if not self._lock.acquire(blocking=False):
            raise FakeCudaError("two threads run one session")
        try:
            self._run(binding, self._graph_of(options))
        finally:
            self._lock.release()

    def _run(self, binding, graph):
        numbers = {value.number for value in binding.values().values()}
        if numbers != {int(self.settings["device_id"])}:
            raise FakeCudaError(f"buffers lie on the GPUs {numbers}")
        written = (lambda outputs: outputs) if graph == _WITHOUT_GRAPH else self._replayed(binding, graph)
        self._note(graph, binding.feed())
        answers = written(self._real.run(list(binding.outputs), binding.feed()))
        for value, array in zip(binding.outputs.values(), answers, strict=True):
            value.update_inplace(array)

    def _replayed(self, binding, graph):
        """Replay a graph, which is captured at its first run; return what its outputs become."""
        addresses = {name: id(value) for name, value in binding.values().items()}
        if graph in self.graphs:
            self.device.diary.append(f"replay {graph}")
        else:
            self._capture(binding, graph)
            self.graphs[graph] = addresses
        if self.graphs[graph] != addresses:
            raise FakeCudaError(f"the addresses of graph {graph} have changed")
        return self.device.replays_answer

    def _capture(self, binding, graph):
        if _shapes(binding.feed()) not in self._prepared:
            raise FakeCudaError("operation not permitted when stream is capturing: nothing is allocated")
        if self.device.waiting & set(self._types):
            self._broken = True
            raise FakeCudaError("CUDA failure 900: operation not permitted when stream is capturing")
        if graph in self.device.no_capture:
            raise FakeCudaError("CUDA failure 901: operation failed due to a previous error during capture")
        self.device.free -= BYTES_OF_A_GRAPH
        self.device.diary.append(f"capture {graph}")

    def _graph_of(self, options):
        """Return the number of the graph of a run."""
        if self._broken:
            raise FakeCudaError("CUDA failure 901: operation failed due to a previous error during capture")
        if options is None and not self.captures:
            return _WITHOUT_GRAPH
        graph = 0 if options is None else int(options.get_run_config_entry("gpu_graph_id"))
        if graph == 0 or not self.captures:
            raise FakeCudaError(f"no graph can have the number {graph}")
        return graph

    def _note(self, graph, feed):
        self.runs.append((graph, _shapes(feed)))
        if graph == _WITHOUT_GRAPH:
            self._prepared.add(_shapes(feed))


def _shapes(feed):
    return tuple((name, array.shape) for name, array in sorted(feed.items()))


def _part(name, kinds):
    nodes = [types.SimpleNamespace(op_type=kind) for kind in kinds]
    return types.SimpleNamespace(ep_name=name, get_nodes=lambda: nodes)


def install(monkeypatch, **traits):
    """Let this machine have a T4 whose CUDA provider is a fake; return the device, with `traits` as its attributes."""
    device = FakeDevice(**traits)
    shown = types.SimpleNamespace(name=NAME, sm=75, uuid="")
    monkeypatch.setattr(cuda, "devices", lambda: (shown,))
    monkeypatch.setattr(cuda, "free_memory", lambda: device.free)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, CPU])
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None)
    for name, kind in (("InferenceSession", FakeCudaSession), ("OrtValue", FakeOrtValue)):
        monkeypatch.setattr(kind, "device", device)
        monkeypatch.setattr(onnxruntime, name, kind)
    return device
