"""OpenVINO build: the ONNX graph becomes a model in OpenVINO's intermediate representation (IR)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from engine.errors import JudgementError, StepError
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.inputs.cases import Case
from engine.kit.onnx import ir_models, mapped_weights, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization import fidelity, keep_in, precisions
from engine.kit.quantization.calibration import Calibrated
from engine.kit.quantization.dynamic import layer_inputs, ort_quantizer
from engine.kit.quantization.fidelity import GroupSelection
from engine.kit.quantization.keep_in import NamedLayers
from engine.kit.quantization.precisions import LeftAloneError
from engine.kit.quantization.report import Inputs, Left, Sizes, Spread
from engine.recipe.values import Profile
from engine.runtimes import choice, fixed_shapes, profiles
from engine.runtimes.openvino import compiled, ir, multiplications, quantizer
from engine.runtimes.openvino.compiled import Calls
from engine.step import TypedReport
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np
    import openvino

    from engine.recipe.schema import Recipe

    Samples = Sequence[Mapping[str, np.ndarray]]


_APART = 4
"""Every fourth sample is left out of the calibration."""
_JUDGES = 16
"""The most samples that tell which layers are sensitive, because each of them is run for every layer."""


@dataclass(frozen=True, kw_only=True)
class OpenvinoReport(TypedReport):
    """The report of a model for OpenVINO: its bytes, and what was quantized with which inputs."""

    bytes: Sizes
    """The sizes of the ONNX graph and of the IR."""
    quantized: Mapping[str, int] = field(default_factory=dict)
    """The number of operators with weights in int8, by the kind of operator."""
    by_row: int = 0
    """The number of activations that got a scale per row."""
    left: tuple[str, ...] = ()
    """The names of layers that read their activations in floating point, as 8 bits would do the most harm there."""
    kept: tuple[Left, ...] = ()
    """The layers that stay in floating point because the recipe names them."""
    cosine: Spread | None = None
    """The cosines between the model and the one in floating point, on samples other than those of the calibration."""
    looked_at: Inputs | None = None
    refused: str = ""
    """Why OpenVINO cannot have the model; empty where the step wrote a model."""
    unquantized: str | None = None
    """The reason why a model for int8 keeps its precision."""


class OpenvinoBuild(Calibrated):
    """Write the IR of a model, in fp32 or in int8 with static ranges."""

    makes: ClassVar[str] = "compiled"
    carries_model: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = (*ir_models.TOOLS, "openvino")
    report: ClassVar[type[TypedReport] | None] = OpenvinoReport
    judged: ClassVar[tuple[str, ...]] = ("candidate",)
    keyed_if_set: ClassVar[tuple[str, ...]] = ("weights_only",)

    precision: Literal["fp32", "int8"] = "fp32"
    weights_only: bool = False
    """Whether int8 is the format of the stored weights alone, which needs no samples."""
    shapes: tuple[Profile, ...] = ()
    """All profiles of a recipe in which some profile fixes every axis; without such a profile, empty."""
    candidate: bool = False
    """Whether the plan compares runtimes, so that a model that OpenVINO cannot have is no error."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for the runtime `openvino`; None for another runtime."""
        if recipe.runtime.compile_step != cls.step_name():
            return None
        shapes = recipe.profiles if profiles.fixed(recipe.profiles) else ()
        if recipe.precision != "int8":
            return cls(shapes=shapes)
        options: dict[str, Any] = {"precision": "int8", "shapes": shapes, "keep_in": recipe.quantize.get("keep_in", {})}
        if recipe.runtime.weights_only(recipe):
            return cls(weights_only=True, **options)
        return cls.calibrating(recipe, **options)

    def tools_used(self) -> tuple[str, ...]:
        nncf = ("nncf",) if self.precision == "int8" else ()
        texts = ("tokenizers",) if self.shapes else ()
        return tuple(dict.fromkeys((*self.tools, *nncf, *self.calibration_tools, *texts)))

    def facts_used(self) -> tuple[str, ...]:
        """Return the fact that decides OpenVINO's kernels, with which the ranges of activations are measured."""
        return ("cpu.isa",) if self._calibrates else ()

    def inputs_used(self) -> tuple[str, ...]:
        """Return the step's inputs: the model, and the checkpoint where samples are read or texts are padded."""
        return ("checked", "checkpoint") if self._calibrates or self.shapes else ("checked",)

    @property
    def _calibrates(self) -> bool:
        return self.precision == "int8" and not self.weights_only

    def run(
        self, out: Path, *, checked: Path, checkpoint: Path | None = None, samples: Path | None = None
    ) -> OpenvinoReport:
        """Write `model.xml` and `model.bin`, and return a report.

        Where OpenVINO or NNCF cannot have the model, write the reason instead. Raises StepError where the samples do
        not suit the model.
        """
        out.mkdir(parents=True, exist_ok=True)
        try:
            return self._written(out, checked, checkpoint, samples)
        except ir.UnfitModelError as error:
            reason = " ".join((f"{error.what}:", *error.facts)) if error.facts else error.what
            choice.refuse(out, reason)
            return OpenvinoReport(bytes=(onnx_files.folder_size(checked), 0), refused=reason)

    def judge(self, report: OpenvinoReport) -> None:
        """Raise JudgementError where OpenVINO cannot have the model, and the plan has no other model."""
        if report.refused and not self.candidate:
            hint = "use runtime: onnxruntime, or runtime: auto, which uses it where OpenVINO cannot have the model"
            raise JudgementError("OpenVINO cannot have this model", [report.refused], hint)

    def as_candidate(self) -> Self:
        return self.model_copy(update={"candidate": True})

    def _written(self, out: Path, checked: Path, checkpoint: Path | None, samples: Path | None) -> OpenvinoReport:
        """Write the model, and return a report. Raises UnfitModelError, and StepError as `run` does."""
        keep_in.refuse_unknown(self.keep_in, checked)
        graph = onnx_files.load_graph(checked)
        lowered: dict[str, Any] = {}
        if self.precision == "fp32":
            model = ir.of_onnx(checked / onnx_files.MODEL)
        else:
            try:
                precisions.refuse_quantized(graph)
                if self.weights_only:
                    model, lowered = self._with_weights(checked)
                else:
                    model, lowered = self._quantized(checked, self.cases(checked, checkpoint, samples), out.parent)
            except LeftAloneError as reason:
                print(f"not quantized: {reason}")
                model, lowered = ir.of_onnx(checked / onnx_files.MODEL), {"unquantized": str(reason)}
        tokenizer = tokenizers.load(checkpoint) if self.shapes and checkpoint is not None else None
        inputs = onnx_files.inputs(graph)
        routing = fixed_shapes.routing(
            inputs, self.shapes, tokenizer,
            outputs=[value.any_name for value in model.outputs],
            axes_of_outputs=partial(ir.output_axes, model, inputs),
        )  # fmt: skip
        ir.save(model, out, {**inputs, **onnx_files.outputs(graph)}, routing)
        sizes = (onnx_files.folder_size(checked), onnx_files.folder_size(out))
        print(f"{sizes[0]} -> {sizes[1]} bytes")
        return OpenvinoReport(bytes=sizes, **lowered)

    def _with_weights(self, checked: Path) -> tuple[openvino.Model, dict[str, Any]]:
        """Return the model with weights in int8, and the fields of the report about it."""
        graph, names = ir_models.load(checked), self.kept(checked, "fp32")
        model, counts = quantizer.with_weights(ir.of_onnx(checked / onnx_files.MODEL), names.nodes(graph))
        if not counts:
            raise LeftAloneError("it has no layer with stored weights that can be in int8")
        print(f"weights in int8: {lists.counts(counts)}")
        return model, {"quantized": counts, "kept": names.layers(graph)}

    def _quantized(self, checked: Path, cases: list[Case], scratch: Path) -> tuple[openvino.Model, dict[str, Any]]:
        """Return the model in int8, calibrated on cases, and the fields of the report about it."""
        if not cases:
            raise StepError("there are no inputs to calibrate the model on", hint="name samples: calibrate.samples")
        held_out = [case.inputs for case in cases[_APART - 1 :: _APART]][:_JUDGES]
        calibrating = [case.inputs for number, case in enumerate(cases, 1) if number % _APART]
        judging = held_out or calibrating
        with TemporaryDirectory(dir=scratch) as folder, mapped_weights.spilling(Path(folder)):
            names = self.kept(checked, "fp32")
            original, model, by_row = _lowered(checked, Path(folder), names, calibrating, judging)
            selection = _selected(model, original, judging)
        counts = quantizer.counted_layers(model, selection.left)
        read = quantizer.rounded_layers(model)
        left = dict.fromkeys(layer for name in selection.left for layer in read[name])
        model = quantizer.without_rounding(model, selection.left)
        print(f"quantized {lists.counts(counts)}; {by_row} activations with a scale per row")
        inputs = Inputs(inputs=len(cases), kinds=tuple(sorted({case.kind for case in cases})))
        return model, {
            "quantized": counts,
            "by_row": by_row,
            "left": tuple(left),
            "kept": names.layers(ir_models.load(checked)),
            "cosine": selection.cosines.rounded(),
            "looked_at": inputs,
        }


