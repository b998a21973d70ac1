"""Contest: the models that a measurement compares in process - the built model and its rivals."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.kit.bench.interleaving import Contender
from engine.recipe.image_input import Images
from engine.recipe.values import Rival
from engine.runtimes import registry
from engine.runtimes.execution import Execution
from engine.runtimes.runner import RivalModel, Runner


def of_checkpoint(rival: Rival) -> bool:
    """Whether a rival runs the checkpoint itself instead of the exported ONNX graph."""
    return registry.find(rival.runtime).rival_of == "checkpoint"


def name_of_built(runtime: str, precision: str) -> str:
    """Return the name of the built model, which rows of the report have."""
    return f"{runtime}-{precision}"


@dataclass(frozen=True)
class Contest:
    """The models of one measurement, and how they are run."""

    validated: Path
    exported: Path
    checkpoint: Path | None
    execution: Execution
    """How the built model is run."""
    name_of_ours: str
    in_process: bool
    """Whether models are measured in process; otherwise only rivals are that a server cannot run."""
    against: tuple[Rival, ...]
    threads: int
    new_tokens: int | None
    """The number of tokens that a call of a generating model generates; None for a model that generates no text."""
    task: str | None
    num_labels: int | None
    random_head: bool
    images: Images | None
    scratch: Path
    """A folder for what a rival writes while it is measured; it is deleted with the job."""

    def ours(self) -> tuple[Contender, ...]:
        """Return the contender that runs the built model in process; none if models are not measured in process."""
        if not self.in_process:
            return ()
        return (Contender.in_process(self._built(self.execution), ours=True),)

    def graphed(self) -> Callable[[], Runner] | None:
        """Return the function that loads the built model with CUDA graphs; None where it is run only without them."""
        execution = None if self.new_tokens is not None else self.execution.by.graphed(self.execution)
        return None if execution is None else functools.partial(self._built, execution)

    def loads(self) -> Iterator[tuple[str, Callable[[], Runner]]]:
        """Yield the name of each rival that runs in process, and the function that loads it."""
        for rival in self.against:
            if self.in_process or not registry.find(rival.runtime).rival_served:
                yield rival.name, functools.partial(self._rival, rival)

    def _built(self, execution: Execution) -> Runner:
        return execution.by.runner(
            self.validated, execution, name=self.name_of_ours, threads=self.threads, new_tokens=self.new_tokens
        )

    def _rival(self, rival: Rival) -> Runner:
        print(f"loading {rival.name}")
        original = RivalModel(
            exported=self.exported,
            checkpoint=self.checkpoint,
            task=self.task,
            num_labels=self.num_labels,
            random_head=self.random_head,
            images=self.images,
            new_tokens=self.new_tokens,
            compile=rival.compile,
            scratch=self.scratch,
        )
        return registry.find(rival.runtime).rival(
            original, name=rival.name, precision=rival.precision, execution=self.execution, threads=self.threads
        )
