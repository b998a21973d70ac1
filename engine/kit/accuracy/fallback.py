"""Fallback: a model of images stays in fp32 where int8 is too far from the original, or too little of it is in int8."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.errors import JudgementError
from engine.kit.accuracy import built_model, thresholds
from engine.kit.accuracy.gate import Bounded
from engine.recipe.values import Bound
from engine.runtimes.execution import Execution

_CPU = Execution()


class _Int8Bounds(Bounded):
    """The default bounds of int8; no step of a build."""

    def run(self, out: Path) -> None:
        raise NotImplementedError


def code() -> tuple[str, ...]:
    """Return the modules that run the model."""
    return _CPU.code


def shortcoming(
    quantized: Path, *, reference: Path, checkpoint: Path, task: str | None, opt: Mapping[str, int]
) -> str | None:
    """Return why the default bounds of int8 refuse the model in a folder; None where they hold.

    The model answers the cases of the reference, as in `validate`, and is compared with the original.
    """
    report = built_model.measure(quantized, _CPU, reference=reference, checkpoint=checkpoint, task=task, opt=opt)
    share = Bound(at_least=thresholds.PRECISION_SHARE)
    try:
        _Int8Bounds(task=task, precision="int8", precision_share=share).refuse(report)
    except JudgementError as error:
        return "; ".join([f"in int8, {error.what[0].lower()}{error.what[1:]}", *error.facts])
    return None
