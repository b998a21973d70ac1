"""A variant of a recipe, planned: its jobs in order."""

# A recipe that is refused is never looked up, so the store is imported only where a variant asks for it.

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.builder.job import Job
    from engine.recipe.load import LoadedRecipe
    from engine.store.heads import Subject


class UnreadRecipe(NamedTuple):
    """A variant of a recipe that the last build has read: its file is read again only where it is needed."""

    subject: Subject
    load: Callable[[Subject], LoadedRecipe]


@dataclass(frozen=True)
class PlannedVariant:
    """A variant of a recipe, with its jobs in order."""

    origin: LoadedRecipe | UnreadRecipe
    jobs: tuple[Job, ...]

    def __repr__(self) -> str:
        """Return the variant's name and the names of its jobs."""
        return f"<Variant {self.name}: {', '.join(job.name for job in self.jobs)}>"

    @property
    def name(self) -> str:
        """The name of the variant, unique in a build."""
        return self.origin.subject.name if isinstance(self.origin, UnreadRecipe) else self.origin.recipe.name

    def before(self, job: Job) -> list[str]:
        """Return the names of all jobs before a job, not only of those whose outputs the job reads; nearest first."""
        earlier = {each.name: each.earlier for each in self.jobs}
        names = list(job.earlier)
        for name in names:  # grows meanwhile
            names += [other for other in earlier[name] if other not in names]
        return names

    @cached_property
    def loaded(self) -> LoadedRecipe:
        """The variant of the recipe file."""
        return self.origin.load(self.origin.subject) if isinstance(self.origin, UnreadRecipe) else self.origin

    @cached_property
    def subject(self) -> Subject:
        """The subject of the variant's head."""
        if isinstance(self.origin, UnreadRecipe):
            return self.origin.subject
        from engine.store.heads import subject_of

        return subject_of(self.loaded)
