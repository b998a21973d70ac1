"""The small image models of the tests are like published ones: each loads, and tells images and texts apart."""

import image_configs
import image_files
import image_models
import numpy as np
import pytest
from PIL import Image
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


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    paths = [folder / f"{number}.png" for number in range(3)]
    for number, path in enumerate(paths):
        image_files.picture(70, 52, seed=number).save(path)
    return paths


@pytest.mark.parametrize(
    "name", sorted(name for name in image_models.NAMES if image_models.task_of(name) != image_configs.TEXTS)
)
def test_a_small_image_model_answers_differently_for_different_images(name, photos, tmp_path):
    folder = image_models.write(name, tmp_path)
    if name in WITHOUT_PILLOW:
        return
    answers = image_models.reference(folder, name, photos)
    outputs = [each for each in MAIN[image_models.task_of(name)] if each in answers]
    assert outputs
    for output in outputs if len(outputs) > 1 and "pred_boxes" in outputs else outputs[:1]:
        rows = answers[output]
        assert np.isfinite(rows).all()
        assert np.abs(rows).max() < 100
        assert np.abs(rows[0] - rows[1]).max() > 0.01
        assert np.abs(rows[1] - rows[2]).max() > 0.01
