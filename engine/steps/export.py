"""Export: a PyTorch checkpoint -> ONNX with dynamic axes, checked against the original."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from engine import tasks
from engine.errors import StepError
from engine.kit.accuracy import outputs
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import unbuildable
from engine.kit.generation import modules
from engine.kit.onnx import graphs, ir_models, mapped_weights, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.onnx.passes import embedding_tables, padding
from engine.kit.reference import (
    export_ways,
    own_tokenizer,
    probes,
    streamed_weights,
    timm_models,
    torch_models,
    vision_models,
)
from engine.kit.reference.export_ways import Exporter
from engine.kit.reference.model_loading import quiet
from engine.recipe import image_input
from engine.recipe.image_input import Images
from engine.runtimes.onnxruntime import generation as driver
from engine.runtimes.onnxruntime import session as ort
from engine.step import Step, TypedReport
from engine.text import reasons, sizes

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import torch

    from engine.recipe.schema import Recipe

    Answer = Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]

_TOLERANCE = 1e-3
"""Upper limit of an exported graph's error, as a share of the largest output."""


@dataclass(frozen=True, kw_only=True)
class GraphReport:
    """The number of nodes of an exported graph, and the names of its inputs and outputs."""

    nodes: int | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    graphs: Mapping[str, GraphReport] = field(default_factory=dict)
    """The reports of the graphs, by folder, if the model has several graphs.

    For a model of several graphs, `nodes`, `inputs` and `outputs` are empty.
    """


@dataclass(frozen=True, kw_only=True)
class ExportReport(GraphReport, TypedReport):
    """The exported graph, its task, exporter and opset, and the bytes of all files."""

    task: str
    exporter: str
    opset: int
    bytes: int


