"""Checked variants: a variant that is checked, with its model as far as the model is on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.builder.variant import PlannedVariant
from engine.errors import RecipeError, UserError
from engine.feasibility.facts import ModelFacts


@dataclass(frozen=True)
class CheckedVariant:
    """A variant with its model: `source` is what the recipe names, `fetched` what an earlier build kept."""

    variant: PlannedVariant
    source: Path | None = None
    """The model's directory or .onnx file on this machine; None for a model of a hub."""
    fetched: Path | None = None
    """The checkpoint that an earlier build fetched from the hub."""
    facts: ModelFacts | None = None
    """What the model's files say about the model; None if the model is not here."""

    @property
    def checkpoint(self) -> Path | None:
        """The directory with the model's config.json; None for an ONNX file and for a model that is not here."""
        return self.source if self.source is not None and self.source.is_dir() else self.fetched

    def reads(self, uri: str) -> bool:
        """Tell whether a job of the plan reads the source `uri`."""
        return any(source.uri == uri for job in self.variant.jobs for source in job.step.sources().values())

    @contextmanager
    def at(self, *field: str) -> Iterator[None]:
        """Raise an error of the block as a RecipeError with the same words, at the place of a field of the recipe."""
        try:
            yield
        except RecipeError:
            raise
        except UserError as error:
            raise self.variant.loaded.error(error.what, *field, facts=error.facts, hint=error.hint) from error
