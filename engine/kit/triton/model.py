"""The model itself in a repository: its configuration, by its kind, and its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.kit.triton import config as configs
from engine.kit.triton import fields, gpu
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.serving import Serving
from engine.recipe.model_config import Part
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime import tensorrt_provider as ort_tensorrt
from engine.runtimes.tensorrt import passport
from engine.runtimes.tensorrt.passport import Passport


def engine_config(serving: Serving, engine: Passport) -> tuple[Config, Signature]:
    """Return the configuration of a native TensorRT engine."""
    signature = Signature(engine.input_list, engine.output_list)
    batch = configs.max_batch(signature, serving.max_batch_size, serving.largest)
    config = configs.model_config(serving.model_name, signature, platform="tensorrt_plan", batch=batch, gpu=True)
    if serving.execution.cuda_graph:
        usual = [{name: extents.opt for name, extents in profile.items()} for profile in engine.profiles]
        gpu.cuda_graphs(config, usual)
    _check_batch(config, signature, serving)
    fields.overridden(config, serving, "model", profiles=len(engine.profiles))
    gpu.finish(config, profiles=len(engine.profiles))
    return config, signature


def onnx_config(
    serving: Serving, model: Path, scratch: Path, *, part: Literal["model"] | Part = "model"
) -> tuple[Config, Signature]:
    """Return the configuration of an ONNX model, for ONNX Runtime on a CPU or on a GPU.

    `part` is what the recipe calls it, where it is one of two graphs.
    """
    graph = onnx_files.load_graph(model)
    signature = Signature(onnx_files.inputs(graph), onnx_files.outputs(graph))
    config = configs.model_config(
        serving.model_name,
        signature,
        platform="onnxruntime_onnx",
        batch=configs.max_batch(signature, serving.max_batch_size, serving.largest),
        level=_level(model, scratch),
        gpu=serving.execution.provider != "cpu",
    )
    if serving.execution.provider == "tensorrt":
        gpu.tensorrt_provider(config, ort_tensorrt.options(signature.inputs, serving.execution))
    _check_batch(config, signature, serving)
    fields.overridden(config, serving, part)
    if serving.execution.provider != "cpu":
        gpu.finish(config, profiles=1)
    return config, signature


def _check_batch(config: Config, signature: Signature, serving: Serving) -> None:
    """Raise StepError where Triton would put more requests together than any profile takes."""
    axis = signature.batch_axis
    gpu.check_batch(config, serving.largest.get(axis) if axis is not None else None)


def files(model: Path) -> Iterator[str]:
    """Yield the names of the files of a built model that its server needs."""
    if (model / passport.PLAN).is_file():
        yield from (passport.PLAN, passport.FILE)
        return
    yield onnx_files.MODEL
    yield from onnx_files.data_files(onnx_files.load_graph(model))


def _level(model: Path, scratch: Path) -> str:
    """Return the optimisation level that Triton must use.

    Triton cannot switch single optimisers off. Where session.json does, what it asks for must come to the same
    without that: at the level `basic` the fusions of higher levels do not run anyway. Raises StepError otherwise.
    """
    said = ort.options(model)
    level = str(said.get("graph_optimization_level", "all"))
    disabled = tuple(said.get("disabled_optimizers", ()))
    if not disabled:
        return level
    with TemporaryDirectory(dir=scratch) as folder:
        made = []
        for name, without in (("without", disabled), ("with", ())):
            ort.optimise(model, Path(folder) / name, level=level, disabled=without)
            made.append([path.read_bytes() for path in sorted((Path(folder) / name).iterdir())])
    if made[0] != made[1]:
        raise StepError(
            "Triton cannot serve this model as it was validated: it cannot switch single optimisers off",
            [f"switched off: {', '.join(disabled)}, at the level {level}"],
        )
    return level
