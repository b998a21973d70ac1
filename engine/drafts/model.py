"""Model: what the argument MODEL of `recipe new` names, and the draft of its recipe."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.drafts import checkpoint_folder, onnx_file, place
from engine.drafts.draft import Draft
from engine.drafts.foreign import Foreign
from engine.errors import StepError, UsageError
from engine.kit.checkpoints import hub, model_files, packages
from engine.recipe import near_files, paths
from engine.text import suggestions
from engine.text.display import shown_path

_ON_HUB = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_SCHEMES = ("hf:", "timm:")
_PACKAGE = "python:"
_BRANCH = "main"


@dataclass(frozen=True)
class ModelSource:
    """A model: its place on this machine or its repository on the hub, and the value of `model.source`."""

    written: str
    place: Path | None = None
    repository: str | None = None

    @property
    def name(self) -> str:
        """The last part of the model's name, without its ending."""
        last = self.written.rstrip("/").rpartition("/")[2].rpartition(":")[2]
        return last.removesuffix(".onnx") if last.strip(".") else (self.place or Path("model")).name

    @property
    def path(self) -> Path | None:
        """The model's place, if the recipe names it by a path, which must lead into the recipe's project."""
        return None if self.written.startswith(_PACKAGE) else self.place


def source_of(model: str, folder: Path) -> ModelSource:
    """Return what MODEL names, for a recipe in `folder`. Raises UsageError where it names nothing."""
    if model.startswith(_PACKAGE):
        return ModelSource(model, packages.locate(model.removeprefix(_PACKAGE))[0])
    if model.startswith(_SCHEMES):
        return ModelSource(model, repository=(paths.hub_name(model) or "").removeprefix("hf:"))
    place = Path(model).expanduser()
    if place.exists():
        _refuse_other_file(place)
        real = Path(os.path.abspath(place))
        return ModelSource(Path(os.path.relpath(real, os.path.abspath(folder))).as_posix(), real)
    if _is_path(model):
        raise _missing(model, place)
    if "/" not in model and _is_of_timm(model):
        return ModelSource(f"timm:{model}", repository=f"timm/{model}")
    near = near_files.instead(place)
    if near is not None and (near.is_dir() or near.suffix == ".onnx"):
        raise _missing(model, place, f"the model hf:{model} of the hub")
    return ModelSource(f"hf:{model}", repository=model)


def _missing(model: str, place: Path, *also: str) -> UsageError:
    """Return the error for a path at which nothing is, with the nearest existing one, or what it may `also` mean."""
    path = Path(str(place).replace("\\", "/"))
    near = path if path.exists() else near_files.instead(path)
    like = near_files.hint(path)
    hint = f"{like}{'' if like.endswith('?') else ';'} name a model's directory, an .onnx file, or hf:OWNER/NAME"
    if near is not None:
        hint = suggestions.did_you_mean(shown_path(near), *also)
    return UsageError(f"there is no file or directory {model}", hint=hint)


def _is_path(model: str) -> bool:
    """Whether a text that names no file here was meant as a path, by its form."""
    return model.startswith((".", "/", "~")) or model.lower().endswith(".onnx") or not _ON_HUB.fullmatch(model)


def _is_of_timm(name: str) -> bool:
    """Whether the installed timm has an architecture with this name; False without timm."""
    if importlib.util.find_spec("timm") is None:
        return False
    import timm

    return bool(timm.is_model(name.partition(".")[0]))


def _refuse_other_file(place: Path) -> None:
    if not place.is_file() or place.suffix.lower() == ".onnx":
        return
    hint = "name the model's directory" if place.suffix in {".json", ".safetensors", ".bin"} else "export it to ONNX"
    if place.suffix.lower() in {".yaml", ".yml"}:
        hint = f"a recipe is built with `recipe build {place}`"
    if place.suffix.lower() == ".gguf":
        hint = suggestions.FROM_GGUF
    raise UsageError(f"{place} is neither a model's directory nor an .onnx file", hint=hint)


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
        drawn.samples = replace(drawn.samples, name=place.samples_file(recipe, drawn.samples.name))
        lines = f"/{drawn.samples.lines}" if drawn.samples.lines else ""
        drawn.put("validate.samples", f"{drawn.samples.name}{lines}")
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
