"""The commands of `recipe` as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

from engine.builder import destination, diff_sides, difference, registry, remake
from engine.builder import why as explanations
from engine.builder.build_end import announce
from engine.builder.diff_sides import SideName
from engine.builder.difference import SideComparison
from engine.builder.executors.executor import Executor, default_slots
from engine.builder.executors.local import LocalExecutor
from engine.builder.job import Job
from engine.builder.jobs import known_step
from engine.builder.lookup import Lookup
from engine.builder.loop import run
from engine.builder.options import HERE, Options
from engine.builder.planning import Plan, variants
from engine.builder.planning import plan as plan_of
from engine.builder.recipe_check import Checked, boards, examine, not_verified
from engine.builder.selection import Reading, Recipes, Selection, listed, select
from engine.builder.sources import SourceReadings
from engine.builder.summary import Summary, summarize
from engine.builder.variant import PlannedVariant as Variant
from engine.builder.waiting import MachineNeeded, by_machine
from engine.builder.why import Finding
from engine.digest import Digest
from engine.errors import Exit, Refusals, UsageError, UserError
from engine.events import BuildFailedError, BuildFailure, Event, Finished, Noticed, Refused
from engine.kit.triton.in_process import OpenedPackage
from engine.lockfile import locking
from engine.lockfile.locking import Locked, find_lock, lock_path
from engine.recipe.schema import Recipe
from engine.store import history as past_builds
from engine.store.history import PastBuild
from engine.store.opening import open_store
from engine.system import folders

__all__ = [
    "VERSION", "BuildFailedError", "BuildFailure", "Checked", "Event", "Finding", "Finished", "Locked", "OpenedPackage",
    "PastBuild", "Reading", "Recipe", "Recipes",
    "Session", "SideComparison", "Summary", "UserError", "Variant", "build", "check", "diff", "history", "load",
    "lock", "plan", "reach", "session", "show", "why",
]  # fmt: skip

VERSION = 1
"""The version number of the functions of `engine.api`, as docs/stability.md explains."""


def plan(recipes: Recipes, **reading: Unpack[Reading]) -> tuple[Variant, ...]:
    """Read recipes and return each variant with its jobs in order. Raises RecipeError, StepError."""
    return variants(select(recipes, **reading))


def check(recipes: Recipes, **reading: Unpack[Reading]) -> list[Checked]:
    """Check the recipes' fields, hardware feasibility and plans without writing anything.

    Raises UserError, with the errors of all wrong recipes.

    `check` also looks at everything on this machine that a build would read or need: the model's files, samples,
    Python packages and servers. A fault has the words of the build's error, at the place of the field.
    """
    return examine(select(recipes, **reading)).checks


def why(recipes: Recipes, **reading: Unpack[Reading]) -> list[Finding]:
    """Return for every job whether its result is cached; if not, the rows of the job's key that changed."""
    current = session(recipes, **reading)
    findings = current.findings()
    current.lookup.store.leave()
    return findings


def show(recipes: Recipes, **reading: Unpack[Reading]) -> list[Summary]:
    """Return the records and reports of each variant's last build."""
    return session(recipes, **reading).summaries()


def diff(old: str | Path, new: str | Path | None = None, **reading: Unpack[Reading]) -> SideComparison:
    """Compare two recipes, variants or commits; without `new`, a recipe with its last build.

    Both are named as `[REVISION:]RECIPE[::VARIANT]`. Nothing of a commit is executed, and no file of the work tree is
    written. Raises UserError for a side that cannot be planned.
    """
    side = SideName.of(str(old))
    if new is None:
        return difference.of(*diff_sides.since_last_build(side, **reading))
    return difference.of(diff_sides.read(side, **reading), diff_sides.read(SideName.of(str(new)), **reading))


def history(recipes: Recipes, **reading: Unpack[Reading]) -> dict[str, list[PastBuild]]:
    """Return what the builds of each variant did, the oldest first, by the name of the variant.

    A build in which no job ran, and whose jobs are those of the build before, is not noted.
    """
    selection = select(recipes, **reading)
    notes = open_store(selection.store).notes
    return {variant.name: past_builds.of(notes, variant.subject) for variant in variants(selection)}


def reach(recipes: Recipes, **reading: Unpack[Reading]) -> set[Digest]:
    """Return the keys of the records that recipes use at present, used in their last builds, or have in their locks."""
    current = session(recipes, **reading)
    now = {finding.record.digest for finding in current.findings() if finding.record is not None}
    last = {key for variant in current.variants for key in current.lookup.heads.of(variant.subject).keys}
    locks = [find_lock(lock_path(path)) for path in current.selection.paths]
    pinned = {Digest(key) for lock in locks if lock is not None for key in lock.output_keys()}
    return now | last | pinned


