"""Export and reference of image classifiers: EfficientNetV2 as ONNX answers as timm does, in every batch."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import pytest
import timm_here

from engine.kit.inputs import cases
from engine.kit.onnx import onnx_files
from engine.recipe.image_input import Images
from engine.recipe.schema import ModelSection, Recipe
from engine.recipe.values import Range
from engine.runtimes.onnxruntime import session as ort
from engine.steps.export import Export
from engine.steps.reference import Reference
from engine.steps.shape_infer import ShapeInfer

TASK = "image-classification"
PROFILES = ({"batch": Range(min=1, opt=10, max=32)},)


@pytest.fixture(scope="module")
def small(timm, tmp_path_factory):
    return timm_here.checkpoint(tmp_path_factory.mktemp("b0"), "tf_efficientnetv2_b0", size=64, num_classes=10)


@pytest.fixture(scope="module")
def tiny(timm, tmp_path_factory):
    """A model of few layers, for what is true of every model."""
    return timm_here.checkpoint(tmp_path_factory.mktemp("tiny"), "test_efficientnet", size=64, num_classes=10)


@pytest.fixture(scope="module")
def exported(small, tmp_path_factory):
    """Return the folder and the report of an export at 96 pixels in a layout, made once."""
    folder = tmp_path_factory.mktemp("exported")

    @cache
    def in_layout(layout):
        shown = Images(layout=layout, size=(96, 96), library="timm")
        return folder / layout, Export(task=TASK, images=shown).run(folder / layout, checkpoint=small)

    return in_layout


def answers(directory, images):
    return ort.run(ort.session(directory, threads=2), {"images": images})["logits"]


@cache
def original(timm, checkpoint):
    return timm.create_model(f"local-dir:{checkpoint}", pretrained=True).eval()


def from_timm(timm, checkpoint, images, *, layout):
    import torch

    model = original(timm, checkpoint)
    first = torch.from_numpy(images)
    with torch.inference_mode():
        return model(first if layout == "NCHW" else first.permute(0, 3, 1, 2)).numpy()


def relative(first, second):
    return float(np.abs(first - second).max() / np.abs(second).max())


@pytest.mark.parametrize("layout", [pytest.param("NCHW", marks=pytest.mark.whole), "NHWC"])
def test_it_answers_as_timm_does_in_batches_of_one_ten_and_thirty_two(timm, small, layout, exported):
    out, report = exported(layout)
    assert (report.exporter, report.inputs, report.outputs) == ("torchscript", ("images",), ("logits",))
    graph = onnx_files.load_graph(out)
    sides = (3, 96, 96) if layout == "NCHW" else (96, 96, 3)
    assert onnx_files.inputs(graph)["images"].shape == ("batch", *sides)
    assert onnx_files.outputs(graph)["logits"].shape == ("batch", 10)
    for batch in (1, 10, 32):
        images = np.random.default_rng(batch).standard_normal((batch, *sides), dtype="float32")
        assert relative(answers(out, images), from_timm(timm, small, images, layout=layout)) < 1e-4


@pytest.mark.parametrize("architecture", ["test_vit", "test_convnext", "test_resnet"])
@pytest.mark.sample(1)
def test_other_architectures_answer_as_timm_does_at_another_size_than_their_own(timm, architecture, tmp_path):
    checkpoint = timm_here.checkpoint(tmp_path / "checkpoint", architecture, size=160)
    shown = Images(layout="NHWC", size=(192, 192), library="timm")
    Export(task=TASK, images=shown).run(tmp_path / "out", checkpoint=checkpoint)
    images = np.random.default_rng(9).standard_normal((3, 192, 192, 3), dtype="float32")
    assert relative(answers(tmp_path / "out", images), from_timm(timm, checkpoint, images, layout="NHWC")) < 1e-4


def test_no_size_is_reckoned_out_at_run_time(exported, tmp_path):
    report = ShapeInfer().run(tmp_path / "shaped", exported=exported("NHWC")[0])
    assert report.inferred[1] == 1
    assert "Shape" not in {node.op_type for node in onnx.load(tmp_path / "shaped" / "model.onnx").graph.node}


def test_two_exports_are_the_same_bytes(tiny, tmp_path):
    results = []
    for place in ("one", "two"):
        Export(task=TASK, images=Images(size=(64, 64), library="timm")).run(tmp_path / place, checkpoint=tiny)
        results.append((tmp_path / place / "model.onnx").read_bytes())
    assert results[0] == results[1]


def test_without_samples_the_original_answers_drawn_pictures_alone_and_in_a_batch(timm, tiny, tmp_path):
    step = Reference(task=TASK, images=Images(layout="NHWC", size=(64, 64), library="timm"), profiles=PROFILES)
    report = step.run(tmp_path / "out", checkpoint=tiny)
    assert (report.random, report.samples, report.original) == (False, "built-in", "pytorch-fp32")
    answered = cases.load(tmp_path / "out")
    assert [case.inputs["images"].shape for case in answered] == [(batch, 64, 64, 3) for batch in (*[1] * 8, 8)]
    for case in answered:
        expected = from_timm(timm, tiny, case.inputs["images"], layout="NHWC")
        assert relative(case.outputs["logits"], expected) < 1e-4


def test_samples_are_images_with_labels(tiny, tmp_path):
    images = np.random.default_rng(3).standard_normal((4, 3, 64, 64), dtype="float32")
    np.savez(tmp_path / "images.npz", images=images, label=np.array([1, 2, 3, 4]))
    step = Reference(task=TASK, images=Images(size=(64, 64), library="timm"))
    report = step.run(tmp_path / "out", checkpoint=tiny, samples=tmp_path / "images.npz")
    assert report.kinds == {"tensors": 4, "batched": 1}
    answered = cases.load(tmp_path / "out")
    assert [case.label for case in answered if case.kind == "tensors"] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ({"source": "timm:resnet18"}, Images(layout="NHWC", size=(96, 96), library="timm")),
        ({"source": "hf:timm/resnet18.a1_in1k"}, Images(layout="NHWC", size=(96, 96), library="timm")),
        (
            {"source": "file:/model", "task": TASK, "library": "timm"},
            Images(layout="NHWC", size=(96, 96), library="timm"),
        ),
        ({"source": "file:/model", "task": TASK}, Images(layout="NHWC", size=(96, 96))),
        ({"source": "hf:some/model"}, None),
        ({"source": "file:/model.onnx", "task": TASK}, Images(layout="NHWC", size=(96, 96), library=None)),
    ],
)
def test_timm_counts_in_the_keys_of_its_models_and_in_no_others(model, shown):
    recipe = Recipe(name="r", model=ModelSection(**model), preprocess={"layout": "NHWC", "size": 96})
    steps = [Reference.for_recipe(recipe)]
    steps += [] if model["source"].endswith(".onnx") else [Export.for_recipe(recipe)]
    for step in steps:
        assert step.images == shown
        assert ("timm" in step.tools_used()) == (shown is not None and shown.library == "timm")
        assert not {"timm", "transformers"} <= set(step.tools_used())
