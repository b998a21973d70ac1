"""Images of an ONNX file: how they are prepared and what becomes of the outputs, as far as the file tells."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engine import tasks
from engine.drafts import samples
from engine.drafts.draft import Draft, SampleFile
from engine.recipe.values import Range

if TYPE_CHECKING:
    import onnx

    from engine.feasibility.facts import ModelFacts

_CLASSES, _BOXES, _IMAGE = 2, 3, 4
"""The numbers of axes of an output of classes, of boxes, and of an image or a mask."""
_CHANNELS = (1, 3)
_USUAL = {_CLASSES: 224, _BOXES: 640, _IMAGE: 512}
"""Usual pixels of a side, by the number of axes of the output."""
_STRIDES = (8, 16, 32)
"""The pixels between two cells of each of YOLO's grids."""
_MEAN, _DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def ranges(model: onnx.ModelProto, facts: ModelFacts, guess: Mapping[str, Range]) -> Mapping[str, Range]:
    """Return a guess of sizes in which images have the size that the file names, or a usual one."""
    axes = len(next((shape for _, shape in facts.outputs.values() if shape), ()))
    named = _literal(model, "imgsz")
    is_size = isinstance(named, list) and all(isinstance(side, int) and side > 0 for side in named)
    sides = zip(_sides(facts), named if is_size else [_USUAL.get(axes, 224)] * 2, strict=False)
    return {**guess, **{str(side): Range(min=size, opt=size, max=size) for side, size in sides if side in guess}}


def put(draft: Draft, model: onnx.ModelProto, facts: ModelFacts, sizes: Mapping[str, Range]) -> bool:
    """Set the fields of images, and draw some; return whether the graph takes images."""
    if not (sides := _sides(facts)):
        return False
    height, width = (sizes[side].opt if isinstance(side, str) else side for side in sides)
    [shape], [dtype] = facts.axes.values(), facts.types.values()
    draft.put("preprocess.layout", "NCHW" if shape[1] in _CHANNELS else "NHWC")
    draft.put("preprocess.size", {"height": height, "width": width}, "the size of a prepared image")
    if _put_answer(draft, facts, _names(model), cells=sum(height // each * (width // each) for each in _STRIDES)):
        draft.put("preprocess.fit", "letterbox", "a guess: scaled to fit inside, with a grey border, as YOLO is")
    elif "float" in dtype and 1 not in (shape[1], shape[3]):
        draft.put("preprocess.mean", _MEAN, "guesses: ImageNet's, after a scale of 1/255; put the training's")
        draft.put("preprocess.std", _DEVIATION)
        draft.guesses.append("preprocess.mean, preprocess.std: guesses, as no ONNX file states how images are prepared")
    draft.samples = SampleFile("", samples.images())
    draft.put("validate", {}, "the samples are drawn: put images of your users in their place")
    return True


def _sides(facts: ModelFacts) -> Sequence[int | str]:
    """Return the axes of height and width of the only input; none where it is no image."""
    [shape, *others], [dtype, *_] = facts.axes.values(), facts.types.values()
    if others or len(shape) != _IMAGE or not dtype.startswith(("float", "uint8")):
        return ()
    return shape[2:] if shape[1] in _CHANNELS else shape[1:3] if shape[3] in _CHANNELS else ()


def _put_answer(draft: Draft, facts: ModelFacts, names: list[str], *, cells: int) -> bool:
    """Set the labels, and the task or the post-processing, as far as the output tells; return whether it is boxes."""
    [(dtype, shape), *others] = facts.outputs.values()
    if others or shape is None or "float" not in dtype or "task" in draft.fields.get("model", {}):
        return False
    sizes = [size if isinstance(size, int) else 0 for size in shape]
    layout = _layout(sizes, len(names), cells) if len(sizes) == _BOXES else None
    classes = sizes[1] if len(sizes) > 1 else 0
    known = classes > 1 and len(names) in (0, classes)
    if layout is not None:
        draft.put("postprocess.boxes", {"layout": layout}, "a guess, by the output's shape: yolov8, yolov5 or separate")
    elif known and len(sizes) == _CLASSES:
        usual = next(each for each in tasks.every() if each.takes_images and each.classes and not each.takes_texts)
        draft.put("model.task", usual.name, "a guess: the output has a number for each class; else leave it out")
    elif known and len(sizes) == _IMAGE and (names or classes not in _CHANNELS):
        draft.put("postprocess", "argmax", "a guess: the class of a pixel is that of its greatest number")
    else:
        return False
    if names:
        draft.put("model.labels", names)
    return layout is not None


def _layout(sizes: Sequence[int], classes: int, cells: int) -> str | None:
    """Return the layout of boxes with so many classes, 0 for any number; None for another output.

    That of YOLOX is another one: the numbers of its boxes are offsets within cells.
    """
    _, middle, last = sizes
    if middle > 4 and classes in (0, middle - 4) and last in ((0, cells) if classes else (cells,)):  # noqa: PLR2004
        return "yolov8"
    return "yolov5" if last > 5 and classes in (0, last - 5) and middle == 3 * cells else None  # noqa: PLR2004


def _names(model: onnx.ModelProto) -> list[str]:
    """Return the classes that the file names: Ultralytics in a dict as Python writes it, PaddleOCR one a line."""
    names = _literal(model, "names")
    return [str(name) for name in names.values()] if isinstance(names, dict) else _metadata(model, "character").split()


def _literal(model: onnx.ModelProto, key: str) -> Any:
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(_metadata(model, key))
    return None


def _metadata(model: onnx.ModelProto, key: str) -> str:
    return next((each.value for each in model.metadata_props if each.key == key), "")
