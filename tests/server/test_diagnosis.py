"""The meaning of a server's log in plain words."""

import graphs
import pytest
from small_servers import ONNX, model

from engine.errors import StepError
from engine.server import diagnosis


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("ModuleNotFoundError: No module named 'tokenizers'", "lacks tokenizers"),
        ("failed to start HTTP service: Socket '127.0.0.1:8000' already in use", "took the port"),
        ("Failed to increase the shared memory pool size. Error: No space left on device", "--shm-size=1g"),
        ("instance group a_0 of model a has kind KIND_GPU but no GPUs are available", "the server sees none"),
    ],
)
def test_what_a_log_says_is_put_in_plain_words(line, says):
    assert says in diagnosis.meaning([line])
    assert diagnosis.meaning(["all is well"]) == ""


def test_a_bus_error_is_a_page_of_shared_memory_without_room():
    assert diagnosis.hint_after_end(128 + 7, []).startswith("/dev/shm is full")
    assert "/dev/shm" not in diagnosis.hint_after_end(128 + 11, ["a fault"])


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_is_named_with_the_servers_reason(tmp_path, request):
    import triton_server

    try:
        environment = triton_server.venv(request.config.cache.mkdir("triton"))
    except triton_server.Unavailable as reason:
        pytest.skip(f"no Triton server here: {reason}")
    good = graphs.write(tmp_path / "good", graphs.layers())
    text = 'input { name: "x" data_type: TYPE_FP32 dims: 64 }\noutput { name: "y" data_type: TYPE_FP32 dims: 4 }\n'
    group = "instance_group { kind: KIND_CPU }\n"
    for name, more in (("fine", ""), ("unread", "nonsense"), ("torn", "")):
        folder = model(tmp_path / "repository", name, ONNX + text + group)
        content = b"no model" if name == "torn" else (good / "model.onnx").read_bytes()
        (folder / "model.onnx").write_bytes(content)
        if more:
            (folder.parent / "config.pbtxt").write_text(ONNX.replace('"a"', '"other"') + text + group)
    with pytest.raises(StepError) as error, triton_server.serving(environment, tmp_path / "repository"):
        pass
    assert error.value.what == "Triton cannot load torn and unread"
    assert "torn: Internal" in str(error.value)
    assert "fine" not in str(error.value)
