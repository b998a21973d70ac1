"""ONNX Runtime's execution providers: their options, and checks that a session really runs on its provider."""

# Sources of option names: ONNX Runtime's documentation, "NVIDIA - CUDA" and "NVIDIA - TensorRT", "Configurations"; all
# values are text. The CUDA provider of onnxruntime-gpu 1.31 ran on an H200; the TensorRT provider ran on no GPU yet.

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.gpus.libraries import Libraries
from engine.text import versions

if TYPE_CHECKING:
    import onnx
    import onnxruntime

    from engine.runtimes.devices import CudaGpu

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
TENSORRT_MAJOR = "10"
"""The major version of TensorRT that the TensorRT provider loads. Source: the wheels of onnxruntime-gpu."""
TENSORRT_LIBRARIES = Libraries(
    title=f"TensorRT {TENSORRT_MAJOR}",
    names=(f"libnvinfer.so.{TENSORRT_MAJOR}", f"libnvonnxparser.so.{TENSORRT_MAJOR}"),
    distribution="tensorrt",
    version=f"{TENSORRT_MAJOR}.x",
)
"""The libraries that the TensorRT provider loads, and that its wheel does not bring.

Source: `readelf -d libonnxruntime_providers_tensorrt.so`, in the wheel of onnxruntime-gpu 1.31.1.
"""
WEAKLY_TYPED = "its TensorRT provider builds weakly typed networks, which take no precision from the graph"
TYPED_HINT = "install onnxruntime-gpu 1.26 (CUDA 12), or use runtime: tensorrt"
_FIRST_TYPED, _LAST_TYPED = "1.18", "1.26"
"""The first and the last version whose TensorRT provider builds strongly typed networks.

Up to 1.17, it is built on TensorRT 8.6. From 1.18 to 1.26, networks are strongly typed as long as no option allows a
precision. From 1.27 to 1.31.1, `createNetworkV2` gets no flag, and with TensorRT 10 the network is weakly typed. Later
versions are not known; options that allow the precisions of the graph suit both kinds.

Source: the machine code of `libonnxruntime_providers_tensorrt.so` in the wheels of onnxruntime-gpu on PyPI, 15 versions
from 1.17.1 to 1.31.1 (one for each minor version): the flags of both calls of createNetworkV2, and the version that
createInferBuilder_INTERNAL gets. A test reads the installed wheel (test_tensorrt_provider.py).
"""
_TYPED_IMAGES = "24.05"
"""The first release of Triton with TensorRT 10 and ONNX Runtime 1.18.

All later images have ONNX Runtime 1.18 to 1.24 with TensorRT 10, or (from 26.06 on) TensorRT 11, whose networks are
always strongly typed. Source: `ort_version` and TRITON_VERSION_MAP in build.py of triton-inference-server/server,
branches r24.02 to r26.08.
"""
RECORD = "session.record_ep_graph_assignment_info"
"""The session option that records which provider runs which node."""

_WORK = frozenset(
    {"MatMul", "Gemm", "FusedMatMul", "Conv", "FusedConv", "Attention", "MultiHeadAttention", "LSTM", "GRU"}
)
"""Operators with the expensive computations of a model.

ONNX Runtime may put cheap nodes, which compute shapes, on the CPU even in a session on a GPU.
"""
HINT = (
    "the provider needs onnxruntime-gpu, the CUDA, cuDNN and TensorRT libraries that onnxruntime-gpu is linked to, and"
    " a driver that fits (`recipe doctor`, docs/gpu.md); for a CPU, say device: cpu"
)


