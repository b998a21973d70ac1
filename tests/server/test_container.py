"""Triton in a container: its image, the packages in the image, GPUs, and a daemon that fails."""

import fake_docker
import pytest
from small_servers import place

from engine import server as serving
from engine.errors import StepError
from engine.server.repository_needs import Needs


def test_what_python_models_need_is_put_into_an_image_once(docker):
    needs = Needs(backends=frozenset({"python"}), requirements={"tokenizers==0.22.1": "words", "pillow==12.0": "see"})
    first = serving.find(needs, image="24.10")
    calls = fake_docker.calls(docker)
    (build,) = [each for each in calls if each["words"][0] == "build"]
    assert build["text"] == (
        "FROM nvcr.io/nvidia/tritonserver:24.10-py3\n"
        "RUN pip install --no-cache-dir 'pillow==12.0' 'tokenizers==0.22.1'\n"
    )
    again = serving.find(needs, image="24.10")
    assert again.image == first.image == build["words"][2]
    assert [each["words"][0] for each in fake_docker.calls(docker)[len(calls) :]] == ["info", "image"]


def test_two_pins_of_one_package_name_both_models(docker):
    needs = Needs(requirements={"tokenizers==0.22.1": "words", "tokenizers==0.23.3": "names"})
    with pytest.raises(StepError, match=r"words needs tokenizers==0\.22\.1, and names needs tokenizers==0\.23\.3"):
        serving.find(needs, only="container")


def test_only_packages_for_a_gpu_get_the_gpus_of_the_machine(docker):
    needs = Needs(backends=frozenset({"onnxruntime"}), gpu=("a",))
    installation = serving.find(needs)
    launch = installation.launch(place(needs))
    words = list(launch.command)
    assert words[words.index("--gpus") + 1] == "all"
    assert "--publish=127.0.0.1:8001:8001" in words
    assert "--volume=/packages:/models:ro" in words
    assert "--model-repository=/models" in words
    assert words[words.index("tritonserver") - 1] == "nvcr.io/nvidia/tritonserver:25.06-py3"
    assert launch.afterwards == [[installation.tool, "rm", "--force", "recipe-ab12"]]
    assert "--gpus" not in installation.launch(place(Needs())).command


def test_a_daemon_that_does_not_answer_and_a_pull_that_fails_are_said(bare, docker):
    (docker / "offline").touch()
    with pytest.raises(StepError, match="cannot be pulled: no route to host"):
        serving.find(only="container")
    (docker / "silent").touch()
    with pytest.raises(StepError, match="docker does not answer: Cannot connect"):
        serving.find(only="container")


def test_the_doctor_fetches_no_image(docker):
    installation = serving.find(only="container", pull=False)
    assert installation.why.endswith("once it is pulled")
    assert {each["words"][0] for each in fake_docker.calls(docker)} == {"info", "image"}
