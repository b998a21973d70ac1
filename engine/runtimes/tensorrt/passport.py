"""Passport: a file beside an engine with the GPU, the versions, the options and the graph of the engine's build."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from engine.runtimes import passport_file
from engine.runtimes.tensorrt.api import EngineRuntime
from engine.runtimes.tensorrt.plan_proof import PlanProof
from engine.runtimes.tensorrt.prepared_graph import EngineTensor, Extents, Onnx
from engine.step import Frozen

PLAN = "model.plan"
"""The name of a TensorRT engine's file in an artifact."""
FILE = passport_file.FILE
_MOST_BYTES = 1 << 50
"""The largest size of an engine that a passport may state.

No engine has 1 PiB, so a larger number means that the passport is damaged.
"""


class Precision(Frozen):
    """The recipe's precision, and the number of layers per type in the parsed network and in the built engine."""

    asked: str
    network: Mapping[str, int]
    engine: Mapping[str, int] | None = None
    unknown: str = ""
    """The reason why the types of the engine's layers are not known; an empty text where the types are known."""


class Passport(Frozen):
    """The content of an engine's passport: GPU, versions, options, profiles, tensors and graph."""

    format: Literal[1] = 1
    kind: EngineRuntime
    gpu: tuple[str, ...] = Field(min_length=1)
    """The GPU that built the engine, as its driver names it; for TensorRT-RTX the GPUs in the recipe."""
    sms: tuple[int, ...] = Field(min_length=1)
    """The compute capabilities of the GPUs in `gpu`, times ten: 75 for 7.5."""
    tensorrt: str
    cuda_runtime: str | None = None
    driver: str | None = None
    os: str
    arch: str
    options: Mapping[str, Any]
    profiles: tuple[Mapping[str, Extents], ...]
    values: tuple[Mapping[str, Extents], ...] = ()
    """The values of shape tensors by the name of the input, for each profile; empty where the engine has none."""
    precision: Precision
    plan: PlanProof | None = None
    """What the text of a TensorRT-RTX engine proves; None for TensorRT, and for a text of an unknown form."""
    inputs: Mapping[str, EngineTensor]
    outputs: Mapping[str, EngineTensor]
    onnx: Onnx
    key: str = ""
    """The digest of the key of the job that built the engine."""
    bytes: int = Field(ge=0, le=_MOST_BYTES)
    """The size of the engine's file in bytes."""

    @property
    def holds_code(self) -> bool:
        """Whether loading the engine runs libraries that are inside it: a lean runtime, or plugins.

        TensorRT puts them into version-compatible engines only.
        """
        return bool(self.options.get("version_compatible"))

    @property
    def plugins(self) -> tuple[str, ...]:
        """The file names of the libraries with plugins that the engine needs and does not hold."""
        return () if self.holds_code else tuple(self.options.get("plugins") or ())

    @property
    def shape_tensors(self) -> tuple[str, ...]:
        """The names of the inputs whose values are sizes of other tensors."""
        return tuple(dict.fromkeys(name for values in self.values for name in values))

    @property
    def largest(self) -> dict[str, int]:
        """The largest size of each axis in any profile of the engine."""
        sizes: dict[str, int] = {}
        for profile in self.profiles:
            for name, extents in profile.items():
                for axis, size in zip(self.inputs[name].shape, extents.max, strict=True):
                    if isinstance(axis, str):
                        sizes[axis] = max(sizes.get(axis, 0), size)
        return sizes


def save(directory: Path, passport: Passport) -> None:
    """Write the passport beside the engine in a directory."""
    passport_file.save(directory, passport)


def load(path: Path) -> Passport:
    """Return the passport of an engine; `path` is the engine's file or its directory.

    Raises StepError where the passport is missing, or where its content is not that of a passport.
    """
    return passport_file.load(path, Passport, "TensorRT engine")