@dataclass(frozen=True)
class SessionProvider:
    """The execution provider of a session, its options, and providers for the nodes that it cannot run."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    behind: tuple[tuple[str, Mapping[str, str]], ...] = ()

    @property
    def on_gpu(self) -> bool:
        """Whether the provider computes on a GPU."""
        return self.name != CPU

    def listed(self) -> list[tuple[str, dict[str, str]]]:
        """Return the list of providers with which a session is opened, the main provider first."""
        listed = [(self.name, dict(self.options)), *((name, dict(options)) for name, options in self.behind)]
        return [*listed, (CPU, {})] if self.on_gpu else listed


ON_CPU = SessionProvider(CPU)


def cuda(gpu: CudaGpu, *, graph: bool = False, tf32: bool | None = None, wide_sums: bool = False) -> SessionProvider:
    """Return the CUDA provider's name and options for a session.

    With `graph` the session captures and replays a CUDA graph, so inputs must be bound to memory and shapes must stay
    the same. `tf32` and `wide_sums` are those of `cuda_numbers`.
    """
    captured = {"enable_cuda_graph": "1"} if graph else {}
    numbers = cuda_numbers(tf32=tf32, wide_sums=wide_sums)
    return SessionProvider(CUDA, {"device_id": str(gpu.index), **captured, **numbers})


def cuda_numbers(*, tf32: bool | None, wide_sums: bool = False) -> dict[str, str]:
    """Return the options of the CUDA provider that change numbers.

    `tf32` tells whether products of fp32 are computed in TF32; None for the default, which is TF32 where the GPU has
    it. With `wide_sums`, SkipLayerNormalization sums in fp32 also in ONNX Runtime 1.15 to 1.26; from 1.27 on it always
    does, and 1.28 and later ignore the option. Sources: pull requests 15660, 28682 and 29388 of microsoft/onnxruntime.
    """
    chosen = {} if tf32 is None else {"use_tf32": str(int(tf32))}
    return {**chosen, "enable_skip_layer_norm_strict_mode": "1"} if wide_sums else chosen


def needs_wide_sums(model: onnx.ModelProto) -> bool:
    """Say whether a SkipLayerNormalization of a graph computes in fp16, so that it must be told to sum in fp32."""
    from onnx import TensorProto

    halves = {tensor.name for tensor in model.graph.initializer if tensor.data_type == TensorProto.FLOAT16}
    return any(node.op_type.startswith("Skip") and not halves.isdisjoint(node.input) for node in model.graph.node)


def tensorrt(gpu: CudaGpu, options: Mapping[str, str], *, tf32: bool | None = None) -> SessionProvider:
    """Return the TensorRT provider with `options`; the CUDA provider runs the nodes that TensorRT cannot run."""
    device = {"device_id": str(gpu.index)}
    return SessionProvider(TENSORRT, {**device, **options}, ((CUDA, {**device, **cuda_numbers(tf32=tf32)}),))


def takes_types(version: str) -> bool:
    """Tell whether the TensorRT provider of a version of onnxruntime-gpu takes each precision from the graph."""
    return not versions.is_later(_FIRST_TYPED, than=version) and not versions.is_later(version, than=_LAST_TYPED)


def image_takes_types(release: str) -> bool:
    """Tell whether the TensorRT accelerator in an image of Triton takes each precision from the graph."""
    return not versions.is_later(_TYPED_IMAGES, than=release)


def expect_available(provider: SessionProvider) -> None:
    """Raise StepError where the installed build of ONNX Runtime does not know the provider."""
    import onnxruntime

    available = onnxruntime.get_available_providers()
    if provider.name not in available:
        raise _fallback(provider, [f"it offers: {', '.join(available)}"])


def expect_used(session: onnxruntime.InferenceSession, provider: SessionProvider) -> None:
    """Raise StepError where a session does not run on its provider.

    Where libraries or the driver of a provider are missing, ONNX Runtime only warns, and opens the session without the
    provider. ONNX Runtime may also run expensive nodes on the CPU in a session that has a provider for GPUs.
    """
    if provider.name not in session.get_providers():
        raise _fallback(provider, [f"the session runs on: {', '.join(session.get_providers())}"])
    if not provider.on_gpu:
        return
    work: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    for part in session.get_provider_graph_assignment_info():
        operators = [node.op_type for node in part.get_nodes()]
        nodes[part.ep_name] += len(operators)
        work[part.ep_name] += sum(operator in _WORK for operator in operators)
    spread = ", ".join(f"{count} on {name}" for name, count in nodes.items())
    if not nodes[provider.name] or work[CPU]:
        raise _fallback(provider, [f"of the model's nodes are {spread}", f"on the CPU do the work: {work[CPU]}"])
    print(f"ONNX Runtime has put the model's nodes: {spread}")


def _fallback(provider: SessionProvider, facts: Sequence[str]) -> StepError:
    return StepError(
        f"ONNX Runtime does not run on {provider.name} here, and would silently use another provider",
        facts,
        HINT,
    )
