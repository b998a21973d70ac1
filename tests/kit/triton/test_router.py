"""The models of a built model: one, or several behind a router."""

from pathlib import Path

import pytest

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import router
from engine.kit.triton.serving import Serving
from engine.runtimes.backends import Backend
from engine.runtimes.execution import Execution
from engine.runtimes.served import Router, Served

FOLDER = Path("built")
SERVING = Serving(model_name="m", ensemble="m_text", execution=Execution(runtime="openvino", options={}))


def openvino(*shape, folder=None):
    return Served(
        Backend.OPENVINO, {"x": Input("x", "float32", shape)}, {"y": Input("y", "float32", shape)}, ("model.xml",),
        folder=folder, joined=False,
    )  # fmt: skip


def several():
    models = {"1x8": openvino(1, 8, folder=Path("fixed")), "free": openvino("batch", "sequence")}
    free = openvino("batch", "sequence")
    return Served(Backend.PYTHON, free.inputs, free.outputs, (), joined=False, router=Router(b"code", {}, models))


def test_one_model_is_called_itself():
    [part], files, signature = router.built(SERVING, openvino("batch", 4), FOLDER)
    assert (part.config.name, part.config.backend) == ("m", "openvino")
    assert (files["m"].folder, files["m"].names) == (FOLDER, ("model.xml",))
    assert signature.batch_axis == "batch"


def test_several_models_stand_behind_a_router_with_the_name_of_the_package():
    listed, files, _ = router.built(SERVING, several(), FOLDER)
    assert [(part.config.name, part.config.backend) for part in listed] == [
        ("m_1x8", "openvino"), ("m_free", "openvino"), ("m", "python")
    ]  # fmt: skip
    assert {name: each.folder for name, each in files.items()} == {"m_1x8": Path("fixed"), "m_free": FOLDER}
    assert set(listed[-1].files) == {"model.py", "route.py", "routing.py", "settings.json"}
    assert listed[0].config.input[0].dims == [1, 8]
    assert listed[-1].config.input[0].dims == [-1, -1]


def test_fields_of_the_recipe_are_those_of_the_models_behind_the_router():
    serving = SERVING.model_copy(update={"fields": {"instance_group": [{"count": 2}]}})
    listed, *_ = router.built(serving, several(), FOLDER)
    assert [part.config.instance_group[0].count for part in listed] == [2, 2, 4]


def test_a_warmup_of_one_shape_is_refused():
    serving = SERVING.model_copy(update={"fields": {"model_warmup": [{"name": "w"}]}})
    with pytest.raises(StepError, match="compiled for several"):
        router.built(serving, several(), FOLDER)
