"""Objects and masks are those that transformers' own post-processing finds in the same outputs of a model."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from engine.kit.triton.answers import boxes as answers
from engine.kit.triton.served import boxes, mask

PROCESSORS = {
    "detr": transformers.DetrImageProcessorPil,
    "yolos": transformers.YolosImageProcessorPil,
    "conditional_detr": transformers.ConditionalDetrImageProcessorPil,
    "deformable_detr": transformers.DeformableDetrImageProcessorPil,
    "rt_detr": transformers.RTDetrImageProcessorPil,
}
SIZES = np.array([[480, 640], [33, 7], [1, 1]])


@pytest.mark.parametrize("kind", PROCESSORS)
@pytest.mark.parametrize(("queries", "classes", "threshold"), [(7, 3, 0.5), (100, 5, 0.3), (30, 92, 0)])
def test_objects_are_those_of_the_models_own_processor(kind, queries, classes, threshold):
    rng = np.random.default_rng(0)
    apart = np.linspace(-6, 6, len(SIZES) * queries * classes, dtype=np.float32)  # no two scores are equal
    logits = rng.permutation(apart).reshape(len(SIZES), queries, classes)
    shares = rng.random((len(SIZES), queries, 4), np.float32)
    labels = [str(number) for number in range(classes)]
    work = boxes.Work(None, {"labels": labels, "threshold": threshold, **answers._WAYS[kind]})
    found = work({"logits": logits, "pred_boxes": shares, "image_sizes": SIZES})
    outputs = SimpleNamespace(logits=torch.tensor(logits), pred_boxes=torch.tensor(shares))
    rows = PROCESSORS[kind]().post_process_object_detection(outputs, threshold, torch.tensor(SIZES))
    counts = []
    for number, row in enumerate(rows):
        order = np.argsort(-row["scores"].numpy(), kind="stable")
        counts.append(len(order))
        ours = {name: array[number][: len(order)] for name, array in found.items()}
        assert [int(label) for label in ours["labels"]] == row["labels"].numpy()[order].tolist()
        assert np.allclose(ours["scores"], row["scores"].numpy()[order], atol=1e-6)
        assert np.allclose(ours["boxes"], row["boxes"].numpy()[order], rtol=1e-5, atol=1e-4)
        assert (found["labels"][number][len(order) :] == b"").all()
        assert (found["boxes"][number][len(order) :] == -1).all()
    assert max(counts) == found["scores"].shape[1] > 0


def test_an_image_without_an_object_has_none():
    work = boxes.Work(None, {"labels": ["cat"], "threshold": 0.5, "scores": "sigmoid"})
    given = {"logits": np.full((2, 3, 1), -9.0), "pred_boxes": np.zeros((2, 3, 4)), "image_sizes": SIZES[:2]}
    assert {name: array.shape for name, array in work(given).items()} == {
        "labels": (2, 0),
        "scores": (2, 0),
        "boxes": (2, 0, 4),
    }


@pytest.mark.parametrize("size", [(64, 48), (479, 641), (5, 3), (1, 1), (16, 300)])
@pytest.mark.parametrize("classes", [2, 19, 300])
def test_a_mask_is_that_of_the_models_own_processor(classes, size):
    logits = np.random.default_rng(0).standard_normal((2, classes, 16, 12), np.float32)
    logits[:, 1, 4:12] += 9  # a large object of one class
    labels = [f"class {number}" for number in range(classes)]
    found = mask.Work(None, {"labels": labels})({"logits": logits, "image_sizes": np.array([size, size[::-1]])})
    segformer = transformers.SegformerImageProcessorPil()
    outputs = SimpleNamespace(logits=torch.tensor(logits))
    expected = segformer.post_process_semantic_segmentation(outputs, target_sizes=[size, size[::-1]])
    for number, row in enumerate(expected):
        image = Image.open(io.BytesIO(found["mask"][number, 0]))
        assert image.mode == ("L" if classes <= 256 else "I;16")
        ours = np.asarray(image)
        assert ours.shape == tuple(row.shape)
        assert (ours != row.numpy()).mean() <= 1e-4  # logits of equal size, up to the last bit
        present = [f"class {value}".encode() for value in np.unique(ours)]
        assert found["labels"][number].tolist() == present + [b""] * (found["labels"].shape[1] - len(present))
