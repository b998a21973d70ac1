"""Rivals: those that can run on this machine are measured; the others are named with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.bench.interleaving import Contender
from engine.kit.bench.unmeasured import Unmeasured
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np

    from engine.runtimes.runner import Runner


def loaded(loads: Iterable[tuple[str, Callable[[], Runner]]]) -> tuple[list[Contender], list[Unmeasured]]:
    """Load rivals by name; return those that can run, in process, and those that cannot.

    A rival needs packages, drivers and memory that the built model does not need. Without the rival, the measurement of
    the built model still counts.
    """
    contenders, left_out = [], []
    for name, load in loads:
        try:
            contenders.append(Contender.in_process(load()))
        except (StepError, ImportError, OSError) as error:  # a package whose shared libraries are missing
            left_out.append(unmeasured(name, error))
    return contenders, left_out


def able(
    contenders: Sequence[Contender], inputs: Mapping[str, np.ndarray], shape: Mapping[str, int | str]
) -> tuple[list[Contender], list[Unmeasured]]:
    """Return the contenders that can run on these inputs, and the rivals that cannot, with the shape of the inputs.

    The built model is not tried, since its failure ends the measurement.
    """
    fit, left_out = [], []
    for contender in contenders:
        try:
            if not contender.ours:
                with contender.active():
                    contender.prepare(inputs)
            fit.append(contender)
        except StepError as error:
            left_out.append(unmeasured(str(contender), error, shape))
    return fit, left_out


def unmeasured(name: str, error: Exception, shape: Mapping[str, int | str] | None = None) -> Unmeasured:
    """Return, and print, that something was not measured, with an error and its hint as the reason."""
    facts = [error.what, *error.facts] if isinstance(error, StepError) else reasons.facts(error)
    hint = error.hint if isinstance(error, StepError) else ""
    reason = "; ".join([*facts, *([hint] if hint else [])])
    print(left_out := Unmeasured(runtime=name, reason=reason, shape=shape or {}))
    return left_out
