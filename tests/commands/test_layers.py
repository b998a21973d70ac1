"""`recipe layers` on a build: a table of the layers that lose most, and all layers as JSON."""

import json
import re
import shutil
from pathlib import Path

import documents
import pytest
import typed_graphs
from program import Program

FILES = Path(typed_graphs.__file__).parent / "modelopt"
RECIPE = """\
name: mlp
model: {source: model.onnx}
target: {device: T4, runtime: tensorrt}
precision: int8
profiles: [{batch: [1, 2, 4]}]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text("")
    (folder / "r.yaml").write_text(RECIPE)
    shutil.copy(FILES / "mlp.onnx", folder / "model.onnx")
    return Program(folder)


@pytest.mark.slow
def test_the_layers_of_a_build_are_listed_by_what_they_lose(project):
    pytest.importorskip("polygraphy", reason="the extra `polygraphy` is not installed")
    early = project("layers", "r.yaml", expect=2)
    assert "mlp is not built so far: original and built and cases missing" in early.stderr
    project("build", "r.yaml", expect=3)
    done = project("layers", "r.yaml", "--cases", "2", expect=0)
    [page] = [block for block in documents.run_by(__file__) if block.page.name == "precision.md"]
    [(command, shown)] = page.transcript()
    assert command == "recipe layers r.yaml"
    assert documents.difference(f"{shown}...", done.stdout) == ""
    _, _, *rows = done.stdout.splitlines()
    assert {row.split()[4] for row in rows[:2]} == {"MatMul"}
    lost = [float(row.split()[0]) for row in rows]
    assert lost == sorted(lost, reverse=True)
    [answer] = json.loads(project("layers", "r.yaml", "--json", expect=0).stdout)
    assert [layer["tensor"] for layer in answer["layers"]] == ["h0", "h1", "h2", "h3", "h4", "y"]
    assert not re.search(r"\[[IW]\]", done.stdout + done.stderr)  # Polygraphy's own log
