"""The small image models of the tests are like published ones: each loads, and tells images and texts apart."""

import image_configs
import image_files
import image_models
import numpy as np
import pytest
from PIL import Image
from tokenizers import Tokenizer
from transformers import AutoTokenizer
from transformers.image_utils import load_image

WITHOUT_PILLOW = {"dinov3_vit/image-feature-extraction"}
"""Pairs whose image processor transformers has only with torchvision."""
MAIN = {
    image_configs.CLASSIFICATION: ("logits",),
    image_configs.FEATURES: ("image_embeds", "pooler_output", "last_hidden_state"),
    image_configs.ZERO_SHOT: ("logits_per_image",),
    image_configs.DETECTION: ("logits", "pred_boxes"),
    image_configs.SEGMENTATION: ("logits",),
}
TEXT_TOWERS = image_models.names(image_configs.TEXTS)
WITH_IMAGES = sorted(set(image_models.NAMES) - set(TEXT_TOWERS) - WITHOUT_PILLOW)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    paths = [folder / f"{number}.png" for number in range(3)]
    for number, path in enumerate(paths):
        image_files.picture(70, 52, seed=number).save(path)
    return paths


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return image_files.write_files(tmp_path_factory.mktemp("files"))


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", WITH_IMAGES)
def test_a_small_image_model_answers_differently_for_different_images(name, photos, tmp_path):
    answers = image_models.reference(image_models.write(name, tmp_path), name, photos)
    outputs = [each for each in MAIN[image_models.task_of(name)] if each in answers]
    assert outputs
    for rows in (answers[output] for output in outputs):
        assert np.isfinite(rows).all()
        assert np.abs(rows).max() < 100
        assert np.abs(rows[0] - rows[1]).max() > 0.01
        assert np.abs(rows[1] - rows[2]).max() > 0.01


@pytest.mark.parametrize("name", image_models.names(image_configs.ZERO_SHOT))
def test_a_small_zero_shot_model_answers_differently_for_different_texts(name, photos, tmp_path):
    logits = image_models.reference(image_models.write(name, tmp_path), name, photos)["logits_per_image"]
    assert len({*np.round(logits[0], 3)}) == len(image_models.TEXTS)


@pytest.mark.parametrize("name", TEXT_TOWERS)
def test_a_small_text_tower_reads_what_its_own_tokenizer_file_says(name, tmp_path):
    folder = image_models.write(name, tmp_path)
    texts = list(image_models.TEXTS)
    of_the_file = Tokenizer.from_file(str(folder / "tokenizer.json"))
    of_transformers = AutoTokenizer.from_pretrained(folder)
    assert [of_the_file.encode(text).ids for text in texts] == of_transformers(texts)["input_ids"]
    vectors = image_models.text_reference(folder, name, texts)
    assert len({tuple(np.round(row, 3)) for row in vectors}) == len(texts)


@pytest.mark.parametrize("name", ["vit/image-classification", "clip/zero-shot-image-classification"])
def test_a_small_model_has_the_same_bytes_each_time(name, tmp_path):
    first, second = (image_models.write(name, tmp_path / place) for place in ("first", "second"))
    assert sorted(each.name for each in first.iterdir()) == sorted(each.name for each in second.iterdir())
    assert all((second / each.name).read_bytes() == each.read_bytes() for each in first.iterdir())
    other = image_models.write(name, tmp_path / "other", seed=1)
    assert (other / "model.safetensors").read_bytes() != (first / "model.safetensors").read_bytes()


@pytest.mark.parametrize("name", image_files.GOOD)
def test_a_good_file_is_an_image_for_transformers(name, files):
    assert load_image(str(files[name])).mode == "RGB"


@pytest.mark.parametrize("name", sorted(set(image_files.BAD) - {"huge"}))
def test_a_bad_file_is_none(name, files):
    with pytest.raises(OSError, match=r"image|data"):
        Image.open(files[name]).load()


def test_a_huge_file_has_a_hundred_megapixels_in_a_few_kilobytes(files):
    with pytest.warns(Image.DecompressionBombWarning):
        width, height = Image.open(files["huge"]).size
    assert width * height == 100_000_000
    assert files["huge"].stat().st_size < 20_000
