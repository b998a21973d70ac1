"""`recipe.toml`: where a project's builds keep their results and how many jobs run; what stands before it."""

import graphs
import onnx
import pytest
from program import Program

RECIPE = "name: net\nmodel: {source: net.onnx}\nprofiles: [{batch: [1, 2, 4]}]\n"
BUILD = ("build", "r.yaml", "--to", "fetch")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "recipe.toml").write_text("")
    (folder / "r.yaml").write_text(RECIPE)
    onnx.save(graphs.layers(), folder / "net.onnx")
    program = Program(folder)
    program.environment["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    return program


def stores(project):
    return sorted(path.name for path in project.folder.iterdir() if (path / "format").is_file())


def settings(project):
    lines = [line.split() for line in project("doctor", expect=0).stdout.splitlines()]
    return {words[0]: (words[1], " ".join(words[2:])) for words in lines if words and words[0] in ("cache", "jobs")}


def test_the_store_is_that_of_the_file_unless_a_variable_or_the_command_line_names_one(project):
    (project.folder / "recipe.toml").write_text('cache = "own"\n')
    project(*BUILD, expect=0)
    assert stores(project) == ["own"]
    project.environment["RECIPE_CACHE"] = str(project.folder / "by-variable")
    project(*BUILD, expect=0)
    assert stores(project) == ["by-variable", "own"]
    project(*BUILD, "--cache", "by-option", expect=0)
    assert stores(project) == ["by-option", "by-variable", "own"]
    assert "by-variable" in project("cache", "stats", expect=0).stdout


def test_doctor_says_where_a_value_comes_from(project):
    assert settings(project)["cache"] == (str(project.folder / "cache"), "by default")
    (project.folder / "recipe.toml").write_text('cache = "own"\njobs = 7\n')
    assert settings(project) == {
        "cache": (str(project.folder / "own"), "by recipe.toml"),
        "jobs": ("7", "by recipe.toml"),
    }
    project.environment["RECIPE_CACHE"] = "/elsewhere"
    assert settings(project)["cache"] == ("/elsewhere", "by RECIPE_CACHE")


@pytest.mark.whole("test_the_store_is_that_of_the_file_unless_a_variable_or_the_command_line_names_one")
def test_a_build_never_answers_from_before_a_change_of_the_file(project):
    for _ in range(2):
        project(*BUILD, expect=0)
    assert "up to date" in project(*BUILD, expect=0).stderr
    (project.folder / "recipe.toml").write_text("jobs = 0\n")
    assert "recipe.toml:1:1: `jobs` is 0" in project(*BUILD, expect=2).stderr
    (project.folder / "recipe.toml").write_text('cache = "own"\n')
    assert "built" in project(*BUILD, expect=0).stderr
    assert stores(project) == ["cache", "own"]
    (project.folder / "recipe.toml").unlink()
    (project.folder / "pyproject.toml").touch()
    assert "up to date" in project(*BUILD, expect=0).stderr
    (project.folder / "recipe.toml").write_text("jobs = 0\n")
    project(*BUILD, expect=2)


@pytest.mark.whole("test_the_store_is_that_of_the_file_unless_a_variable_or_the_command_line_names_one")
def test_the_jobs_that_run_at_once_are_those_of_the_file_unless_the_command_line_says_so(project):
    (project.folder / "recipe.toml").write_text("jobs = 1\n")
    dry = (*BUILD, "--dry-run")
    project(*BUILD, expect=0)
    model = onnx.load(project.folder / "net.onnx")
    model.doc_string = "another"
    onnx.save(model, project.folder / "net.onnx")
    assert "with -j 1" in project(*dry, expect=0).stdout
    assert "with -j 5" in project(*dry, "-j", "5", expect=0).stdout


@pytest.mark.whole("test_the_store_is_that_of_the_file_unless_a_variable_or_the_command_line_names_one")
def test_the_file_is_parsed_by_an_up_to_date_build_only_if_it_may_name_a_store(project):
    (project.folder / "recipe.toml").write_text("jobs = 2\n")
    for _ in range(2):
        project(*BUILD, expect=0)
    assert not {"tomllib", "pydantic", "networkx"} & project.imports(*BUILD)
    (project.folder / "recipe.toml").write_text('cache = "own"\n')
    for _ in range(2):
        project(*BUILD, expect=0)
    imports = project.imports(*BUILD)
    assert "tomllib" in imports
    assert not {"pydantic", "networkx", "difflib"} & imports
