"""The repository of a model that generates text: its models, their configurations, and refused settings."""

import json

import generators
import graphs
import pytest
from google.protobuf import text_format
from onnx import helper
from tritonclient.grpc import model_config_pb2

from engine.errors import StepError
from engine.kit.accuracy import batching
from engine.kit.accuracy.batching import RowBatching
from engine.kit.onnx import onnx_files
from engine.kit.triton import repository
from engine.kit.triton.serving import Serving


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A tiny graph with the inputs and outputs of a built GPT-2, its past included."""
    past = ["batch", 4, "past_sequence", 8]
    inputs = [("input_ids", graphs.INT64, ["batch", "sequence"])]
    inputs += [(f"past_key_values.0.{kind}", graphs.FLOAT, past) for kind in ("key", "value")]
    outputs = [("logits", graphs.INT64, ["batch", "sequence"])]
    outputs += [(f"present.0.{kind}", graphs.FLOAT, ["batch", 4, "total_sequence", 8]) for kind in ("key", "value")]
    nodes = [
        helper.make_node("Identity", [source[0]], [output[0]]) for source, output in zip(inputs, outputs, strict=True)
    ]
    return graphs.write(tmp_path_factory.mktemp("built"), graphs.graph(nodes, inputs, outputs))


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "checkpoint"
    generators.save_tokenizer(folder, "gpt2")
    settings = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_positions": 64, "eos_token_id": 0}
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def package(tmp_path, built, checkpoint, **options):
    serving = Serving(**{"model_name": "m", "ensemble": "m_text", "largest": {"batch": 8}, **options})
    return repository.write(tmp_path / "out", serving, validated=built, checkpoint=checkpoint)


def config(tmp_path, name):
    return text_format.Parse((tmp_path / "out" / name / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())


def test_its_models_are_the_graph_and_two_entries_with_all_that_they_need(tmp_path, built, checkpoint):
    report = package(tmp_path, built, checkpoint)
    assert (report.name, report.models) == ("m_text", ("m", "m_stream", "m_text"))
    modules = {"model.py", "asked.py", "past.py", "pieces.py", "prompts.py", "sampling.py", "unread.py", "greedy.py"}
    for name, decoupled in (("m_text", False), ("m_stream", True)):
        assert {path.name for path in (tmp_path / "out" / name / "1").iterdir()} == {
            *modules, "tokenizer.json", "generation.json",
        }  # fmt: skip
        assert "tokenizers==" in (tmp_path / "out" / name / "requirements.txt").read_text()
        entry = config(tmp_path, name)
        assert entry.model_transaction_policy.decoupled == decoupled
        assert entry.parameters["recipe_task"].string_value == "text-generation"
        assert [tensor.optional for tensor in entry.input] == [False, True, True]


def test_the_entries_put_rows_together_and_the_graph_does_not_unless_it_is_told_to(tmp_path, built, checkpoint):
    package(tmp_path, built, checkpoint)
    assert config(tmp_path, "m_text").HasField("dynamic_batching")
    assert config(tmp_path, "m").max_batch_size == 8
    assert not config(tmp_path, "m").HasField("dynamic_batching")
    package(tmp_path / "told", built, checkpoint, fields={"dynamic_batching": {"max_queue_delay_microseconds": 9}})
    assert config(tmp_path / "told", "m").dynamic_batching.max_queue_delay_microseconds == 9


def test_texts_that_depend_on_each_other_are_generated_one_by_one(tmp_path, built, checkpoint):
    alone = tmp_path / "alone"
    onnx_files.link(built, alone)
    batching.write(alone, RowBatching.EQUAL_LENGTHS)
    package(tmp_path, alone, checkpoint)
    settings = json.loads((tmp_path / "out" / "m_text" / "1" / "generation.json").read_text())
    assert settings["alone"] is True
    assert config(tmp_path, "m_stream").parameters["recipe_rows"].string_value == "alone"


def test_the_prompt_is_bounded_by_the_profiles_and_the_answer_by_the_recipe(tmp_path, built, checkpoint):
    largest = {"batch": 8, "sequence": 20, "total_sequence": 30}
    package(tmp_path, built, checkpoint, largest=largest, max_new_tokens=7)
    content = json.loads((tmp_path / "out" / "m_text" / "1" / "generation.json").read_text())
    assert (content["prompts"]["longest"], content["prompts"]["positions"]) == (20, 30)
    assert content["settings"]["max_new_tokens"] == 7
    assert content["graphs"]["past"] == {f"past_key_values.0.{kind}": ["float32", 4, 8] for kind in ("key", "value")}


def test_without_a_tokenizer_the_graph_is_all(tmp_path, built, checkpoint, capsys):
    assert package(tmp_path, built, checkpoint, tokenizer=False).models == ("m",)
    (checkpoint / "tokenizer.json").unlink()
    (checkpoint / "tokenizer_config.json").unlink()
    assert package(tmp_path / "none", built, checkpoint).models == ("m",)
    assert "no tokenizer" in capsys.readouterr().out


def test_what_the_model_asks_for_and_does_not_get_is_said(tmp_path, built, checkpoint, capsys):
    (checkpoint / "generation_config.json").write_text(json.dumps({"eos_token_id": 0, "num_beams": 4}))
    package(tmp_path, built, checkpoint)
    assert "asks for num_beams: 4; text is generated greedily all the same" in capsys.readouterr().out


def test_two_models_of_one_name_are_refused(tmp_path, built, checkpoint):
    with pytest.raises(StepError, match="the same name"):
        package(tmp_path, built, checkpoint, ensemble="m_stream")
