"""The model.py of a Python model on a GPU."""

import os
import shutil
from pathlib import Path

import pytest

from engine.kit.triton.served import on_gpu

INSTANCE = """
import os


class TritonPythonModel:
    def initialize(self, args):
        self.gpu = os.environ.get("RECIPE_GPU")

    def execute(self, requests):
        return [f"{each} on {self.gpu}" for each in requests]
"""


@pytest.mark.parametrize(("kind", "gpu"), [("GPU", "2"), ("CPU", None)])
def test_the_session_reads_the_gpu_on_which_triton_has_put_the_instance(tmp_path, monkeypatch, kind, gpu):
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(on_gpu, "__file__", str(tmp_path / "model.py"))
    shutil.copy(Path(on_gpu.__spec__.origin), tmp_path / "model.py")
    (tmp_path / "instance.py").write_text(INSTANCE)
    model = on_gpu.TritonPythonModel()
    model.initialize({"model_instance_kind": kind, "model_instance_device_id": "2"})
    assert model.execute(["a", "b"]) == [f"a on {gpu}", f"b on {gpu}"]
