"""Drawn images are PNG files that differ by their seeds."""

import io

import numpy as np
import pytest
from PIL import Image

from engine.kit.inputs import drawn_images


@pytest.mark.parametrize(("is_grey", "mode"), [(False, "RGB"), (True, "L")])
def test_an_image_has_its_size_and_its_mode(is_grey, mode):
    picture = Image.open(io.BytesIO(drawn_images.png(40, 60, seed=1, is_grey=is_grey)))

    assert (picture.format, picture.size, picture.mode) == ("PNG", (60, 40), mode)
    assert np.asarray(picture).std() > 20


def test_a_seed_gives_one_image():
    assert drawn_images.png(40, 60, seed=1) == drawn_images.png(40, 60, seed=1)
    assert drawn_images.png(40, 60, seed=1) != drawn_images.png(40, 60, seed=2)
