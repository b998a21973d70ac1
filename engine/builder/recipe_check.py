"""The check of recipes: their text, and all that a build would read or need here; nothing is written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.builder.planning import plan
from engine.builder.selection import Selection
from engine.runtimes import registry

if TYPE_CHECKING:
    from engine.builder.variant import PlannedVariant


class Checked(NamedTuple):
    """A variant that passed the check; `model` says whether the model's own files were checked, too."""

    variant: PlannedVariant
    model: bool
    untried: str | None = None
    """The architecture and the task that nobody tried, so that an export may fail; None for those in the table."""

    def __repr__(self) -> str:
        """Return the variant's name, and whether the model's own files were checked."""
        return f"<Checked {self.variant.name}: fine{'' if self.model else ', without the files of its model'}>"

    @property
    def not_verified(self) -> str | None:
        """What nobody knows about the Triton image of the recipe; None where the image loads the model."""
        return not_verified(self.variant)


class Examination(NamedTuple):
    """The variants that passed the check, and the named files that other recipes extend and that make no package."""

    checks: list[Checked]
    abstract: tuple[Path, ...]


def examine(selection: Selection) -> Examination:
    """Check the selected recipes. Raises UserError, with the errors of all wrong recipes."""
    planned = plan(selection)
    if not planned.variants:
        planned.refusals.refuse(len(selection.paths))
    from engine.builder import preflight  # a recipe that is refused does not wait for this import

    checks = []
    for variant in planned.without_refused():
        with planned.refusals.collecting(variant.loaded.path):
            subject = preflight.look(variant, selection.store)
            checks.append(Checked(variant, model=subject.facts is not None, untried=preflight.model.untried(subject)))
    planned.refusals.refuse(len(selection.paths))
    return Examination(checks, planned.abstract)


def boards(variants: Iterable[PlannedVariant]) -> list[str]:
    """Return a sentence for each name of a GPU that does not say which of several boards it means: `A100`."""
    from engine.gpus.names import read_as

    names = dict.fromkeys(name for each in variants for name in each.loaded.recipe.target.devices)
    return list(filter(None, map(read_as, names)))


def newer(variants: Iterable[PlannedVariant]) -> list[str]:
    """Return a sentence for each tool of the variants' jobs that is newer than the last version that was tried."""
    from engine.machine import tools

    return tools.newer({tool for each in variants for job in each.jobs for tool in job.traits.tools})


def not_verified(variant: PlannedVariant) -> str | None:
    """Return what nobody knows about the Triton image of a variant; None where the image loads the model."""
    recipe = variant.loaded.recipe
    return registry.of(recipe).not_verified(recipe)
