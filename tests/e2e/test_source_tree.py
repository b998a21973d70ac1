"""The program in a fresh copy of its source tree."""

import shutil
from pathlib import Path

import models
import pytest
from program import Program
from tiny_project import OF_ONNX

ROOT = Path(__file__).parent.parent.parent
PROFILES = "profiles: [{batch: [1, 1, 4], sequence: [1, 16, 32]}]\n"


@pytest.mark.whole("tests/mutations removes the compiled code of a copy of the program")
def test_the_second_build_in_a_fresh_clone_is_a_no_op(tmp_path):
    """The first build compiles the program: Python then makes a folder beside the modules, which is no change."""
    shutil.copytree(ROOT / "engine", tmp_path / "src" / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pyproject.toml").write_text("")
    models.classifier_with_tokenizer(tmp_path / "model")
    (tmp_path / "r.yaml").write_text(f"name: m\n{OF_ONNX}{PROFILES}")
    program = Program(tmp_path)
    program.environment["PYTHONPATH"] = str(tmp_path / "src")
    program.environment.pop("PYTHONDONTWRITEBYTECODE", None)
    program("build", "r.yaml", "--to", "fuse", expect=0)
    assert "pydantic" not in program.imports("build", "r.yaml", "--to", "fuse")
