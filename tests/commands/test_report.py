"""`recipe report`: which file it writes, and which it leaves alone."""

import models
import pytest
from program import Program
from tiny_project import OF_ONNX, RECIPE, SAMPLES


@pytest.fixture
def program(tmp_path):
    (tmp_path / "tiny.yaml").write_text(RECIPE.replace("model: {source: model}\n", OF_ONNX))
    models.classifier_with_tokenizer(tmp_path / "model")
    (tmp_path / "samples.jsonl").write_text(SAMPLES)
    return Program(tmp_path)


def test_a_second_report_leaves_the_first_alone_unless_o_names_it(program, tmp_path):
    page = tmp_path / "report.html"
    assert program("report", "tiny.yaml", expect=0).stdout == "report.html\n"
    assert "<html" in page.read_text("utf-8")
    page.write_text("the first")
    refused = program("report", "tiny.yaml", expect=2).stderr
    assert "error: report.html exists already, and was left as it is" in refused
    assert "hint: -o report.html replaces it, -o FILE writes another one" in refused
    assert page.read_text("utf-8") == "the first"
    program("report", "tiny.yaml", "-o", "other.html", expect=0)
    assert page.read_text("utf-8") == "the first"
    program("report", "tiny.yaml", "-o", "report.html", expect=0)
    assert "<html" in page.read_text("utf-8")
