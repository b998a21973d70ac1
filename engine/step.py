"""Step: one kind of work in a build, as an abstract class."""

from __future__ import annotations

import inspect
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict

from engine.errors import JudgementError, StepError
from engine.facts import Known, fact
from engine.gpus.hardware import Device, Hardware
from engine.reporting import TypedReport
from engine.text import canonical

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
GPU_VARIABLE = "RECIPE_JOB_GPU"
"""The environment variable with the name, in its driver, of the GPU that the job must run on.

It is set while a worker runs such a job, and absent for a job that runs on any machine.
"""
REPORT = "report.json"
"""The name of the file with its report that a step writes which is not reproducible and whose report is in locks."""
KEPT = "kept"
"""The name of the file beside a job's output that is kept between runs; see `Step.kept_by`."""

Report = Mapping[str, object]
"""The report of a step that declares no type for its reports: JSON values, kept in the job's record."""


class Section(StrEnum):
    """The subject of a report, which decides where `recipe show` and the tables put the report."""

    VALIDATION = "validation"
    """The report that compares the built model with the original model."""
    VALIDATION_ONNX = "validation_onnx"
    """The report that compares the ONNX graph for a GPU with the original model, on the CPU."""
    PRECISION = "precision"
    """The share of the model that is computed in the lower precision."""
    ENGINE = "engine"
    """What the compiled engine computes, and in which types."""
    BENCH = "bench"
    """Measured times."""
    RUNTIME = "runtime"
    """The choice of a runtime among several."""


def write_report(out: Path, report: Report) -> None:
    """Write a report into `out` as the only output of a step whose report is in locks: equal reports, equal bytes."""
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=1)
    (out / REPORT).write_text(text + "\n", "utf-8")