class Export(Step):
    """Write the model as ONNX: in fp32, for every batch size and sequence length, and for every target.

    An image model accepts any batch size, and images of one size, or of any size where the model allows it.
    """

    makes = "exported"
    report: ClassVar[type[TypedReport] | None] = ExportReport
    carries_model = True
    # A graph whose outputs differ in ONNX Runtime is exported again, by another exporter.
    tools = (*ir_models.TOOLS, "torch", "onnxruntime", "onnxscript", "safetensors")
    inline_limit: ClassVar[int] = onnx_files.INLINE_LIMIT

    task: str | None = None
    num_labels: int | None = None
    random_head: bool = False
    images: Images | None = None
    """The size and the layout of the images; None for a model of texts."""
    opset: int = 20

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step `export`, or None for a model that is already an ONNX file."""
        model = recipe.model
        if model.is_onnx_file:
            return None
        return cls(task=model.task, num_labels=model.num_labels, random_head=model.random_head, images=recipe.images)

    def code_used(self) -> tuple[str, ...]:
        return (*super().code_used(), *tasks.modules(self.task))

    def tools_used(self) -> tuple[str, ...]:
        # The checkpoint's own tokenizer tells which inputs the graph has.
        by_tokenizer = own_tokenizer.TOOLS if self.images is None else ()
        return (*self.tools, *by_tokenizer, image_input.library(self.images))

    def run(self, out: Path, *, checkpoint: Path) -> ExportReport:
        """Export the model with the first exporter whose graph gives the same outputs as the model.

        Raises StepError where the checkpoint cannot be loaded, or where every exporter fails.
        """
        task = checkpoints.task(checkpoint, self.task)
        print(f"loading the model for {task}")
        module = torch_models.load(
            checkpoint, task, num_labels=self.num_labels, random_head=self.random_head, images=self.images
        )
        parts = modules.with_past(module) if tasks.generates(task) else None
        longest = checkpoints.max_sequence(checkpoint)
        problems: list[str] = []
        for exporter in export_ways.of(checkpoints.config(checkpoint), images=self.images is not None).exporters:
            print(f"exporting with the {exporter} exporter, opset {self.opset}")
            with tempfile.TemporaryDirectory(dir=out.parent, prefix="export-") as scratch:
                problem = self._try(exporter, module, parts, longest, Path(scratch))
                if problem is None:
                    return self._finish(Path(scratch) / "normal", out, task=task, exporter=exporter)
            print(f"the {exporter} exporter failed: {problem}")
            problems.append(f"{exporter}: {problem}")
        name = type(module.model).__name__
        _refuse_nan(module, longest)
        raise StepError(f"{name} cannot be exported to ONNX", problems, unbuildable.alternative(checkpoint, task))

    def _try(
        self,
        exporter: Exporter,
        module: torch.nn.Module,
        parts: Mapping[str, torch.nn.Module] | None,
        longest: int | None,
        scratch: Path,
    ) -> str | None:
        """Export the model into `scratch/normal`; return the reason why the export failed, or None if it succeeded.

        `parts` are the models of a generating model by folder; each of them is exported into its own folder.
        """
        raw, normal = scratch / "raw", scratch / "normal"
        try:
            if parts is None:
                traced = timm_models.with_constant_padding(module) if timm_models.is_one(module) else module
                self._write(exporter, traced, probes.example(module, longest), raw, normal)
                session = ort.session(normal, threads=1, level="disabled", prepack=False)
                return _difference(module, lambda inputs: ort.run(session, inputs), longest)
            for folder, part in parts.items():
                tokens = torch_models.vocabulary(module).tokens
                self._write(exporter, part, probes.example_with_past(part, tokens), raw / folder, normal / folder)
            built = driver.runner(normal, name="exported", threads=1, level="disabled", prepack=False)
            return _difference(module, built.run, longest)
        except OSError:
            raise  # an error of the disk, not of the exporter
        except StepError as error:
            return ": ".join((error.what, *error.facts[:1]))
        except Exception as error:  # noqa: BLE001 - exporters raise errors of any kind
            return reasons.first_line(error, without=f"{scratch}/")

    def _write(
        self, exporter: Exporter, module: torch.nn.Module, example: dict[str, np.ndarray], raw: Path, normal: Path
    ) -> None:
        raw.mkdir(parents=True)
        with mapped_weights.spilling(raw):
            with streamed_weights.apart() as weights:
                _export(exporter, module, example, raw / onnx_files.MODEL, opset=self.opset)
            model = onnx_files.load_mapped(raw)
            streamed_weights.put_back(model, weights)
            if modules.generates(module):
                model = _untwinned(model)
            if vision_models.is_one(module):
                _state_shapes(model, module, example)
            padding.keep_apart(model)
            onnx_files.save(model, normal, threshold=self.inline_limit)
        shutil.rmtree(raw)

    def _finish(self, normal: Path, out: Path, *, task: str, exporter: Exporter) -> ExportReport:
        out.mkdir(parents=True, exist_ok=True)
        for path in sorted(normal.iterdir()):
            path.rename(out / path.name)
        size = onnx_files.folder_size(out)
        graph = graphs.each(
            lambda folder, _: _described(folder), out, out, together=lambda every: GraphReport(graphs=every)
        )
        print(f"exported: {sizes.decimal(size)}")
        return ExportReport(task=task, exporter=exporter, opset=self.opset, bytes=size, **vars(graph))


def _untwinned(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model that stores each weight once that is tied to a table; `model` itself if it has no tied weights."""
    passes = Pipeline(ir_models.of(model))
    names = passes.run(embedding_tables.untwin)
    if not names:
        return model
    print(f"stored once with the table that it is tied to: {', '.join(names)}")
    return ir_models.proto(passes.model)


def _described(directory: Path) -> GraphReport:
    graph = onnx_files.load_graph(directory)
    nodes = len(graph.graph.node)
    print(f"{nodes} nodes")
    return GraphReport(nodes=nodes, inputs=tuple(onnx_files.inputs(graph)), outputs=tuple(onnx_files.outputs(graph)))


