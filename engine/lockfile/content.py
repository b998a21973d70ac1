"""What a lock says: values, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

Rows = Mapping[str, str]
Place = tuple[str, str]
"""A variant and one of its jobs."""


@dataclass(frozen=True)
class Made:
    """A job's key and, where it was built and is the same wherever it is built, its artifact."""

    key: str
    artifact: str | None = None


@dataclass(frozen=True)
class LockedJob:
    """How a job is wired and what it is told; `made` where that is known and the same on every machine."""

    needs: Rows = field(default_factory=dict)
    reads: Rows = field(default_factory=dict)
    """Parameter of `run` -> the source that fills it."""
    gates: tuple[str, ...] = ()
    options: Rows = field(default_factory=dict)
    made: Made | None = None

    @property
    def rows(self) -> dict[str, str]:
        """All but what was made, as rows that can be compared."""
        rows = {f"needs.{name}": maker for name, maker in self.needs.items()}
        rows |= {f"reads.{name}": source for name, source in self.reads.items()}
        rows |= {"gates": ", ".join(self.gates)} if self.gates else {}
        return rows | {f"options.{name}": value for name, value in self.options.items()}


@dataclass(frozen=True)
class LockedVariant:
    """A variant: what its recipe says beyond the defaults, and its jobs in the order of the plan."""

    recipe: Rows
    jobs: Mapping[str, LockedJob]


@dataclass(frozen=True)
class Section:
    """What was made where these machine facts hold; it says nothing about any other machine."""

    facts: Rows
    made: Mapping[Place, Made]


@dataclass(frozen=True)
class Lock:
    """All that a lock says. `sources` are content digests, for a hub's repository commits; `steps` code digests."""

    sources: Rows
    tools: Rows
    steps: Rows
    variants: Mapping[str, LockedVariant]
    machines: tuple[Section, ...] = ()
    variables: Rows = field(default_factory=dict)
    """Environment variables that the jobs are keyed on, as far as they are set."""

    def made_where(self, holds: Callable[[Rows], bool]) -> dict[Place, Made]:
        """Return what the lock knows of a machine, of which `holds` says whether given facts hold there."""
        made = dict(self._made_everywhere())
        for section in self.machines:
            if holds(section.facts):
                made.update(section.made)
        return made

    def made_keys(self) -> set[str]:
        """Return all keys that the lock names, of this machine and of any other."""
        elsewhere = (made for section in self.machines for made in section.made.values())
        return {made.key for made in (*(made for _, made in self._made_everywhere()), *elsewhere)}

    def _made_everywhere(self) -> Iterator[tuple[Place, Made]]:
        for name, variant in self.variants.items():
            yield from (((name, job), locked.made) for job, locked in variant.jobs.items() if locked.made is not None)


def sections(made: Iterable[tuple[Rows, Place, Made]]) -> tuple[Section, ...]:
    """Gather what was made under its facts; equal facts make one section, in the order of the facts."""
    gathered: dict[tuple[tuple[str, str], ...], dict[Place, Made]] = {}
    for facts, place, each in made:
        gathered.setdefault(tuple(sorted(facts.items())), {})[place] = each
    return tuple(Section(dict(facts), places) for facts, places in sorted(gathered.items()))