class Frozen(BaseModel):
    """An immutable value that refuses undeclared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Source(Frozen):
    """An input of a step from outside the store. The key has the content of a source, never the path of the source.

    `uri` is `file:/absolute/path` (a file or a directory), `python:PACKAGE/PATH`, `hf:REPO` or `timm:NAME`.
    """

    uri: str
    revision: str | None = None
    part: Literal["all", "tokenizer", "license", "samples"] = "all"
    """The part of a model's directory that is digested: the model's files, the tokenizer's, or those about licences.

    The part of a source of samples is "samples": each image file of it has a row of its own in the key.
    """


class Step(Frozen, ABC):
    """A step, which is one kind of work in a build.

    The fields of a step are its options; the keyword-only parameters of `run` are its inputs.

    - A field of type `Source` is an input, too: the digest or hub commit of the source is a row of the key, and `run`
      gets the path of the source under the field's name. A field `name` with a tuple of sources gives `run` the inputs
      `name_0`, `name_1`, ..., which `run` takes by `**name`.
    - An input without a field has the same name as the output that `run` gets for the input: the name that a step
      `makes`, or a step's name.
    - If a recipe does not use the step that makes an input, the consumer gets the first input of that unused step:
      without `quantize`, a step with the input `quantized` gets the input that `quantize` would have got.
    - A variable `data` declares the files that the step's code reads, for example `data = ("words.txt", "tables/")`.
      The variable `data` stands in the step's module or, as a `ClassVar`, in the step's class. The value of `data` is a
      tuple of literal texts, each a path relative to the module's folder.
    """

    name: ClassVar[str] = ""
    """The step's name on the command line and in recipes, set from its module or entry point."""
    makes: ClassVar[str]
    """The name of the step's only output, a directory."""
    after: ClassVar[str | None] = None
    """The name of the step after which this step comes.

    A later step that takes the output of the step `after` gets the output of this step instead.
    """
    tools: ClassVar[tuple[str, ...]] = ()
    """Installed distributions whose versions change the step's result."""
    facts: ClassVar[tuple[str, ...]] = ()
    """The names of facts of the machine that change the step's result, for example `cpu.isa`."""
    variables: ClassVar[tuple[str, ...]] = ()
    """The names of environment variables that change the step's result. While the step runs, others are absent.

    Only variables that say where files are and how to reach a hub, such as `HOME` or `HF_TOKEN`, need no declaration.
    """
    judged: ClassVar[tuple[str, ...]] = ()
    """The names of the step's fields that only `judge` reads.

    A change of a judged field, for example a bound, makes no job run again, because judged fields are no rows of the
    key.
    """
    keyed_if_set: ClassVar[tuple[str, ...]] = ()
    """The fields that are rows of the key only where they differ from their defaults."""
    gates: ClassVar[tuple[str, ...]] = ()
    """Steps that must pass before this step starts, without being its inputs."""
    exclusive: ClassVar[bool] = False
    """Whether a job of this step must run alone, because the step measures time."""
    needs_cpus: ClassVar[int] = 1
    """The number of CPUs that a job of this step keeps busy: a machine runs no more jobs than it has CPUs for."""
    needs_memory: ClassVar[int] = 0
    """The bytes of memory that a job of this step needs; 0 for an estimate from the size of its inputs.

    If an earlier run of the job was measured, the measured peak counts, and not this number. A machine runs no more
    jobs than it has memory for.
    """
    reproducible: ClassVar[bool] = True
    """Whether two runs of the step with the same inputs write the same bytes.

    A lock has the artifacts of reproducible steps only. For a step that is not reproducible, the keys of later jobs
    have the key of the step's job instead of the digest of its output, so later jobs stay cached if another run for the
    same key writes other bytes.
    """
    in_lock: ClassVar[tuple[str, ...]] = ()
    """The names of the fields of the report that a lock has, beside the key and the artifact.

    A step that is not `reproducible` names all fields of its report here if later jobs depend on what it measured. Its
    output is then one file, `REPORT`, with the report. A build with a lock files the locked report instead of running
    the step again, and keys of later jobs have the output's content.
    """
    kept_by: ClassVar[tuple[str, ...]] = ()
    """The names of the rows of the key whose values together name the step's kept file, such as a timing cache.

    The store keeps the kept file for later runs of the step.

    A kept file, for example TensorRT's timing cache, saves time and changes no result.

    If the store has a kept file from an earlier run, `run` finds the kept file at `out.parent / KEPT`. After the run
    the store takes over the kept file from `out.parent / KEPT`.
    """
    report: ClassVar[type[TypedReport] | None] = None
    """The type that `run` returns and `judge` takes; None for a plain mapping of JSON values, or no report."""
    section: ClassVar[Section | None] = None
    """The subject of the step's report, which decides the table that shows the report; None for no table."""
    carries_model: ClassVar[bool] = False
    """Whether the step's output is the model, as a checkpoint, a graph or an engine.

    The output of a step that comes `after` a step with `carries_model` is the model, too.
    """
    delivers: ClassVar[bool] = False
    """Whether the output is the package that the user gets, under `build/<recipe>`."""
    time_limit: ClassVar[float] = 3600.0
    """The time limit of a job in seconds: a worker that runs the job longer is stopped."""
    work: ClassVar[type[Any] | None] = None
    """The base class of this step that a worker runs instead of this step; None for the step itself.

    The key of a job covers the modules that the worker's class imports. A step whose planning imports much more than
    its `run` therefore has a base class with the fields of `run` and `run` itself, in a module of its own, and names it
    here. A subclass of the step does not inherit `work`.
    """

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step with its options from a recipe; None for a recipe that does not use the step.

        By default a recipe uses a step if it has options for the step under `steps:`.
        """
        options = recipe.steps.get(cls.step_name())
        return None if options is None else cls.model_validate(options)

    @abstractmethod
    def run(self, *args: Any, **inputs: Any) -> TypedReport | Report | None:
        """Do the work, writing only under `out`: `run(self, out: Path, *, some_input: Path) -> SomeReport`.

        Import slow Python packages inside `run`, not at the top of the module. Raises StepError, with a title, lines of
        details and a hint, for an error that the user can repair.
        """

    def judge(self, report: Any) -> None:
        """Compare the report with the bounds or budgets of the recipe.

        Raises JudgementError for a missed bound or budget.
        """

    def model_facts(self, place: Path) -> ModelFacts | None:
        """Return the report that a build would make of the model at `place`, read without building anything.

        `place` is the path of the step's first source, for example the folder of a checkpoint. Returns None if the step
        cannot read the facts of the model from the model's files alone. Raises StepError for a path without a model.
        `recipe check` calls `model_facts` of the step whose report is `ModelFacts`.
        """
        del place
        return None

    def hardware(self) -> Hardware | None:
        """Return the hardware that the job must run on; None for a job that runs on any machine."""
        return None

    def tools_used(self) -> tuple[str, ...]:
        """Return the distributions that the step with these options uses; by default `tools`."""
        return self.tools

    def facts_used(self) -> tuple[str, ...]:
        """Return the facts that the step with these options depends on; by default `facts`."""
        return self.facts

    def code_used(self) -> tuple[str, ...]:
        """Return further modules that the step with these options runs; by default none.

        The key has the digest of the step's module, of the returned modules, and of all modules of this program and of
        the step's package that these import. A module that only some options need is named by `code_used` for these
        options, and the step imports the module by a computed name: an import statement would make the module count for
        all options. A job that loads a module which its key does not cover fails.
        """
        return ()

    def inputs_used(self) -> tuple[str, ...]:
        """Return the names of the inputs that the step with these options takes; by default all inputs of `run`."""
        return self.inputs()

    def models_of(self) -> Mapping[str, str]:
        """Return further inputs of a step that compares models: a parameter of `run` -> the name of a runtime.

        The parameter gets the model that the plan builds for that runtime. A step of a search, which compares the
        models of several points, has the places of the points as names.
        """
        return {}

    def as_candidate(self) -> Self:
        """Return the step for a plan that compares runtimes: there, a model that cannot be built is no error.

        The returned step has the same key, so what it makes also serves plans with one runtime.
        """
        return self

    def options(self) -> Mapping[str, Any]:
        """Return the options that are rows of the key: all fields except sources and the fields that `judged` names.

        Of the fields in `keyed_if_set`, those that have their defaults are left out. The values are JSON values in the
        canonical form from which a worker makes the step again.
        """
        fields = type(self).model_fields
        kept = {name for name, field in fields.items() if not _holds_source(field.annotation)}
        kept -= {*self.judged, *(name for name in self.keyed_if_set if getattr(self, name) == fields[name].default)}
        return canonical.encode(self, kept)

    def sources(self) -> Mapping[str, Source]:
        """Return the sources by the parameters of `run`; a tuple `name` gives `name_0`, `name_1`, ..."""
        sources: dict[str, Source] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Source):
                sources[name] = value
            elif isinstance(value, tuple) and _holds_source(type(self).model_fields[name].annotation):
                sources.update({f"{name}_{number}": each for number, each in enumerate(value)})
        return sources

    @classmethod
    def work_class(cls) -> type[Step]:
        """Return the class that a worker runs: the one that this very class names in `work`, or this class."""
        return cls.__dict__.get("work") or cls

    @classmethod
    def holds_source(cls, option: str) -> bool:
        """Say whether a field is a source or a tuple of sources, whose content is a row of the key in its place."""
        return _holds_source(cls.model_fields[option].annotation)

    @classmethod
    def step_name(cls) -> str:
        """Return the step's name; without a registered name, one made from the class's name: `shape-infer`."""
        return cls.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()

    @classmethod
    def inputs(cls) -> tuple[str, ...]:
        """Return the names of `run`'s keyword-only parameters, without the names of the step's fields."""
        return tuple(name for name in _parameters(cls) if name not in cls.model_fields)

    @classmethod
    def required_inputs(cls) -> tuple[str, ...]:
        """Return the names of the inputs of the step that have no default in the signature of `run`."""
        return tuple(name for name in cls.inputs() if _parameters(cls)[name])


def _holds_source(annotation: Any) -> bool:
    return Source in (annotation, *get_args(annotation))


@cache
def _parameters(step: type[Step]) -> Mapping[str, bool]:
    """Return, by the name of each keyword-only parameter of `run`, whether the parameter has no default."""
    parameters = inspect.signature(step.run).parameters.values()
    only = (p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
    return {p.name: p.default is inspect.Parameter.empty for p in only}
