"""How Triton serves an IR: as one model, or as a model for each shape."""

import models
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest

from engine.recipe.values import Range
from engine.runtimes.backends import Backend
from engine.runtimes.execution import Execution
from engine.runtimes.openvino import ir, triton
from engine.steps.openvino_build import OpenvinoBuild

FOUR, EIGHT = ({"batch": Range(min=size, opt=size, max=size)} for size in (4, 8))
RANGES = {"batch": Range(min=1, opt=2, max=16)}


@pytest.fixture
def served(tmp_path):
    """The function that builds an image classifier for profiles, and tells how Triton serves the classifier."""
    models.onnx_vision(tmp_path / "model.onnx")

    def build(*profiles):
        OpenvinoBuild(shapes=profiles).run(tmp_path / "built", checked=tmp_path)
        return triton.served(tmp_path / "built", Execution(), tmp_path / "scratch")

    return build


def test_free_shapes_and_a_single_fixed_shape_are_one_model(served):
    one = served(RANGES)
    assert (one.backend, one.folder, one.router) == (Backend.OPENVINO, None, None)
    assert one.inputs["image"].shape == ("batch", 3, 32, 32)
    one = served(FOUR)
    assert (one.backend, one.router) == (Backend.OPENVINO, None)
    assert one.inputs["image"].shape == (4, 3, 32, 32)
    assert list(ir.read(one.folder / ir.MODEL).inputs[0].get_shape()) == [4, 3, 32, 32]


def test_several_shapes_are_models_behind_a_router(served):
    several = served(FOUR, RANGES, EIGHT)
    assert (several.backend, several.files) == (Backend.PYTHON, ())
    assert several.inputs["image"].shape == ("batch", 3, 32, 32)
    assert list(several.router.models) == ["4", "8", "free"], "the order of the numbers in the routing"
    assert several.router.facts["fixed"] == [{"batch": 4}, {"batch": 8}]
    assert b"class Routing" in several.router.code
    assert several.router.models["8"].inputs["image"].shape == (8, 3, 32, 32)
