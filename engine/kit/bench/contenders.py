"""Contenders: the built model and its rivals in process; a rival that cannot run here is named with the reason."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.bench.interleaving import Contender
from engine.kit.bench.report import Unmeasured
from engine.recipe.values import Rival
from engine.runtimes import registry
from engine.runtimes.execution import Execution
from engine.runtimes.runner import RivalModel, Runner
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np


def of_checkpoint(rival: Rival) -> bool:
    """Whether a rival runs the checkpoint itself instead of the exported ONNX graph."""
    return registry.find(rival.runtime).rival_of == "checkpoint"


@dataclass(frozen=True)
class BuiltModel:
    """The built model in a folder, and how it is run in process."""

    directory: Path
    execution: Execution
    name: str
    threads: int
    new_tokens: int | None = None
    """The number of tokens that a call of a generating model generates; None for a model that generates no text."""

    def runner(self) -> Runner:
        """Load the model."""
        return self.execution.by.runner(
            self.directory, self.execution, name=self.name, threads=self.threads, new_tokens=self.new_tokens
        )

    def graphed(self) -> BuiltModel | None:
        """Return the built model, run with CUDA graphs; None where it is run only without them."""
        execution = None if self.new_tokens is not None else self.execution.by.graphed(self.execution)
        return None if execution is None else replace(self, execution=execution)


def rival_loads(
    rivals: Iterable[Rival], original: RivalModel, execution: Execution, *, threads: int
) -> list[tuple[str, Callable[[], Runner]]]:
    """Return the name of each rival of the model that `execution` runs, and the function that loads the rival."""

    def load(rival: Rival) -> Runner:
        print(f"loading {rival.name}")
        return registry.find(rival.runtime).rival(
            original._replace(compile=rival.compile),
            name=rival.name,
            precision=rival.precision,
            execution=execution,
            threads=threads,
        )

    return [(rival.name, functools.partial(load, rival)) for rival in rivals]


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
    facts = [error.what, *error.facts, error.hint] if isinstance(error, StepError) else reasons.facts(error)
    print(left_out := Unmeasured(runtime=name, reason="; ".join(filter(None, facts)), shape=shape or {}))
    return left_out
