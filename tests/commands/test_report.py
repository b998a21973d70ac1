"""`recipe report`: which file it writes, which it leaves alone, and the browser that shows the page."""

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


def test_a_second_report_leaves_the_first_alone_unless_o_names_it(project):
    assert "--open needs a file" in project("report", "r.yaml", "-o", "-", "--open", expect=2).stderr
    page = project.folder / "report.html"
    assert project("report", "r.yaml", expect=0).stdout == "report.html\n"
    assert "<html" in page.read_text("utf-8")
    page.write_text("the first")
    refused = project("report", "r.yaml", expect=2).stderr
    assert "error: report.html exists already, and was left as it is" in refused
    assert "hint: -o report.html replaces it, -o FILE writes another one" in refused
    assert page.read_text("utf-8") == "the first"
    project("report", "r.yaml", "-o", "other.html", expect=0)
    assert page.read_text("utf-8") == "the first"
    project("report", "r.yaml", "-o", "report.html", expect=0)
    assert "<html" in page.read_text("utf-8")
