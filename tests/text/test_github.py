"""Errors as annotations of GitHub Actions: at their place, escaped, and only there."""

import pytest

from engine.errors import RecipesError, StepError
from engine.recipe.load import load
from engine.text import github

ON_GITHUB = {"GITHUB_ACTIONS": "true"}


@pytest.fixture
def wrong(tmp_path):
    """Return the error about a recipe with a misspelt field."""
    path = tmp_path / "recipes" / "r.yaml"
    path.parent.mkdir()
    path.write_text("name: a\nmodel: {source: 'hf:a/b'}\nprecison: int8\n")
    with pytest.raises(Exception, match="precison") as refused:
        load(path)
    return refused.value


def test_an_error_of_a_recipe_is_shown_at_its_line(wrong, tmp_path):
    [command] = github.of(wrong, {**ON_GITHUB, "GITHUB_WORKSPACE": str(tmp_path)})
    assert command.startswith("::error file=recipes/r.yaml,line=3,col=1::unknown field `precison`")
    assert "%0Ahint: did you mean `precision`?" in command


def test_each_wrong_recipe_has_an_annotation(wrong):
    other = StepError("50% failed", ["a, b: c", "line\nbreak"])
    commands = github.of(RecipesError([wrong, other], recipes=2), ON_GITHUB)
    assert len(commands) == 2
    assert commands[1] == "::error::50%25 failed%0Aa, b: c%0Aline%0Abreak"


def test_a_name_is_escaped(wrong, tmp_path):
    path = tmp_path / "a,b:c.yaml"
    path.write_text("name: [\n")
    with pytest.raises(Exception, match="yaml") as refused:
        load(path)
    [command] = github.of(refused.value, ON_GITHUB)
    assert "a%2Cb%3Ac.yaml,line=" in command


def test_elsewhere_there_are_no_annotations(wrong, tmp_path):
    assert github.of(wrong, {}) == []
    github.summarize("built", "table", {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary")})
    assert not (tmp_path / "summary").exists()


def test_the_summary_of_a_job_grows(tmp_path):
    environment = {**ON_GITHUB, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    github.summarize("recipe build: built", "p50  1 ms\n", environment)
    github.summarize("recipe build: up to date", "", environment)
    assert (tmp_path / "summary").read_text() == (
        "### recipe build: built\n\n```text\np50  1 ms\n```\n\n### recipe build: up to date\n\n"
    )


def test_a_summary_that_cannot_be_written_is_no_error(tmp_path):
    github.summarize("built", "table", {**ON_GITHUB, "GITHUB_STEP_SUMMARY": str(tmp_path)})
