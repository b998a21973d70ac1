"""One row of the catalogue of GPUs, and the documents that the rows are taken from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.gpus.capabilities import AMPERE, DTYPES, FIRST_SM

_ARCHITECTURES = {75: "Turing", 80: "Ampere", 86: "Ampere", 87: "Ampere", 89: "Ada Lovelace", 90: "Hopper"}
_NOT_IN_CUDA_GPUS = ("gtx-16", "vgpu-gpus", "mig-gpus")
"""Documents with GPUs that NVIDIA's list of compute capabilities leaves out: the device's number tells its chip."""
_RTX_SMS = (75, 80, 86, 89, 120, 121)
_TENSORRT_FROM = {100: "10.8", 103: "10.14.1", 110: "10.8", 120: "10.8", 121: "10.14.1"}

_NOTES = "https://docs.nvidia.com/deeplearning/tensorrt/latest/getting-started/release-notes-10"
_DOCS = "https://docs.nvidia.com/deeplearning"
_DOCUMENTS = (
    ("cuda-gpus", "NVIDIA, CUDA GPU Compute Capability", "https://developer.nvidia.com/cuda-gpus"),
    (
        "cuda-types",
        "NVIDIA, CUDA Programming Guide, Table 33 (types of Tensor Cores)",
        "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html",
    ),
    (
        "driver-names",
        "NVIDIA, Linux open GPU kernel modules, Compatible GPUs",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/blob/main/README.md",
    ),
    ("legacy", "NVIDIA, Legacy CUDA GPU Compute Capability", "https://developer.nvidia.com/cuda-legacy-gpus"),
    ("data-center", "NVIDIA, data sheets of data center GPUs", "https://www.nvidia.com/en-us/data-center/"),
    ("aws-g5", "Amazon, EC2 G5 instances", "https://aws.amazon.com/ec2/instance-types/g5/"),
    ("aws-g5g", "Amazon, EC2 G5g instances", "https://aws.amazon.com/ec2/instance-types/g5g/"),
    (
        "mig-gpus",
        "NVIDIA, MIG User Guide, Supported GPUs",
        "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-gpus.html",
    ),
    (
        "vgpu-gpus",
        "NVIDIA, Virtual GPU Software, Supported Products",
        "https://docs.nvidia.com/vgpu/latest/product-support-matrix/index.html",
    ),
    (
        "gtx-16",
        "NVIDIA, GeForce GTX 16 series graphics cards",
        "https://www.nvidia.com/en-us/geforce/graphics-cards/16-series/",
    ),
    ("geforce", "NVIDIA, Compare GeForce", "https://www.nvidia.com/en-us/geforce/graphics-cards/compare/"),
    ("laptop", "NVIDIA, Compare GeForce laptops", "https://www.nvidia.com/en-us/geforce/laptops/compare/"),
    ("workstation", "NVIDIA, data sheets of workstation GPUs", "https://www.nvidia.com/en-us/products/workstations/"),
    ("jetson", "NVIDIA, Jetson modules", "https://developer.nvidia.com/embedded/jetson-modules"),
    ("spark", "NVIDIA, DGX Spark", "https://www.nvidia.com/en-us/products/workstations/dgx-spark/"),
    ("tensorrt", "NVIDIA, TensorRT Support Matrix", f"{_DOCS}/tensorrt/latest/getting-started/support-matrix.html"),
    (
        "tensorrt-rtx",
        "NVIDIA, TensorRT-RTX Support Matrix",
        f"{_DOCS}/tensorrt-rtx/latest/getting-started/support-matrix.html",
    ),
    (
        "tensorrt-rtx-library",
        "NVIDIA, tensorrt-rtx 1.7, enum ComputeCapability",
        "https://pypi.org/project/tensorrt-rtx-cu12/1.7.1.116/",
    ),
    (
        "tensorrt-10.1",
        "NVIDIA, TensorRT 10.1.0 Support Matrix",
        f"{_DOCS}/tensorrt/archives/tensorrt-1010/support-matrix/index.html",
    ),
    ("tensorrt-10.5", "NVIDIA, TensorRT 10.5.0 Release Notes", f"{_NOTES}/10.5.0.html"),
    ("tensorrt-10.8", "NVIDIA, TensorRT 10.8.0 Release Notes", f"{_NOTES}/10.8.0.html"),
    ("tensorrt-10.14", "NVIDIA, TensorRT 10.14.1 Release Notes", f"{_NOTES}/10.14.1.html"),
    (
        "quantization",
        "NVIDIA, Model Optimizer, Support Matrix",
        "https://nvidia.github.io/Model-Optimizer/guides/0_support_matrix.html",
    ),
)
SOURCES: Mapping[str, tuple[str, str]] = {tag: (title, address) for tag, title, address in _DOCUMENTS}
"""Tag of a document -> title and address of the document, which rows of the catalogue are taken from."""


def document(tag: str) -> str:
    """Return the title and the address of a document in `SOURCES`."""
    title, address = SOURCES[tag]
    return f"{title}: {address}"


class Gpu(NamedTuple):
    """One kind of GPU that this program can build for.

    `sm` is the compute capability of the GPU times ten: 75 for compute capability 7.5. `memory_gib` is the memory of
    one GPU as sold; the driver reports a little less. Where cards of one name have different memory, `memory_gib` is
    the largest: a model that is too large for the largest card is too large for every card of that name. `sold` is the
    tag of the document that states the memory. `aliases` are other names of the GPU, from NVML or from people. `dla`
    tells whether the GPU has deep-learning accelerators.
    """

    name: str
    sm: int
    memory_gib: int
    sold: str
    aliases: tuple[str, ...] = ()
    dla: bool = False

    @property
    def architecture(self) -> str:
        """The name of the GPU's architecture, for example Hopper."""
        return _ARCHITECTURES.get(self.sm, "Blackwell")

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The number types in which TensorRT computes matrix products on the GPU.

        tf32 and bf16 came with Ampere (SM80), fp8 with Ada (SM89), and fp4 with Blackwell (SM100). Weights of 4 bits
        need SM80. Sources: Table 33 of the CUDA Programming Guide, the support matrices of TensorRT and TensorRT-RTX
        ("Hardware and Precision"), the support matrix of Model Optimizer ("W4A16"), and test builds with TensorRT-RTX
        1.7 for each SM.
        """
        return tuple(dtype for dtype in DTYPES if self.sm >= FIRST_SM.get(dtype, 0))

    @property
    def tensorrt(self) -> str:
        """The first version of TensorRT, counted from 10.0, that builds engines for the GPU.

        Source: TensorRT's release notes.
        """
        return _TENSORRT_FROM.get(self.sm, "10.0")

    @property
    def tensorrt_rtx(self) -> bool:
        """Whether TensorRT-RTX builds for this GPU. Source: the enum `ComputeCapability` of tensorrt-rtx 1.7."""
        return self.sm in _RTX_SMS

    @property
    def sources(self) -> tuple[str, ...]:
        """The tags of the documents with the GPU's SM, memory, dtypes and first version of TensorRT."""
        first = {"10.8": ("tensorrt-10.8",), "10.14.1": ("tensorrt-10.14",)}.get(self.tensorrt, ())
        listed = "tensorrt-rtx-library" if self.sm == AMPERE else "tensorrt-rtx"  # the matrix leaves SM80 out
        rtx = (listed,) if self.tensorrt_rtx else ()
        names = ("driver-names",) if self.sold in _NOT_IN_CUDA_GPUS else ()
        return ("cuda-gpus", "cuda-types", self.sold, *names, "tensorrt", "quantization", *rtx, *first)


class UnsupportedGpu(NamedTuple):
    """A GPU that people ask for and that this program cannot build for.

    `why` is the reason why nothing is built for the GPU, and `sources` are the tags of documents that give this reason.
    """

    name: str
    sm: int
    why: str
    sources: tuple[str, ...]
    aliases: tuple[str, ...] = ()
