"""A detector's objects: found again, exchanged, with another label, at another place."""

from __future__ import annotations

import json

import numpy as np
import pytest

from engine.kit.accuracy.detections import BOXES, LOGITS, Detector
from engine.kit.inputs.cases import Case

QUERIES, CLASSES = 12, 4


def detector(*, has_none=False):
    return Detector(has_none=has_none)


def outputs(seed=0, *, none=0):
    """One row whose queries 0 to 5 are objects: of class 0, 1, 2, 3, 0, 1, at places that do not overlap."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(-5, 0.1, (1, QUERIES, CLASSES + none))
    boxes = np.stack([(0.08 * np.arange(QUERIES) + 0.05), np.full(QUERIES, 0.5)], axis=1)
    boxes = np.concatenate([boxes, np.full((QUERIES, 2), 0.06)], axis=1)[None]
    for query in range(6):
        logits[0, query, query % CLASSES] = 3
    logits[..., CLASSES:] = 0
    return {LOGITS: logits.astype(np.float32), BOXES: boxes.astype(np.float32)}


def changed(each, **names):
    return {**{name: array.copy() for name, array in each.items()}, **names}


@pytest.mark.parametrize("none", [0, 1])
def test_equal_models_find_equal_objects(none):
    original = outputs(none=none)
    same = detector(has_none=bool(none)).choices(original, changed(original))
    assert (same.count, same.changed) == (12, 0)  # six objects of each model


def test_a_box_that_ends_before_it_starts_is_found_again():
    original = outputs()
    original[BOXES][0, 0, 3] = -0.002
    assert detector().choices(original, changed(original)).changed == 0


def test_an_object_with_another_label_is_lost_and_another_one_is_added():
    original = outputs()
    built = changed(original)
    built[LOGITS][0, 0] = np.roll(built[LOGITS][0, 0], 1)
    assert detector().choices(original, built).changed == 2


def test_an_object_at_another_place_is_lost_and_a_moved_pixel_is_none():
    original = outputs()
    built = changed(original)
    built[BOXES][0, 0, 1] += 0.3
    built[BOXES][0, 1, 0] += 0.002
    assert detector().choices(original, built).changed == 2


def test_scores_that_became_constant_lose_every_object():
    original = outputs()
    built = changed(original, logits=np.full_like(original[LOGITS], -5))
    assert detector().choices(original, built).changed >= 5


def test_labels_of_nearly_equal_scores_are_near_ties():
    original = outputs()
    original[LOGITS][0, 0, :2] = 3, 2.99
    built = changed(original)
    built[LOGITS][0, 0, :2] = 2.99, 3
    choices = detector().choices(original, built)
    assert (choices.changed, choices.near_ties) == (2, 2)


def test_queries_in_another_order_are_the_same_objects():
    original = outputs()
    order = np.random.default_rng(3).permutation(QUERIES)
    built = {name: array[:, order] for name, array in original.items()}
    aligned = detector().aligned(original, built)
    for name, array in original.items():
        np.testing.assert_array_equal(aligned[name], array)
    kept = changed(original, logits=original[LOGITS] + np.float32(0.01))
    np.testing.assert_array_equal(detector().aligned(original, kept)[LOGITS], kept[LOGITS])


@pytest.mark.parametrize(("extra", "has_none"), [(0, False), (1, True)])
def test_the_number_of_labels_tells_whether_a_class_means_no_object(tmp_path, extra, has_none):
    names = {str(number): f"label {number}" for number in range(CLASSES)}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "detr", "id2label": names}))
    case = Case("1", "", "sample", {}, outputs(none=extra))
    assert Detector.of([case], tmp_path) == Detector(has_none=has_none)
    case.outputs.pop(BOXES)
    assert Detector.of([case], tmp_path) is None
