"""ShapeInfer: the inferred shape of every tensor is written into the model."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from engine.errors import StepError
from engine.kit.onnx import external_data, graphs, ir_models, onnx_files, shapes
from engine.runtimes.onnxruntime import session as ort
from engine.step import Step, TypedReport
from engine.text import reasons

if TYPE_CHECKING:
    import onnx

    from engine.recipe.schema import Recipe


@dataclass(frozen=True, kw_only=True)
class ShapeReport(TypedReport):
    """The share of a graph's tensors with known shapes; for a model of several graphs, a report for each graph."""

    inferred: tuple[float, float] | None = None
    """The share of tensors with a size or a name for every dimension, from 0 to 1, before and after shape inference."""
    by: Literal["symbolic", "onnx", "none"] | None = None
    graphs: Mapping[str, ShapeReport] = field(default_factory=dict)


class ShapeInfer(Step):
    """Add shapes to a model and change nothing else: nodes, weights and the names of its axes stay.

    An axis of an input without a name gets the name that recipes use for the axis.

    Symbolic inference follows axes such as `batch` and `sequence` through the graph. Where symbolic inference fails,
    the inference of onnx is used instead. Where the inference of onnx fails, too, the model keeps the shapes that it
    has.
    """

    makes: ClassVar[str] = "shaped"
    carries_model: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = (*ir_models.TOOLS, "onnxruntime")
    report: ClassVar[type[TypedReport] | None] = ShapeReport

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step, which refuses a model that is no valid ONNX; None where no step reads the graph."""
        return cls() if recipe.runtime.from_graph else None

    def run(self, out: Path, *, exported: Path) -> ShapeReport:
        """Write the model with inferred shapes into `out`. Raises StepError for a model that is no valid ONNX."""
        return graphs.each(_inferred, exported, out, together=lambda every: ShapeReport(graphs=every))


def _inferred(exported: Path, out: Path) -> ShapeReport:
    model = onnx_files.load_graph(exported)
    added = shapes.import_missing_domains(model)
    if added:
        print(f"the model uses operators of {', '.join(added)} without importing them: added")
    shapes.name_axes(model)
    mapped = onnx_files.copied(model)
    external_data.attach(onnx_files.tensors(mapped), exported / onnx_files.MODEL)
    skeleton = shapes.skeleton(mapped)
    _check(exported, skeleton)
    before = shapes.known(model)
    by = _infer(model, skeleton)
    after = shapes.known(model)
    print(f"shapes known of {before:.0%} of the tensors before, {after:.0%} now (by {by})")
    for data in onnx_files.data_files(model):
        onnx_files.link_file(exported / data, out / data)
    onnx_files.save(model, out)
    return ShapeReport(inferred=(before, after), by=by)


def _infer(model: onnx.ModelProto, skeleton: onnx.ModelProto) -> Literal["symbolic", "onnx", "none"]:
    """Add inferred shapes to `model`, by symbolic inference or, where that fails, by onnx's inference.

    Returns the name of the inference that found new shapes, or "none" where none found any.
    """
    import onnx

    inferences: tuple[tuple[Literal["symbolic", "onnx"], Callable[[onnx.ModelProto], onnx.ModelProto]], ...] = (
        ("symbolic", _symbolic),
        ("onnx", lambda model: onnx.shape_inference.infer_shapes(model, data_prop=True)),
    )
    for name, infer in inferences:
        try:
            inferred = infer(skeleton)
        except Exception as error:  # noqa: BLE001  both raise anything from RuntimeError to IndexError
            print(f"{name} shape inference cannot follow this model: {reasons.of_error(error)}")
            continue
        if shapes.adopt(model, inferred) or shapes.known(model) == 1:
            return name
    return "none"


def _check(directory: Path, skeleton: onnx.ModelProto) -> None:
    """Raise StepError where neither onnx's checker nor ONNX Runtime accepts the model.

    Alone, onnx's checker would refuse graphs that ONNX Runtime wrote, with operators newer than the graph's opset.
    onnx's checker gets the model in memory without large weights, because the checker refuses data files with several
    hard links.
    """
    import onnx

    try:
        onnx.checker.check_model(skeleton)
    except Exception as error:  # noqa: BLE001  ValidationError, or any error of its C++ code
        complaint = reasons.of_error(error)
    else:
        return
    try:
        ort.unoptimized(directory)
    except StepError as error:
        raise StepError(
            "The model is no valid ONNX",
            [f"onnx: {complaint}", f"ONNX Runtime: {reasons.of_error(error)}"],
            "export it again, or repair it with the tool that made it",
        ) from error
    print(f"onnx's checker complains, ONNX Runtime does not: {complaint}")


def _symbolic(model: onnx.ModelProto) -> onnx.ModelProto:
    # A failing symbolic inference leaves a file in the working directory.
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        inferred = _symbolic_inference().infer_shapes(model, auto_merge=True)
    if inferred is None:
        raise ValueError("it needs opset 7 or later")
    return inferred


@cache
def _symbolic_inference() -> Any:
    """Return ONNX Runtime's class for symbolic inference.

    The module is loaded by its file, because the package `onnxruntime.tools` imports torch, which takes seconds.
    """
    import onnxruntime

    file = Path(onnxruntime.__file__).parent / "tools" / "symbolic_shape_infer.py"
    spec = importlib.util.spec_from_file_location("symbolic_shape_infer", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SymbolicShapeInference
