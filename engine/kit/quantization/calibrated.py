"""Calibrated: a step that lowers the precision of a model, and may run it to measure the ranges of its activations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs.cases import Case
from engine.kit.onnx import onnx_files
from engine.kit.quantization import calibration, keep_in
from engine.kit.quantization.keep_in import NamedLayers
from engine.recipe.shape_values import Values
from engine.recipe.values import Profile
from engine.step import Source, Step

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe


class CalibrationFields(TypedDict):
    """The values that a recipe gives to the fields of a step that calibrates a model."""

    samples: Source | None
    own_texts: bool
    limit: int | None
    profiles: tuple[Profile, ...]
    shape_values: tuple[Mapping[str, Values], ...]


class Calibrated(Step):
    """A step that calibrates a model: on the samples of the recipe, on built-in texts, or on random inputs."""

    samples: Source | None = None
    """The source of the samples for calibration, which the recipe names under `calibrate`."""
    own_texts: bool = False
    """Whether the model is calibrated on the built-in texts, because the recipe names no samples for calibration.

    Where validation compares models on the built-in texts, calibration does not use the built-in texts.
    """
    limit: int | None = None
    profiles: tuple[Profile, ...] = ()
    """The profiles of input shapes within which random inputs for calibration are drawn."""
    shape_values: tuple[Mapping[str, Values], ...] = ()
    """The values of inputs that these profiles state."""
    keep_in: Mapping[str, tuple[str, ...]] = {}
    """The names of modules and nodes that stay in a higher precision, by this precision: "fp32" or "fp16"."""

    @staticmethod
    def calibration_of(recipe: Recipe, *, draws: bool = True) -> CalibrationFields:
        """Return the values that a recipe gives to the fields of `Calibrated`.

        `draws` tells whether the step draws inputs of its own where the recipe names no samples.
        """
        calibrate = recipe.calibrate
        draws = draws and calibrate is None
        return {
            "samples": None if calibrate is None else Source(uri=calibrate.samples),
            "own_texts": draws and recipe.validation.samples is not None,
            "limit": None if calibrate is None else calibrate.limit,
            "profiles": recipe.profiles if draws else (),
            "shape_values": recipe.shape_values if draws else (),
        }

    def options(self) -> Mapping[str, Any]:
        """Return the options that are rows of the key; `shape_values` and `keep_in` only where the recipe has them."""
        absent = {name for name in ("shape_values", "keep_in") if not getattr(self, name)}
        return {name: each for name, each in super().options().items() if name not in absent}

    def kept(self, original: Path | None, *precisions: str) -> NamedLayers:
        """Return what stays in one of the precisions, by its names in the graph of the folder `original`."""
        return keep_in.of([name for each in precisions for name in self.keep_in.get(each, ())], original)

    @property
    def reads_texts(self) -> bool:
        """Whether calibration reads texts, which needs the package `tokenizers`."""
        return self.samples is not None or self.own_texts

    def cases(self, graph: Path, checkpoint: Path | None, samples: Path | None) -> list[Case]:
        """Return the inputs that calibrate the ONNX model in the folder `graph`, as cases.

        Raises StepError where the samples do not suit the model, or where no inputs can be drawn.
        """
        model = onnx_files.load_graph(graph)
        inputs = onnx_files.inputs(model)
        if samples is not None and checkpoint is not None:
            return calibration.from_file(samples, checkpoint, inputs, limit=self.limit)
        texts = calibration.of_our_own(checkpoint, inputs) if checkpoint is not None and self.own_texts else []
        instead = "the built-in texts" if texts else "random inputs within the profiles"
        print(f"no samples to calibrate on (`calibrate` in the recipe): {instead} instead")
        longest = None if checkpoint is None else checkpoints.max_sequence(checkpoint)
        return texts or calibration.drawn(model, self.profiles, self.shape_values, longest=longest)
