"""Step: one kind of work in a build, as an abstract class."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict

from engine import gpus
from engine.errors import JudgementError, StepError
from engine.known import Known, fact
from engine.reporting import TypedReport

if TYPE_CHECKING:
    from pathlib import Path

    from engine.feasibility.facts import ModelFacts
    from engine.recipe.schema import Recipe

__all__ = [
    "VERSION",
    "Device",
    "Frozen",
    "Hardware",
    "JudgementError",
    "Known",
    "Report",
    "Section",
    "Source",
    "Step",
    "StepError",
    "TypedReport",
    "fact",
]

VERSION = 1
"""The version of the interface of steps: see docs/stability.md."""
KEY_VARIABLE = "RECIPE_JOB_KEY"
"""The environment variable with the digest of the job's key, set while a worker runs a step."""
KEPT = "kept"
"""The name of the file beside a job's output that is kept between runs; see `Step.kept_by`."""

Report = Mapping[str, object]
"""The report of a step that declares no type for its reports: JSON values, kept in the job's record."""


class Section(StrEnum):
    """The subject of a report, which decides where `recipe show` and the tables put the report."""

    VALIDATION = "validation"
    """The built model compared with the original."""
    VALIDATION_ONNX = "validation_onnx"
    """The ONNX graph for another device, compared with the original on the CPU."""
    PRECISION = "precision"
    """The share of the model that is computed in the lower precision."""
    BENCH = "bench"
    """Measured times."""


class Frozen(BaseModel):
    """An immutable value that refuses undeclared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(Frozen):
    """An input of a step from outside the store. The key has its content, never its path.

    `uri` is `file:/absolute/path` (a file or a directory), `python:PACKAGE/PATH`, `hf:REPO` or `timm:NAME`.
    """

    uri: str
    revision: str | None = None
    part: Literal["all", "tokenizer"] = "all"
    """The part of a model's directory that counts and is fetched: all files, or only those of the tokenizer."""


class Device(Frozen):
    """A kind of GPU: its name in the catalogue, and its compute capability times ten."""

    name: str
    sm: int


class Hardware(Frozen):
    """The hardware that a job must run on: any one of the GPUs, and the package that drives it."""

    devices: tuple[Device, ...]
    tool: str
    """The installed distribution: `tensorrt`, `tensorrt_rtx`, `onnxruntime-gpu`."""
    version: str | None = None
    """The suitable versions of the tool, as recipes write them: "10.x"; None for any version."""

    def __str__(self) -> str:
        names = " or ".join(gpus.with_capability(device.name, device.sm) for device in self.devices)
        # "10.x" is left out: only an exact version is worth showing to a user who waits for it.
        version = f" {self.version}" if self.version is not None and self.version[-1:].isdigit() else ""
        return f"{names} with {self.tool}{version}"


