"""Image models of transformers: loaded, exported, and equal to PyTorch at several batches and sizes of images."""

import inspect
import shutil

import image_models
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.kit.reference import export_ways, image_inputs, torch_models, vision_models
from engine.recipe.image_input import Images
from engine.runtimes.onnxruntime import session as ort
from engine.steps.export import Export

IMAGES = Images()
FREE = ("yolos/object-detection", "resnet/image-feature-extraction")
SAMPLE = (
    "vit/image-classification", "siglip/zero-shot-image-classification", "clip/feature-extraction",
    "segformer/image-segmentation", *FREE,
)  # fmt: skip
REFUSED = {"vit_mae": "a random choice of patches", "siglip2": "patches of images", "deformable_detr": "one size"}


def images_of(name):
    return None if image_models.task_of(name) == "feature-extraction" else IMAGES


def theirs(model, name, inputs):
    """Return the outputs of transformers' own model, by its own names."""
    tensors = {key: torch.from_numpy(value) for key, value in inputs.items()}
    task = image_models.task_of(name)
    kind = "text" if task == "feature-extraction" else "image"
    with torch.inference_mode():
        if task.startswith("zero-shot"):
            pixels = tensors.pop("pixel_values")
            rows = [{key: value[row] for key, value in tensors.items()} for row in range(len(pixels))]
            each = [model(pixel_values=pixels[number : number + 1], **row) for number, row in enumerate(rows)]
            return {"logits_per_image": torch.cat([one.logits_per_image for one in each])}
        if task.endswith("feature-extraction") and hasattr(model, f"get_{kind}_features"):
            return {f"{kind}_embeds": getattr(model, f"get_{kind}_features")(**tensors).pooler_output}
        size = getattr(model.config, "image_size", None)
        takes = "interpolate_pos_encoding" in inspect.signature(model.forward).parameters
        other = takes and "pixel_values" in tensors and tensors["pixel_values"].shape[2:] != (size, size)
        answers = dict(model(**tensors, **({"interpolate_pos_encoding": True} if other else {})))
        return answers if f"{kind}_embeds" in answers else {**answers, f"{kind}_embeds": answers.get("pooler_output")}


def compare(name, folder, tmp_path):
    task, images = image_models.task_of(name), images_of(name)
    report = Export(task=task, images=images).run(tmp_path / "exported", checkpoint=folder)
    module = torch_models.load(folder, task, images=images)
    graph = onnx_files.load_graph(tmp_path / "exported")
    axes = {key: tuple(spec.shape) for key, spec in onnx_files.inputs(graph).items()}
    assert axes == image_inputs.axes(folder, task, images)
    shapes = [spec.shape for spec in onnx_files.outputs(graph).values()]
    assert all(
        isinstance(extent, int) or extent in {"batch", "texts"} or "_axis_" in extent
        for shape in shapes
        for extent in shape
    )
    session = ort.session(tmp_path / "exported", threads=1, level="disabled")
    for batch, size in ((1, (96, 128)), (3, (64, 160)), (2, (75, 101))):
        inputs = vision_models.example(module, batch, size)
        expected, answers = theirs(module.model, name, inputs), ort.run(session, inputs)
        assert tuple(answers) == report.outputs
        for output, values in answers.items():
            whole = expected[output].numpy().reshape(values.shape)
            limit = 1e-4 * max(1.0, float(abs(whole).max()))
            np.testing.assert_allclose(values, whole, rtol=0, atol=limit, err_msg=f"{name} {output} {batch} {size}")


EVERY = [
    name if name in SAMPLE else pytest.param(name, marks=pytest.mark.whole)
    for name in image_models.NAMES
    if name.partition("/")[0] not in REFUSED
]


@pytest.mark.parametrize("name", EVERY)
def test_the_graph_answers_what_transformers_answers(name, tmp_path):
    compare(name, image_models.write(name, tmp_path / "checkpoint"), tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        name if name in FREE else pytest.param(name, marks=pytest.mark.whole)
        for name in image_models.NAMES
        if export_ways.of({"model_type": name.partition("/")[0]}, images=True).free
    ],
)
def test_without_a_processor_the_sizes_are_free_where_the_family_allows_it(name, tmp_path):
    folder = image_models.write(name, tmp_path / "checkpoint")
    (folder / "preprocessor_config.json").unlink()
    compare(name, folder, tmp_path)


@pytest.mark.parametrize("name", [name for name in image_models.NAMES if name.partition("/")[0] in REFUSED])
def test_what_cannot_be_built_is_refused_with_the_reason(name, tmp_path):
    folder = image_models.write(name, tmp_path / "checkpoint")
    with pytest.raises(StepError, match=REFUSED[name.partition("/")[0]]):
        torch_models.load(folder, image_models.task_of(name), images=IMAGES)


def test_a_pooler_without_weights_is_not_asked(tmp_path):
    folder = image_models.write("vit/image-feature-extraction", tmp_path / "checkpoint")
    assert torch_models.load(folder, "image-feature-extraction", images=IMAGES).output_names == ("pooler_output",)
    bare = shutil.copytree(folder, tmp_path / "bare")
    weights = load_file(bare / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if "pooler" not in name}
    save_file(kept, bare / "model.safetensors", {"format": "pt"})
    assert torch_models.load(bare, "image-feature-extraction", images=IMAGES).output_names == ("last_hidden_state",)


def test_a_row_of_zero_shot_has_the_scores_of_its_own_texts(tmp_path):
    folder = image_models.write("clip/zero-shot-image-classification", tmp_path / "checkpoint")
    module = torch_models.load(folder, "zero-shot-image-classification", images=IMAGES)
    inputs = vision_models.example(module, 3)
    together = torch_models.call(module, inputs)["logits_per_image"]
    for row in range(3):
        alone = torch_models.call(module, {name: tensor[row : row + 1] for name, tensor in inputs.items()})
        np.testing.assert_allclose(alone["logits_per_image"], together[row : row + 1], rtol=1e-4, atol=1e-4)


def test_images_of_another_size_are_taken_by_interpolation_or_refused_with_the_size(tmp_path):
    folder = image_models.write("vit/image-classification", tmp_path / "vit")
    larger = IMAGES.model_copy(update={"size": (64, 48)})
    module = torch_models.load(folder, "image-classification", images=larger)
    assert torch_models.call(module, vision_models.example(module, 2))["logits"].shape == (2, 5)
    folder = image_models.write("levit/image-classification", tmp_path / "levit")
    with pytest.raises(StepError, match="cannot take images of this size: 1 x 3 x 64 x 48"):
        torch_models.load(folder, "image-classification", images=larger)


def test_a_recipe_that_does_not_say_images_is_told_the_task(tmp_path):
    folder = image_models.write("vit/image-classification", tmp_path / "vit")
    with pytest.raises(StepError) as caught:
        torch_models.load(folder, "image-classification")
    assert caught.value.hint == "say `task: image-classification` under `model:`"
