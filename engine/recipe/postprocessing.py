"""Post-processing: the named ways in which a package makes answers of the outputs of a user's own ONNX file."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from engine.recipe.fields import Distinct, Flag, Number, Text
from engine.recipe.values import RecipePart

_Share = Annotated[Number, Field(ge=0, le=1)]


class Boxes(RecipePart):
    """How the outputs of a detector become boxes; `kit/triton/served/boxes.py` has the shapes of each layout."""

    layout: Literal["yolov8", "yolov5", "separate"] = "yolov8"
    outputs: Annotated[tuple[Text, ...], Field(max_length=3), Distinct] = ()
    """The names of the outputs, in the order boxes, scores, labels; empty for the only one, or for these names."""
    format: Literal["cxcywh", "xyxy"] = "cxcywh"
    """What the four numbers of a box are: its centre and its size, or two corners."""
    normalized: Flag = False
    """Whether the numbers are shares of the image that the model gets; else they are its pixels."""
    threshold: _Share = 0.25
    """The score that a box has to exceed, by default as in Ultralytics."""
    iou: _Share = 0.7
    """The overlap from which on the worse of two boxes of a class is left out, by default as in Ultralytics."""


class ToBoxes(RecipePart):
    """Boxes of objects, with their labels and scores."""

    boxes: Boxes


Named = Literal["softmax", "sigmoid", "argmax"]


def _kind(value: Any) -> str:
    return "name" if isinstance(value, str) else "boxes"


Postprocess = Annotated[Annotated[Named, Tag("name")] | Annotated[ToBoxes, Tag("boxes")], Discriminator(_kind)]
