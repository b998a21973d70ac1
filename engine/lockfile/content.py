"""The content of a lock as Python objects, with names of sources that are the same wherever a project lies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.builder.variant import PlannedVariant
from engine.key import leaves, text_of
from engine.recipe import paths
from engine.recipe.paths import PATH_FIELDS
from engine.step import Source

Rows = Mapping[str, str]
OutputName = tuple[str, str]
"""A pair: the name of a variant and the name of one of the variant's jobs."""


@dataclass(frozen=True)
class LockedOutput:
    """A job's output in a lock: the digest of the key, and the artifact if its bytes are the same in every build.

    `report` has the fields of the report that the job's step names in `in_lock`, such as the figures of a measurement
    that later jobs depend on. The artifact of such a measurement is locked, too.
    """

    key: str
    artifact: str | None = None
    report: Rows = field(default_factory=dict)


@dataclass(frozen=True)
class LockedJob:
    """A job's inputs and options. `output` is None if the job's output is unknown or depends on the machine."""

    needs: Rows = field(default_factory=dict)
    reads: Rows = field(default_factory=dict)
    """A mapping from a parameter of the method `run` to the name of the source (such as samples) that is passed."""
    gates: tuple[str, ...] = ()
    options: Rows = field(default_factory=dict)
    output: LockedOutput | None = None

    @property
    def rows(self) -> dict[str, str]:
        """The rows of the job in a comparison of two locks: inputs, jobs that must pass before it, and options."""
        rows = {f"needs.{name}": maker for name, maker in self.needs.items()}
        rows |= {f"reads.{name}": source for name, source in self.reads.items()}
        rows |= {"gates": ", ".join(self.gates)} if self.gates else {}
        return rows | {f"options.{name}": value for name, value in self.options.items()}


@dataclass(frozen=True)
class LockedVariant:
    """A variant: the fields in which its recipe differs from the defaults, and its jobs in the order of the plan."""

    recipe: Rows
    jobs: Mapping[str, LockedJob]


@dataclass(frozen=True)
class MachineSection:
    """The part of a lock for one kind of machine: the machine's facts, and the outputs of jobs on such a machine."""

    facts: Rows
    outputs: Mapping[OutputName, LockedOutput]


@dataclass(frozen=True)
class Lock:
    """The whole content of a lock.

    `sources` maps names to content digests, and a hub's repositories to commits. `steps` maps the names of jobs to the
    digests of their code; a job whose code differs between variants has the name of `own_code` there.
    """

    sources: Rows
    tools: Rows
    steps: Rows
    variants: Mapping[str, LockedVariant]
    machines: tuple[MachineSection, ...] = ()
    variables: Rows = field(default_factory=dict)
    """The values of the environment variables that are rows of the jobs' keys, without variables that are not set."""
    version: str = ""
    """The version of this program that wrote the lock, if the lock states one. It explains, and is never compared."""
    is_sealed: bool = True
    """Whether the lock's text ends with a digest of its lines. A lock of version 0.1.0 has none."""

    def code_of(self, variant: str, job: str) -> str | None:
        """Return the digest of a job's code; None for a job that the lock does not have."""
        return self.steps.get(own_code(variant, job), self.steps.get(job))

    def source_rows(self, source: str, name: str) -> dict[str, str]:
        """Return what the lock says of a source and of its parts, where a key has the source as the input `name`."""
        prefix, own = name_of_part(source, ""), {name: self.sources[source]} if source in self.sources else {}
        parts = ((key, value) for key, value in self.sources.items() if key.startswith(prefix))
        return own | {f"{name}/{key.removeprefix(prefix)}": value for key, value in parts}

    @property
    def pins(self) -> dict[str, str]:
        """The commit of each hub revision, by `hf:REPO@REVISION`."""
        return {paths.hub_name(name): commit for name, commit in self.sources.items() if paths.is_on_hub(name)}

    def outputs_where(self, holds: Callable[[Rows], bool]) -> dict[OutputName, LockedOutput]:
        """Return the lock's outputs for one machine; `holds(facts)` says whether the machine has the facts."""
        outputs = self._outputs_everywhere()
        for section in self.machines:
            if holds(section.facts):
                outputs |= section.outputs
        return outputs

    def outputs_of(self, variant: str, job: str) -> list[LockedOutput]:
        """Return the outputs that the lock has for a job, on any machine."""
        outputs = (self._outputs_everywhere(), *(section.outputs for section in self.machines))
        return [each[variant, job] for each in outputs if (variant, job) in each]

    def output_keys(self) -> set[str]:
        """Return all keys in the lock, for this machine and for all others."""
        everywhere = {output.key for output in self._outputs_everywhere().values()}
        return everywhere.union(output.key for section in self.machines for output in section.outputs.values())

    def _outputs_everywhere(self) -> dict[OutputName, LockedOutput]:
        """Return the outputs that are the same on every machine."""
        return {
            (name, job): locked.output
            for name, variant in self.variants.items()
            for job, locked in variant.jobs.items()
            if locked.output is not None
        }


def name_of(source: Source, variant: PlannedVariant) -> str:
    """Return a source's name in a lock.

    In a lock, the name of a hub's repository is `hf:REPO@REVISION`. The name of a local file is its path as the recipe
    writes the path, or a path relative to the project's folder.
    """
    if paths.is_on_hub(source.uri):
        return f"{source.uri}@{source.revision or 'main'}"
    name = variant.loaded.portable_name(source.uri) or _inside(variant.loaded.project, source.uri)
    return name if source.part in ("all", "samples") else f"{name} ({source.part})"


def name_of_part(source: str, part: str) -> str:
    """Return the name in a lock of a part of a source, such as an image file among samples."""
    return f"{source}::{part}"


def _inside(project: Path, uri: str) -> str:
    """Return a path inside the project, which may be absolute, as a path relative to the project's folder."""
    path = Path(uri.removeprefix("file:"))
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else uri


def row_of(name: str, locked: str) -> str:
    """Return a locked source as the row of a key: its digest, or `hf:REPO@COMMIT` for a hub's repository."""
    return f"{paths.hub_name(name).rpartition('@')[0]}@{locked}" if paths.is_on_hub(name) else locked


def recipe_rows(variant: PlannedVariant) -> dict[str, str]:
    """Return the fields in which a variant's recipe differs from the defaults, with paths as the recipe writes them."""
    loaded = variant.loaded
    fields = loaded.recipe.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    rows = {name: text_of(value) for name, value in leaves("", fields)}
    return {
        name: (loaded.portable_name(value) or value) if any(each.is_called(name) for each in PATH_FIELDS) else value
        for name, value in rows.items()
    }


def own_code(variant: str, job: str) -> str:
    """Return the name in `Lock.steps` of a job that runs other code than the same job of an earlier variant."""
    return f"{job} of {variant}"


def sections(outputs: Iterable[tuple[Rows, OutputName, LockedOutput]]) -> tuple[MachineSection, ...]:
    """Return the outputs in sections, one section for each set of facts, sorted by the facts."""
    gathered: dict[tuple[tuple[str, str], ...], dict[OutputName, LockedOutput]] = {}
    for facts, name, output in outputs:
        gathered.setdefault(tuple(sorted(facts.items())), {})[name] = output
    return tuple(MachineSection(dict(facts), places) for facts, places in sorted(gathered.items()))
