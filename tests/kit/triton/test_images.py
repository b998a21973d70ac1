"""Packages of image models: what stands before and behind the model, by the inputs of its graph and its own files."""

import image_files
import image_models
import image_tokenizers
import numpy as np
import onnx
import pytest
import transformers
from google.protobuf import text_format
from image_configs import Processor
from onnx import TensorProto, helper
from tritonclient.grpc import model_config_pb2

from engine.kit.triton import repository
from engine.kit.triton.served.model import _module
from engine.kit.triton.serving import Serving
from engine.recipe.image_input import Images

IMAGES = ["batch", 3, 32, 32]
FREE = {"pixel_values": ["batch", 3, "height", "width"], "pixel_mask": ["batch", "height", "width"]}
TEXTS = {"input_ids": ["batch", "texts", "sequence"], "attention_mask": ["batch", "texts", "sequence"]}
QUERIES = {"logits": ["batch", 9, 6], "pred_boxes": ["batch", 9, 4]}


def graph(folder, inputs, outputs):
    """A graph of these inputs and outputs, which nobody runs."""
    described = [
        [
            helper.make_tensor_value_info(
                name, TensorProto.FLOAT if shape[1] == 3 or given is outputs else TensorProto.INT64, shape
            )
            for name, shape in given.items()
        ]
        for given in (inputs, outputs)
    ]
    nodes = [helper.make_node("Any", [*inputs], [*outputs], domain="own")]
    model = helper.make_model(helper.make_graph(nodes, "g", *described))
    folder.mkdir()
    onnx.save(model, folder / "model.onnx")
    return folder


def checkpoint(folder, family, processor=None, tokenizer=None, settings=None):
    """The files beside the weights of a checkpoint."""
    folder.mkdir()
    labels = {"id2label": dict(enumerate(image_models.LABELS)), "num_labels": len(image_models.LABELS)}
    transformers.AutoConfig.for_model(family, **labels).save_pretrained(folder)
    if processor:
        image_models.write_processor(folder, Processor(name=processor, settings=settings or {}))
    if tokenizer:
        getattr(image_tokenizers, tokenizer)(folder)
    return folder


@pytest.fixture
def packaged(tmp_path):
    def package(task, family, inputs, outputs, *, options=None, **files):
        own = checkpoint(tmp_path / "checkpoint", family, **files)
        serving = Serving(
            model_name="m", ensemble="m_entry", task=task, images=Images(), largest={"batch": 8}, **(options or {})
        )
        graph(tmp_path / "validated", inputs, outputs)
        report = repository.write(tmp_path / "out", serving, validated=tmp_path / "validated", checkpoint=own)
        configs = {
            path.parent.name: text_format.Parse(path.read_text(), model_config_pb2.ModelConfig())
            for path in (tmp_path / "out").glob("*/config.pbtxt")
        }
        return report, configs

    return package


def work(folder):
    """The code of a python model of a package, as the server runs it."""
    import json

    settings = json.loads((folder / "settings.json").read_text())
    return _module(folder / settings["work"]).Work(folder, settings)


def tensors(described):
    return {tensor.name: list(tensor.dims) for tensor in described}


def test_a_detector_gets_its_images_one_at_a_time_and_its_answers_the_size_of_the_file(packaged, tmp_path):
    report, configs = packaged(
        "object-detection", "detr", FREE, QUERIES, processor="Detr", options={"answers": {"threshold": 0.9}},
        settings={"size": {"shortest_edge": 48, "longest_edge": 80}},
    )  # fmt: skip
    assert report.models == ("m", "m_preprocess", "m_postprocess", "m_entry_row", "m_entry")
    entry = configs["m_entry"]
    assert tensors(entry.input) == {"IMAGE": [1]}
    assert tensors(entry.output) == {"labels": [-1], "scores": [-1], "boxes": [-1, 4]}
    assert entry.parameters["recipe_rows"].string_value == "equal lengths"
    prepared = tensors(configs["m_preprocess"].output)
    assert prepared == {"pixel_values": [3, -1, -1], "pixel_mask": [-1, -1], "image_sizes": [2]}
    find = work(tmp_path / "out" / "m_postprocess" / "1")
    assert (find.threshold, find.labels.tolist()) == (np.float32(0.9), [each.encode() for each in image_models.LABELS])
    [warmup] = configs["m"].model_warmup
    assert list(warmup.inputs["pixel_values"].dims) == [3, 224, 224]


