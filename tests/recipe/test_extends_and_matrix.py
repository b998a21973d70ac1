"""Recipes that extend other recipes, and recipes with a matrix."""

import itertools

import pytest

from engine.errors import RecipeError
from engine.recipe.load import load
from engine.recipe.values import Range

MINIMAL = "name: tiny\nmodel: {source: model}\n"
DEVICES = MINIMAL + "matrix: {target.device: [T4, A10], precision: [fp16, int8]}\n"


def names(loaded):
    return [each.recipe.name for each in loaded]


def test_a_child_is_laid_over_its_parent_deeply(project):
    project.write(
        MINIMAL + "target: {device: T4, runtime: tensorrt}\nprofiles: [{batch: 1}, {batch: 2}]\n", "base.yaml"
    )
    loaded = project.one("extends: base.yaml\nname: child\ntarget: {device: A10}\nprofiles: [{batch: 3}]\n")
    assert (loaded.recipe.target.device, loaded.recipe.target.runtime) == ("A10", "tensorrt")
    assert len(loaded.recipe.profiles) == 1, "lists replace"
    assert [file.name for file in loaded.files] == ["recipe.yaml", "base.yaml"]


def test_null_in_a_child_takes_away_what_the_parent_says(project):
    project.write(MINIMAL + "bench: {threads: 2}\n", "base.yaml")
    assert project.one("extends: base.yaml\nbench: null\n").recipe.bench is None


def test_errors_in_a_parent_point_into_the_parent(project):
    project.write(MINIMAL + "precision: fp61\n", "base.yaml")
    assert str(project.error("extends: base.yaml\nname: child\n").position) == "base.yaml:3:12"


def test_an_unreadable_parent_is_refused_with_the_place_of_extends(project):
    (project.root / "folder.yaml").mkdir()
    (project.root / "bytes.yaml").write_bytes(b"name: \xff")
    for parent, what in (("folder.yaml", "is a directory"), ("bytes.yaml", "not UTF-8")):
        error = project.error(f"name: child\nextends: {parent}\n")
        assert what in error.what
        assert error.facts[-1] == "named by `extends` at recipe.yaml:2:10"


def test_paths_belong_to_the_file_that_says_them(project):
    (project.root / "shared" / "model").mkdir(parents=True)
    project.write("name: base\nmodel: {source: model}\n", "shared/base.yaml")
    loaded = project.one("extends: shared/base.yaml\nvalidate: {samples: samples/few.jsonl}\n")
    assert loaded.recipe.model.source == f"file:{project.root}/shared/model"
    assert loaded.recipe.validation.samples == f"file:{project.root}/samples/few.jsonl"


def test_a_circle_of_parents_is_shown(project):
    project.write("extends: recipe.yaml\n", "base.yaml")
    error = project.error("extends: base.yaml\n")
    assert error.what == "`extends` goes in a circle"
    assert error.facts == ("recipe.yaml -> base.yaml -> recipe.yaml",)
    assert str(error.position) == "base.yaml:1:10"


def test_a_parent_out_of_the_project_must_be_allowed(project, tmp_path):
    (tmp_path / "base.yaml").write_text("name: base\nmodel: {source: 'hf:a/b'}\n")
    assert "leads out of the project" in project.error("extends: ../base.yaml\n").what
    assert project.one("extends: ../base.yaml\n", allow=[tmp_path]).recipe.name == "base"


def test_a_matrix_stands_for_every_combination_in_the_files_order(project):
    loaded = project.load(DEVICES)
    assert names(loaded) == ["tiny-T4-fp16", "tiny-T4-int8", "tiny-A10-fp16", "tiny-A10-int8"]
    assert loaded[0].variant == "target.device=T4,precision=fp16"


def test_a_name_has_places_for_values(project):
    text = DEVICES.replace("name: tiny", "name: m-${precision}-${target.device}-${model.source}")
    assert names(project.load(text))[0] == "m-fp16-T4-model"


