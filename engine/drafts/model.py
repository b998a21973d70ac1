"""Model: the draft of a recipe for the argument MODEL of `recipe new`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.drafts import checkpoint_folder, onnx_file, place
from engine.drafts.draft import Draft, SampleFile
from engine.drafts.foreign import Foreign
from engine.drafts.source import ModelSource
from engine.errors import StepError, UsageError
from engine.kit.checkpoints import hub, model_files

_BRANCH = "main"


def draft(
    source: ModelSource, recipe: Path, *, task: str | None, on: str | None, settings: Foreign | None = None
) -> Draft:
    """Return the draft of a recipe for a model. Raises UserError where the model cannot be read or built.

    `settings` are those of another tool, which take the place of what the draft would guess.
    """
    name = place.name_of(recipe.stem)
    drawn = Draft({"name": name}, ["Written by `recipe new`, from what the model's own files say."])
    drawn.put("model.source", source.written)
    _add(drawn, source, task=task, on=on, sized=settings is not None and "profiles" in settings.fields)
    if settings is not None:
        settings.add_to(drawn)
    if drawn.samples is not None:
        drawn.samples = SampleFile(place.samples_file(recipe, drawn.samples.name), drawn.samples.content)
        drawn.put("validate.samples", drawn.samples.name)
    return drawn


def _add(drawn: Draft, source: ModelSource, *, task: str | None, on: str | None, sized: bool) -> None:
    """Fill a draft; `sized` says whether another tool states the sizes of the axes. Raises UserError."""
    if source.repository is not None:
        commit = hub.commit_of(source.repository, _BRANCH)
        drawn.put("model.revision", commit, f"the commit of {_BRANCH} today; or a branch or tag")
        with TemporaryDirectory() as folder:
            hub.download_settings(source.repository, commit, Path(folder))
            with _as_fault_of_the_command_line():
                checkpoint_folder.add(drawn, Path(folder), task=task, on=on, repository=source.repository)
    elif source.place is not None:
        with _as_fault_of_the_command_line():
            if source.place.is_file():
                onnx_file.add(drawn, source.place, task=task, on=on, sized=sized)
            else:
                model_files.model_at(source.place)
                checkpoint_folder.add(drawn, source.place, task=task, on=on)


@contextmanager
def _as_fault_of_the_command_line() -> Iterator[None]:
    """Raise the error of a model that cannot be built as UsageError: no step has run."""
    try:
        yield
    except StepError as error:
        raise UsageError(error.what, error.facts, error.hint) from error
