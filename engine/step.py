"""Step: one kind of work (abstract)."""

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
"""The version of what a step is: see docs/stability.md."""
KEY_VARIABLE = "RECIPE_JOB_KEY"
"""The environment variable in which a worker finds the digest of the key that it works for."""
KEPT = "kept"
"""The file beside a job's output that is kept between runs; see `Step.kept_by`."""

Report = Mapping[str, object]
"""What a step without a type of its own for it tells about its work: JSON values, kept in the job's record."""


class Section(StrEnum):
    """What a report is about: where `recipe show` and the tables put it, whatever the step is called."""

    VALIDATION = "validation"
    """The built model against the original."""
    VALIDATION_ONNX = "validation_onnx"
    """The graph for a device that has not been there yet, against the original on the CPU."""
    PRECISION = "precision"
    """How much of the model is computed in the lower precision."""
    BENCH = "bench"
    """Measured times."""


class Frozen(BaseModel):
    """A value: immutable, and no field but the declared ones."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(Frozen):
    """Something outside the store that a step reads. It is keyed by its content, never by its path.

    `uri` is `file:/absolute/path` (a file or a directory), `python:PACKAGE/PATH`, `hf:REPO` or `timm:NAME`.
    """

    uri: str
    revision: str | None = None
    part: Literal["all", "tokenizer"] = "all"
    """What of it counts and is fetched: of a model's directory perhaps only its tokenizer."""


class Device(Frozen):
    """A kind of GPU, by its name in the catalogue and its compute capability times ten."""

    name: str
    sm: int


class Hardware(Frozen):
    """The GPUs, of which any will do, and the package that drives them, that a job must run on."""

    devices: tuple[Device, ...]
    tool: str
    """The installed distribution: `tensorrt`, `tensorrt_rtx`, `onnxruntime-gpu`."""
    version: str | None = None
    """Which versions of the tool will do, as recipes say it: "10.x"; None for any."""

    def __str__(self) -> str:
        names = " or ".join(gpus.with_capability(device.name, device.sm) for device in self.devices)
        # A whole major is what everyone has; where just one version will do, that is what a job waits for.
        version = f" {self.version}" if self.version is not None and self.version[-1:].isdigit() else ""
        return f"{names} with {self.tool}{version}"


