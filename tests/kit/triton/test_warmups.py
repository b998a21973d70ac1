"""Files of warm-ups: their names and places in a package, and warm-ups that bench leaves out."""

import numpy as np
import pytest
from tritonclient.grpc import model_config_pb2

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import config as configs
from engine.kit.triton import fields, warmups
from engine.kit.triton.config import Signature
from engine.recipe.schema import Recipe
from engine.runtimes.backends import Backend

INT64 = model_config_pb2.DataType.Value("TYPE_INT64")


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


TEXT = {name: Input(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask")}


@pytest.mark.parametrize(
    ("largest", "on_gpu", "rows", "tokens"),
    [
        ({}, False, 1, 16),
        ({"batch": 8, "sequence": 512}, False, 1, 16),
        ({"batch": 8, "sequence": 12}, False, 1, 12),
        ({"batch": 8, "sequence": 512}, True, 8, 512),
    ],
)
def test_a_model_of_texts_gets_a_warm_up_of_zeros(largest, on_gpu, rows, tokens):
    message = configs.model_config("m", Signature(TEXT, TEXT), backend=Backend.ONNXRUNTIME, batch=8, gpu=on_gpu)
    warmups.add_usual(message, Signature(TEXT, TEXT), largest=largest, on_gpu=on_gpu)
    [sample] = message.model_warmup
    assert sample.batch_size == rows
    assert {name: list(each.dims) for name, each in sample.inputs.items()} == {key: [tokens] for key in TEXT}
    assert all(each.zero_data and each.data_type == INT64 for each in sample.inputs.values())


def test_a_model_that_joins_no_requests_is_warmed_up_with_whole_shapes():
    message = configs.model_config("m", Signature(TEXT, TEXT), backend=Backend.ONNXRUNTIME, batch=0)
    warmups.add_usual(message, Signature(TEXT, TEXT), largest={}, on_gpu=False)
    [sample] = message.model_warmup
    assert (sample.batch_size, list(sample.inputs["input_ids"].dims)) == (1, [1, 16])


@pytest.mark.parametrize("tensor", [Input("table", "int64", ("batch", 4)), Input("input_ids", "int64", ("batch", "n"))])
def test_no_warm_up_is_added_where_zeros_or_sizes_may_be_wrong(tensor):
    signature = Signature({tensor.name: tensor}, TEXT)
    message = configs.model_config("m", signature, backend=Backend.ONNXRUNTIME, batch=8)
    warmups.add_usual(message, signature, largest={}, on_gpu=False)
    assert not message.model_warmup
