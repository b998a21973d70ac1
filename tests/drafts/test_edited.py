"""A recipe's own text is edited: it loads as with `--set`, and all that the user has written around it stays."""

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from styled_yaml import styled

from engine.drafts.draft import Draft, recipe_text
from engine.drafts.edited import edited, refuse_place, write
from engine.errors import RecipeError, UsageError
from engine.recipe.load import load
from engine.recipe.overrides import SET, texts

RECIPES = Path("recipes").resolve()
OURS = r"# Found by `recipe tune`(.*\n#)*.*\n"
HEAD = ("Found by `recipe tune` of r.yaml: the smallest size.", "Why: it is.")
BASE = "name: base\nmodel: {source: model}\ntarget: {device: cpu, runtime: onnxruntime}\nprecision: fp32\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "recipe.toml").write_text("")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    return tmp_path


@pytest.fixture
def change(folder):
    """Return a function that edits a text, and checks that it loads as with `--set`."""

    def change(text, changes, head=(), **options):
        path = folder / "r.yaml"
        path.write_bytes(text.encode())
        return checked(path, changes, head, **options)

    return change


def checked(path, changes, head=(), *, drop=(), only=()):
    """Edit a recipe; its loaded form is that of `--set`, and the user's lines of comments are there."""
    before = edited(path, {}, (), only=only)  # without an earlier block of a search, which is replaced
    assert only or lines_of_comments(before) == lines_of_comments(re.sub(OURS, "", path.read_bytes().decode()))
    expected = load(path, set=texts(SET, {**changes, **dict.fromkeys(drop)}), only=only, must_exist=False)
    text = edited(path, {**changes, **dict.fromkeys(drop)}, head, only=only)
    copy = path.with_name(f"edited-{path.name}")
    try:
        write(text, copy, path)
        [loaded] = load(copy, must_exist=False)
    finally:
        copy.unlink(missing_ok=True)
    assert [each.recipe for each in expected] == [loaded.recipe]
    assert [line for line in lines_of_comments(before) if line not in lines_of_comments(text)] == []
    return text


def lines_of_comments(text):
    return [line.strip() for line in text.splitlines() if line.strip().startswith("#")]


VALUES = {
    "precision": ("fp32", "int8", None),
    "target.runtime": ("onnxruntime", "openvino", "auto"),
    "name": ("other", "0123", "yes", "a-${precision}"),
    "validate.cosine": (0.5, 1e-05, None),
    "validate.agreement": (0.25, None),
    "quantize.weights_only": (True, None),
    "quantize.keep_in.fp32": (["/a/MatMul", "b: c # d", "yes"], None),
    "bench.threads": (1, 3, None),
    "bench.shapes.0.batch": (2, 8),
    "bench.against": ([{"runtime": "pytorch"}], None),
    "profiles.0.batch": (4, [1, 2, 4]),
    "profiles.0.sequence.max": (256,),
    "package.triton.threads": (3, None),
    "package.triton.name": ("on", "other"),
    "package.triton": ({"name": "whole"}, None),
    "generate": (None,),
    "validate": ({}, None, {"cosine": 0.75}),
}
WHOLE = {
    "name": "r",
    "model": {"source": "model"},
    "target": {"device": "cpu", "runtime": "onnxruntime"},
    "precision": "int8",
    "quantize": {"keep_in": {"fp32": ["/a/MatMul", "b"]}},
    "profiles": [{"batch": 1, "sequence": [1, 16, 128]}, {"batch": [1, 8, 32], "sequence": 7}],
    "validate": {"cosine": 0.5, "agreement": 0.25},
    "bench": {"shapes": [{"batch": 1, "sequence": 16}], "threads": 2},
    "package": {"triton": {"name": "whole", "threads": 2}},
}
CHANGES = st.dictionaries(st.sampled_from(sorted(VALUES)), st.integers(0, 3), max_size=4)


def of(picks):
    return {field: VALUES[field][pick % len(VALUES[field])] for field, pick in picks.items()}


def variants_of(path):
    return [tuple(each.variant.split(",")) if each.variant else () for each in load(path, must_exist=False)]


