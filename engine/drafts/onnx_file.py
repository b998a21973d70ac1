"""ONNX file: the draft of a model by the inputs of its graph, and by sizes with which it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.drafts import device, licence, tensors, trial
from engine.drafts.draft import Draft, SampleFile
from engine.errors import UserError
from engine.feasibility import proposals
from engine.feasibility.facts import ModelFacts
from engine.kit.inputs import index_ranges
from engine.kit.onnx import onnx_files, onnx_source

if TYPE_CHECKING:
    import onnx

    from engine.recipe.values import Range


def add(draft: Draft, path: Path, *, task: str | None, on: str | None, sized: bool = False) -> None:
    """Fill a draft from the graph of an ONNX file; `sized` says that something else states the sizes of its axes.

    Raises UserError for a file that cannot be built.
    """
    model = onnx_source.read(path)
    onnx_source.data_files(path)
    described = onnx_source.describe(model)
    facts = ModelFacts(kind="onnx", bytes=path.stat().st_size, **vars(described))
    draft.about += [f"{described.architecture}.", *(f"  {each}" for each in _signature(facts)), licence.line(None)]
    if task is not None:
        draft.put("model.task", task, "as --task names it")
    else:
        draft.about.append("A graph does not say what it is for: without `model.task`, clients send and get tensors.")
    device.put(draft, on)
    ranges: Mapping[str, Range] = proposals.ranges(facts, {})
    if not sized:
        ranges = _put_sizes(draft, path, ranges)
    draft.put("bench.against", [{"runtime": "onnxruntime"}])
    _put_samples(draft, model, ranges)
    draft.put("package.triton.name", draft.fields["name"])


def _put_sizes(draft: Draft, path: Path, guess: Mapping[str, Range]) -> Mapping[str, Range]:
    """Set the sizes with which the model runs, and return them. Raises StepError for a model that does not run."""
    tried = trial.sizes(path, guess)
    if tried.profile:
        profile = {axis: [each.min, each.opt, each.max] for axis, each in tried.profile.items()}
        comment = f"[min, opt, max] of each axis that may have any size: guesses, {tried.comment}; put your own sizes"
        draft.put("profiles", [profile], comment)
        draft.put("bench.shapes", [_shape(tried.profile)], "put the sizes that your clients send")
        draft.guesses.append(f"{proposals.as_yaml(tried.profile)}: guesses, {tried.comment}")
    return tried.profile


def _shape(ranges: Mapping[str, Range]) -> dict[str, int]:
    return {axis: each.opt for axis, each in ranges.items()}


def _put_samples(draft: Draft, model: onnx.ModelProto, ranges: Mapping[str, Range]) -> None:
    """Draw samples of the usual sizes; without them, validation draws its own."""
    try:
        content = tensors.drawn(onnx_files.inputs(model), index_ranges.of(model), ranges)
    except UserError as error:
        draft.about.append(f"No samples were drawn: {error.what}.")
        return
    if content is None:
        draft.about.append("The inputs are large: validation draws random ones. `validate.samples` names an .npz file.")
        return
    draft.samples = SampleFile(".npz", content)
    draft.put("validate", {}, "the samples are random numbers: put real inputs in their place")


def _signature(facts: ModelFacts) -> list[str]:
    """Return a line for each input and output: its name, type and shape."""
    lines = [f"input {name}: {facts.types.get(name, '')} {_sizes(shape)}" for name, shape in facts.axes.items()]
    outputs = facts.outputs.items()
    return lines + [f"output {name}: {dtype} {_sizes(shape or ())}" for name, (dtype, shape) in outputs]


def _sizes(shape: tuple[int | str, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"
