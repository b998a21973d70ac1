"""Images as they are prepared by the server."""

import io
import json
import shutil

import numpy as np
import pytest

from engine.kit.images import preparation
from engine.kit.triton.served.image import Work

SETTINGS = {
    "output": "images", "dtype": "float32", "last": True, "shape": [2, 2], "mode": "RGB",
    "on_white": False, "reversed": False,
    "upright": False, "resize": {"shortest_edge": 2}, "resample": 0, "crop": [2, 2], "fill": [0, 0, 0],
    "half_even": True, "scale": None, "normalize": [], "pad": None, "mask": None, "sizes": False,
}  # fmt: skip


def test_each_row_of_a_request_is_an_image_file(tmp_path):
    new = pytest.importorskip("PIL.Image", reason="Pillow is not installed: no image can be prepared").new
    shutil.copy(preparation.__file__, tmp_path / "preparation.py")
    file = io.BytesIO()
    new("RGB", (4, 2), (1, 2, 3)).save(file, "PNG")
    work = Work(tmp_path, json.loads(json.dumps(SETTINGS)))
    made = work({"IMAGE": np.array([[file.getvalue()]] * 3, dtype=object)})["images"]
    assert made.shape == (3, 2, 2, 3)
    assert made[2, 1, 1].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="IMAGE: 4 bytes that are no image"):
        work({"IMAGE": np.array([[b"text"]], dtype=object)})
