"""Cases of images: the tensors that transformers makes of each file, alone and padded in batches; own processors."""

import json
import shutil
from dataclasses import replace

import image_files
import image_models
import numpy as np
import pytest

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import image_cases, own_processor
from engine.recipe.image_input import Images

PIXELS = Input("pixel_values", "float32", ("batch", 3, "height", "width"))
MASKED = {"pixel_values": PIXELS, "pixel_mask": Input("pixel_mask", "int64", ("batch", "height", "width"))}
TOKENS = Input("input_ids", "int64", ("batch", "texts", "sequence"))
TEXTS = {"pixel_values": PIXELS, "input_ids": TOKENS, "attention_mask": replace(TOKENS, name="attention_mask")}
VIT, DETR, CLIP = "vit/image-classification", "detr/object-detection", "clip/zero-shot-image-classification"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with an image file of each kind that a model can answer."""
    folder = tmp_path_factory.mktemp("files")
    written, good = image_files.write_files(folder / "all"), folder / "good"
    good.mkdir()
    for name in image_files.GOOD:
        shutil.copy(written[name], good)
    return good


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    return {name: image_models.write(name, folder / name.replace("/", "_")) for name in (VIT, DETR, CLIP)}


def asked(checkpoint, specs, path, texts=(), **options):
    inputs = image_cases.maker(Images(), checkpoint, specs, {}, path, is_original=True, **options)
    return image_cases.ask(inputs, path, checkpoint, texts, keep=lambda case: case)


def test_each_kind_of_file_becomes_what_transformers_makes_of_it(checkpoints, files):
    import transformers
    from transformers.image_utils import load_image

    cases = asked(checkpoints[VIT], {"pixel_values": PIXELS}, files)
    processor = transformers.AutoImageProcessor.from_pretrained(checkpoints[VIT], backend="pil")
    alone = [case for case in cases if case.kind == "sample"]
    assert len(alone) == len(image_files.GOOD)
    for case in alone:
        expected = processor(load_image(str(files / case.name)), return_tensors="np")["pixel_values"]
        assert np.array_equal(case.inputs["pixel_values"], expected), case.name
    assert [case.inputs["pixel_values"].shape[0] for case in cases if case.kind == "batched"] == [8, 8]


def test_images_of_different_sizes_stand_in_one_batch_as_the_processor_pads_them(checkpoints, files):
    cases = asked(checkpoints[DETR], MASKED, files)
    own = own_processor.load(checkpoints[DETR])
    by_name = {case.name: case for case in cases}
    joined = [case for case in cases if case.kind == "batched"]
    for case in joined:
        expected = own.inputs([(files / name).read_bytes() for name in case.text.split(", ")], ())
        assert all(np.array_equal(case.inputs[name], expected[name]) for name in MASKED)
    shapes = {by_name[name].inputs["pixel_values"].shape for case in joined for name in case.text.split(", ")}
    assert len(shapes) > 1


def test_images_without_a_mask_stand_only_with_images_of_their_own_size(checkpoints, files):
    cases = asked(checkpoints[DETR], {"pixel_values": PIXELS}, files)
    by_name = {case.name: case for case in cases}
    for case in (case for case in cases if case.kind == "batched"):
        shapes = {by_name[name].inputs["pixel_values"].shape for name in case.text.split(", ")}
        assert shapes == {(1, *case.inputs["pixel_values"].shape[1:])}


def test_texts_stand_beside_each_image_and_its_label_is_one_of_them(checkpoints, files, tmp_path):
    shutil.copy(files / "rgb.png", tmp_path)
    rows = [{"image": "rgb.png", "label": image_models.TEXTS[1]}, {"image": "rgb.png", "texts": ["a cat"], "label": 0}]
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    first, second, *_ = asked(checkpoints[CLIP], TEXTS, path, image_models.TEXTS)
    expected = image_models.tokens(checkpoints[CLIP], list(image_models.TEXTS))
    assert first.inputs["input_ids"].tolist() == [expected["input_ids"].tolist()]
    assert first.own_inputs["input_ids"].tolist() == expected["input_ids"].tolist()
    assert (first.label, second.label, second.inputs["input_ids"].shape[:2]) == (1, 0, (1, 1))
    drawn = asked(checkpoints[CLIP], TEXTS, None)
    assert {case.inputs["input_ids"].shape[1] for case in drawn} == {4}


def test_other_tensors_than_the_checkpoints_own_processor_makes_are_refused(checkpoints, files, monkeypatch):
    load = own_processor.load

    def brighter(checkpoint, **options):
        own = load(checkpoint, **options)
        own.processor.image_mean = [0.45] * 3
        return own

    monkeypatch.setattr(own_processor, "load", brighter)
    with pytest.raises(StepError, match="pixel_values differs") as caught:
        asked(checkpoints[VIT], {"pixel_values": PIXELS}, files)
    assert "the greatest difference is 0.1; one step of a pixel is 0.0079" in str(caught.value)


def test_a_recipe_that_prepares_images_otherwise_is_not_compared(checkpoints, files):
    inputs = image_cases.maker(
        Images(), checkpoints[VIT], {"pixel_values": PIXELS}, {"mean": [0.4] * 3}, files, is_original=True
    )
    assert inputs.own is None


def test_an_image_that_cannot_be_decoded_is_named(checkpoints, tmp_path):
    shutil.copy(image_files.write_files(tmp_path / "all")["truncated"], tmp_path / "half.png")
    with pytest.raises(StepError, match=r"the image of half.png cannot be used"):
        asked(checkpoints[VIT], {"pixel_values": PIXELS}, tmp_path / "half.png")


def test_samples_of_images_for_a_model_without_images_say_what_it_takes(checkpoints, files):
    with pytest.raises(StepError, match="the model takes x: float32"):
        image_cases.maker(Images(), checkpoints[VIT], {"x": Input("x", "float32", ("batch", 4))}, {}, files)


@pytest.mark.whole
@pytest.mark.parametrize("name", image_models.NAMES)
def test_each_architectures_images_are_those_of_transformers(name, files, tmp_path):
    checkpoint, specs = image_models.write(name, tmp_path), {"pixel_values": PIXELS}
    try:
        inputs = image_cases.maker(Images(), checkpoint, specs, {}, files, is_original=True)
    except StepError:  # an image processor that is not known
        return
    assert len(image_cases.ask(inputs, files, checkpoint, (), keep=lambda case: case)) > len(image_files.GOOD)