def test_values_are_made_fit_for_a_files_name(project):
    text = MINIMAL + 'matrix: {target.device: ["RTX 4090"], profiles: [{batch: 1, sequence: [1, 16, 128]}]}\n'
    assert names(project.load(text)) == ["tiny-RTX-4090-batch-1-sequence-1-16-128"]


def test_a_value_too_long_for_a_name_is_counted(project):
    profiles = f"[{{{'a' * 60}: 1}}, {{{'b' * 60}: 1}}]"
    text = MINIMAL + f"matrix: {{profiles: {profiles}}}\n"
    assert names(project.load(text)) == ["tiny-profiles1", "tiny-profiles2"]


def test_two_precisions_times_two_profiles_are_four_variants(project):
    text = MINIMAL + "matrix: {precision: [int8, fp32], profiles: [[{batch: 1}], [{batch: [1, 8, 32]}]]}\n"
    loaded = project.load(text)
    assert len(set(names(loaded))) == 4
    assert loaded[1].recipe.profiles == ({"batch": Range(min=1, opt=8, max=32)},)


def test_exclude_removes_what_has_all_of_its_values(project):
    text = DEVICES.replace("int8]}", "int8], exclude: [{target.device: T4, precision: int8}]}")
    assert names(project.load(text)) == ["tiny-T4-fp16", "tiny-A10-fp16", "tiny-A10-int8"]


def test_include_is_added_where_it_changes_nothing_and_stands_alone_elsewhere(project):
    text = DEVICES.replace(
        "int8]}",
        "int8], include: [{bench.threads: 1}, {target.device: T4, bench.threads: 4}, "
        "{target.device: L4, precision: fp8}]}",
    )
    loaded = project.load(text)
    assert [each.recipe.bench.threads if each.recipe.bench else None for each in loaded] == [4, 4, 1, 1, None]
    assert loaded[-1].variant == "target.device=L4,precision=fp8"


def test_include_works_without_any_list(project):
    text = MINIMAL + "matrix: {include: [{precision: fp16}, {precision: int8, bench.threads: 2}]}\n"
    assert names(project.load(text)) == ["tiny-fp16", "tiny-int8-2"]


def test_include_agrees_with_the_published_rules(project):
    """The example of `include` in GitHub's documentation, with fields of recipes."""
    fruit, animal, color, shape = "model.task", "precision", "bench.threads", "target.isa"
    apple, pear, banana = "fill-mask", "feature-extraction", "text-classification"
    text = MINIMAL + (
        f"matrix:\n  {fruit}: [{apple}, {pear}]\n  {animal}: [fp16, int8]\n  include:\n"
        f"    - {{{color}: 1}}\n    - {{{color}: 2, {animal}: fp16}}\n    - {{{fruit}: {apple}, {shape}: neon}}\n"
        f"    - {{{fruit}: {banana}}}\n    - {{{fruit}: {banana}, {animal}: fp16}}\n"
    )
    assert [each.variant for each in project.load(text)] == [
        f"{fruit}={apple},{animal}=fp16,{color}=2,{shape}=neon",
        f"{fruit}={apple},{animal}=int8,{color}=1,{shape}=neon",
        f"{fruit}={pear},{animal}=fp16,{color}=2",
        f"{fruit}={pear},{animal}=int8,{color}=1",
        f"{fruit}={banana}",
        f"{fruit}={banana},{animal}=fp16",
    ]


def test_only_selects_variants_and_says_what_there_is(project):
    assert names(project.load(DEVICES, only=["target.device=T4"])) == ["tiny-T4-fp16", "tiny-T4-int8"]
    assert len(project.load(DEVICES, only=["target.device=T4", "target.device=A10", "precision=int8"])) == 2
    error = project.error(DEVICES, only=["target.device=L4"])
    assert (error.facts, str(error.position)) == (("target.device: T4, A10",), "--only:1:1")


def test_set_on_what_the_matrix_varies_stands_for_all_its_values(project):
    assert names(project.load(DEVICES, set=["precision=fp32"])) == ["tiny-T4-fp32", "tiny-A10-fp32"]


