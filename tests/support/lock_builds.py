"""Builds of the steps of `lock_steps`, with locks and without."""

import lock_steps

from engine.builder.executors.local import LocalExecutor
from engine.builder.job import Job
from engine.builder.lookup import Lookup
from engine.builder.loop import run
from engine.builder.options import Options
from engine.builder.variant import PlannedVariant
from engine.errors import Refusals
from engine.events import Ended
from engine.lockfile import locking
from engine.recipe.load import load
from engine.step import Source
from engine.store.store import Store


def variant(project, *steps, name="r"):
    """Return a plan of steps joined by the names of their inputs."""
    [loaded] = load(project / "r.yaml")
    loaded = loaded._replace(recipe=loaded.recipe.model_copy(update={"name": name}))
    read = lock_steps.Read(source=Source(uri=f"file:{project / 't.txt'}"))
    chosen = [read, *steps]
    makers = {type(step).makes: type(step).step_name() for step in chosen}
    jobs = [
        Job(name, type(step).step_name(), step, {name: makers[name] for name in type(step).inputs()}) for step in chosen
    ]
    return PlannedVariant(loaded, tuple(jobs))


def build(project, plan, lookup=None, **options):
    store = Store(project / "cache")
    return list(run([plan], lookup or Lookup(store), LocalExecutor(1), Options(out=project / "build", **options)))


def built(project, *steps):
    """Build steps, and write their lock; return the plan and the lock."""
    plan = variant(project, *steps)
    build(project, plan)
    return plan, write(project, plan)


def frozen_build(project, plan):
    return build(project, plan, frozen(project, plan))


def states(events):
    return {event.job: event.state for event in events if isinstance(event, Ended)}


def lose(project, *jobs):
    """Remove the records of jobs from the store; of all jobs, if none is named."""
    store = Store(project / "cache")
    for record in list(store.records()):
        if not jobs or record.job in jobs:
            store.record_path(record.digest).unlink()


def write(project, plan):
    [locked] = locking.write(Store(project / "cache"), [plan], refresh=False)
    return locked.lock


def everywhere(lock):
    return {name: job.output for name, job in lock.variants["r"].jobs.items()}


def frozen(project, plan, *, partly=False):
    return locked(project, plan, is_frozen=True, partly=partly)


def locked(project, plan, *, is_frozen=False, partly=False):
    """Return the look-up of a build with the lock, or raise what `--locked` or `--frozen` refuses."""
    refusals = Refusals()
    locks = locking.locks_of([plan], refusals)
    lookup = locking.lookup_of(Store(project / "cache"), locks, refusals, is_frozen=is_frozen, partly=partly)
    refusals.refuse(1)
    return lookup
