"""Several recipes: every wrong one is reported, abstract ones are skipped, and `--keep-going` builds the others."""

import graphs
import pytest
from onnx import helper

from engine import api
from engine.builder import planning
from engine.builder.options import Options
from engine.builder.selection import select
from engine.errors import Exit, RecipeError, RecipesError, UsageError, UserError
from engine.events import Finished, Noticed, Refused

GOOD = "name: {name}\nmodel: {{source: model.onnx}}\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a model and thirty recipes, of which a test spoils some."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    node = helper.make_node("Relu", ["x"], ["y"])
    graphs.write(tmp_path, graphs.graph([node], [("x", graphs.FLOAT, [1, 4])], [("y", graphs.FLOAT, [1, 4])]))
    for number in range(30):
        (tmp_path / f"r{number:02}.yaml").write_text(GOOD.format(name=f"r{number}"))
    return tmp_path


@pytest.fixture
def no_jobs(monkeypatch):
    """Let builds end at once, as if all jobs had been cached."""
    monkeypatch.setattr(api, "run", lambda *_: (each for each in [Finished("up to date", 0.0, Exit.OK, {})]))


def paths(project):
    return sorted(path.name for path in project.glob("*.yaml"))


def test_every_wrong_recipe_is_reported_before_anything_is_built(project):
    (project / "r03.yaml").write_text("name: [\n")
    (project / "r17.yaml").write_text("name: r17\nmodel: {source: missing.onnx}\n")
    (project / "r20.yaml").write_text(GOOD.format(name="r20") + "target: {device: T4}\n")
    for command in (api.session, api.check, api.plan, api.lock):
        with pytest.raises(RecipesError) as caught:
            command(paths(project))
        shown = str(caught.value)
        assert [line for line in shown.splitlines() if line.startswith("error:")][-1] == (
            "error: 3 of 30 recipes are wrong, so nothing was done"
        )
        for name in ("r03.yaml:", "r17.yaml:2:", "r20.yaml:3:"):
            assert name in shown
        assert caught.value.exit is Exit.USAGE
    assert not (project / "cache").exists()
    assert len(caught.value.fields()["errors"]) == 3
    assert caught.value.fields()["errors"][1]["position"].startswith("r17.yaml:2:")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: [\n", "not valid YAML"),
        ("model: {source: model.onnx}\n", "`name` is missing"),
        *(
            (f"abstract: {value}\n" + GOOD.format(name="r3"), "true or false is meant")
            for value in ("yes please", "1", "null")
        ),
    ],
    ids=["no yaml", "no name", "a text", "1", "null"],
)
def test_one_wrong_recipe_is_its_own_error(project, text, words):
    (project / "r03.yaml").write_text(text)
    with pytest.raises(RecipeError, match=words):
        api.plan(paths(project))


def test_a_wrong_option_is_one_error_and_not_one_for_each_recipe(project):
    with pytest.raises(RecipeError) as caught:
        api.plan(paths(project), set=["precison=int8"])
    assert caught.value.position.file == "--set"


@pytest.mark.usefixtures("no_jobs")
@pytest.mark.parametrize("option", ["force", "remake"])
def test_a_step_that_there_is_not_is_refused_before_anything_is_built(project, option):
    with pytest.raises(UsageError, match="there is no step 'nonsense'"):
        api.build(paths(project), **{option: "nonsense"})


@pytest.mark.usefixtures("no_jobs")
def test_keep_going_leaves_out_the_wrong_recipes(project):
    (project / "r03.yaml").write_text("name: [\n")
    session = api.session(paths(project), keep_going=True)
    assert len(session.variants) == 29
    events = []
    session.build(Options(parallel=1), events.append)
    [refused] = [event for event in events if isinstance(event, Refused)]
    assert refused.path == "r03.yaml"
    assert isinstance(refused.error, RecipeError)
    assert isinstance(events[-1], Finished)
    assert (events[-1].exit, events[-1].state) == (Exit.USAGE, "failed")


def test_if_no_recipe_is_right_keep_going_is_no_build(project):
    (project / "r03.yaml").write_text("name: [\n")
    with pytest.raises(RecipeError):
        api.session(["r03.yaml"], keep_going=True)


def test_recipes_with_one_name_are_wrong_together(project):
    (project / "r03.yaml").write_text(GOOD.format(name="r4"))
    with pytest.raises(RecipeError, match="two recipes are called 'r4'"):
        api.plan(paths(project))
    session = api.session(paths(project), keep_going=True)
    assert len(session.variants) == 28
    assert sorted(map(str, session.refusals.by_path)) == ["r03.yaml", "r04.yaml"]
    with pytest.raises(RecipeError, match="the recipe 'r4' is given twice"):
        api.plan(["r04.yaml", "./r04.yaml"])


def test_a_missing_lock_is_the_error_of_its_recipe(project):
    with pytest.raises(RecipesError) as caught:
        api.session(paths(project), locked=True)
    assert "30 of 30 recipes are wrong" in str(caught.value)


BASES = {
    "marked": "abstract: true\nprecision: fp32\n",
    "marked, with a name": "abstract: true\nname: base\nmodel: {source: model.onnx}\n",
    "without a name": "model: {source: model.onnx}\n",
}


@pytest.mark.usefixtures("no_jobs")
@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_a_base_that_is_only_extended_is_skipped(project, base):
    (project / "base.yaml").write_text(base)
    (project / "r03.yaml").write_text("extends: base.yaml\n" + GOOD.format(name="r3"))
    session = api.session(paths(project))
    assert len(session.variants) == 30
    assert [str(path) for path in session.abstract] == ["base.yaml"]
    events = []
    session.build(Options(parallel=1), events.append)
    assert Noticed("base.yaml is abstract, skipped") in events


def test_a_base_of_a_base_is_skipped_and_abstract_is_not_inherited(project):
    (project / "base.yaml").write_text("abstract: true\nmodel: {source: model.onnx}\n")
    (project / "mid.yaml").write_text("extends: base.yaml\nprecision: fp32\n")
    (project / "r03.yaml").write_text("extends: mid.yaml\nname: r3\n")
    planned = planning.plan(select(paths(project)))
    assert [str(path) for path in planned.abstract] == ["base.yaml", "mid.yaml"]
    assert len(planned.without_refused()) == 30


def test_beside_a_recipe_that_cannot_be_read_a_file_without_a_name_is_no_further_error(project):
    (project / "base.yaml").write_text("model: {source: model.onnx}\n")
    (project / "r03.yaml").write_text("extends: base.yaml\nname: [\n")
    planned = planning.plan(select(paths(project)))
    assert [str(path) for path in planned.refusals.by_path] == ["r03.yaml"]


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_an_abstract_recipe_alone_is_an_error(project, base):
    (project / "base.yaml").write_text(base)
    with pytest.raises(UserError) as caught:
        api.plan(["base.yaml"])
    assert caught.value.exit is Exit.USAGE
    assert str(caught.value).startswith("base.yaml:1:1: ")
    assert ("abstract" in caught.value.what) == ("abstract" in base)


def test_abstract_false_is_a_recipe(project):
    (project / "r03.yaml").write_text("abstract: false\n" + GOOD.format(name="r3"))
    assert len(api.plan(paths(project))) == 30
