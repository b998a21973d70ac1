"""The server on the PATH: taken where it has the backends, and the TensorRT, that are needed."""

import pytest
from small_servers import on_path, place

from engine import server as serving
from engine.errors import StepError
from engine.server.repository_needs import Engine, Needs


def test_the_server_on_the_path_comes_first_where_it_has_the_backends(bare, docker):
    program = on_path(bare, "onnxruntime", "python")
    installation = serving.find(Needs(backends=frozenset({"onnxruntime"})))
    assert (installation.kind, installation.version, installation.stand_in) == ("path", "2.51.0", False)
    command = installation.launch(place(Needs(cached=("a",)))).command
    assert command[0] == str(bare / "bin" / "tritonserver")
    assert f"--backend-directory={program.parent.parent / 'backends'}" in command
    assert "--backend-config=python,shm-region-prefix-name=recipe_ab12_" in command
    assert any(word.startswith("--cache-config=local,size=") for word in command)


def test_a_server_without_the_backend_is_passed_and_the_container_says_why(bare, docker):
    on_path(bare, "python")
    installation = serving.find(Needs(backends=frozenset({"onnxruntime"})))
    assert installation.kind == "container"
    assert "no backend for onnxruntime" in installation.passed[0]


def test_a_server_with_another_tensorrt_names_both_versions(bare, monkeypatch):
    on_path(bare, "tensorrt")
    monkeypatch.setenv("NVIDIA_TRITON_SERVER_VERSION", "24.10")
    engine = Needs(backends=frozenset({"tensorrt"}), engines=(Engine("fast", "10.13.0.35"),), gpu=("fast",))
    with pytest.raises(StepError) as error:
        serving.find(engine, only="path")
    assert "TensorRT 10.13.0.35" in str(error.value)
    assert "has TensorRT 10.5" in str(error.value)
    monkeypatch.delenv("NVIDIA_TRITON_SERVER_VERSION")
    for version in ("10.9.0", "10.11.3"):  # of several, the latest number counts, not the last in the alphabet
        (bare / f"libnvinfer.so.{version}").touch()
    monkeypatch.setattr("engine.server.discovery._LIBRARIES", (str(bare),))
    with pytest.raises(StepError, match=r"has TensorRT 10\.11\.3"):
        serving.find(engine, only="path")
