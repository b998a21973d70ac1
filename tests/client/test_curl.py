"""A curl command sends the same request as our client, whatever characters a text holds."""

import json
import shlex

from engine.client import curl
from engine.client.model_metadata import ModelMetadata, TensorMetadata

TEXT = TensorMetadata("TEXT", "BYTES", (-1, -1))


def model(name="m", *inputs, **more):
    return ModelMetadata(name, inputs or (TEXT,), (), **({"max_batch_size": 4} | more))


def test_whatever_a_text_holds_the_shell_hands_it_over_as_it_is():
    text = """it's "so" $HOME `x` \\n ü"""
    words = shlex.split(curl.curl_line("h:1", model(), texts=[text]))
    assert words[:3] == ["curl", "-s", "http://h:1/v2/models/m/infer"]
    assert json.loads(words[-1])["inputs"] == [{"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": [text]}]


def test_a_word_to_be_filled_in_is_written_as_the_model_has_it():
    assert "the <mask> of France" in curl.curl_line("h:1", model(task="fill-mask", mask="<mask>"))
