"""The catalogue: one line for each GPU that people deploy on."""

# The source of the compute capabilities is "cuda-gpus" in gpu.SOURCES. That list leaves out the GPUs of laptops and of
# cloud providers, and those for China: these have the compute capability of their chip. "driver-names" has the names by
# which drivers report them. The source of the memory is named in each line.

from __future__ import annotations

from collections.abc import Iterator

from engine.gpus.gpu import Gpu, UnsupportedGpu


def _series(sm: int, sold: str, memory_by_name: str, form: str = "RTX {}") -> Iterator[Gpu]:
    """Yield the GPUs of a series from a text of names and memory sizes: `name=GiB, ...`.

    `form` is the pattern of a GPU's full name. Laptop GPUs share the names of desktop GPUs and are other chips.
    """
    for pair in memory_by_name.split(","):
        name, memory_gib = pair.strip().split("=")
        yield Gpu(form.format(name), sm, int(memory_gib), sold)


CATALOGUE = (
    # Turing
    Gpu("T4", 75, 16, "data-center"),
    Gpu("T4G", 75, 16, "aws-g5g"),  # beside a Graviton CPU
    # Tensor cores came with the names RTX: a GTX computes in the same types, without them.
    *_series(75, "gtx-16", "1630=4, 1650=4, 1650 SUPER=4, 1650 Ti=4, 1650 Laptop=4, 1650 Ti Laptop=4", "GTX {}"),
    *_series(75, "gtx-16", "1660=6, 1660 SUPER=6, 1660 Ti=6, 1660 Ti Laptop=6", "GTX {}"),
    *_series(75, "geforce", "2060=12, 2060 SUPER=8, 2070=8, 2070 SUPER=8, 2080=8, 2080 SUPER=8, 2080 Ti=11"),
    *_series(75, "laptop", "2060=6, 2070=8, 2070 SUPER=8, 2080=8, 2080 SUPER=8", "RTX {} Laptop"),
    Gpu("TITAN RTX", 75, 24, "geforce"),
    *_series(75, "workstation", "4000=8, 5000=16, 6000=24, 8000=48", "Quadro RTX {}"),
    # Ampere
    Gpu("A100-40GB", 80, 40, "data-center", ("A100", "A100 PCIE 40GB")),  # A100 without a size means the smaller one
    Gpu("A100-80GB", 80, 80, "data-center", ("A100 80GB PCIe", "A100 PCIE 80GB")),
    Gpu("A800-40GB", 80, 40, "vgpu-gpus", ("A800 PCIE 40GB", "A800 40GB Active")),
    Gpu("A800-80GB", 80, 80, "vgpu-gpus", ("A800", "A800 80GB PCIe", "A800 80GB PCIe LC", "A800 PCIE 80GB")),
    Gpu("A30", 80, 24, "data-center"),
    Gpu("A2", 86, 16, "data-center"),
    Gpu("A10", 86, 24, "data-center"),
    Gpu("A10G", 86, 24, "aws-g5"),
    Gpu("A16", 86, 16, "data-center"),  # one of the four GPUs of the board
    Gpu("A40", 86, 48, "data-center"),
    *_series(86, "workstation", "A2000=6, A2000 12GB=12, A4000=16, A4500=20, A5000=24, A5500=24, A6000=48"),
    *_series(86, "geforce", "3050=8, 3060=12, 3060 Ti=8, 3070=8, 3070 Ti=8, 3080=12, 3080 Ti=12, 3090=24, 3090 Ti=24"),
    *_series(86, "laptop", "3050=6, 3050 Ti=4, 3060=6, 3070=8, 3070 Ti=8, 3080=16, 3080 Ti=16", "RTX {} Laptop"),
    Gpu("Jetson AGX Orin", 87, 64, "jetson", ("AGX Orin", "Jetson AGX Orin 64GB"), dla=True),
    Gpu("Jetson AGX Orin 32GB", 87, 32, "jetson", ("AGX Orin 32GB",), dla=True),
    Gpu("Jetson Orin NX", 87, 16, "jetson", ("Orin NX", "Jetson Orin NX 16GB"), dla=True),
    Gpu("Jetson Orin NX 8GB", 87, 8, "jetson", ("Orin NX 8GB",), dla=True),
    Gpu("Jetson Orin Nano", 87, 8, "jetson", ("Orin Nano", "Jetson Orin Nano 8GB")),
    Gpu("Jetson Orin Nano 4GB", 87, 4, "jetson", ("Orin Nano 4GB",)),
    # Ada Lovelace
    Gpu("L4", 89, 24, "data-center"),
    Gpu("L40", 89, 48, "data-center"),
    Gpu("L40S", 89, 48, "data-center"),
    Gpu("L20", 89, 48, "vgpu-gpus"),
    *_series(89, "workstation", "2000=16, 4000=20, 4000 SFF=20, 4500=24, 5000=32, 6000=48", "RTX {} Ada"),
    *_series(89, "geforce", "4060=8, 4060 Ti=16, 4070=12, 4070 SUPER=12, 4070 Ti=12, 4070 Ti SUPER=16"),
    *_series(89, "geforce", "4080=16, 4080 SUPER=16, 4090=24, 4090 D=24"),
    *_series(89, "laptop", "4050=6, 4060=8, 4070=8, 4080=12, 4090=16", "RTX {} Laptop"),
    # Hopper
    Gpu("H100", 90, 80, "data-center", ("H100 SXM", "H100 80GB HBM3")),
    Gpu("H100 PCIe", 90, 80, "data-center"),
    Gpu("H100 NVL", 90, 94, "data-center"),
    Gpu("H800", 90, 80, "vgpu-gpus", ("H800 SXM", "H800 80GB HBM3")),
    Gpu("H800 PCIe", 90, 80, "vgpu-gpus"),
    Gpu("H800 NVL", 90, 94, "vgpu-gpus"),
    Gpu("H20", 90, 96, "mig-gpus", ("H20 SXM",)),
    Gpu("H20-3e", 90, 141, "vgpu-gpus"),
    Gpu("H200", 90, 141, "data-center", ("H200 SXM",)),
    Gpu("H200 NVL", 90, 141, "data-center"),
    Gpu("GH200", 90, 96, "data-center", ("GH200 120GB", "GH200 480GB", "GH200 96GB HBM3")),  # 120, 480: CPU
    Gpu("GH200 144GB", 90, 144, "data-center", ("GH200 144G HBM3e",)),
    # Blackwell
    Gpu("B200", 100, 180, "data-center", ("B200 SXM",)),
    Gpu("GB200", 100, 186, "data-center"),
    Gpu("B300", 103, 288, "data-center", ("B300 SXM6 AC",)),
    Gpu("GB300", 103, 288, "data-center"),
    Gpu("Jetson Thor", 110, 128, "jetson", ("Jetson T5000", "Jetson AGX Thor")),
    Gpu("Jetson T4000", 110, 64, "jetson"),
    Gpu(
        "RTX PRO 6000 Blackwell", 120, 96, "workstation",
        tuple(f"RTX PRO 6000 Blackwell {edition}" for edition in
              ("Server Edition", "Workstation Edition", "Max-Q Workstation Edition")),
    ),
    Gpu("RTX PRO 5000 Blackwell", 120, 48, "workstation"),
    Gpu("RTX PRO 5000 72GB Blackwell", 120, 72, "workstation"),
    Gpu("RTX PRO 4500 Blackwell", 120, 32, "workstation", ("RTX PRO 4500 Blackwell Server Edition",)),
    Gpu("RTX PRO 4000 Blackwell", 120, 24, "workstation", ("RTX PRO 4000 Blackwell SFF Edition",)),
    Gpu("RTX PRO 2000 Blackwell", 120, 16, "workstation"),
    *_series(120, "geforce", "5050=8, 5060=8, 5060 Ti=16, 5070=12, 5070 Ti=16, 5080=16, 5090=32, 5090 D=32"),
    *_series(120, "laptop", "5050=8, 5060=8, 5070=8, 5070 Ti=12, 5080=16, 5090=24", "RTX {} Laptop"),
    Gpu("GB10", 121, 128, "spark", ("DGX Spark",)),
)  # fmt: skip