def _export(
    exporter: Exporter, module: torch.nn.Module, example: dict[str, np.ndarray], path: Path, *, opset: int
) -> None:
    import torch

    names, results = list(module.input_names), list(module.output_names)
    axes = {name: _free_axes(module.input_specs[name].shape) for name in names}
    shared: dict[str, object] = {
        "input_names": names,
        "output_names": results,
        "opset_version": opset,
        "verbose": False,
    }
    if exporter == "dynamo":
        # This exporter takes axis names as torch.export does: an entry per positional tensor.
        shared |= {"dynamic_shapes": (tuple(axes[name] for name in names),), "external_data": True}
    else:
        shared |= {"dynamic_axes": {**axes, **_output_axes(module, example)}}
    tensors = tuple(torch.from_numpy(example[name]) for name in names)
    with quiet(), torch.inference_mode():
        torch.onnx.export(module, tensors, str(path), dynamo=exporter == "dynamo", **shared)


def _free_axes(shape: tuple[int | str, ...]) -> dict[int, str]:
    """Return the dynamic axes of a shape: the index and the name of each."""
    return {index: axis for index, axis in enumerate(shape) if isinstance(axis, str)}


def _output_axes(module: torch.nn.Module, example: dict[str, np.ndarray]) -> dict[str, dict[int, str]]:
    """Return the dynamic axes of each output; a second axis with one entry per token is called `sequence`."""
    if modules.generates(module) and module.output_specs is not None:
        return {name: _free_axes(value.shape) for name, value in module.output_specs.items()}
    tokens = example["input_ids"].shape[1] if "input_ids" in example else None
    answers = torch_models.call(module, example)
    return {
        name: {0: "batch", **({1: "sequence"} if answer.ndim > 1 and answer.shape[1] == tokens else {})}
        for name, answer in answers.items()
    }


def _state_shapes(model: onnx.ModelProto, module: torch.nn.Module, example: dict[str, np.ndarray]) -> None:
    """Write the shapes of an image model's outputs into the graph: exporters leave most of their axes open.

    An axis is free where inputs of other extents change its extent. Such an axis has the name of the input's axis with
    the same extents, or a name of its own.
    """
    import onnx

    again = probes.example_of_other_sizes(module)
    answers, others = torch_models.call(module, example), torch_models.call(module, again)
    named = {
        (example[name].shape[index], again[name].shape[index]): axis
        for name, spec in module.input_specs.items()
        for index, axis in _free_axes(spec.shape).items()
    }
    for output in model.graph.output:
        name, kind = output.name, output.type.tensor_type.elem_type
        shape = [
            first if first == second else named.get((first, second), f"{name}_axis_{index}")
            for index, (first, second) in enumerate(zip(answers[name].shape, others[name].shape, strict=True))
        ]
        output.CopyFrom(onnx.helper.make_tensor_value_info(name, kind, shape))


def _refuse_nan(module: torch.nn.Module, longest: int | None) -> None:
    """Raise StepError where the original itself answers NaN, so that no exported graph can be compared with it."""
    kind, inputs = next(iter(probes.probes(module, longest)))
    broken = [name for name, answer in torch_models.call(module, inputs).items() if (answer != answer).any()]  # noqa: PLR0124 - only NaN differs from itself
    if broken:
        raise StepError(
            f"the original model answers NaN: {', '.join(broken)}",
            [f"{type(module.model).__name__} in PyTorch, on random inputs, {kind}"],
            "are the weights damaged? save or download the model again",
        )


def _difference(module: torch.nn.Module, answer: Answer, longest: int | None) -> str | None:
    """Run the exported graph on shapes that were not traced, and on padding and holes in masks.

    Returns a description of the first output that differs from the PyTorch model's; None where all outputs agree.
    """
    for kind, inputs in probes.probes(module, longest):
        answers = answer(inputs)
        for name, expected in torch_models.call(module, inputs).items():
            got = answers[name]
            if got.shape != expected.shape:
                return f"{name} is {list(got.shape)} instead of {list(expected.shape)}, {kind}"
            # Outputs of masked tokens do not count in a model without a past; with a past, every output counts.
            real = outputs.positions(name, expected, inputs) if modules.generates(module) else None
            off = abs(got - expected) if real is None else abs(got - expected)[real]
            worst = float(off.max())
            if not worst <= _TOLERANCE * max(1.0, float(abs(expected).max())):
                return f"{name} is off by {worst:.2g}, {kind}"
    return None