class Step(Frozen, ABC):
    """One kind of work. Its fields are its options; the keyword-only parameters of `run` are its inputs.

    - A field of type `Source` is an input, too: its content is a row of the key, and `run` gets its path
      under the field's name. Of a tuple of them `run` gets `name_0`, `name_1`, ... and takes them by `**name`.
    - Any other input is named after the output it takes: some step's `makes`, or a step's own name.
    - Where the step that makes an input is not wanted by the recipe, that step's own first input is handed
      on instead: with no `quantize`, who asks for `quantized` gets what `quantize` would have got.
    - Files that its code reads from beside itself are declared: `data = ("words.txt", "tables/")`, in the module or,
      as a `ClassVar`, in the class; in literal texts, relative to the module's folder.
    """

    name: ClassVar[str] = ""
    """The name on the command line and in recipes; filled in where the step is found (module or entry point)."""
    makes: ClassVar[str]
    """The name of its one output, a directory."""
    after: ClassVar[str | None] = None
    """Slot in right behind this step and take over its output for everyone downstream."""
    tools: ClassVar[tuple[str, ...]] = ()
    """Installed distributions whose version changes the result."""
    facts: ClassVar[tuple[str, ...]] = ()
    """Machine facts that change the result, by the names under which they are declared (`engine.known.fact`)."""
    variables: ClassVar[tuple[str, ...]] = ()
    """Environment variables that change the result. A worker sees no others but those that say where things are."""
    judged: ClassVar[tuple[str, ...]] = ()
    """Fields that only `judge` reads: they are no rows of the key, a new bound re-measures nothing."""
    gates: ClassVar[tuple[str, ...]] = ()
    """Steps that must have passed before this one may start, without being its inputs."""
    exclusive: ClassVar[bool] = False
    """No other job may run beside this one (measurements of time)."""
    reproducible: ClassVar[bool] = True
    """The same inputs give the same bytes: what a lock holds a build to. Of a step that is not, whoever takes its
    output is keyed on its key: other bytes of the same key rebuild nothing."""
    kept_by: ClassVar[tuple[str, ...]] = ()
    """Rows of the key that name a file kept between runs, which saves work and decides nothing (a timing cache).

    `run` finds it, where there is one, at `out.parent / KEPT`; what it leaves there is kept."""
    report: ClassVar[type[TypedReport] | None] = None
    """What `run` returns and `judge` takes; None for a plain mapping of JSON values, or nothing."""
    section: ClassVar[Section | None] = None
    """What its report is about, where that is shown."""
    carries_model: ClassVar[bool] = False
    """Its output is the model, as far as it has come. So is that of a step that slots in behind one of these."""
    delivers: ClassVar[bool] = False
    """Its output is what the user gets, under `build/<recipe>`."""
    time_limit: ClassVar[float] = 3600.0
    """Seconds after which the worker is stopped."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Pick this step's options out of a recipe; None where the recipe does not want the step.

        By default a step is wanted when the recipe has options for it under `steps:`.
        """
        options = recipe.steps.get(cls.step_name())
        return None if options is None else cls.model_validate(options)

    @abstractmethod
    def run(self, *args: Any, **inputs: Any) -> TypedReport | Report | None:
        """`run(self, out: Path, *, some_input: Path) -> SomeReport`: do the work, write only under `out`.

        Heavy imports live in here. Raises StepError(what, facts, hint) for what a user can mend.
        """

    def judge(self, report: Any) -> None:
        """Hold the report, of the type that `report` names, against the recipe's bounds. Raises JudgementError."""

    def model_facts(self, place: Path) -> ModelFacts | None:
        """Return what its report will say of a model that lies here, read without building anything.

        `place` is where the first of its sources lies. None where it does not know. Raises StepError where that is no
        model. Asked by `recipe check` of the step whose report is `ModelFacts`, which a recipe is held against.
        """
        del place
        return None

    def hardware(self) -> Hardware | None:
        """Return the hardware that the work must run on; None where any machine will do."""
        return None

    def tools_used(self) -> tuple[str, ...]:
        """Return the distributions behind this very job; `tools` unless the options decide."""
        return self.tools

    def facts_used(self) -> tuple[str, ...]:
        """Return the machine facts behind this very job; `facts` unless the options decide."""
        return self.facts

    def code_used(self) -> tuple[str, ...]:
        """Return the modules whose code, with all that they reach, this very job runs; its own unless options decide.

        What only some options lead to is named here and imported by that name, so that it counts for those alone.
        """
        return (type(self).__module__,)

    def inputs_used(self) -> tuple[str, ...]:
        """Return the inputs behind this very job; all that `run` can take unless the options decide."""
        return self.inputs()

    def options(self) -> Mapping[str, Any]:
        """Return the fields that are rows of the key: all but sources, given or not, and bounds."""
        kept = {name for name, field in type(self).model_fields.items() if not _holds_source(field.annotation)}
        kept -= set(self.judged)
        return self.model_dump(mode="json", include=kept)

    def sources(self) -> Mapping[str, Source]:
        """Return the inputs from outside the store by their parameter's name; of a tuple `name_0`, `name_1`, ..."""
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
        """Return the step's name; for a class that was not found by the registry, from the class: `shape-infer`."""
        return cls.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()

    @classmethod
    def inputs(cls) -> tuple[str, ...]:
        """Return the names of the keyword-only parameters of `run`, but those that are fields of the step."""
        return tuple(name for name in _parameters(cls) if name not in cls.model_fields)

    @classmethod
    def required_inputs(cls) -> tuple[str, ...]:
        """Return the inputs without which `run` cannot be called."""
        return tuple(name for name in cls.inputs() if _parameters(cls)[name])


def _holds_source(annotation: Any) -> bool:
    return Source in (annotation, *get_args(annotation))


@cache
def _parameters(step: type[Step]) -> Mapping[str, bool]:
    """Return the keyword-only parameters of `run` and whether each must be given."""
    parameters = inspect.signature(step.run).parameters.values()
    only = (p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
    return {p.name: p.default is inspect.Parameter.empty for p in only}
