"""The requests to a measured server: texts where a package takes texts, the model's own tensors otherwise."""

import io
import json

import graphs
import models
import numpy as np
import pytest
import tokenizers
from google.protobuf.json_format import MessageToDict
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from engine.client import failures
from engine.client.address import Address
from engine.client.model_metadata import ModelMetadata
from engine.errors import StepError
from engine.kit.triton import config, repository
from engine.kit.triton.serving import Serving
from engine.recipe.image_input import Images
from engine.server import measured_server


class OfRepository:
    """A client's choice of a model, without a server: by the configurations in a model repository."""

    def __init__(self, repository):
        self.repository = repository

    def choose(self, name):
        return ModelMetadata.of_config(
            MessageToDict(config.read(self.repository / name), preserving_proto_field_name=True)
        )


def package(out, directory, checkpoint):
    """Write a package; return the model that bench calls and a function that makes its arrays."""
    serving = Serving(model_name="m", ensemble="m_text", largest={"batch": 4, "sequence": 32})
    written = repository.write(out, serving, validated=directory, checkpoint=checkpoint)
    model = measured_server.entry(OfRepository(out), written.name, "m")
    return model, lambda inputs: measured_server.arrays(model, inputs, out, "m")


def test_a_text_model_gets_as_many_texts_of_as_many_tokens(tmp_path):
    (checkpoint := tmp_path / "checkpoint").mkdir()
    (checkpoint / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 100}')
    models.save_tokenizer(checkpoint)
    table = numpy_helper.from_array(np.zeros((100, 4), np.float32), "table")
    node = helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])
    ids = ("input_ids", TensorProto.INT64, ["batch", "sequence"])
    states = ("last_hidden_state", graphs.FLOAT, ["batch", "sequence", 4])
    looks_up = graphs.write(tmp_path / "model", graphs.graph([node], [ids], [states], [table]))
    model, arrays = package(tmp_path / "package", looks_up, checkpoint)
    [(name, array)] = arrays({"input_ids": np.ones((3, 9), np.int64)}).items()
    assert (model.name, name, array.shape) == ("m_text", "TEXT", (3, 1))
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "package" / "m_tokenizer" / "1" / "tokenizer.json"))
    tokenizer.no_padding()
    assert {len(tokenizer.encode(text.decode())) for [text] in array} == {9}


def test_a_model_without_a_tokenizer_gets_the_tensors_that_it_gets_in_process(tmp_path):
    layers = graphs.write(tmp_path / "layers", graphs.layers())
    model, arrays = package(tmp_path / "package", layers, layers)
    x = np.ones((4, 64), np.float32)
    assert model.name == "m"
    assert arrays({"x": x})["x"] is x


def test_one_number_a_row_is_sent_as_triton_has_it(tmp_path):
    nodes = [helper.make_node("Mul", ["a", "b"], ["c"])]
    tensors = [(name, graphs.FLOAT, ["batch"]) for name in "abc"]
    product = graphs.write(tmp_path / "product", graphs.graph(nodes, tensors[:2], tensors[2:], []))
    _, arrays = package(tmp_path / "package", product, product)
    assert {array.shape for array in arrays(dict.fromkeys("ab", np.ones(4, np.float32))).values()} == {(4, 1)}


def test_a_server_that_does_not_answer_the_first_request_is_told_with_its_message():
    """Later requests hold the same arrays."""

    sent = []

    class Refusing:
        address = Address("h", 1, "grpc")

        def infer(self, model, arrays):
            sent.append(arrays)
            if len(sent) == 1:
                raise failures.refused(f"the request to {model.name}", "unexpected shape\n\nfor input 'x'")

    model = ModelMetadata("m", (), ())
    x = {"x": np.ones((1, 2), np.float32)}
    with pytest.raises(StepError) as caught:
        measured_server._prepare(Refusing(), model, None, "m", x)
    assert str(caught.value).splitlines() == [
        "the server does not answer m over grpc",
        "  unexpected shape",
        "  for input 'x'",
        "hint: is the shape within the profiles and package.triton.max_batch_size?",
    ]
    measured_server._prepare(Refusing(), model, None, "m", x)()
    assert [list(each) for each in sent] == [["x"]] * 3


@pytest.mark.parametrize(("sides", "size"), [((32, 32), (480, 640)), (("height", "width"), (40, 56))])
def test_a_model_of_images_gets_as_many_files_that_become_its_images(tmp_path, sides, size):
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    free = isinstance(sides[0], str)
    processor = {"image_processor_type": "ViTImageProcessor", "do_resize": not free, "size": 32}
    (checkpoint / "config.json").write_text('{"model_type": "vit", "architectures": ["ViTForImageClassification"]}')
    (checkpoint / "preprocessor_config.json").write_text(json.dumps(processor))
    nodes = [helper.make_node("ReduceMean", ["pixel_values"], ["logits"], axes=[2, 3], keepdims=0)]
    pixels = ("pixel_values", graphs.FLOAT, ["batch", 3, *sides])
    means = graphs.write(
        tmp_path / "means", graphs.graph(nodes, [pixels], [("logits", graphs.FLOAT, ["batch", 3])], [])
    )
    images = Images()
    task = "image-classification"
    serving = Serving(model_name="m", ensemble="m_image", images=images, task=task, postprocess=False)
    written = repository.write(tmp_path / "package", serving, validated=means, checkpoint=checkpoint)
    model = measured_server.entry(OfRepository(tmp_path / "package"), written.name, "m")
    inputs = {"pixel_values": np.ones((3, 3, *((40, 56) if free else sides)), np.float32)}
    [(name, files)] = measured_server.arrays(model, inputs, tmp_path / "package", "m").items()
    assert (model.name, name, files.shape) == ("m_image", "IMAGE", (3, 1))
    assert {Image.open(io.BytesIO(file)).size[::-1] for [file] in files} == {size}
