"""The catalogue of GPUs: name, SM, memory, dtypes that the GPU computes in, and the sources of these facts."""

from typing import TYPE_CHECKING

from engine.system import late

if TYPE_CHECKING:
    from engine.gpus.capabilities import AMPERE, DTYPES
    from engine.gpus.catalogue import CATALOGUE, UNSUPPORTED
    from engine.gpus.gpu import SOURCES, Gpu, UnsupportedGpu, document
    from engine.gpus.names import called, find, known, matches, near, with_capability

__all__ = [
    "AMPERE",
    "CATALOGUE",
    "DTYPES",
    "SOURCES",
    "UNSUPPORTED",
    "Gpu",
    "UnsupportedGpu",
    "called",
    "document",
    "find",
    "known",
    "matches",
    "near",
    "with_capability",
]  # fmt: skip

__getattr__ = late.names(
    __name__,
    catalogue="CATALOGUE UNSUPPORTED",
    capabilities="AMPERE DTYPES",
    gpu="SOURCES Gpu UnsupportedGpu document",
    names="called find known matches near with_capability",
)
