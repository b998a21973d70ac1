"""Real files config.pbtxt: the fields of the recipe give Triton the configuration that the file has, field by field."""

# The files come from https://github.com/triton-inference-server/tutorials at commit
# e84895253165a887db5e25cd69d24def7a90b1ee, with their licence (BSD-3-Clause) at the top: part_N are the folders
# Conceptual_Guide/Part_N..., quick_pytorch is Quick_Deploy/PyTorch.

from pathlib import Path

import pytest

pytest.importorskip("tritonclient.grpc.model_config_pb2", reason="tritonclient is not installed")

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as model_config

from engine.drafts import pbtxt
from engine.errors import UsageError
from engine.kit.triton.fields import merge

FILES = sorted((Path(__file__).parent / "pbtxt").glob("*.pbtxt"))
OF_THE_MODEL = ("input", "output", "platform", "backend", "default_model_filename")
"""The fields that the package takes from the built model."""


def triton_fields(settings):
    start = "package.triton."
    return {path.removeprefix(start): value for path, value in settings.fields.items() if path.startswith(start)}


def test_there_are_eleven_files():
    assert len(FILES) == 11


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_configuration_of_the_recipe_is_that_of_the_file(path):
    expected = text_format.Parse(path.read_text(), model_config.ModelConfig())
    settings = pbtxt.read(path)
    written = model_config.ModelConfig()
    merge(written, triton_fields(settings))
    for field in OF_THE_MODEL:
        expected.ClearField(field)
    assert {field.name: value for field, value in written.ListFields()} == {
        field.name: value for field, value in expected.ListFields()
    }
    assert written == expected


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_field_that_the_model_decides_is_named(path):
    expected = text_format.Parse(path.read_text(), model_config.ModelConfig())
    named = {each.setting for each in pbtxt.read(path).unmapped}
    present = {field.name for field, _ in expected.ListFields()}
    assert present & {"input", "output", "default_model_filename"} <= named


def test_the_runtime_and_the_device_come_from_the_file():
    by_name = {path.stem: pbtxt.read(path) for path in FILES}
    assert by_name["part_6_vae"].device is None  # a GPU, which the user names
    assert by_name["part_1_text_detection"].fields["target.runtime"] == "onnxruntime"
    assert by_name["part_1_text_detection"].device == "cpu"
    assert by_name["part_2_text_recognition"].device is None


def test_a_model_beside_the_file_is_the_model(tmp_path):
    (tmp_path / "config.pbtxt").write_text('name: "net"\nbackend: "onnxruntime"')
    assert pbtxt.read(tmp_path / "config.pbtxt").model is None
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "model.onnx").touch()
    assert pbtxt.read(tmp_path / "config.pbtxt").model == str(tmp_path / "1" / "model.onnx")


@pytest.mark.parametrize(
    ("text", "what"),
    [("name = 3", "is no config.pbtxt"), ('platform: "ensemble"', "runs code or other models"), (None, "there is no")],
)
def test_a_wrong_file_is_an_error(text, what, tmp_path):
    path = tmp_path / "config.pbtxt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=what):
        pbtxt.read(path)
