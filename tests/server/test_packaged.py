"""The server that pip installs: models that it refuses, and packages that it must have."""

import pytest
from small_servers import pip_installed

from engine import server as serving
from engine.errors import StepError
from engine.server import packaged
from engine.server.needs import Needs


@pytest.fixture
def linux(monkeypatch):
    monkeypatch.setattr(packaged, "refuse_platform", lambda: None)


def test_the_pip_installed_server_refuses_what_is_for_a_gpu(bare, linux):
    pip_installed(bare)
    with pytest.raises(StepError, match="it is for CPUs, and fast runs on a GPU"):
        serving.find(Needs(gpu=("fast",)), only="pip")


def test_a_package_that_is_pinned_otherwise_is_named_with_the_one_command(bare, linux):
    pip_installed(bare, tokenizers="0.23.3", Pillow="13.0.0")
    needs = {"tokenizers==0.22.1": "words", "pillow==13.0.0": "see"}
    with pytest.raises(StepError) as error:
        serving.find(Needs(requirements=needs), only="pip")
    assert "lacks tokenizers==0.22.1 for words (it has 0.23.3)" in str(error.value)
    assert error.value.hint == "recipe serve --install"
    installation = serving.find(Needs(requirements={"tokenizers==0.23.3": "words"}))
    assert (installation.kind, installation.stand_in) == ("pip", True)


def test_elsewhere_than_on_linux_the_pip_installed_server_says_so(bare, monkeypatch):
    monkeypatch.setattr(packaged.sys, "platform", "darwin")
    with pytest.raises(StepError, match="made for Linux on x86-64, and this is darwin"):
        serving.find(only="pip")


def test_a_python_without_numpy_1_says_so(bare, monkeypatch):
    monkeypatch.setattr(packaged, "_LAST_PYTHON", (3, 10))
    with pytest.raises(StepError, match=r"numpy 1, which exists only up to Python 3\.10"):
        serving.find(only="pip")
