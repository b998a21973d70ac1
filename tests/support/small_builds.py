"""Builds of toy steps in the test's own process: what a recipe wants is said by the steps themselves."""

import os
import sys
from dataclasses import replace

from engine.builder import jobs
from engine.builder.executors.local import LocalExecutor
from engine.builder.lookup import Lookup
from engine.builder.loop import run
from engine.builder.options import Options
from engine.builder.variant import PlannedVariant
from engine.events import Ended
from engine.recipe.load import load
from engine.store.store import Store


def project_in(folder):
    """Make a project with a recipe that names a model, and nothing else."""
    (folder / "model.onnx").write_bytes(b"")
    (folder / "r.yaml").write_text("name: r\nmodel: {source: model.onnx}\n")
    return folder


def variant(project, *steps, name="r"):
    [loaded] = load(project / "r.yaml")
    loaded = loaded._replace(recipe=loaded.recipe.model_copy(update={"name": name}), variant=name)
    kinds = {}
    for step in steps:
        kind = type(step)
        kind.name = ""
        kind.name = kind.step_name()
        kinds[kind.name] = kind
    chosen = {type(step): step for step in steps}
    planned = jobs.plan(loaded.recipe, {name: _choosing(kind, chosen[kind]) for name, kind in kinds.items()})
    return PlannedVariant(
        loaded, tuple(replace(job, origin=next(s for s in steps if type(s).step_name() == job.name)) for job in planned)
    )


def _choosing(kind, step):
    class Chosen(kind):
        @classmethod
        def for_recipe(cls, _recipe):
            return step

    return Chosen


_idle = {}
"""The zygotes that no executor has at present, by the state of the process that started them."""


class SharedExecutor(LocalExecutor):
    """An executor that hands its idle zygotes on to the next one: most of a small build's time is their start."""

    def __init__(self, slots, **options):
        super().__init__(slots, **options)
        around = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        self._state = (os.getpid(), *sys.path, *sorted(around.items()))
        for other in [state for state in _idle if state[0] == os.getpid() and state != self._state]:
            for zygote in _idle.pop(other):
                zygote.remove()
        for zygote in _idle.pop(self._state, ()):
            self._add(zygote)

    def close(self):
        busy = [job.zygote for job in self._jobs]
        idle = [zygote for zygote in self._zygotes if zygote not in busy]
        for zygote in idle:
            self._zygotes.remove(zygote)
            self._selector.unregister(zygote.control)
        _idle.setdefault(self._state, []).extend(idle)
        super().close()


def start(project, *variants, slots=2, **options):
    """Return the events of a build as they come, and its look-up."""
    lookup = Lookup(Store(project / "cache"))
    return run(variants, lookup, SharedExecutor(slots), Options(out=project / "build", **options)), lookup


def build(project, *variants, **options):
    return list(start(project, *variants, **options)[0])


def states(events):
    return {event.job: event.state for event in events if isinstance(event, Ended)}