def test_an_image_has_several_texts_each_with_tokens_of_its_own(packaged, tmp_path):
    report, configs = packaged(
        "zero-shot-image-classification", "clip", {"pixel_values": IMAGES, **TEXTS},
        {"logits_per_image": ["batch", "texts"]}, processor="CLIP", tokenizer="clip",
        settings={"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}},
    )  # fmt: skip
    assert report.models == ("m", "m_preprocess", "m_tokenizer", "m_postprocess", "m_entry")
    assert tensors(configs["m_entry"].input) == {"IMAGE": [1], "TEXT": [-1]}
    assert tensors(configs["m_entry"].output) == {"logits_per_image": [-1], "labels": [-1], "scores": [-1]}
    steps = {step.model_name: step for step in configs["m_entry"].ensemble_scheduling.step}
    assert steps["m_tokenizer"].input_map["TEXT"] == steps["m_preprocess"].output_map["checked_texts"]
    assert tensors(configs["m_tokenizer"].output) == {"input_ids": [-1, -1], "attention_mask": [-1, -1]}
    tokens = work(tmp_path / "out" / "m_tokenizer" / "1")
    rows = [["a photo of a cat", "two slow films"], ["fast!", "a train by the river " * 20]]
    own = transformers.AutoTokenizer.from_pretrained(tmp_path / "checkpoint")
    expected = own([text for row in rows for text in row], padding=True, truncation=True, return_tensors="np")
    answer = tokens({"TEXT": np.array([[text.encode() for text in row] for row in rows], dtype=object)})
    for name in TEXTS:
        assert answer[name].tolist() == expected[name].reshape(2, 2, -1).tolist()
    with pytest.raises(ValueError, match="each row holds at least one text"):
        tokens({"TEXT": np.empty((2, 0), dtype=object)})


def test_texts_without_a_mask_are_padded_as_the_models_own_processor_pads_them(packaged, tmp_path):
    inputs = {"pixel_values": IMAGES, "input_ids": ["batch", "texts", 64]}
    packaged(
        "zero-shot-image-classification", "siglip", inputs, {"logits_per_image": ["batch", "texts"]},
        processor="Siglip", tokenizer="siglip", settings={"size": {"height": 32, "width": 32}},
    )  # fmt: skip
    answer = work(tmp_path / "out" / "m_tokenizer" / "1")({"TEXT": np.array([[b"a cat", b"fast!"]], dtype=object)})
    own = image_models.tokens(tmp_path / "checkpoint", ["a cat", "fast!"])
    assert answer["input_ids"].tolist() == [own["input_ids"].tolist()]


def test_a_model_that_nobody_says_how_to_feed_takes_and_gives_tensors(packaged):
    report, configs = packaged("object-detection", "detr", FREE, QUERIES)
    assert report.models == ("m",)
    assert tensors(configs["m"].output) == {"logits": [9, 6], "pred_boxes": [9, 4]}


def test_vectors_are_the_models_own_outputs(packaged, tmp_path):
    report, configs = packaged(
        "image-feature-extraction", "clip", {"pixel_values": IMAGES}, {"image_embeds": ["batch", 24]},
        processor="CLIP", settings={"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}},
    )  # fmt: skip
    assert report.models == ("m", "m_preprocess", "m_entry")
    assert tensors(configs["m_entry"].output) == {"image_embeds": [24]}
    prepare = work(tmp_path / "out" / "m_preprocess" / "1")
    files = image_files.write_files(tmp_path / "files")
    given = np.array([[files[name].read_bytes()] for name in ("rgb", "turned")], dtype=object)
    assert prepare({"IMAGE": given})["pixel_values"].shape == (2, 3, 32, 32)


def test_masks_need_pillow_on_the_server(packaged, tmp_path):
    packaged(
        "image-segmentation", "segformer", {"pixel_values": IMAGES}, {"logits": ["batch", 5, 8, 8]},
        processor="Segformer", settings={"size": {"height": 32, "width": 32}},
    )  # fmt: skip
    assert "pillow==" in (tmp_path / "out" / "m_postprocess" / "requirements.txt").read_text()
