"""Values in recipes that are also options of steps: precisions, ranges, profiles, bounds, rivals."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engine.recipe.fields import Number, Size, Text, spread, wrong

Precision = Literal["fp32", "fp16", "bf16", "int8", "fp8", "int4"]


class RecipePart(BaseModel):
    """The base class of the pydantic models of a recipe's sections: immutable, and unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)


class Range(RecipePart):
    """The sizes that an axis may have, as in a profile of TensorRT: minimum, optimum and maximum, min <= opt <= max."""

    min: Size
    opt: Size
    max: Size

    _spread = model_validator(mode="before")(spread)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.min <= self.opt <= self.max:
            what = f"is out of order: min {self.min}, opt {self.opt}, max {self.max}"
            raise wrong(what, "a profile needs min <= opt <= max")
        return self


Profile = Annotated[Mapping[Text, Range], Field(max_length=256)]
"""Name of an axis (`batch`, `sequence`, or the model's own name) -> the sizes that the axis may have.

The name `image[2]` stands for the third axis of the input `image`. A profile that states only values is empty.
"""


class Bound(RecipePart):
    """A limit on a measured number: at_least, at_most, or both."""

    at_least: Number | None = None
    at_most: Number | None = None

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise wrong("limits nothing", "say at_least, at_most or both")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise wrong(f"can never hold: at least {self.at_least:g} and at most {self.at_most:g}")
        return self


class Metric(Bound):
    """A bound on a metric of the task, such as accuracy, on labelled samples."""

    name: Literal["accuracy"] = "accuracy"


class Rival(RecipePart):
    """A model to compare with, for example the original model in PyTorch, measured together with the built model."""

    runtime: str
    precision: Literal["fp32", "tf32", "fp16", "bf16", "int8"] = "fp32"
    """The precision of the model; `tf32` for a model in fp32 whose products a GPU computes in TF32."""
    compile: Annotated[Literal["default", "reduce-overhead"] | None, Field(exclude_if=lambda mode: mode is None)] = None
    """The mode of `torch.compile`; None for a rival that is not compiled, whose keys have no such option."""

    @property
    def name(self) -> str:
        """The name of the rival in the rows of a report: "pytorch-fp16", compiled "pytorch-fp16-compile"."""
        mode = "" if self.compile is None else "-compile" if self.compile == "default" else f"-{self.compile}"
        return f"{self.runtime}-{self.precision}{mode}"