def _lowered(
    checked: Path, scratch: Path, names: NamedLayers, calibrating: Samples, judging: Samples
) -> tuple[Calls, openvino.Model, int]:
    """Return calls of the model in fp32, the model in int8, and the number of activations with a scale per row.

    A scale per row takes time in every call. So activations get it only where the model without it misses the goal
    of the search for sensitive layers on the samples `judging`.
    """
    count, kept = _prepared(checked, scratch / "plain", names, scaled=False)
    plain = ir.of_onnx(scratch / "plain" / onnx_files.MODEL)
    original = _in_fp32(plain)
    truth = fidelity.answered(original.run, fidelity.cases(judging))
    model, worst = _closest(plain, truth, calibrating, kept)
    if not count or worst >= fidelity.GOAL:
        return original, model, 0
    print(f"without a scale per row: cosine {worst:.5f} at worst, below {fidelity.GOAL}")
    _, kept = _prepared(checked, scratch / "scaled", names, scaled=True)
    model, _ = _closest(ir.of_onnx(scratch / "scaled" / onnx_files.MODEL), truth, calibrating, kept)
    return original, model, count


def _closest(
    plain: openvino.Model, truth: Sequence[Case], calibrating: Samples, kept: Collection[str]
) -> tuple[openvino.Model, float]:
    """Return `plain` in int8, quantized in the way whose worst answer is the closest to `truth`, and that cosine."""
    tried = [quantizer.quantized(plain, calibrating, asymmetric=each, kept=kept) for each in quantizer.ways(plain)]
    worst = [fidelity.measure(truth, _in_fp32(model).run).cosine.worst for model in tried]
    if len(tried) > 1:
        print(f"ranges of activations: worst cosine {worst[0]:.5f} with symmetric, {worst[1]:.5f} with asymmetric ones")
    best = worst.index(max(worst))
    return tried[best], worst[best]


