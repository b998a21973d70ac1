"""ONNX file: the draft of a model by the inputs of its graph; its weights are not loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.drafts import device, licence, tensors
from engine.drafts.draft import Draft, SampleFile
from engine.errors import UsageError, UserError
from engine.feasibility import proposals
from engine.feasibility.facts import ModelFacts
from engine.kit.inputs import index_ranges
from engine.kit.onnx import onnx_files, onnx_source

if TYPE_CHECKING:
    import onnx

    from engine.recipe.values import Range


def add(draft: Draft, path: Path, *, task: str | None, on: str | None) -> None:
    """Fill a draft from the graph of an ONNX file. Raises StepError for a file that cannot be built."""
    model = onnx_source.read(path)
    onnx_source.data_files(path)
    described = onnx_source.describe(model)
    facts = ModelFacts(kind="onnx", bytes=path.stat().st_size, **vars(described))
    draft.about += [f"{described.architecture}.", *(f"  {each}" for each in _signature(facts)), licence.line(None)]
    if task is not None:
        draft.put("model.task", task, "as --task names it")
    else:
        draft.about.append("A graph does not say what it is for: without `model.task`, clients send and get tensors.")
    _refuse_scalars(facts)
    device.put(draft, on)
    ranges = proposals.ranges(facts, {})
    if ranges:
        comment = "[min, opt, max] of each axis that may have any size; guesses by the axes' names: put your own sizes"
        draft.put("profiles", [{axis: [each.min, each.opt, each.max] for axis, each in ranges.items()}], comment)
        draft.put("bench.shapes", [_shape(ranges)], "put the sizes that your clients send")
    draft.put("bench.against", [{"runtime": "onnxruntime"}])
    _put_samples(draft, model, ranges)
    draft.put("package.triton.name", draft.fields["name"])


def _refuse_scalars(facts: ModelFacts) -> None:
    """Raise UsageError for a tensor without axes, because Triton loads no model that has one."""
    scalars = [name for name, shape in facts.axes.items() if not shape]
    if scalars:
        raise UsageError(
            f"the model's input {scalars[0]} is a single number without axes, and Triton has no such tensors",
            _signature(facts),
            "export the model with the shape [1] for this input, and squeeze it inside the model",
        )


def _shape(ranges: dict[str, Range]) -> dict[str, int]:
    return {axis: each.opt for axis, each in ranges.items()}


def _put_samples(draft: Draft, model: onnx.ModelProto, ranges: dict[str, Range]) -> None:
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