def build(
    recipes: Recipes,
    *,
    out: Path | str | None = None,
    parallel: int | None = None,
    force: str | Iterable[str] = (),
    remake: str | Iterable[str] = (),
    keep_going: bool = False,
    allow_waiting: bool = False,
    wait: float | None = None,
    on: str = HERE,
    on_event: Callable[[Event], None] = lambda _: None,
    **reading: Unpack[Reading],
) -> Finished:
    """Build all jobs that are not cached and return the last event; packages go under `out` (default: `build/`).

    Raises RecipeError and UsageError before any job runs. The reasons of jobs that fail are in `failures` of the last
    event, and `raise_failures` of the last event raises them. With `keep_going`,
    the other recipes are built although a recipe is wrong. `remake` names steps whose stored jobs run again, to compare
    the bytes of both runs; "all" stands for every reproducible step. `wait` is for how many seconds the build waits for
    results that other machines make; None if it does not wait. `on` is where jobs run: `local` for this machine, or
    the address of a cluster: `ray://HOST:PORT` or `auto`.
    """
    options = Options(
        out=Path(out) if out is not None else None,
        parallel=parallel,
        on=on,
        force=frozenset(listed(force)),
        remake=frozenset(listed(remake)),
        keep_going=keep_going,
        allow_waiting=allow_waiting,
        wait=wait,
    )
    return session(recipes, keep_going=keep_going, **reading).build(options, on_event)


def session(recipes: Recipes, *, keep_going: bool = False, remote: bool = True, **reading: Unpack[Reading]) -> Session:
    """Read, check and plan recipes for a build.

    With `remote`, the remote of the user's settings, if there is one, is behind the store.

    Raises UserError, with the errors of all wrong recipes. With `keep_going`, an error is raised only if no recipe is
    right; otherwise the session has the errors in `refusals`.
    """
    selection = select(recipes, **reading)
    planned = plan_of(selection)
    _refuse(planned, selection, keep_going=keep_going)
    lookup, locks = _lookup(selection, planned, remote=remote)
    _refuse(planned, selection, keep_going=keep_going)
    return Session(selection, planned.without_refused(), lookup, locks, planned.refusals, planned.abstract)


def _refuse(planned: Plan, selection: Selection, *, keep_going: bool) -> None:
    """Raise the errors of wrong recipes; with `keep_going` only if no recipe is right."""
    if not (keep_going and planned.without_refused()):
        planned.refusals.refuse(len(selection.paths))


def _lookup(selection: Selection, planned: Plan, *, remote: bool) -> tuple[Lookup, tuple[Path, ...]]:
    """Return the look-up of a build, and the paths of its locks; the errors of locks are collected in the plan."""
    project = selection.project if remote else None
    store = open_store(selection.store, afresh=selection.paranoid, project=project)
    if not (selection.locked or selection.frozen):
        return Lookup(store, sources=SourceReadings(store, refresh=selection.refresh)), ()
    locks = locking.locks_of(planned.without_refused(), planned.refusals)
    partly = bool(selection.set or selection.only or selection.to)
    lookup = locking.lookup_of(
        store, locks, planned.refusals, is_frozen=selection.frozen, partly=partly, overridden=bool(selection.set)
    )
    return lookup, tuple(locks)


def lock(recipes: Recipes, **reading: Unpack[Reading]) -> list[Locked]:
    """Write each recipe's lock beside the recipe, from this machine and the store, without building anything.

    The new lock keeps the old lock's entries for other machines. The new lock also keeps the old lock's commits of hub
    revisions, unless `refresh` is set. Raises UsageError for `set` and `only`: a lock has the recipe as it is written.
    """
    selection = select(recipes, **reading)
    for name in ("set", "only"):
        if getattr(selection, name):
            what = f"a lock is of the recipe as it is written: `{name}` cannot change it"
            raise UsageError(what, getattr(selection, name), "write the change into the recipe, or lock all variants")
    planned = variants(selection)
    return locking.write(open_store(selection.store), planned, refresh=selection.refresh)


def load(package: Path | str, *, device: int | None = None) -> OpenedPackage:
    """Open a package whose layout is `fused` in this process: a function from texts to answers.

    The code and the session are those of the package, so tokens, padding and answers are the server's; on a GPU, with
    the same CUDA graphs. `device` is the number of the GPU; the first without it. Raises UsageError for another folder,
    and RuntimeError where the GPU cannot be used.
    """
    return OpenedPackage(Path(package), device=device)


