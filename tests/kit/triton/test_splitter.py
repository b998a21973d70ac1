"""The python model before the ensemble of a model whose rows depend on each other."""

import models
import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from engine.errors import StepError
from engine.kit.accuracy import batching
from engine.kit.accuracy.batching import RowBatching
from engine.kit.onnx import onnx_files
from engine.kit.triton import repository
from engine.kit.triton.serving import Serving


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    models.classifier_with_tokenizer(folder)
    return folder


def packaged(folder, source, joins, **options):
    onnx_files.link(source, folder / "validated")
    batching.write(folder / "validated", joins)
    options = {"model_name": "m", "ensemble": "m_text", "task": "text-classification", **options}
    serving = Serving(largest={"batch": 8}, **options)
    report = repository.write(folder / "out", serving, validated=folder / "validated", checkpoint=source)
    parse = text_format.Parse
    return report, {
        path.parent.name: parse(path.read_text(), model_config_pb2.ModelConfig())
        for path in (folder / "out").glob("*/config.pbtxt")
    }


def test_rows_that_stand_alone_need_none(source, tmp_path):
    report, configs = packaged(tmp_path, source, RowBatching.TOGETHER)
    assert report.models == ("m", "m_tokenizer", "m_postprocess", "m_text")
    assert configs["m_text"].platform == "ensemble"
    assert "recipe_rows" not in configs["m_text"].parameters


@pytest.mark.parametrize(("joins", "most"), [(RowBatching.EQUAL_LENGTHS, 8), (RowBatching.ALONE, 0)])
def test_the_entry_sends_the_ensemble_one_row_at_a_time(source, tmp_path, joins, most):
    report, configs = packaged(tmp_path, source, joins)
    assert report.name == report.models[-1] == "m_text"
    entry = configs["m_text"]
    assert (entry.backend, configs["m_text_row"].platform) == ("python", "ensemble")
    assert entry.parameters["recipe_rows"].string_value == joins.value
    assert entry.parameters["recipe_task"].string_value == "text-classification"
    assert not configs["m_text_row"].parameters
    assert {config.max_batch_size for config in configs.values()} == {most}
    assert configs["m"].HasField("dynamic_batching") == (most > 0)


def test_tensors_of_one_request_are_one_input(source, tmp_path):
    report, configs = packaged(tmp_path, source, RowBatching.ALONE, tokenizer=False)
    assert report.models == ("m",)
    assert configs["m"].max_batch_size == 0
    assert configs["m"].parameters["recipe_rows"].string_value == "alone"


@pytest.mark.parametrize("options", [{"layout": "fused"}, {"answers": {"doc_stride": 8}}])
def test_what_joins_rows_in_a_package_is_refused(source, tmp_path, options):
    with pytest.raises(StepError, match=r"is not possible: padding changes the answers"):
        packaged(tmp_path, source, RowBatching.EQUAL_LENGTHS, **options)