def _in_fp32(model: openvino.Model) -> Calls:
    return Calls(model, threads=1, options={**compiled.LATENCY, **compiled.FP32})


def _selected(model: openvino.Model, original: Calls, samples: Samples) -> GroupSelection[str]:
    """Return the activations of a quantized model that stay in 8 bits: all, or all without the most sensitive ones.

    The model, computed in fp32, is compared with `original` on samples that are not those of the calibration.
    """
    read = quantizer.rounded_layers(model)
    work_of = multiplications.by_operator(model, samples[0])
    total = max(1, sum(work_of.values()))
    readers = Counter(layer for layers in read.values() for layer in layers)
    shares = {
        name: sum(work_of.get(layer, 0) / readers[layer] for layer in layers) / total for name, layers in read.items()
    }
    switched = quantizer.Switched(model)

    def opened(chosen: Collection[str]) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
        return (lambda inputs: switched.run(inputs, chosen)) if chosen else original.run

    return fidelity.selected(tuple(read), shares, opened, samples)


def _prepared(checked: Path, out: Path, names: NamedLayers, *, scaled: bool) -> tuple[int, Collection[str]]:
    """Write a copy of a model for the quantizer.

    Return the number of activations that no normalization gives, and the names of the nodes that are kept.

    With `scaled`, these activations have a scale per row; the answers stay those of the model. With a scale per row,
    one large token makes no other token less exact.
    """
    passes = Pipeline(ir_models.load(checked))
    fit = ort_quantizer.prepare(passes)
    kept = names.nodes(passes.model)
    inputs = [each for each in layer_inputs.find(passes.model, fit - kept.keys()) if not each.normalized]
    if scaled:
        passes.run(layer_inputs.scale_rows, inputs)
    onnx_files.save(ir_models.proto(passes.model), out)
    return len(inputs), kept
