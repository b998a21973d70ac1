"""Images as they are prepared by the server."""

import pytest

from engine.kit.triton.served.image import Work as Image


@pytest.fixture
def prepare(tmp_path):
    pytest.importorskip("PIL", reason="Pillow is not installed: no image can be prepared")

    def work(**settings):
        usual = {
            "size": [8, 8], "mode": "RGB", "crop": "center", "share": 0.8, "interpolation": "bilinear",
            "mean": [0.5] * 3, "std": [0.25] * 3, "last": True, "output": "images",
        }  # fmt: skip
        return Image(tmp_path, {**usual, **settings})

    return work


@pytest.mark.parametrize(
    ("crop", "own", "expected"),
    [("center", (40, 20), (20, 10)), ("center", (20, 41), (10, 20)), ("squash", (40, 20), (10, 10)),
     ("border", (40, 20), (10, 5))],
)  # fmt: skip
def test_images_are_scaled_as_timm_scales_them(prepare, crop, own, expected):
    assert prepare(crop=crop).target(*own) == expected


def test_what_a_border_adds_is_the_mean_and_a_grey_image_has_one_channel(prepare):
    new = pytest.importorskip("PIL.Image", reason="Pillow is not installed").new
    wide = prepare(crop="border").cut(new("RGB", (10, 4), (255, 0, 0)))
    assert wide.size == (8, 8)
    assert wide.getpixel((0, 0)) == (128, 128, 128)
    assert wide.getpixel((0, 2)) == (255, 0, 0)
    small = prepare(mode="L", mean=[0.5], std=[0.25]).cut(new("L", (3, 3), 7))
    assert [small.getpixel((x, 4)) for x in (1, 2, 4, 5)] == [0, 7, 7, 0]
