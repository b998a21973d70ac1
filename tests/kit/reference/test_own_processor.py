"""The checkpoint's own processor: Pillow's class of transformers, and texts only where the model takes them."""

import image_files
import image_models
import pytest

from engine.errors import StepError
from engine.kit.reference import own_processor


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return image_models.write("clip/zero-shot-image-classification", tmp_path_factory.mktemp("clip"))


def test_it_is_the_class_of_pillow_and_makes_tokens_of_texts(clip, tmp_path):
    file = image_files.write_photos(tmp_path, 1)[0].read_bytes()
    own = own_processor.load(clip, takes_texts=True)
    assert type(own.processor).__name__ == "CLIPImageProcessorPil"
    inputs = own.inputs([file, file], ["a cat", "a dog"], padding=True)
    assert (inputs["pixel_values"].shape[0], inputs["input_ids"].shape[0]) == (2, 2)
    assert own_processor.load(clip).inputs([file], ["a cat"]).keys() == {"pixel_values"}


def test_a_model_that_is_none_of_transformers_has_none(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    assert own_processor.load(tmp_path) is None


def test_settings_that_transformers_cannot_read_say_so(clip, tmp_path):
    for path in clip.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "preprocessor_config.json").write_text('{"image_processor_type": "NoImageProcessor"}')
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"]}')
    with pytest.raises(StepError, match="the checkpoint's own image processor cannot be loaded"):
        own_processor.load(tmp_path)
