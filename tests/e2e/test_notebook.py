"""The notebook of the docs runs in a real kernel, and its cells show what the text above them says."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="no nbformat: the extra `dev-notebook`")
nbclient = pytest.importorskip("nbclient", reason="no nbclient: the extra `dev-notebook`")
pytest.importorskip("ipykernel", reason="no ipykernel: the extra `dev-notebook`")

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return what the cells show: the text of each code cell, and the HTML of those that have some."""
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "pyproject.toml").touch()
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # the file is kept without outputs
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    texts = [output.get("text") or output["data"]["text/plain"] for output in outputs]
    return texts, [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]


def test_results_are_short_texts(shown):
    texts, _ = shown
    text = "\n".join(texts)
    assert "[<Checked net: fine>]" in texts
    assert any(each.startswith("<Finished built in ") and "build/net" in each for each in texts)
    assert "<Finding net bench: cached>" in text
    assert all(len(line) < 300 for line in text.splitlines())


def test_a_summary_and_a_comparison_are_tables(shown):
    summary, comparison = shown[1]
    assert summary.startswith("<table><caption>Summary net: ")
    assert "<th>p95 ms</th>" in summary
    assert "1 of 1 variants differ" in comparison
    assert "bench changed" in comparison


def test_a_failed_build_says_which_step_failed_and_why(shown):
    finished, failure, error = shown[0][-3:]
    assert finished.startswith("<Finished failed in ")
    assert "; net bench: " in finished
    step, what, *_, log = failure.splitlines()
    assert step == "bench"
    assert "budget" in what
    assert log.endswith(".log")
    assert Path(log).is_file()
    assert error.startswith("net bench failed: ")