def test_any_change_of_a_shipped_recipe_loads_as_with_set_and_keeps_every_comment(folder):
    shutil.copytree(RECIPES, folder / "recipes")
    shipped, done = sorted((folder / "recipes").glob("*.yaml")), []
    assert len(shipped) >= 10

    @settings(max_examples=25)
    @given(st.sampled_from(shipped), st.integers(0, 20), CHANGES)
    def property_of(path, variant, picks):
        changes, every = of(picks), variants_of(path)
        only = every[variant % len(every)]
        axes = {each.split("=")[0] for each in only}
        try:
            [_] = load(path, set=texts(SET, changes), only=only, must_exist=False)
        except (RecipeError, ValueError):
            return  # a change that the recipe cannot have, or one of an axis
        checked(path, changes, HEAD, only=only)
        done.append((path, len(changes), bool(axes)))

    property_of()
    assert len({path for path, *_ in done}) > 3
    assert max(count for _, count, _ in done) > 1


def test_any_change_of_a_draft_loads_as_with_set_and_keeps_every_comment(folder):
    draft = Draft({"name": "r"}, ["Written by `recipe new`, from what the model's own files say.", "BertModel."])
    draft.put("model.source", "model")
    draft.put("target.device", "cpu", "this machine shows no GPU")
    draft.put("target.runtime", "onnxruntime", "or openvino")
    draft.put("precision", "fp32", "int8 is smaller")
    draft.put(
        "profiles", [{"batch": [1, 1, 8], "sequence": [1, 128, 512]}], "[min, opt, max]; " + "a long comment " * 9
    )
    draft.put("bench.shapes", [{"batch": 1, "sequence": 16}])
    draft.put("validate", {}, "the samples are examples")
    path, done = folder / "r.yaml", []
    path.write_text(recipe_text(draft))

    @settings(max_examples=25)
    @given(CHANGES)
    def property_of(picks):
        changes = of(picks)
        try:
            load(path, set=texts(SET, changes), must_exist=False)
        except RecipeError:
            return
        checked(path, changes, HEAD)
        done.append(changes)

    property_of()
    assert len(done) > 3


def test_any_change_of_a_recipe_in_any_style_loads_as_with_set_and_keeps_every_comment(folder):
    path, done = folder / "r.yaml", []

    @settings(max_examples=40)
    @given(styled(WHOLE), CHANGES)
    def property_of(text, picks):
        path.write_text(text)
        changes = of(picks)
        try:
            load(path, set=texts(SET, changes))
        except RecipeError:
            return
        once = checked(path, changes, HEAD)
        path.write_text(once)
        assert checked(path, changes, HEAD) == once
        done.append(changes)

    property_of()
    assert len(done) > 8


def test_a_changed_value_keeps_its_line_and_the_comment_behind_it(change):
    text = change(BASE.replace("fp32\n", "fp32  # mine\n"), {"precision": "int8", "target.runtime": "openvino"})
    assert "\nprecision: int8  # mine\n" in text
    assert "\ntarget: {device: cpu, runtime: openvino}\n" in text


def test_a_new_section_stands_where_sections_of_recipes_stand(change):
    text = change(BASE + "\nbench:\n  threads: 2\n", {"validate.cosine": 0.5, "quantize.weights_only": True})
    names = [line.split(":")[0] for line in text.splitlines() if line[:1].isalpha()]
    assert names == ["name", "model", "target", "precision", "quantize", "validate", "bench"]


@pytest.mark.parametrize("name", ["0123", "yes", "1e3", "null", "on", "true", "1_000", "2026-01-01"])
def test_a_text_that_looks_like_something_else_stays_a_text(change, name):
    assert f'name: "{name}"\n' in change(BASE, {"name": name})


def test_a_removed_field_leaves_the_comments_around_it(change):
    text = BASE + "\n# above\nbench:  # behind\n  # inside\n  threads: 2\n\n# below\nvalidate: {cosine: 0.5}\n"
    assert change(text, {"bench": None}).endswith("fp32\n\n# above\n# inside\n\n# below\nvalidate: {cosine: 0.5}\n")
    assert "bench: {}" in change(text, {"bench.threads": None})


def test_the_child_of_a_recipe_says_only_what_differs(change, folder):
    (folder / "base.yaml").write_text(BASE + "validate: {cosine: 0.5, agreement: 0.5}\n")
    text = change("extends: base.yaml\nname: child\n", {"precision": "int8", "validate": {"cosine": 0.75}})
    assert text == "extends: base.yaml\nname: child\nprecision: int8\nvalidate:\n  cosine: 0.75\n  agreement: null\n"
    assert change(text, {"precision": "fp32"}).count("precision: fp32") == 1


