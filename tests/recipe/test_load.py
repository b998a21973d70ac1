"""Loading a correct recipe: the values of its fields, its defaults and its places."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import RecipeError
from engine.recipe.load import load
from engine.recipe.project import project_of
from engine.recipe.schema import Shape
from engine.recipe.values import Bound, Range
from engine.store.store import Store

MINIMAL = "name: tiny\nmodel: {source: model}\n"

EVERYTHING = (Path(__file__).parent / "everything.yaml").read_text()


def test_everything_that_the_reference_shows_is_in_the_schema(project):
    recipe = project.one(EVERYTHING).recipe
    assert recipe.profiles[1]["batch"] == Range(min=1, opt=8, max=32)
    assert recipe.tensorrt["memory_pool"] == {"workspace": 2 << 30}
    assert recipe.validation.metric.at_least == 0.91
    assert recipe.bench.shapes[0] == Shape(axes={"batch": 1, "sequence": 16}, budget={"p95_ms": 1.7})
    assert recipe.bench.shapes[2] == Shape(axes={"batch": 8}, samples="sequence")
    assert recipe.bench.samples.endswith("/samples/few.jsonl")
    assert recipe.package.triton.model_extra == {"dynamic_batching": {"max_queue_delay_microseconds": 100}}
    assert recipe.graphs["encoder"]["precision"] == "fp32"
    assert recipe.generate == {"max_new_tokens": 64, "num_beams": 1}
    assert recipe.preprocess["size"] == 384
    assert recipe.steps == {"prune": {"share": 0.5}}


def test_a_small_recipe_has_defaults_for_the_rest(project):
    loaded = project.one()
    assert (loaded.recipe.target.device, loaded.recipe.precision, loaded.variant) == ("cpu", "fp32", "")
    assert loaded.recipe.profiles == ()


@pytest.mark.parametrize(
    ("field", "bound"),
    [
        ("cosine: 0.99", Bound(at_least=0.99)),
        ("agreement: 1", Bound(at_least=1)),
        ("max_abs: 0.05", Bound(at_most=0.05)),
        ("cosine: {at_least: 0.9, at_most: 1}", Bound(at_least=0.9, at_most=1)),
    ],
)
def test_a_bare_number_is_the_bound_that_makes_sense_for_it(project, field, bound):
    validation = project.one(MINIMAL + f"validate: {{{field}}}").recipe.validation
    assert getattr(validation, field.split(":")[0]) == bound


def test_a_bare_metric_is_an_accuracy(project):
    metric = project.one(MINIMAL + "validate: {metric: 0.9}").recipe.validation.metric
    assert (metric.name, metric.at_least, metric.at_most) == ("accuracy", 0.9, None)


@pytest.mark.parametrize(
    "profiles",
    [
        "[{batch: [1, 1, 8], sequence: [16, 128, 512]}]",
        "{batch: [1, 1, 8], sequence: {min: 16, opt: 128, max: 512}}",
        "[{input_ids: [1x16, 1x128, 8x512]}]",
        "[{input_ids: {min: 1x16, opt: 1x128, max: 8x512}}]",
        "[{input_ids: [1x16, 1x128, 8x512], attention_mask: [1x16, 1x128, 8x512]}]",
    ],
)
def test_profiles_are_the_same_by_axis_and_as_trtexec_has_them(project, profiles):
    (profile,) = project.one(MINIMAL + f"profiles: {profiles}").recipe.profiles
    assert profile == {"batch": Range(min=1, opt=1, max=8), "sequence": Range(min=16, opt=128, max=512)}


def test_a_single_shape_of_an_input_is_fixed(project):
    (profile,) = project.one(MINIMAL + "profiles: [{input_ids: 1x16}]").recipe.profiles
    assert profile == {"batch": Range(min=1, opt=1, max=1), "sequence": Range(min=16, opt=16, max=16)}


@pytest.mark.parametrize(
    ("shapes", "fault", "column"),
    [
        ("[0x3x16, 1x3x16, 1x3x16]", "`profiles.0` gives an axis of 'x' the size 0", 12),
        ("[8x3x16, 1x3x16, 8x3x16]", "`profiles.0.x` is out of order: min 8, opt 1, max 8", 16),
    ],
)
def test_a_wrong_size_in_a_profile_by_input_is_shown_at_the_profile(project, shapes, fault, column):
    project.write("", "model.onnx")
    with pytest.raises(RecipeError) as caught:
        project.one(f"name: tiny\nmodel: {{source: model.onnx}}\nprofiles: [{{x: {shapes}}}]\n")
    assert caught.value.what == fault
    assert str(caught.value.position) == f"recipe.yaml:3:{column}"


def test_a_profile_by_input_of_an_onnx_file_keeps_the_inputs_and_the_indices_of_its_axes(project):
    project.write("", "model.onnx")
    text = "name: tiny\nmodel: {source: model.onnx}\nprofiles: {input_ids: [1x16, 1x128, 8x512]}\nbench: {shapes: "
    recipe = project.one(text + "[{input_ids: 1x16}, {batch: 2, other: 3x4}]}").recipe
    assert recipe.profiles == (
        {"input_ids[0]": Range(min=1, opt=1, max=8), "input_ids[1]": Range(min=16, opt=128, max=512)},
    )
    shapes = [shape.axes for shape in recipe.bench.shapes]
    assert shapes == [{"input_ids[0]": 1, "input_ids[1]": 16}, {"batch": 2, "other[0]": 3, "other[1]": 4}]


@pytest.mark.parametrize(
    ("text", "size"), [("2GiB", 2 << 30), ("512MiB", 512 << 20), ("1.5GB", 1_500_000_000), ("2097152", 2 << 20)]
)
def test_memory_has_units(project, text, size):
    recipe = project.one(MINIMAL + f"tensorrt: {{memory_pool: {{workspace: {text}}}}}").recipe
    assert recipe.tensorrt["memory_pool"]["workspace"] == size


def test_paths_become_uris_of_absolute_paths(project):
    loaded = project.one("name: tiny\nmodel: {source: ./model}\nvalidate: {samples: samples/few.jsonl}\n")
    assert loaded.recipe.model.source == f"file:{project.root}/model"
    assert loaded.recipe.validation.samples == f"file:{project.root}/samples/few.jsonl"


@pytest.mark.parametrize("source", ["hf:gpt2", "hf:org/name", "python:package/model", "timm:resnet18.a1_in1k"])
def test_other_sources_stay_as_they_are(project, source):
    assert project.one(f"name: tiny\nmodel: {{source: '{source}'}}").recipe.model.source == source


def test_a_linked_onnx_file_keeps_its_own_name_and_folder(project):
    (project.root / "blob").write_bytes(b"onnx")
    (project.root / "model" / "model.onnx").symlink_to("../blob")
    source = project.one("name: tiny\nmodel: {source: model/model.onnx}").recipe.model.source
    assert source == f"file:{project.root}/model/model.onnx"


def test_a_path_out_of_the_project_is_read_where_the_user_allows_it(project, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    text = "name: tiny\nmodel: {source: ../outside}\n"
    assert "--allow-path" in project.error(text).hint
    assert project.one(text, allow=[outside]).recipe.model.source == f"file:{outside}"


def test_a_link_out_of_the_project_is_out_of_the_project(project, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (project.root / "inside").symlink_to(outside)
    assert "leads out of the project" in project.error("name: tiny\nmodel: {source: inside}\n").what


def test_positions_name_the_place_of_a_field(project):
    loaded = project.one("name: tiny\nmodel: {source: model}\ntarget:\n  device: cpu\nprofiles: [{batch: [1, 2, 3]}]\n")
    assert str(loaded.position("name")) == "recipe.yaml:1:7"
    assert str(loaded.position("target", "device")) == "recipe.yaml:4:11"
    assert str(loaded.position("target")) == "recipe.yaml:3:1", "a block is where its key is"
    assert str(loaded.position("profiles", 0, "batch", 2)) == "recipe.yaml:5:27"
    assert loaded.position("precision") is None


def test_an_error_about_a_field_points_at_it_or_at_what_is_around_it(project):
    loaded = project.one("name: tiny\nmodel: {source: model}\ntarget:\n  device: cpu\n")
    error = loaded.error("no", "target", "runtime", facts=["because"], hint="do")
    assert str(error) == "recipe.yaml:3:1: no\n3 | target:\n    ^\n  because\nhint: do"
    assert str(loaded.error("no", "bench").position) == "recipe.yaml:1:1"


def test_a_foreign_models_complaint_is_said_in_plain_words_at_its_place(project):
    from pydantic import BaseModel, ValidationError

    class Prune(BaseModel):
        share: float

    loaded = project.one(MINIMAL + "steps:\n  prune:\n    share: lots\n")
    with pytest.raises(ValidationError) as caught:
        Prune.model_validate(loaded.recipe.steps["prune"])
    error = loaded.complaint(caught.value, "steps", "prune")
    assert str(error).startswith("recipe.yaml:5:12: `steps.prune.share` is the text 'lots'; a number is meant")


def test_set_overrides_a_field_and_makes_those_on_the_way(project):
    recipe = project.one(set=["precision=int8", "bench.threads=3", "package.triton.name=other"]).recipe
    assert (recipe.precision, recipe.bench.threads, recipe.package.triton.name) == ("int8", 3, "other")


def test_set_takes_lists_in_brackets_and_null_removes(project):
    text = MINIMAL + "bench: {threads: 2}\nprofiles: [{batch: 1}]\n"
    recipe = project.one(text, set=["profiles.0.batch=[1, 2, 3]", "bench=null"]).recipe
    assert recipe.profiles[0]["batch"] == Range(min=1, opt=2, max=3)
    assert recipe.bench is None


def test_set_reads_paths_from_the_recipes_folder(project):
    project.write(MINIMAL, "recipes/tiny.yaml")
    (project.root / "recipes" / "model").mkdir()
    (loaded,) = load(project.root / "recipes/tiny.yaml", set=["model.source=model"])
    assert loaded.recipe.model.source == f"file:{project.root}/recipes/model"


def test_a_wrong_value_of_set_is_shown_in_the_argument(project):
    error = project.error(MINIMAL, set=["bench.threads=2", "precision=fp61"])
    assert str(error).startswith("--set:2:11: `precision` cannot be the text 'fp61'\n2 | precision=fp61\n")
    assert error.hint == "did you mean `fp16`?"


def test_a_recipe_may_start_with_a_byte_order_mark_and_a_document_mark(project):
    assert project.one(b"\xef\xbb\xbf---\nname: tiny\nmodel: {source: model}\n".decode()).recipe.name == "tiny"


def test_aliases_are_fine_in_moderation(project):
    text = MINIMAL + "profiles: [{batch: &one [1, 2, 3], sequence: *one}]\n"
    (profile,) = project.one(text).recipe.profiles
    assert profile["batch"] == profile["sequence"]


def test_windows_line_ends_and_comments_mean_nothing(project):
    assert project.one(MINIMAL.replace("\n", "  # so\r\n")).recipe == project.one().recipe


def test_the_project_is_the_nearest_folder_with_a_mark(tmp_path):
    recipe = tmp_path / "a" / "recipes" / "x.yaml"
    recipe.parent.mkdir(parents=True)
    root = tmp_path.resolve()
    assert project_of(recipe) == root / "a", "a folder called recipes belongs to the one above"
    (tmp_path / "cache").mkdir()
    assert project_of(recipe) == root / "a", "a folder called cache is no mark"
    (tmp_path / "cache" / "format").write_text("of another program\n")
    assert project_of(recipe) == root / "a", "a folder called cache of another program is no mark, either"
    Store(tmp_path / "cache")
    assert project_of(recipe) == root
    (tmp_path / "a" / "recipe.toml").touch()
    assert project_of(recipe) == root / "a"
    (tmp_path / "a" / "recipe.toml").unlink()
    (tmp_path / "a" / ".git").touch()
    assert project_of(recipe) == root / "a", "a worktree's .git is a file"


def test_finding_the_project_imports_neither_yaml_nor_pydantic():
    code = "import sys, engine.recipe.project; print([m for m in ('yaml', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"


def test_errors_and_recipes_survive_a_pickle(project):
    error = project.error("name: [")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert pickle.loads(pickle.dumps(project.one())).recipe == project.one().recipe


def test_a_missing_recipe_is_an_error_with_near_names(project):
    project.write(MINIMAL, "minilm.yaml")
    with pytest.raises(RecipeError) as caught:
        load(project.root / "minlm.yaml")
    assert "there is no file" in caught.value.what
    assert caught.value.hint == "did you mean minilm.yaml?"


def test_a_shape_names_an_axis_and_only_one_axis_has_the_lengths_of_samples(project):
    assert "names no axis" in str(project.error(MINIMAL + "bench: {shapes: [{budget: {p95_ms: 1}}]}"))
    error = project.error(MINIMAL + "bench: {shapes: [{batch: samples, sequence: samples}]}")
    assert "gives two axes the lengths of samples: batch and sequence" in str(error)


def test_samples_may_also_be_the_name_of_an_axis(project):
    shape = project.one(MINIMAL + "bench: {shapes: [{batch: 1, samples: 16000}]}").recipe.bench.shapes[0]
    assert shape == Shape(axes={"batch": 1, "samples": 16000})
