"""Boxes of a user's own detector: the layouts of its outputs, overlaps as in ONNX, and the pixels of the file."""

import io

import graphs
import numpy as np
import onnxruntime
import pytest
from onnx import helper
from PIL import Image

from engine.kit.images.preparation import Preparation
from engine.kit.images.settings import of_checkpoint
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton.served import boxes

LABELS = ["cat", "dog", "bird"]
SETTINGS = {
    "labels": LABELS, "threshold": 0.25, "iou": 0.5, "layout": "yolov8", "format": "cxcywh", "normalized": False,
    "size": [64, 96], "fit": "stretch", "takes": ["own_boxes"],
}  # fmt: skip


def answer(outputs, sizes=((64, 96),), **settings):
    """The answer of the served code to outputs by name."""
    takes = {**SETTINGS, "takes": list(outputs), **settings}
    return boxes.Work(None, takes)({**outputs, "image_sizes": np.array(sizes)})


def of_onnx(places, scores, iou, threshold):
    """The boxes and classes that ONNX's NonMaxSuppression selects for one image, with their scores, best first."""
    limits = {"most": (graphs.INT64, 300), "iou": (graphs.FLOAT, iou), "threshold": (graphs.FLOAT, threshold)}
    stored = [helper.make_tensor(name, kind, [1], [value]) for name, (kind, value) in limits.items()]
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", *limits], ["selected"])
    ends = [("boxes", graphs.FLOAT, [1, None, 4]), ("scores", graphs.FLOAT, [1, None, None])]
    model = graphs.graph([node], ends, [("selected", graphs.INT64, [None, 3])], stored)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    corners = places[:, [1, 0, 3, 2]]
    [chosen] = session.run(None, {"boxes": corners[None], "scores": np.ascontiguousarray(scores.T)[None]})
    return sorted(((scores[box, kind], kind, box) for _, kind, box in chosen.tolist()), reverse=True)


@pytest.mark.parametrize("iou", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_overlaps_are_those_of_onnx(iou, seed):
    rng = np.random.default_rng(seed)
    corners = rng.uniform(0, 60, (80, 2)).astype(np.float32)
    places = np.concatenate([corners, corners + rng.uniform(0, 30, (80, 2)).astype(np.float32)], axis=1)
    scores = rng.permutation(np.linspace(0, 1, 240, dtype=np.float32)).reshape(80, 3)
    found = answer({"b": places[None], "s": scores[None]}, layout="separate", format="xyxy", iou=iou)
    expected = of_onnx(places, scores, iou, SETTINGS["threshold"])
    assert len(expected) > 3
    assert [LABELS.index(each.decode()) for each in found["labels"][0]] == [kind for _, kind, _ in expected]
    assert np.allclose(found["scores"][0], [score for score, _, _ in expected])
    clipped = np.clip(places, 0, [96, 64, 96, 64])
    assert np.allclose(found["boxes"][0], clipped[[box for _, _, box in expected]], atol=1e-4)
    turned = answer({"b": places[None], "s": scores.T[None]}, layout="separate", format="xyxy", iou=iou)
    assert all(np.array_equal(turned[name], found[name]) for name in found)


def test_every_layout_has_the_same_boxes():
    middles = np.array([[30, 20, 20, 10], [31, 20, 20, 10], [70, 40, 10, 20]], np.float32)
    scores = np.array([[0.9, 0.1, 0], [0.8, 0, 0], [0, 0.2, 0.6]], np.float32)
    sure = np.full((3, 1), 0.5, np.float32)
    outputs = {
        "yolov8": {"o": np.concatenate([middles, scores], axis=1).T[None]},
        "yolov5": {"o": np.concatenate([middles, sure, scores / sure], axis=1)[None]},
        "separate": {"b": middles[None], "s": scores.max(axis=1)[None], "l": scores.argmax(axis=1)[None]},
    }
    for layout, given in outputs.items():
        found = answer(given, layout=layout)
        assert found["labels"].tolist() == [[b"cat", b"bird"]], layout
        assert np.allclose(found["boxes"], [[[20, 15, 40, 25], [65, 30, 75, 50]]])
    shares = middles / np.array([96, 64, 96, 64], np.float32)
    found = answer({"b": shares[None], "s": scores[None]}, layout="separate", normalized=True)
    assert np.allclose(found["boxes"], [[[20, 15, 40, 25], [65, 30, 75, 50]]], atol=1e-4)


@pytest.mark.parametrize("fit", ["stretch", "letterbox", "crop"])
@pytest.mark.parametrize(("height", "width"), [(300, 200), (50, 333), (64, 96), (65, 97)])
def test_a_box_around_a_mark_in_the_prepared_image_is_around_the_mark_in_the_file(tmp_path, fit, height, width):
    picture = np.zeros((height, width, 3), np.uint8)
    place = (width * 0.4, height * 0.4, width * 0.6, height * 0.6)
    picture[round(place[1]) : round(place[3]), round(place[0]) : round(place[2])] = 255
    Image.fromarray(picture).save(file := io.BytesIO(), "PNG")
    (tmp_path / "model.onnx").touch()
    specs = {"x": Input("x", "float32", ("batch", 3, 64, 96))}
    preprocess = {"size": {"height": 64, "width": 96}, "fit": fit}
    prepared = Preparation(of_checkpoint(tmp_path, specs, preprocess, sizes=True)).tensors([file.getvalue()])
    rows, columns = np.nonzero(prepared["x"][0, 0] > 0.7)
    corners = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    given = {"b": np.array([[corners]], np.float32), "s": np.ones((1, 1, 1), np.float32)}
    found = answer(given, prepared["image_sizes"], layout="separate", format="xyxy", fit=fit)
    assert np.allclose(found["boxes"][0, 0], place, atol=1 + 1.5 * max(height / 64, width / 96))


def test_rows_with_fewer_boxes_are_filled_up_and_an_image_may_have_none():
    output = np.zeros((2, 7, 1), np.float32)
    output[0, :, 0] = [30, 20, 20, 10, 0, 0.9, 0]
    found = answer({"o": output}, [(64, 96), (64, 96)])
    assert found["labels"].tolist() == [[b"dog"], [b""]]
    assert found["boxes"][1].tolist() == [[-1, -1, -1, -1]]
    assert answer({"o": output[1:]})["boxes"].shape == (1, 0, 4)
