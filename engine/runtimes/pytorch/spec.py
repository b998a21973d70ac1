"""PyTorch: runs the original model as a rival in `bench`. A recipe cannot name PyTorch as `target.runtime`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engine.runtimes.runtime import Runtime


class PyTorch(Runtime):
    """The runtime `pytorch`: PyTorch in eager mode, or compiled by torch.compile."""

    name: ClassVar[str] = "pytorch"
    title: ClassVar[str] = "PyTorch"
    work: ClassVar[str] = ".runner"
    targets: ClassVar[bool] = False
    on_gpus: ClassVar[bool] = True
    rival_of: ClassVar[str | None] = "checkpoint"
    rival_precisions: ClassVar[tuple[str, ...]] = ("fp32", "tf32", "fp16", "bf16")
    rival_compiles: ClassVar[tuple[str, ...]] = ("default", "reduce-overhead")
    compiler_facts: ClassVar[tuple[str, ...]] = ("cxx.version",)
    tools_for: ClassVar[Mapping[str, str]] = {"torch": "export and reference of PyTorch models"}

    def rival_tools(self, *, library: str) -> tuple[str, ...]:
        """Return the distributions that run the model: torch, safetensors, and `library` (transformers or timm).

        The tokenizer of a model of transformers tells which inputs the model gets.
        """
        by_tokenizer = ("tokenizers",) if library == "transformers" else ()
        return ("torch", "safetensors", *by_tokenizer, library)
