"""Files of warm-ups: their names and places in a package, and warm-ups that bench leaves out."""

import numpy as np
import pytest
from tritonclient.grpc import model_config_pb2

from engine.errors import StepError
from engine.kit.triton import fields, warmups
from engine.recipe.schema import Recipe


def recipe(*files):
    samples = [
        {"name": str(number), "batch_size": 1,
         "inputs": {"x": {"data_type": "TYPE_FP32", "dims": [2], "input_data_file": file}}}
        for number, file in enumerate(files)
    ]  # fmt: skip
    return Recipe.model_validate(
        {"name": "m", "model": {"source": "m"}, "package": {"triton": {"model_warmup": samples}}}
    )


def config(*files, called=None):
    message = model_config_pb2.ModelConfig(name="m")
    parsed = recipe(*files)
    fields.merge(message, warmups.renamed(parsed.package.triton.model_extra, called or warmups.names(parsed)))
    return message


def test_files_of_one_name_get_two_and_no_path_is_told():
    assert warmups.names(recipe("file:/a/x.bin", "file:/b/x.bin", "file:/a/x.bin")) == {
        "file:/a/x.bin": "x.bin",
        "file:/b/x.bin": "x-1.bin",
    }
    message = config("file:/a/x.bin", "file:/b/x.bin")
    assert [sample.inputs["x"].input_data_file for sample in message.model_warmup] == ["x.bin", "x-1.bin"]


def test_the_files_come_into_the_model_s_folder(tmp_path):
    np.array([1, 2], np.float32).tofile(tmp_path / "x.bin")
    warmups.add(tmp_path / "m", config("file:/a/x.bin"), {"x.bin": tmp_path / "x.bin"})
    copied = tmp_path / "m" / "warmup" / "x.bin"
    assert np.fromfile(copied, np.float32).tolist() == [1, 2]
    assert not copied.samefile(tmp_path / "x.bin")


def test_a_file_that_is_no_row_is_refused(tmp_path):
    (tmp_path / "x.bin").write_bytes(bytes(7))
    with pytest.raises(StepError, match="has 7 bytes, but one row takes 8"):
        warmups.add(tmp_path / "m", config("file:/a/x.bin"), {"x.bin": tmp_path / "x.bin"})


def test_a_server_without_the_files_is_not_warmed_up_by_them(tmp_path):
    message = config("file:/a/x.bin")
    message.model_warmup.add(name="zeros").inputs["x"].zero_data = True
    warmups.add(tmp_path / "m", message, None)
    assert [sample.name for sample in message.model_warmup] == ["zeros"]