_VOLTA = "TensorRT dropped Volta (SM70) with 10.5, and no GPU is supported that a later 10.x lacks"
_PASCAL = "TensorRT 10 starts at SM70, and dropped that with 10.5"
_PASCAL_SOURCES = ("legacy", "tensorrt-10.1", "tensorrt-10.5")

UNSUPPORTED = (
    UnsupportedGpu(
        "V100", 70, _VOLTA, ("legacy", "tensorrt-10.5"),
        ("V100 SXM2 16GB", "V100 SXM2 32GB", "V100 SXM3 32GB", "V100 PCIE 16GB", "V100 PCIE 32GB", "V100S PCIE 32GB"),
    ),
    UnsupportedGpu("TITAN V", 70, _VOLTA, ("legacy", "tensorrt-10.5")),
    UnsupportedGpu("Quadro GV100", 70, _VOLTA, ("legacy", "tensorrt-10.5")),
    UnsupportedGpu("P100", 60, _PASCAL, _PASCAL_SOURCES, ("P100 PCIE 16GB", "P100 SXM2 16GB")),
    UnsupportedGpu("P40", 61, _PASCAL, _PASCAL_SOURCES),
    UnsupportedGpu("P4", 61, _PASCAL, _PASCAL_SOURCES),
    *(
        UnsupportedGpu(f"GTX {name}", 61, _PASCAL, _PASCAL_SOURCES)
        for name in ("1050", "1050 Ti", "1060", "1070", "1070 Ti", "1080", "1080 Ti")
    ),
)  # fmt: skip
"""GPUs that are too old for TensorRT 10."""
