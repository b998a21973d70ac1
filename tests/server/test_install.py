"""The environment of the server that pip installs: exact pins, and no marker before everything is installed."""

import os
import subprocess

import pytest

from engine.errors import StepError
from engine.server import install, packaged


@pytest.fixture
def linux(monkeypatch):
    monkeypatch.setattr(packaged, "refuse_platform", lambda: None)


def test_a_missing_libpython_is_said_with_the_line_that_brings_it(bare, monkeypatch):
    monkeypatch.setattr(packaged, "_has_libpython", lambda: False)
    monkeypatch.setattr(packaged.os, "uname", lambda: os.uname_result(("Linux", "n", "r", "v", "x86_64")))
    with pytest.raises(StepError) as error:
        install.install(bare / "environment")
    assert error.value.hint == f"apt-get install libpython{packaged.PYTHON}"


def test_the_environment_is_made_with_exact_pins_of_what_is_installed_here(bare, linux, monkeypatch):
    ran = []
    monkeypatch.setattr(install, "_run", ran.append)
    monkeypatch.setattr(install, "_version_here", lambda name: "0.22.1" if name == "tokenizers" else None)
    installed = install.install(bare / "environment", lambda line: None)
    assert (installed.environment / "ready").is_file()
    assert ran[1][-2:] == ["--no-deps", "nvidia-pytriton==0.7.0"]
    assert ran[2][-4:] == ["numpy==1.26.4", "onnxruntime==1.31.1", "tokenizers==0.22.1", "pillow==13.0.0"]


def test_a_failed_install_leaves_no_environment_that_looks_ready(bare, linux, monkeypatch):
    monkeypatch.setattr(
        install.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, "", "no such version")
    )
    with pytest.raises(StepError, match="no such version"):
        install.install(bare / "environment", lambda line: None)
    assert not (bare / "environment" / "ready").exists()
