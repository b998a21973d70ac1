"""Builds of toy steps in the test's own process: what a recipe wants is said by the steps themselves."""

from dataclasses import replace

from engine.builder import jobs
from engine.builder.executors.local import LocalExecutor
from engine.builder.lookup import Lookup
from engine.builder.loop import Options, run
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


def build(project, *variants, slots=2, **options):
    lookup = Lookup(Store(project / "cache"))
    return list(run(variants, lookup, LocalExecutor(slots), Options(out=project / "build", **options)))


def states(events):
    return {event.job: event.state for event in events if isinstance(event, Ended)}