@dataclass(frozen=True)
class Session:
    """The variants of a build, with the object that computes their keys and looks up their records."""

    selection: Selection
    variants: tuple[Variant, ...]
    lookup: Lookup
    locks: tuple[Path, ...] = ()
    """The paths of the lock files of a `--locked` or `--frozen` build."""
    refusals: Refusals = field(default_factory=Refusals)
    """The errors of the recipes that are wrong and therefore left out."""
    abstract: tuple[Path, ...] = ()
    """The named files that other recipes extend and that make no package of their own."""

    @property
    def jobs(self) -> Iterator[Job]:
        """The jobs of all selected variants."""
        return (job for variant in self.variants for job in variant.jobs)

    @property
    def parallel(self) -> int:
        """How many jobs run at a time on this machine, unless the build's options say so."""
        return self.selection.jobs or default_slots()

    def build(self, options: Options, on_event: Callable[[Event], None]) -> Finished:
        """Build all variants; every event goes to `on_event`, and the last event is returned.

        Raises UsageError, before anything is built, for steps that cannot be chosen, and for a folder in which packages
        would damage something else.
        """
        self._refuse(options)
        place = options.out or self.selection.project / "build"
        destination.refuse(place, chosen=options.out is not None, store=self.lookup.store.root, variants=self.variants)
        variants = self._with_readable_samples(keep_going=options.keep_going)
        for event in self._before():
            on_event(event)
        executor = self._executor(options, on_event)
        is_new = options.out is None and folders.is_empty(place)
        options = replace(options, out=place, is_what_if=bool(self.selection.set))

        def whole(finished: Finished) -> Finished:
            if is_new and place.is_dir():
                folders.ignore(place)
            return self._with_refusals(finished)

        return announce(run(variants, self.lookup, executor, options), self.lookup.store, on_event, whole)

    def _refuse(self, options: Options) -> None:
        """Raise UsageError for steps that cannot be chosen."""
        if self.selection.frozen and (options.force or options.remake):
            name = "--force" if options.force else "--remake"
            raise UsageError("--frozen builds nothing that is in the store", hint=f"leave {name} out, or use --locked")
        remake.refuse_unreproducible(options.remake, registry.steps())
        for name in sorted(options.force | (options.remake - {remake.ALL})):
            known_step(name, registry.steps())

    def _with_readable_samples(self, *, keep_going: bool) -> Sequence[Variant]:
        """Return the variants whose samples can be read: a bad line shall not show after minutes of export.

        A frozen build reads none. Raises the errors of the others, with `keep_going` only where no variant is left.
        """
        if self.selection.frozen:
            return self.variants
        from engine.builder.preflight import samples

        before = len(self.refusals.by_path)
        for variant in self.variants:
            with self.refusals.collecting(variant.loaded.path):
                samples.look_at_content(variant)
        variants = [each for each in self.variants if each.loaded.path not in self.refusals.by_path]
        if len(self.refusals.by_path) > before and not (keep_going and variants):
            self.refusals.refuse(len(self.selection.paths))
        return variants

    def _before(self) -> Iterator[Event]:
        """Yield what is known of the recipes before a job runs: skipped, wrong, not verified ones, and their boards."""
        for path in self.abstract:
            yield Noticed(f"{path} is abstract, skipped")
        for path, error in self.refusals.by_path.items():
            yield Refused(str(path), error)
        for text in boards(self.variants):
            yield Noticed(text, lasting=True)
        for variant in self.variants:
            if unknown := not_verified(variant):
                yield Noticed(f"{variant.name}: not verified: {unknown}", lasting=True)

    def _executor(self, options: Options, on_event: Callable[[Event], None]) -> Executor:
        """Return what runs the jobs. Raises UserError for a cluster that cannot be used, UsageError for no address."""
        if options.on == HERE:
            return LocalExecutor(options.parallel or self.parallel)
        from engine.cluster.executor import ClusterExecutor
        from engine.cluster.ray_engine import RayEngine

        cluster = RayEngine(options.on)
        if cluster.warning:
            on_event(Noticed(cluster.warning, is_warning=True))
        on_event(Noticed(f"the nodes of {options.on} are asked what they have"))
        return ClusterExecutor(cluster, self.lookup, list(self.jobs), lambda text: on_event(Noticed(text)))

    def _with_refusals(self, finished: Finished) -> Finished:
        """Return the last event of a build with the recipes that are wrong: they are failures, too."""
        refused = self.refusals.by_path
        wrong = [BuildFailure(str(path), "", "", error) for path, error in refused.items()]
        finished = replace(finished, failures=(*wrong, *finished.failures))
        if not refused or finished.exit is Exit.INTERRUPTED:
            return finished
        code = Exit.worst([finished.exit, *(error.exit for error in refused.values())])
        return replace(finished, state="failed", exit=code)

    def findings(self) -> list[Finding]:
        """Return the findings of `recipe why`: which jobs are cached, and which rows of a key changed."""
        return [finding for variant in self.variants for finding in explanations.examine(variant, self.lookup)]

    def waiting(self) -> tuple[MachineNeeded, ...]:
        """Return the jobs that wait for hardware which this machine lacks, by the machine that can run them."""
        waiting = by_machine(self.variants, self.findings(), self.lookup, self.selection)
        self.lookup.store.leave()
        return waiting

    def summaries(self) -> list[Summary]:
        """Return the summary of each variant's last build."""
        return [summarize(self.lookup, variant) for variant in self.variants]
