"""A fake of ONNX Runtime's CUDA provider: sessions on a CPU that keep the rules of CUDA graphs.

It refuses what the real provider refuses: a graph of a model with control flow or with nodes on the CPU (when the
session opens), a graph without bound inputs and outputs, an operator that waits for the GPU during the capture, and
every run after such a capture. A replay reads and writes the buffers of the capture, whatever is bound meanwhile.
Sources: `InferenceSession::Initialize` and `::Run`, `CUDAExecutionProvider::OnRunStart` and `::OnRunEnd`, and
`CUDAGraphManager` of microsoft/onnxruntime. It proves order and bookkeeping, and no number.
"""

import types

import numpy as np
import onnx
import onnxruntime

from engine.machine import cuda
from engine.runtimes.onnxruntime.providers import CPU, CUDA

NAME = "Tesla T4"
BYTES_OF_A_GRAPH = 1 << 20
_REAL = onnxruntime.InferenceSession
_WITHOUT_GRAPH = -1
_REFUSED = "This session cannot use the graph capture feature as requested by the user as"


class FakeCudaError(Exception):
    """Stands for the error classes of ONNX Runtime, which derive from Exception."""


class FakeDevice:
    """The GPU: its free memory, the operators that it lacks, those that cannot be captured, and a diary of sessions."""

    def __init__(self):
        self.free, self.on_cpu, self.waiting, self.diary = 1 << 30, set(), set(), []
        self.replays_answer = lambda outputs: outputs
        """What a replay writes, for a model whose graph answers otherwise."""

    def take(self, size):
        self.free -= size


class FakeOrtValue:
    """A tensor in the memory of the GPU; its identity stands for its address."""

    device = None

    def __init__(self, array):
        self.array = np.array(array)
        self.device.take(self.array.nbytes)

    @classmethod
    def ortvalue_from_numpy(cls, array, kind, _number):
        assert kind == "cuda"
        return cls(array)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape, kind, device, _number):
        assert device == "cuda"
        return cls(np.zeros(shape, kind))

    def update_inplace(self, array):
        if (array.shape, array.dtype) != (self.array.shape, self.array.dtype):
            raise FakeCudaError("the numpy array must have the shape and the type of the OrtValue")
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


class FakeCudaSession:
    """A session of the CUDA provider, or a real session where only the CPU provider is named."""

    device = None

    def __new__(cls, model, settings, *, providers, **options):
        if providers[0][0] != CUDA:
            return _REAL(model, settings, providers=providers, **options)
        return super().__new__(cls)

    def __init__(self, model, _settings, *, providers, **options):
        options.pop("enable_fallback")
        self._real = _REAL(model, providers=[CPU], **options)
        self._types = [node.op_type for node in onnx.load(model, load_external_data=False).graph.node]
        self.captures = providers[0][1].get("enable_cuda_graph") == "1"
        self._graphs, self._broken = {}, False
        self.device.diary.append(f"open {'with' if self.captures else 'without'} graphs")
        if self.captures and self.device.on_cpu & set(self._types):
            raise FakeCudaError(f"{_REFUSED} all compute graph nodes have not been partitioned to the {CUDA}")

    def get_providers(self):
        return [CUDA, CPU]

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
        if self.captures and _graph_of(options) != _WITHOUT_GRAPH:
            raise FakeCudaError("a CUDA graph needs inputs and outputs that are bound to the memory of the GPU")
        self._refuse_after_failure()
        return self._real.run(names, feed)

    def run_with_iobinding(self, binding, options):
        self._refuse_after_failure()
        number = _graph_of(options)
        if not self.captures or number == _WITHOUT_GRAPH:
            self._compute(binding)
        elif number in self._graphs:
            self.device.diary.append(f"replay {number}")
            self._compute(self._graphs[number], self.device.replays_answer)
        else:
            self._capture(binding, number)

    def _capture(self, binding, number):
        for _ in range(2):  # one run of the caller: two regular runs, the capture and the first replay
            self._compute(binding)
        if self.device.waiting & set(self._types):
            self._broken = True
            raise FakeCudaError("CUDA failure 900: operation not permitted when stream is capturing")
        captured = FakeBinding()
        captured.inputs, captured.outputs = dict(binding.inputs), dict(binding.outputs)
        self._graphs[number] = captured
        self.device.take(BYTES_OF_A_GRAPH)
        self.device.diary.append(f"capture {number}")
        self._compute(captured, self.device.replays_answer)

    def _compute(self, binding, written=lambda outputs: outputs):
        feed = {name: value.array for name, value in binding.inputs.items()}
        for value, array in zip(
            binding.outputs.values(), written(self._real.run(list(binding.outputs), feed)), strict=True
        ):
            value.update_inplace(array)

    def _refuse_after_failure(self):
        if self._broken:
            raise FakeCudaError("CUDA failure 901: operation failed due to a previous error during capture")


def _part(name, kinds):
    nodes = [types.SimpleNamespace(op_type=kind) for kind in kinds]
    return types.SimpleNamespace(ep_name=name, get_nodes=lambda: nodes)


def _graph_of(options):
    try:
        return int(options.get_run_config_entry("gpu_graph_id"))
    except (AttributeError, RuntimeError):  # no options, or no such entry: ONNX Runtime's default
        return 0


def install(monkeypatch):
    """Let this machine have a T4 whose CUDA provider is a fake; return the device."""
    device = FakeDevice()
    shown = types.SimpleNamespace(name=NAME, sm=75, uuid="")
    monkeypatch.setattr(cuda, "devices", lambda: (shown,))
    monkeypatch.setattr(cuda, "free_memory", lambda: device.free)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, CPU])
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None)
    for name, kind in (("InferenceSession", FakeCudaSession), ("OrtValue", FakeOrtValue)):
        monkeypatch.setattr(kind, "device", device)
        monkeypatch.setattr(onnxruntime, name, kind)
    return device
