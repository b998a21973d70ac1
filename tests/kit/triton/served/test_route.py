"""The router as it is served: which model gets a request, and what comes back from it."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from engine.kit.triton.served import route
from engine.runtimes import routing

FACTS = {
    "inputs": {"input_ids": ["batch", "sequence"]}, "outputs": {"states": ["batch", "sequence"]},
    "fixed": [{"batch": 1, "sequence": 8}], "free": True, "rows": "batch", "tokens": "sequence", "left": False,
    "fill": {"input_ids": 0},
}  # fmt: skip


class Recorded(route.Work):
    """A router whose models are functions of this process: each answers with its input times ten."""

    def called(self, name, given):
        self.last = name, given["input_ids"].shape
        return {"states": given["input_ids"] * 10}


@pytest.fixture
def router(tmp_path):
    folder = tmp_path / "1"
    folder.mkdir()
    shutil.copy(Path(routing.__file__), folder / "routing.py")
    return Recorded(folder, {"routing": FACTS, "models": ["m_1x8", "m_free"]})


@pytest.mark.parametrize(("tokens", "last"), [(8, ("m_1x8", (1, 8))), (7, ("m_1x8", (1, 8))), (3, ("m_free", (1, 3)))])
def test_a_request_goes_to_the_model_of_its_shape(router, tokens, last):
    ids = np.arange(1, tokens + 1)[None]
    assert np.array_equal(router({"input_ids": ids})["states"], ids * 10)
    assert router.last == last


def test_a_shape_that_is_not_the_models_is_refused(router):
    with pytest.raises(ValueError, match="the model takes"):
        router({"input_ids": np.zeros((1, 2, 3))})
