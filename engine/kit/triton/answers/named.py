"""Named answers: the post-processing that a recipe names for the outputs of a user's own ONNX file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import FieldError
from engine.kit.triton import served
from engine.kit.triton.answers import scores
from engine.kit.triton.images import SIZES
from engine.recipe import image_input
from engine.recipe.postprocessing import Boxes, Postprocess
from engine.tasks import answer
from engine.tasks.answer import Answer, AnswerTensor, Unfit

if TYPE_CHECKING:
    import onnx

    from engine.kit.onnx.onnx_files import Input
    from engine.kit.triton.config import Signature

_OUTPUTS = ("boxes", "scores", "labels")
_BEFORE = {"yolov8": 4, "yolov5": 5, "separate": 0}
"""How many numbers of a box stand before the scores of its classes, in the output with these scores."""
_IMAGE_AXES = 4
_LABELS = AnswerTensor("labels", "TYPE_STRING", (-1,))
_SCORES = AnswerTensor("scores", "TYPE_FP32", (-1,))


def make(
    named: Postprocess,
    model: onnx.ModelProto | Path,
    signature: Signature,
    *,
    names: Sequence[str],
    preprocess: Mapping[str, Any],
) -> Answer:
    """Return the post-processing that a recipe names; `names` are those of the classes, where the recipe has them.

    `model` is the ONNX file, or the checkpoint with it; `preprocess` is the recipe's section. Raises Unfit where the
    model's outputs do not suit it.
    """
    fit = preprocess.get("fit", "crop" if "crop" in preprocess else "stretch")
    if not isinstance(named, str):
        return _boxes(named.boxes, signature, names, fit, image_input.of(preprocess, None).size)
    if named == "argmax":
        return _best(signature, names, whole=fit == "stretch")
    logits, renamed = answer.output(signature, "logits", axes=2)
    scores.refuse_activated(model, logits.name, axes=2)
    settings = {"labels": _named(names, logits.shape[1]), "scores": named}
    return Answer(
        served.CLASSIFY, ("logits",), (_LABELS, _SCORES), ("logits", "labels", "scores"), settings, renamed
    )  # fmt: skip


def _best(signature: Signature, names: Sequence[str], *, whole: bool) -> Answer:
    """Return the mask for scores [rows, classes, height, width], and the label for the number of each row's class."""
    [output, *others] = signature.outputs.values()
    if not others and "int" in output.dtype and output.shape[1:] in ((), (1,)):
        settings = {"labels": _named(names, None), "scores": "number"}
        return Answer(served.CLASSIFY, ("logits",), (_LABELS,), ("labels",), settings, {output.name: "logits"})
    logits, renamed = answer.output(signature, "logits", axes=_IMAGE_AXES)
    if not whole:
        raise Unfit("a mask has the size of the whole file: say preprocess.fit: stretch")
    gives, settings = (AnswerTensor("mask", "TYPE_STRING", (1,)), _LABELS), {"labels": _named(names, logits.shape[1])}
    return Answer(served.MASK, ("logits", SIZES), gives, ("mask", "labels"), settings, renamed, needs=("pillow",))


def _boxes(
    section: Boxes, signature: Signature, names: Sequence[str], fit: str, size: tuple[int, int] | None
) -> Answer:
    if size is None:
        raise Unfit("the size of a prepared image is not known: say preprocess.size")
    outputs = _outputs(section, signature)
    count = _count(section, outputs, is_named=bool(names)) if len(outputs) < len(_OUTPUTS) else None
    own = {each.name: f"own_{name}" for each, name in zip(outputs, _OUTPUTS, strict=False)}
    settings = {
        **section.model_dump(exclude={"outputs"}), "takes": list(own.values()), "labels": _named(names, count),
        "fit": fit, "size": list(size),
    }  # fmt: skip
    gives = (_LABELS, _SCORES, AnswerTensor("boxes", "TYPE_FP32", (-1, 4)))
    return Answer(served.BOXES, (*own.values(), SIZES), gives, tuple(each.name for each in gives), settings, own)


def _count(section: Boxes, outputs: Sequence[Input], *, is_named: bool) -> int | None:
    """Return the number of classes; None where it is dynamic. Raises Unfit for a layout that cannot be the output's."""
    many, numbers = outputs[-1].shape[1:]
    own = outputs[0].shape[1] if section.layout == "separate" else None
    if section.layout == "yolov8" or (own is not None and numbers == own != many):
        many, numbers = numbers, many
    if isinstance(numbers, int) and isinstance(many, int) and many < (0 if is_named or own is not None else numbers):
        raise Unfit(f"as {section.layout} it has {many} boxes of {numbers} numbers: is it another layout?")
    if isinstance(own, int) and isinstance(many, int) and own != many:
        raise Unfit(f"it has {own} boxes, and scores of {many}")
    return numbers - _BEFORE[section.layout] if isinstance(numbers, int) else None


def refuse_labels(names: Sequence[str], classes: int) -> None:
    """Raise FieldError where the recipe names another number of classes than a model tells apart."""
    if names and len(names) != classes:
        what = f"the model tells {classes} classes apart, and model.labels names {len(names)}"
        raise FieldError(what, ("model", "labels"), hint=f"give {classes} names, or leave labels out for numbers")


def _outputs(section: Boxes, signature: Signature) -> list[Input]:
    """Return the outputs that the layout reads. Raises Unfit where one is missing, or has other axes."""
    separate = section.layout == "separate"
    usual = [name for name in _OUTPUTS if name in signature.outputs] if separate else list(signature.outputs)
    outputs = [each for name in section.outputs or usual if (each := signature.outputs.get(name)) is not None]
    ranks = [len(each.shape) for each in outputs]
    if ranks not in ([[3, 3], [3, 2, 2]] if separate else [[3]]) or (separate and outputs[0].shape[2] != 4):  # noqa: PLR2004
        listed = (f"{each.name} [{', '.join(map(str, each.shape))}]" for each in signature.outputs.values())
        what = "boxes [.., .., 4] and their scores [.., .., ..]" if separate else "one output of three axes"
        raise Unfit(f"the layout {section.layout} is made of {what}, and it has {', '.join(listed)}")
    return outputs


def _named(names: Sequence[str], count: int | str | None) -> list[str]:
    """Return the names of so many classes, or of any number; numbers where the recipe has none."""
    if not isinstance(count, int) and not names:
        raise Unfit("how many classes it tells apart is not known: model.labels names them")
    if isinstance(count, int):
        if count < 1:
            raise Unfit("it tells no classes apart")
        refuse_labels(names, count)
    return list(names) or [str(number) for number in range(int(count or 0))]
