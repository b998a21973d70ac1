"""`recipe report --open`: the page in the user's browser, or a note where there is none."""

import graphs
import onnx
import pytest
from program import Program

RECIPE = "name: net\nmodel: {source: net.onnx}\nprofiles: [{batch: [1, 2, 4]}]\n"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "bin").mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    (folder / "r.yaml").write_text(RECIPE)
    onnx.save(graphs.layers(), folder / "net.onnx")
    return Program(folder)


def test_the_page_is_opened_in_the_browser(project):
    browser = project.folder / "bin" / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > opened\n')
    browser.chmod(0o755)
    project.environment["BROWSER"] = str(browser)
    done = project("report", "r.yaml", "--open", expect=0)
    assert (done.stdout, done.stderr) == ("report.html\n", "")
    assert (project.folder / "opened").read_text() == f"{(project.folder / 'report.html').as_uri()}\n"


def test_a_machine_without_a_browser_says_what_to_open(project):
    own = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    project.environment = {name: value for name, value in project.environment.items() if name not in own}
    project.environment["PATH"] = str(project.folder / "bin")
    done = project("report", "r.yaml", "--open", expect=0)
    assert done.stdout == "report.html\n"
    assert done.stderr == f"note: no browser was found; open {project.folder / 'report.html'} in one\n"


def test_a_page_on_standard_output_cannot_be_opened(project):
    assert "--open needs a file" in project("report", "r.yaml", "-o", "-", "--open", expect=2).stderr
