"""The report of the step that compiles an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.reporting import TypedReport
from engine.runtimes.tensorrt.plan_proof import PlanProof


@dataclass(frozen=True, kw_only=True)
class EngineReport(TypedReport):
    """The compiled engine: its bytes, the version of TensorRT, the GPUs, and the number of layers by precision.

    `plan` is what the text of a TensorRT-RTX engine proves; where it is not known, `plan_unknown` is the reason.
    """

    bytes: int
    tensorrt: str
    gpu: tuple[str, ...]
    profiles: int
    network: Mapping[str, int]
    engine: Mapping[str, int] | None
    """The number of the engine's layers by precision; None where only the target GPU can list the layers."""
    plan: PlanProof | None = None
    plan_unknown: str = ""
    tf32: str = ""
    """Whether products of fp32 may be computed in TF32, as text; "" where the GPU or the precision has none."""
    sparse: tuple[int, int] | None = None
    """The number of weights with the pattern 2:4, and of all; None for a recipe without `sparse_weights`."""
    refused: str = ""
    """Why TensorRT cannot have the model; empty where the step built an engine."""
