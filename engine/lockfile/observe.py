"""What a lock says of this machine as it is: sources, tools, code, wiring, and what the store has made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.builder.jobs import Job
from engine.builder.lookup import Lookup, Variant, under
from engine.key import digest_of, option_rows
from engine.lockfile.content import Lock, LockedJob, LockedVariant, Made, Place, Rows, sections
from engine.lockfile.names import is_on_hub, name_of, recipe_rows
from engine.machine import local_gpus
from engine.step import Hardware, Source

_NOT_LOOKED_UP = "not looked up"


@dataclass(frozen=True)
class Observed:
    """A recipe as it is here. `elsewhere` are tools and variables of jobs that wait for hardware which it lacks."""

    lock: Lock
    elsewhere: frozenset[str]


def observe(variants: Sequence[Variant], lookup: Lookup, locked: Lock | None, *, ask: bool) -> Observed:
    """Return what all variants of one recipe are made of, here and now.

    What is not in the store is taken from `locked` where it has the same key. Unless `ask`, no hub is asked for the
    commit of a revision: one that `locked` does not have stays unknown. Raises UserError where a source is missing.
    """
    walk = _Walk(lookup, locked, ask=ask)
    found = {variant.name: walk.variant(variant) for variant in variants}
    lock = Lock(
        sources=walk.sources,
        tools=lookup.tools(walk.tools),
        steps=walk.steps,
        variants=found,
        machines=sections(walk.made),
        variables=lookup.variables(walk.variables),
    )
    return Observed(lock, frozenset(walk.elsewhere - walk.tools - walk.variables))


def holds(facts: Rows, lookup: Lookup) -> bool:
    """Say whether these are facts of this machine, which the look-up then watches."""
    device = {name: value for name, value in facts.items() if name.startswith(local_gpus.DEVICE)}
    others = {name: value for name, value in facts.items() if name not in device}
    try:
        if lookup.facts(others, None) != others:
            return False
        if device:
            lookup.note(local_gpus.known(local_gpus.names()))
        return not device or local_gpus.has(device)
    except KeyError:
        return False  # of another version, which knew more facts


@dataclass(frozen=True)
class _Reach:
    """What a job's result hangs on besides the recipe."""

    facts: frozenset[str]
    """Facts of this job and of all that it is made from."""
    away: bool
    """It, or what it is made from, waits for hardware that this machine lacks."""
    content: str | None
    """The row by which it counts for those who take it, where that is known and every build gives the same."""
    varies: bool
    """It, or what it is made from, has other bytes in every build."""
    hardware: Hardware | None
    """What it, or what it is made from, runs on."""


class _Walk:
    """One pass over the jobs of all variants, in the order of their plans."""

    def __init__(self, lookup: Lookup, locked: Lock | None, *, ask: bool) -> None:
        self.lookup = lookup
        self.ask = ask
        self.commits = locked.sources if locked else {}
        self.before = locked.made_where(lambda facts: holds(facts, lookup)) if locked else {}
        self.sources: dict[str, str] = {}
        self.tools: set[str] = set()
        self.variables: set[str] = set()
        self.elsewhere: set[str] = set()
        self.steps: dict[str, str] = {}
        self.made: list[tuple[Rows, Place, Made]] = []

    def variant(self, variant: Variant) -> LockedVariant:
        """Walk over a variant's jobs."""
        reaches: dict[str, _Reach] = {}
        found: dict[str, LockedJob] = {}
        for job in variant.jobs:
            reads = {name: name_of(source, variant) for name, source in job.step.sources().items()}
            unknown = [name for name, source in job.step.sources().items() if not self._read(reads[name], source)]
            needed = {name: reaches[maker] for name, maker in job.needs.items()}
            facts = frozenset(job.step.facts_used()).union(*(each.facts for each in needed.values()))
            away = self.lookup.away(job) is not None or any(each.away for each in needed.values())
            self.steps[job.name] = str(self.lookup.code(job.step))
            (self.elsewhere if away else self.tools).update(job.step.tools_used())
            (self.elsewhere if away else self.variables).update(job.step.variables)
            inputs = {name: each.content for name, each in needed.items() if each.content is not None}
            hardware = next(filter(None, (job.step.hardware(), *(each.hardware for each in needed.values()))), None)
            varies = not job.step.reproducible or any(each.varies for each in needed.values())
            made = None
            if not unknown and not away and len(inputs) == len(needed):
                made = self._look_up(job, inputs, varies=varies)
            reaches[job.name] = _Reach(facts, away, _content(job, made), varies, hardware)
            if made is not None and facts:
                self.made.append((self.lookup.facts(facts, hardware), (variant.name, job.name), made))
            options = {row.removeprefix("options."): value for row, value in option_rows(job.step.options()).items()}
            found[job.name] = LockedJob(job.needs, reads, job.gates, options, None if facts else made)
        return LockedVariant(recipe_rows(variant), found)

    def _read(self, name: str, source: Source) -> bool:
        """Note a source's content; say whether it is known."""
        if is_on_hub(source) and not self.ask and name not in self.commits:
            self.sources[name] = _NOT_LOOKED_UP
            return False
        row = self.lookup.source(source).row
        self.sources[name] = row.rpartition("@")[2] if is_on_hub(source) else row
        return True

    def _look_up(self, job: Job, inputs: Mapping[str, str], *, varies: bool) -> Made:
        """Return a job's key, and its artifact by the store, else by the lock. What differs by build has none."""
        key = self.lookup.key(job, inputs)
        digest = str(digest_of(key))
        if varies:
            return Made(digest)
        record = self.lookup.store.find(key)
        if record is not None:
            return Made(digest, str(record.artifact))
        before = self.before.get((job.recipe, job.name))
        return before if before is not None and before.key == digest else Made(digest)


def _content(job: Job, made: Made | None) -> str | None:
    if made is None:
        return None
    return made.artifact if job.step.reproducible else under(made.key)
