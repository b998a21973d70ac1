"""ONNX file: the draft of a model by the inputs of its graph, and by sizes with which it runs once in a worker."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar

from engine.builder.executors.executor import machine_memory
from engine.builder.executors.local import LocalExecutor
from engine.builder.executors.outcomes import CrashedWorkerError
from engine.builder.worker_task import Outcome, WorkerTask
from engine.drafts import device, onnx_images, samples
from engine.drafts.draft import Draft, SampleFile
from engine.errors import StepError, UserError
from engine.feasibility import proposals
from engine.feasibility.facts import ModelFacts
from engine.kit.accuracy.outputs import has_empty_row
from engine.kit.checkpoints import licenses
from engine.kit.inputs import cases, index_ranges
from engine.kit.inputs.cases import Case
from engine.kit.onnx import onnx_files, onnx_source
from engine.kit.reference import original_model, size_search
from engine.machine import imports
from engine.recipe.values import Profile, Range
from engine.step import Report, Step
from engine.steps import fetch
from engine.text import canonical, reasons

if TYPE_CHECKING:
    import onnx

    from engine.kit.reference.original_model import Original
_SECONDS = 120.0
"""The most time that a trial may take."""
_MEMORY_SHARE = 2
"""A trial may take one part in so many of the machine's memory."""
_LARGEST = 2 << 30
"""The number of bytes of the largest ONNX file that is tried: a trial copies the file and holds it in memory."""
_OWN_SAMPLES = (
    "if you have inputs that suit it, save them: numpy.savez('samples.npz', NAME=array, ...), and write the recipe "
    "yourself: {model: {source: FILE.onnx}, validate: {samples: samples.npz}}; `recipe check` says what is missing"
)


def add(draft: Draft, path: Path, *, task: str | None, on: str | None, sized: bool = False) -> None:
    """Fill a draft from an ONNX file's graph; `sized`: other settings state the axes' sizes. Raises UserError."""
    model = onnx_source.read(path)
    onnx_source.data_files(path)
    described = onnx_source.describe(model)
    facts = ModelFacts(kind="onnx", bytes=path.stat().st_size, **vars(described))
    draft.about += [f"{described.architecture}.", *(f"  {each}" for each in _signature(facts)), licenses.in_words(None)]
    if task is not None:
        draft.put("model.task", task, "as --task names it")
    device.put(draft, on)
    ranges = onnx_images.ranges(model, facts, proposals.ranges(facts, {}))
    if not sized:
        ranges = _put_sizes(draft, path, ranges)
    draft.put("bench.against", [{"runtime": "onnxruntime"}])
    if sized or not onnx_images.put(draft, model, facts, ranges):
        _put_samples(draft, model, ranges)
        if task is None:
            what = "A graph does not say what it is for: without `model.task`, clients send and get tensors."
            draft.about.append(what)
    draft.put("package.triton.name", draft.fields["name"])


def _put_sizes(draft: Draft, path: Path, guess: Mapping[str, Range]) -> Mapping[str, Range]:
    """Set the sizes with which the model runs, and return them. Raises StepError for a model that does not run."""
    tried = _tried_sizes(path, guess)
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
        content = samples.drawn(onnx_files.inputs(model), index_ranges.of(model), ranges)
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


@dataclass(frozen=True)
class TriedSizes:
    """The sizes for a recipe, and what a trial has shown of them: a comment for the recipe."""

    profile: Profile
    comment: str


def _tried_sizes(path: Path, guess: Profile) -> TriedSizes:
    """Return sizes with which the ONNX file at `path` runs: the guess, or others near to it.

    Where nothing could be tried, the guess is returned, and the comment says why. Raises StepError for a model that
    crashes, that draws random numbers, or that runs with no sizes that were tried.
    """
    if imports.location("onnxruntime") is None:
        return TriedSizes(guess, "not tried, as onnxruntime is not installed")
    if path.stat().st_size > _LARGEST:
        return TriedSizes(guess, "not tried, as the model is large")
    outcome = _outcome(path, guess)
    if outcome.error is None and outcome.report is not None:
        ranges: dict[str, Range] = {axis: Range.model_validate(each) for axis, each in outcome.report.items()}
        return TriedSizes(ranges, "the model runs with them" if ranges == guess else "the nearest with which it runs")
    if outcome.seconds >= _SECONDS:
        return TriedSizes(guess, f"not tried to the end, as the model is slow: {_SECONDS:g} s were not enough")
    if isinstance(outcome.error, CrashedWorkerError):
        raise StepError("ONNX Runtime crashes when it runs the model", outcome.error.facts, _OWN_SAMPLES)
    raise outcome.error or AssertionError("a trial has a report or an error")


def _outcome(path: Path, guess: Profile) -> Outcome:
    """Run the trial in a worker, which has a limit of time and of memory."""
    with TemporaryDirectory() as folder, closing(LocalExecutor(1)) as executor:
        task = WorkerTask(
            step=f"{SizeTrial.__module__}:{SizeTrial.__name__}",
            name=SizeTrial.step_name(),
            options=canonical.encode(SizeTrial(profile=guess)),
            inputs={"source": str(path)},
            out=f"{folder}/out",
            log=f"{folder}/log",
        )
        executor.submit("", task, tools=("onnx",), variables=(), time_limit=_SECONDS)
        while not (done := executor.poll()):
            pass
        return done[0][1]


class SizeTrial(Step):
    """Run an ONNX file in ONNX Runtime, as the step `reference` does."""

    makes: ClassVar[str] = "tried"
    profile: Profile

    def run(self, out: Path, *, source: Path) -> Report:
        """Return the sizes with which the model runs: by axis, a list of min, opt and max.

        Raises StepError where the model cannot be opened, runs with no sizes, or gives two answers to one input.
        """
        if most := machine_memory() // _MEMORY_SHARE:
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        with TemporaryDirectory(dir=out.parent) as folder:
            fetch.copy_onnx(source, Path(folder), tokens=False)
            with original_model.load(Path(folder), "") as original:
                profile = size_search.fitting(original, self.profile)
                _refuse_failing(original, self.profile if profile is None else profile)
        if profile is None:
            raise StepError("no sizes were found with which the model runs", hint=_OWN_SAMPLES)
        return {axis: [each.min, each.opt, each.max] for axis, each in profile.items()}


def _refuse_failing(original: Original, profile: Profile) -> None:
    """Raise StepError where the model fails on samples of the recipe, or gives no numbers or two answers for one."""
    for number, row in enumerate(samples.rows(original.input_specs, original.ranges, profile)):
        try:
            outputs = original.answer(row)
            again = original.answer(row) if number == 0 else outputs
        except Exception as error:  # of ONNX Runtime
            shapes = [f"{name}: {tensor.dtype} {list(tensor.shape)}" for name, tensor in row.items()]
            what = "the model fails on random inputs, and no sizes were found with which it runs"
            raise StepError(what, [*reasons.facts(error), *shapes], _OWN_SAMPLES) from error
        if has_empty_row(Case(f"sample {number}", "", "tensors", row, outputs)):
            raise StepError("the model gives no finite number for random inputs", hint=_OWN_SAMPLES)
        if other := [name for name, output in outputs.items() if not cases.is_same_but_rounding(output, again[name])]:
            what = "the model draws random numbers: it gives two answers to one input, so none can be compared with it"
            raise StepError(what, [f"in: {', '.join(other)}"], _OWN_SAMPLES)