def test_set_of_the_name_names_every_variant(project):
    assert names(project.load(DEVICES, set=["name=x", "precision=int8"])) == ["x-T4-int8", "x-A10-int8"]


def test_two_variants_of_one_name_are_refused(project):
    error = project.error(DEVICES.replace("name: tiny", "name: m-${precision}"))
    assert error.what == "two variants are called `m-fp16`"
    assert error.facts == ("target.device=T4,precision=fp16", "target.device=A10,precision=fp16")


def test_an_error_in_a_variant_points_into_the_matrix(project):
    error = project.error(MINIMAL + "matrix:\n  precision: [fp32, fp61]\n")
    assert str(error.position) == "recipe.yaml:4:21"


def test_a_large_matrix_is_quick_and_a_larger_one_is_refused(project):
    axes = {"bench.threads": range(1, 65), "model.num_labels": range(1, 65)}
    text = MINIMAL + "matrix:\n" + "".join(f"  {path}: {list(values)}\n" for path, values in axes.items())
    assert len(project.load(text)) == 4096
    error = project.error(text + f"  package.triton.max_batch_size: {list(range(1, 26))}\n")
    assert error.what == "the matrix stands for 102,400 variants; at most 100,000 are meant"


def test_a_parents_matrix_is_inherited_and_can_be_taken_away(project):
    project.write(DEVICES, "base.yaml")
    assert len(project.load("extends: base.yaml\nname: child\n")) == 4
    assert names(project.load("extends: base.yaml\nname: child\nmatrix: null\n")) == ["child"]


def test_variants_share_nothing_that_they_do_not_say(project):
    for one, other in itertools.combinations(project.load(DEVICES), 2):
        assert (one.recipe.target.device, one.recipe.precision) != (other.recipe.target.device, other.recipe.precision)
        assert one.recipe.model == other.recipe.model


@pytest.mark.parametrize("extends", ["[a]", "{a: b}", "5", '""', '"a\\0b"', "nowhere.yaml", ".", "model"])
def test_extends_names_one_file(project, extends):
    path = project.write(f"extends: {extends}\nname: child\n")
    with pytest.raises(RecipeError) as caught:
        load(path)
    assert caught.value.position is not None


@pytest.mark.parametrize("batch", ["[1, 8, 32]", "{min: 1, opt: 8, max: 32}"])
def test_the_sizes_of_a_profile_are_varied_by_their_names_in_both_notations(project, batch):
    text = MINIMAL + f"profiles: [{{batch: {batch}, sequence: 16}}]\nmatrix: {{profiles.0.batch.max: [16, 64]}}\n"
    loaded = project.load(text)
    ranges = [Range(min=1, opt=8, max=most) for most in (16, 64)]
    assert [each.recipe.profiles[0]["batch"] for each in loaded] == ranges
    [chosen] = project.load(text, only=["profiles.0.batch.max=64"])
    assert chosen.variant == loaded[1].variant
    [one] = project.load(text.replace("matrix: {profiles.0.batch.max: [16, 64]}", ""), set=["profiles.0.batch.max=8"])
    assert one.recipe.profiles[0]["batch"] == Range(min=1, opt=8, max=8)


def test_a_number_for_a_size_of_a_profile_is_refused_and_the_hint_names_paths_that_work(project):
    text = MINIMAL + "profiles: [{batch: [1, 8, 32]}]\nmatrix:\n  profiles.0.batch.2: [16, 64]\n"
    error = project.error(text)
    assert (str(error.position), error.hint) == ("recipe.yaml:5:3", "known in `profiles.0.batch`: min, opt, max")
    for name in ("min", "opt", "max"):
        assert len(project.load(text.replace("batch.2: [16, 64]", f"batch.{name}: [8]"))) == 1
    one_size = text.replace("batch.2", "batch.max").replace("[1, 8, 32]", "8")
    assert "write [min, opt, max] in its place" in project.error(one_size).what
