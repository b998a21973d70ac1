"""A curl command sends the same request as our client, whatever characters a text holds."""

import json
import shlex
import subprocess

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


def test_the_texts_of_an_image_stand_in_the_json_before_the_file(tmp_path):
    """printf writes the head as it was meant, and its length is that of the header field."""
    texts = ["100% it's", 'a "\\n" ü']
    image = TensorMetadata("IMAGE", "BYTES", (-1, 1))
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    line = curl.curl_line("h:1", model("m", image, TEXT), texts=texts, image=str(tmp_path / "photo.png"))
    stdin = subprocess.run(["sh", "-c", line.partition(" | curl")[0]], capture_output=True, check=True).stdout
    length = int(line.rpartition("Inference-Header-Content-Length: ")[2].partition("'")[0])
    [photo, candidates] = json.loads(stdin[:length])["inputs"]
    assert (candidates["shape"], candidates["data"]) == ([1, 2], texts)
    assert photo["parameters"] == {"binary_data_size": 8}
    assert stdin[length:] == b"\4\0\0\0\x89PNG"


def test_the_example_of_an_image_with_texts_has_several(tmp_path):
    image = TensorMetadata("IMAGE", "BYTES", (-1, 1))
    line = curl.curl_line("h:1", model("m", image, TEXT, task="zero-shot-image-classification"))
    assert '"data":["a photo of a cat","a photo of a dog"]' in line
