"""The server that pip installs: models that it refuses, and packages that it must have."""

import os
import subprocess

import pytest
from small_servers import pip_installed

from engine import server as serving
from engine.errors import StepError
from engine.server import pip_server
from engine.server.repository_needs import Needs


@pytest.fixture
def linux(monkeypatch):
    monkeypatch.setattr(pip_server, "refuse_platform", lambda: None)


def test_models_for_a_gpu_are_refused_and_a_package_that_is_pinned_otherwise_is_named_with_the_command(bare, linux):
    pip_installed(bare, tokenizers="0.23.3", Pillow="13.0.0")
    with pytest.raises(StepError, match="it is for CPUs, and fast runs on a GPU"):
        serving.find(Needs(gpu=("fast",)), only="pip")
    needs = {"tokenizers==0.22.1": "words", "pillow==13.0.0": "see"}
    with pytest.raises(StepError) as error:
        serving.find(Needs(requirements=needs), only="pip")
    assert "lacks tokenizers==0.22.1 for words (it has 0.23.3)" in str(error.value)
    assert error.value.hint == "recipe serve --install"
    installation = serving.find(Needs(requirements={"tokenizers==0.23.3": "words"}))
    assert (installation.kind, installation.stand_in) == ("pip", True)


def test_a_python_without_numpy_1_and_another_system_than_linux_are_named(bare, monkeypatch):
    monkeypatch.setattr(pip_server, "_LAST_PYTHON", (3, 10))
    with pytest.raises(StepError, match=r"numpy 1, which exists only up to Python 3\.10"):
        serving.find(only="pip")
    monkeypatch.setattr(pip_server.sys, "platform", "darwin")
    with pytest.raises(StepError, match="made for Linux on x86-64, and this is darwin"):
        serving.find(only="pip")


def test_a_missing_libpython_is_said_with_the_line_that_brings_it(bare, monkeypatch):
    monkeypatch.setattr(pip_server, "_has_libpython", lambda: False)
    monkeypatch.setattr(pip_server.os, "uname", lambda: os.uname_result(("Linux", "n", "r", "v", "x86_64")))
    with pytest.raises(StepError) as error:
        pip_server.install(bare / "environment")
    assert error.value.hint == f"apt-get install libpython{pip_server.PYTHON}"


def test_the_environment_is_made_with_exact_pins_of_what_is_installed_here(bare, linux, monkeypatch):
    ran = []
    monkeypatch.setattr(pip_server, "_run", ran.append)
    monkeypatch.setattr(pip_server, "_version_here", lambda name: "0.22.1" if name == "tokenizers" else None)
    installed = pip_server.install(bare / "environment", lambda line: None)
    assert (installed.environment / "ready").is_file()
    assert ran[1][-2:] == ["--no-deps", "nvidia-pytriton==0.7.0"]
    assert ran[2][-4:] == ["numpy==1.26.4", "onnxruntime==1.31.1", "tokenizers==0.22.1", "pillow==13.0.0"]


def test_a_failed_install_leaves_no_environment_that_looks_ready(bare, linux, monkeypatch):
    failed = subprocess.CompletedProcess(["pip"], 1, "", "no such version")
    monkeypatch.setattr(pip_server.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(StepError, match="no such version"):
        pip_server.install(bare / "environment", lambda line: None)
    assert not (bare / "environment" / "ready").exists()
