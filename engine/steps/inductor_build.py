"""Inductor build: AOTInductor compiles the original module of PyTorch, on the machine that is to run it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from engine import tasks
from engine.errors import JudgementError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.reference import own_tokenizer, torch_models
from engine.recipe import image_input
from engine.recipe.image_input import Images
from engine.recipe.values import Profile
from engine.runtimes import choice, devices, passport_file
from engine.runtimes.execution import Execution
from engine.runtimes.inductor import compilation, facts, passport
from engine.runtimes.inductor.passport import Pt2Passport
from engine.step import KEY_VARIABLE, Hardware, Step, TypedReport
from engine.text import sizes

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe


@dataclass(frozen=True, kw_only=True)
class InductorReport(TypedReport):
    """The compiled model: what compiled it for which device, its free axes with their sizes, and its size."""

    torch: str = ""
    cxx: str = ""
    device: str = ""
    axes: Mapping[str, str] = field(default_factory=dict)
    bytes: int = 0
    refused: str = ""
    """Why PyTorch cannot export the model; empty where the step wrote a model."""


class InductorBuild(Step):
    """Compile the original module for the CPU of this machine, or for its GPU, in the recipe's precision.

    The compiler writes paths into the code, so two runs write different bytes.
    """

    makes: ClassVar[str] = "compiled"
    carries_model: ClassVar[bool] = True
    reproducible: ClassVar[bool] = False
    tools: ClassVar[tuple[str, ...]] = ("numpy", "torch", "safetensors")
    facts: ClassVar[tuple[str, ...]] = ("arch", "cxx.version", "os", "cpu.isa")
    report: ClassVar[type[TypedReport] | None] = InductorReport
    judged: ClassVar[tuple[str, ...]] = ("candidate",)
    time_limit: ClassVar[float] = 2 * 3600.0

    precision: Literal["fp32", "fp16", "bf16"] = "fp32"
    profiles: tuple[Profile, ...] = ()
    execution: Execution = Execution(runtime="inductor", options={})
    task: str | None = None
    num_labels: int | None = None
    random_head: bool = False
    images: Images | None = None
    candidate: bool = False
    """Whether the plan compares runtimes, so that a model that PyTorch cannot export is no error."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for the runtime `inductor`; None for another runtime."""
        if recipe.runtime.compile_step != cls.step_name():
            return None
        model = recipe.model
        return cls.model_validate({
            "precision": recipe.precision, "profiles": recipe.profiles, "execution": Execution.for_recipe(recipe),
            "task": model.task, "num_labels": model.num_labels, "random_head": model.random_head,
            "images": recipe.images,
        })  # fmt: skip

    def hardware(self) -> Hardware | None:
        return self.execution.needs

    def code_used(self) -> tuple[str, ...]:
        return (*super().code_used(), *tasks.modules(self.task))

    def tools_used(self) -> tuple[str, ...]:
        by_tokenizer = own_tokenizer.TOOLS if self.images is None else ()
        return (*self.tools, *by_tokenizer, image_input.library(self.images))

    def facts_used(self) -> tuple[str, ...]:
        """Return the facts that the code depends on; of a driver the major version, as a minor one compiles alike."""
        if not self.execution.on_gpu:
            return self.facts
        gpu = ("cuda.runtime", "device.name", "device.sm", "gpu.driver.major", "triton_language.version")
        return (*self.facts, *gpu)

    def inputs_used(self) -> tuple[str, ...]:
        """Return the checkpoint alone; a recipe without this step hands on the graph `checked` in its place."""
        return ("checkpoint",)

    def run(self, out: Path, *, checked: Path | None = None, checkpoint: Path) -> InductorReport:
        """Write `model.pt2` and its passport, and return a report; where PyTorch cannot export the model, the reason.

        Raises StepError where PyTorch cannot load or compile the model, or cannot use the GPU.
        """
        del checked
        try:
            return self._written(out, checkpoint)
        except compilation.UnfitModuleError as error:
            reason = ": ".join((error.what, *error.facts))
            choice.refuse(out, reason)
            return InductorReport(refused=reason)

    def judge(self, report: InductorReport) -> None:
        """Raise JudgementError where PyTorch cannot export the model, and the plan has no other model."""
        if report.refused and not self.candidate:
            raise JudgementError("AOTInductor cannot have this model", [report.refused], compilation.OTHER)

    def as_candidate(self) -> Self:
        return self.model_copy(update={"candidate": True})

    def _written(self, out: Path, checkpoint: Path) -> InductorReport:
        """Write the model and its passport. Raises UnfitModuleError, and StepError as `run` does."""
        module = torch_models.load(
            checkpoint,
            checkpoints.task(checkpoint, self.task),
            num_labels=self.num_labels,
            random_head=self.random_head,
            images=self.images,
        )
        hardware = self.execution.hardware
        gpu = None if hardware is None else devices.chosen(hardware)
        device = "cpu" if gpu is None else devices.of_pytorch(gpu)
        print(f"compiling for {device} in {self.precision}")
        out.mkdir(parents=True, exist_ok=True)
        ranges = compilation.axis_sizes(module.input_specs, self.profiles, checkpoints.max_sequence(checkpoint))
        built = compilation.compiled(
            module, out / passport.MODEL, sizes=ranges, precision=self.precision, device=device, scratch=out.parent
        )
        size = (out / passport.MODEL).stat().st_size
        written = Pt2Passport(
            machine=passport.here(gpu),
            cxx=facts.compiler().value,
            precision=self.precision,
            axes=built.axes,
            inputs=built.inputs,
            outputs=built.outputs,
            key=os.environ.get(KEY_VARIABLE, ""),
            bytes=size,
        )
        passport_file.save(out, written)
        print(f"compiled: {sizes.decimal(size)}")
        named = {axis: str(each) for axis, each in built.axes.items()}
        machine = written.machine
        return InductorReport(torch=machine.torch, cxx=written.cxx, device=machine.gpu or "cpu", axes=named, bytes=size)
