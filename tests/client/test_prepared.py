"""What is asked of a measured server: texts where a package takes some, the model's own tensors otherwise."""

import graphs
import models
import numpy as np
import tokenizers
from onnx import TensorProto, helper, numpy_helper

from engine.client.prepared import Entry
from engine.kit.triton import repository
from engine.kit.triton.serving import Serving


def package(out, directory, checkpoint):
    serving = Serving(model_name="m", ensemble="m_text", largest={"batch": 4, "sequence": 32})
    made = repository.write(out, serving, validated=directory, checkpoint=checkpoint)
    return Entry.read(out, made.name, model="m")


def test_a_text_model_gets_as_many_texts_of_as_many_tokens(tmp_path):
    (checkpoint := tmp_path / "checkpoint").mkdir()
    (checkpoint / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 100}')
    models.save_tokenizer(checkpoint)
    table = numpy_helper.from_array(np.zeros((100, 4), np.float32), "table")
    node = helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])
    ids = ("input_ids", TensorProto.INT64, ["batch", "sequence"])
    states = ("last_hidden_state", graphs.FLOAT, ["batch", "sequence", 4])
    looks_up = graphs.write(tmp_path / "model", graphs.graph([node], [ids], [states], [table]))
    entry = package(tmp_path / "package", looks_up, checkpoint)
    [(name, array)] = entry.arrays({"input_ids": np.ones((3, 9), np.int64)}).items()
    assert (entry.name, name, array.shape) == ("m_text", "TEXT", (3, 1))
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "package" / "m_tokenizer" / "1" / "tokenizer.json"))
    tokenizer.no_padding()
    assert {len(tokenizer.encode(text.decode())) for [text] in array} == {9}


def test_a_model_without_a_tokenizer_gets_the_tensors_that_it_gets_in_process(tmp_path):
    made = graphs.write(tmp_path / "layers", graphs.layers())
    entry = package(tmp_path / "package", made, made)
    x = np.ones((4, 64), np.float32)
    assert entry.name == "m"
    assert entry.arrays({"x": x})["x"] is x


def test_one_number_a_row_is_sent_as_triton_has_it(tmp_path):
    nodes = [helper.make_node("Mul", ["a", "b"], ["c"])]
    tensors = [(name, graphs.FLOAT, ["batch"]) for name in "abc"]
    made = graphs.write(tmp_path / "product", graphs.graph(nodes, tensors[:2], tensors[2:], []))
    sent = package(tmp_path / "package", made, made).arrays(dict.fromkeys("ab", np.ones(4, np.float32)))
    assert {array.shape for array in sent.values()} == {(4, 1)}