class Step(Frozen, ABC):
    """One kind of work. Its fields are its options; the keyword-only parameters of `run` are its inputs.

    - A field of type `Source` is an input, too: its content is a row of the key, and `run` gets its path under the
      field's name. From a tuple of sources, `run` gets `name_0`, `name_1`, ... and takes them by `**name`.
    - Any other input has the name of the output that it takes: the `makes` of a step, or a step's own name.
    - If the recipe does not use the step that makes an input, that step's own first input is handed on instead:
      without `quantize`, a step with the input `quantized` gets the input that `quantize` would have got.
    - Data files that the step's code reads are declared: `data = ("words.txt", "tables/")`, in the module or, as a
      `ClassVar`, in the class; as literal texts, relative to the module's folder.
    """

    name: ClassVar[str] = ""
    """The step's name on the command line and in recipes, set from its module or entry point."""
    makes: ClassVar[str]
    """The name of the step's only output, a directory."""
    after: ClassVar[str | None] = None
    """The name of the step after which this step comes. Later steps get this step's output instead of that output."""
    tools: ClassVar[tuple[str, ...]] = ()
    """Installed distributions whose versions change the result."""
    facts: ClassVar[tuple[str, ...]] = ()
    """Facts of the machine that change the result, by the names under which `engine.known.fact` declares them."""
    variables: ClassVar[tuple[str, ...]] = ()
    """Environment variables that change the result. A worker sees only these and variables with the places of files."""
    judged: ClassVar[tuple[str, ...]] = ()
    """Fields that only `judge` reads. They are no rows of the key, so that a new bound measures nothing again."""
    gates: ClassVar[tuple[str, ...]] = ()
    """Steps that must pass before this step starts, without being its inputs."""
    exclusive: ClassVar[bool] = False
    """Whether the job must run alone, because it measures time."""
    reproducible: ClassVar[bool] = True
    """Whether the same inputs give the same bytes. A lock has the artifacts of reproducible steps only. For any other
    step, later jobs have the step's key in their keys, so that other bytes of the same key rebuild nothing."""
    kept_by: ClassVar[tuple[str, ...]] = ()
    """Rows of the key that name a file kept between runs. The file (a timing cache) saves time and changes no result.

    `run` finds the file, if there is one, at `out.parent / KEPT`; the file that `run` leaves there is kept."""
    report: ClassVar[type[TypedReport] | None] = None
    """The type that `run` returns and `judge` takes; None for a plain mapping of JSON values, or no report."""
    section: ClassVar[Section | None] = None
    """The subject of the report; None for a report that no table shows."""
    carries_model: ClassVar[bool] = False
    """Whether the output is the model in some form. A step that comes `after` such a step carries the model, too."""
    delivers: ClassVar[bool] = False
    """Whether the output is the package that the user gets, under `build/<recipe>`."""
    time_limit: ClassVar[float] = 3600.0
    """Seconds after which the worker is stopped."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step with its options from a recipe; None for a recipe that does not use the step.

        By default a recipe uses a step if it has options for the step under `steps:`.
        """
        options = recipe.steps.get(cls.step_name())
        return None if options is None else cls.model_validate(options)

    @abstractmethod
    def run(self, *args: Any, **inputs: Any) -> TypedReport | Report | None:
        """`run(self, out: Path, *, some_input: Path) -> SomeReport`: do the work, writing only under `out`.

        Heavy imports belong in here. Raises StepError(what, facts, hint) for an error that a user can mend.
        """

    def judge(self, report: Any) -> None:
        """Compare the report with the recipe's bounds. Raises JudgementError where a bound is not kept."""

    def model_facts(self, place: Path) -> ModelFacts | None:
        """Return the report that a build would make of the model at `place`, read without building anything.

        `place` is the path of the step's first source. None where the step cannot tell. Raises StepError for a path
        without a model. `recipe check` calls this method of the step whose report is `ModelFacts`.
        """
        del place
        return None

    def hardware(self) -> Hardware | None:
        """Return the hardware that the job must run on; None for any machine."""
        return None

    def tools_used(self) -> tuple[str, ...]:
        """Return the distributions that the step with these options uses; by default `tools`."""
        return self.tools

    def facts_used(self) -> tuple[str, ...]:
        """Return the facts that the step with these options depends on; by default `facts`."""
        return self.facts

    def code_used(self) -> tuple[str, ...]:
        """Return the modules that the step with these options runs; by default the step's own module.

        All code that these modules reach counts in the key. A module that only some options use is named here for those
        options, and imported by its name in a text, so that it counts for those options alone.
        """
        return (type(self).__module__,)

    def inputs_used(self) -> tuple[str, ...]:
        """Return the inputs that the step with these options takes; by default all of `run`'s."""
        return self.inputs()

    def options(self) -> Mapping[str, Any]:
        """Return the fields that are rows of the key: all except sources and the `judged` fields."""
        kept = {name for name, field in type(self).model_fields.items() if not _holds_source(field.annotation)}
        kept -= set(self.judged)
        return self.model_dump(mode="json", include=kept)

    def sources(self) -> Mapping[str, Source]:
        """Return the sources by the name of their parameter of `run`; from a tuple `name_0`, `name_1`, ..."""
        sources: dict[str, Source] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Source):
                sources[name] = value
            elif isinstance(value, tuple) and _holds_source(type(self).model_fields[name].annotation):
                sources.update({f"{name}_{number}": each for number, each in enumerate(value)})
        return sources

    @classmethod
    def step_name(cls) -> str:
        """Return the step's name; without a registered name, one made from the class's name: `shape-infer`."""
        return cls.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()

    @classmethod
    def inputs(cls) -> tuple[str, ...]:
        """Return the names of `run`'s keyword-only parameters, except fields of the step."""
        return tuple(name for name in _parameters(cls) if name not in cls.model_fields)

    @classmethod
    def required_inputs(cls) -> tuple[str, ...]:
        """Return the inputs that have no default in `run`."""
        return tuple(name for name in cls.inputs() if _parameters(cls)[name])


def _holds_source(annotation: Any) -> bool:
    return Source in (annotation, *get_args(annotation))


@cache
def _parameters(step: type[Step]) -> Mapping[str, bool]:
    """Return the keyword-only parameters of `run`, each with whether it has no default."""
    parameters = inspect.signature(step.run).parameters.values()
    only = (p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
    return {p.name: p.default is inspect.Parameter.empty for p in only}
