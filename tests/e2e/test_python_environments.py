"""A server without a network, whose Python lacks what a package needs: an environment of wheels lies beside it."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import models
import pytest
import triton_server

from engine.kit.triton.serving import Serving
from engine.server import pip_server
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole]

PIP = (sys.executable, "-m", "pip")


def run(*words, **options):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_package_uses_the_environment_beside_it(environment, tmp_path):
    source = tmp_path / "source"
    models.onnx_text(source / "model.onnx")
    models.save_tokenizer(source)
    place = {"EXECUTION_ENV_PATH": {"string_value": "$$TRITON_MODEL_DIRECTORY/environment"}}
    options = {
        "layout": "fused",
        "task": "text-classification",
        "largest": {"batch": 4},
        "fields": {"parameters": place},
    }
    package = tmp_path / "package"
    Package(serving=Serving(model_name="m", ensemble="m_text", **options)).run(
        package, validated=source, checkpoint=source
    )
    needs = [line for line in (package / "m_text" / "requirements.txt").read_text().splitlines() if "==" in line]
    assert {line.split("==")[0] for line in needs} == {"tokenizers", "onnxruntime"}

    # With a network, once: the wheels. Without one: an environment of nothing but these wheels.
    run(*PIP, "download", "--quiet", "--dest", tmp_path / "wheels", pip_server.NUMPY, *needs)
    own = package / "m_text" / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", own)
    wheels = ["--no-index", "--find-links", tmp_path / "wheels"]
    run(*PIP, "--python", own / "bin" / "python", "install", "--quiet", *wheels, pip_server.NUMPY, *needs,
        env={**os.environ, "PIP_NO_INDEX": "1"})  # fmt: skip

    with triton_server.serving(environment, package) as server:
        labels = triton_server.infer(server, "m_text", TEXT=triton_server.texts("a good film"))["labels"]
        assert labels.shape[0] == 1
        maps = [path.read_text() for path in Path("/proc").glob("[0-9]*/maps") if mapped(path, own)]
        assert any("tokenizers" in text for text in maps), "the server took tokenizers from another environment"
    assert metadata.version("tokenizers") in " ".join(needs)


def mapped(path, folder):
    try:
        return str(folder) in path.read_text()
    except OSError:
        return False
