"""Reads ONNX Runtime's TensorRT provider, a shared library: the TensorRT it was built with, and the flags it passes."""

import re
import subprocess
from pathlib import Path

LIBRARY = "libonnxruntime_providers_tensorrt.so"
_NEAR = 40
"""How many instructions before the parser is created the network is created."""


def installed():
    """Return the provider's library of the installed onnxruntime, and the version; None where it has no provider."""
    import onnxruntime

    library = Path(onnxruntime.__file__).parent / "capi" / LIBRARY
    return (library, onnxruntime.__version__) if library.is_file() else None


class Provider:
    """The machine code of a provider's library for x86-64, as objdump (binutils) prints it."""

    def __init__(self, library: Path):
        options = ("-d", "--no-show-raw-insn", "-M", "intel")
        done = subprocess.run(["objdump", *options, library], capture_output=True, text=True, check=True)
        self._lines = [line.partition("\t")[2] for line in done.stdout.splitlines() if "\t" in line]

    def tensorrt(self) -> tuple[int, ...]:
        """Return the version of TensorRT's headers: the number that createInferBuilder_INTERNAL gets."""
        [number] = {
            int(match[1], 16)
            for before in self._before("createInferBuilder_INTERNAL", 8)
            for line in before
            if (match := re.search(r"mov\s+esi,(0x[0-9a-f]{4,})$", line))
        }
        major = 10_000 if number >= 10_000 else 1_000  # TensorRT 8 counts 8601 for 8.6.1, TensorRT 10 100100 for 10.1.0
        return number // major, number % major // 100, number % 100

    def strongly_typed(self) -> bool:
        """Return whether the flags of createNetworkV2 depend on something, as they do where they say STRONGLY_TYPED."""
        sites = [_to_network(before) for before in self._before("createNvOnnxParser_INTERNAL", _NEAR)]
        assert sites, "no call of createNetworkV2"
        return any(_computes_flags(site) for site in sites)

    def _before(self, function: str, count: int) -> list[list[str]]:
        ends = [place for place, line in enumerate(self._lines) if re.search(rf"call .*<{function}@plt>", line)]
        return [self._lines[end - count : end] for end in ends]


def _to_network(before: list[str]) -> list[str]:
    """Return the instructions that end with the call of createNetworkV2, which builders of TensorRT 10 have at 0x40."""
    end = max(place for place, line in enumerate(before) if re.search(r"call\s+QWORD PTR \[r..\+0x(40|58)\]", line))
    return before[max(0, end - 8) : end]


def _computes_flags(before: list[str]) -> bool:
    """Return whether esi, the flags, is twice a bit that was computed, not a number."""
    return any(re.search(r"(add\s+esi,esi|lea\s+esi,\[rsi\+rsi)", line) for line in before)