def test_a_chosen_variant_of_a_matrix_becomes_a_plain_recipe(change, folder):
    text = BASE + "# all of them\nmatrix:\n  precision: [fp32, int8]\n"
    only = change(text, {}, only=("precision=int8",))
    assert "matrix" not in only
    assert ("name: base-int8\n" in only, "precision: int8\n" in only) == (True, True)
    (folder / "base.yaml").write_text(text)
    assert "matrix: null\n" in change("extends: base.yaml\nname: c\n", {}, only=("precision=int8",))
    with pytest.raises(UsageError, match="2 variants, and one is written") as refused:
        edited(folder / "base.yaml", {}, ())
    assert refused.value.hint == "choose one: --only precision=fp32"


def test_a_block_at_the_top_is_replaced_and_not_stacked(change):
    once = change(BASE, {}, head=HEAD)
    twice = change(once, {}, head=["Found by `recipe bisect`."])
    assert once == "".join(f"# {line}\n" for line in HEAD) + "\n" + BASE
    assert twice == "# Found by `recipe bisect`.\n\n" + BASE
    with_schema = change("# yaml-language-server: $schema=s.json\n" + BASE, {}, head=HEAD)
    assert with_schema.startswith("# yaml-language-server: $schema=s.json\n# Found by")


@pytest.mark.parametrize("begins", [b"", b"\xef\xbb\xbf"])
def test_line_breaks_and_a_byte_order_mark_stay(folder, begins):
    path = folder / "r.yaml"
    path.write_bytes(begins + BASE.replace("\n", "\r\n").encode())
    write(edited(path, {"validate.cosine": 0.5}, HEAD), path, path)
    content = path.read_bytes()
    assert content.startswith(begins + b"# Found by")
    assert content.count(b"\r\n") == content.count(b"\n") > len(BASE.splitlines())
    assert load(path)[0].recipe.validation is not None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (BASE + "profiles: [{batch: &b 4, sequence: *b}]\n", "cannot be changed at `precision`"),
        (BASE + "---\n" + BASE, "a second document"),
    ],
)
def test_a_text_in_which_a_change_would_not_stay_in_its_place_is_refused(folder, text, what):
    (folder / "r.yaml").write_bytes(text.encode())
    with pytest.raises((UsageError, RecipeError), match=what):
        edited(folder / "r.yaml", {"precision": "int8"}, ())


def test_a_change_that_no_recipe_has_is_refused_with_the_field(folder):
    (folder / "r.yaml").write_text(BASE)
    with pytest.raises(RecipeError, match="no recipe has a field `precison`"):
        edited(folder / "r.yaml", {"precison": "int8"}, ())
    with pytest.raises(RecipeError, match="`precision`"):
        edited(folder / "r.yaml", {"precision": "int9"}, ())


def test_a_wrong_result_is_never_written(folder, monkeypatch):
    (folder / "r.yaml").write_text(BASE)
    monkeypatch.setattr("engine.drafts.edited._headed", lambda text, _: text.replace("int8", "bf16"))
    with pytest.raises(UsageError, match="cannot be changed at `precision`"):
        edited(folder / "r.yaml", {"precision": "int8"}, ())


def test_it_is_written_beside_its_recipe_and_over_nothing_but_the_work_of_a_search(folder):
    recipe, other = folder / "r.yaml", folder / "other.yaml"
    recipe.write_text(BASE)
    text = edited(recipe, {"precision": "int8"}, HEAD)
    write(text, other, recipe)
    write(text + "# again\n", other, recipe)
    assert other.read_text().endswith("# again\n")
    write(text, recipe, recipe)
    assert recipe.read_text() == text
    other.write_text("# mine\n" + text)
    with pytest.raises(UsageError, match="no search has written it"):
        refuse_place(other, recipe)
    with pytest.raises(UsageError, match="another folder"):
        write(text, folder / "model" / "r.yaml", recipe)
    recipe.write_text(BASE.replace("precision: fp32", "matrix: {precision: [int8, int4]}"))
    text = edited(recipe, {}, HEAD, only=["precision=int8"])
    with pytest.raises(UsageError, match="has a matrix, and one variant is written"):
        write(text, recipe, recipe)
    write(text, other.with_name("one.yaml"), recipe)
    other.with_name("one.yaml").unlink()
    other.write_text("extends: r.yaml\nname: other-${precision}\n")  # the matrix of a parent
    with pytest.raises(UsageError, match="has a matrix, and one variant is written"):
        refuse_place(other, other)
    assert sorted(each.name for each in folder.iterdir()) == ["model", "other.yaml", "r.yaml", "recipe.toml"]
