"""The target of a new recipe."""

import pytest

from engine.drafts import device
from engine.drafts.draft import Draft
from engine.errors import UsageError


def test_a_gpu_goes_by_the_catalogue(tmp_path):
    draft = Draft({})
    assert device.put(draft, "Tesla T4")
    assert draft.fields == {"target": {"device": "T4", "runtime": "tensorrt"}, "precision": "fp16"}
    assert not device.put(draft, "cpu")
    with pytest.raises(UsageError):
        device.put(Draft({}), "T44")
