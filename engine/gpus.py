"""The catalogue of GPUs: name, SM, memory, dtypes each can run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from engine.errors import UsageError

_DTYPES = ("fp32", "fp16", "bf16", "int8", "fp8", "int4")
_BF16_FROM = 80
_FP8_FROM = 89


@dataclass(frozen=True)
class Gpu:
    """One kind of GPU; `sm` is its compute capability times ten, `memory_gib` that of one GPU in GiB.

    `aliases` are other names that mean it, as NVML or people have them.
    """

    name: str
    sm: int
    memory_gib: int
    aliases: tuple[str, ...] = ()

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The precisions that it computes in.

        bf16 came with Ampere (SM80), fp8 with Ada (SM89) and Hopper (SM90); Turing (SM75) has fp16, int8 and int4.
        Source: NVIDIA, TensorRT support matrix, "Hardware and Precision".
        """
        first_sm = {"bf16": _BF16_FROM, "fp8": _FP8_FROM}
        return tuple(dtype for dtype in _DTYPES if self.sm >= first_sm.get(dtype, 0))


# Compute capabilities: NVIDIA, "CUDA GPU Compute Capability" (developer.nvidia.com/cuda-gpus).
# Memory: each product's data sheet, as sold; what the driver reports is a little less (ECC, reserved memory).
CATALOGUE = (
    # Turing
    Gpu("T4", 75, 16),
    Gpu("RTX 2080 Ti", 75, 11),
    # Ampere
    Gpu("A100-40GB", 80, 40, ("A100", "A100 SXM4 40GB", "A100 PCIE 40GB")),  # the smaller where nothing says 80 GB
    Gpu("A100-80GB", 80, 80, ("A100 SXM4 80GB", "A100 80GB PCIe")),
    Gpu("A30", 80, 24),
    Gpu("A2", 86, 16),
    Gpu("A10", 86, 24),
    Gpu("A10G", 86, 24),  # Amazon's g5 instances
    Gpu("A16", 86, 16),  # a quarter of the board
    Gpu("A40", 86, 48),
    Gpu("RTX A6000", 86, 48),
    Gpu("RTX 3090", 86, 24),
    Gpu("Jetson AGX Orin", 87, 64, ("AGX Orin", "Jetson AGX Orin 64GB")),
    Gpu("Jetson Orin NX", 87, 16, ("Orin NX", "Jetson Orin NX 16GB")),
    Gpu("Jetson Orin Nano", 87, 8, ("Orin Nano", "Jetson Orin Nano 8GB")),
    # Ada
    Gpu("L4", 89, 24),
    Gpu("L40", 89, 48),
    Gpu("L40S", 89, 48),
    Gpu("RTX 4090", 89, 24),
    Gpu("RTX 6000 Ada", 89, 48, ("RTX 6000 Ada Generation",)),
    # Hopper
    Gpu("H100", 90, 80, ("H100 80GB HBM3", "H100 PCIe", "H100 SXM5 80GB")),
    Gpu("H100 NVL", 90, 94),
    Gpu("H200", 90, 141, ("H200 NVL", "H200 SXM")),
    # Blackwell
    Gpu("B200", 100, 180),
    Gpu("RTX 5090", 120, 32),
    Gpu("RTX PRO 6000 Blackwell", 120, 96, ("RTX PRO 6000 Blackwell Server Edition",)),
)


def find(name: str) -> Gpu:
    """Return the GPU that a recipe, NVML or a person calls so: "T4", "Tesla T4", "NVIDIA GeForce RTX 3090".

    Raises UsageError with the names that come near.
    """
    gpu = _BY_NAME.get(_simple(name))
    if gpu is not None:
        return gpu
    raise UsageError(f"no GPU is known as {name!r}", hint=near(name))


def near(name: str) -> str:
    """Return a hint with the names in the catalogue that look like `name`."""
    simple = _simple(name)
    begin_so = [gpu.name for gpu in CATALOGUE if simple and _simple(gpu.name).startswith(simple + "-")]
    alike = [_BY_NAME[found].name for found in get_close_matches(simple, _BY_NAME, n=3, cutoff=0.6)]
    names = list(dict.fromkeys(begin_so or alike))
    return f"did you mean {' or '.join(names)}?" if names else "`recipe gpus` lists those that are known"


def matches(local: str, wanted: str) -> bool:
    """Tell whether the GPU that the driver calls `local` is the one that a recipe calls `wanted`."""
    found = _BY_NAME.get(_simple(local))
    return found is not None and found is _BY_NAME.get(_simple(wanted))


def _simple(name: str) -> str:
    """Return a name without its makers' words, case and punctuation: `NVIDIA A100-SXM4-40GB` -> `a100-40gb`."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    return "-".join(word for word in words if word and word not in _NOISE)


_NOISE = ("nvidia", "tesla", "geforce", "gpu", "sxm", "sxm4", "sxm5", "pcie", "generation", "hbm3", "hbm3e", "nvgpu")
_BY_NAME = {_simple(name): gpu for gpu in CATALOGUE for name in (gpu.name, *gpu.aliases)}
