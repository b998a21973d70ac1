"""Space: the points of `tune.over`, or those that the runtimes of the target offer, each once."""

import pytest
from models import checkpoint

from engine.recipe.load import load
from engine.tuning.objective import Objective
from engine.tuning.proposals import Proposals
from engine.tuning.space import Space

RECIPE = """name: tiny
model: {source: model, task: text-classification}
precision: int8
profiles: [{batch: [1, 1, 4], sequence: [1, 8, 32]}]
bench: {shapes: [{batch: 2, sequence: 16}]}
validate: {cosine: 0.995}
"""


@pytest.fixture
def space(tmp_path):
    checkpoint(tmp_path / "model", task="text-classification")

    def of(tune):
        (tmp_path / "tiny.yaml").write_text(f"{RECIPE}tune: {tune}\n", "utf-8")
        [loaded] = load(tmp_path / "tiny.yaml")
        objective = Objective.of(loaded.recipe, loaded.recipe.tune)
        return Space.of(loaded.recipe, objective), objective

    return of


def test_the_points_of_over_are_the_product_and_what_is_written_is_the_empty_point(space):
    over, _ = space("{minimize: size, over: {precision: [fp32, int8], target.runtime: [openvino, onnxruntime]}}")
    points = [point for point, _ in asked_for(over)]
    assert points[0] == {}
    assert sorted(map(str, points[1:])) == [
        "{'precision': 'fp32', 'target.runtime': 'openvino'}", "{'precision': 'fp32'}", "{'target.runtime': 'openvino'}"
    ]  # fmt: skip


def asked_for(space):
    """Return all points of a search and their choices; all points are equally good."""
    proposals, every = Proposals(space), []
    for point, choices in proposals:
        proposals.tell(choices, 1.0)
        every.append((point, choices))
    return every


def test_a_recipe_outside_over_is_the_first_point_and_tells_the_sampler_nothing(space):
    over, _ = space("{minimize: size, over: {precision: [fp32, bf16]}}")
    [(written, choices), *others] = asked_for(over)
    assert (written, choices) == ({}, None)
    assert [point for point, _ in others] == [{"precision": "fp32"}, {"precision": "bf16"}]


def test_without_over_the_first_points_have_every_precision_of_several_runtimes(space):
    offered, _ = space("{minimize: size}")
    first = [offered.point_of(choices) for choices in offered.first()]
    assert {} in first
    assert {"precision": "fp32"} in first
    assert {point.get("target.runtime") for point in first} >= {None, "openvino"}
    assert {"target.runtime": "openvino", "precision": "fp32"} in first


def test_each_runtime_is_tried_before_its_precisions_and_those_of_auto_come_first(space):
    offered, _ = space("{minimize: size}")
    first = list(map(offered.point_of, offered.first()))
    names = list(dict.fromkeys(point.get("target.runtime", "onnxruntime") for point in first))
    assert len(names) > 2
    assert names[:2] == ["onnxruntime", "openvino"]
    of_runtimes = [point for point in first if "precision" not in point]
    assert first[: len(names)] == of_runtimes[: len(names)]


def test_only_a_search_for_throughput_chooses_rows_and_copies(space):
    fields = {}
    for tune in ("{minimize: size}", "{maximize: throughput}", "{maximize: {throughput: {batch: 2}}}"):
        each, objective = space(tune)
        fields[tune] = {knob.field for knob in each.knobs if knob.of == "load"}
        assert objective.chooses_rows == (tune == "{maximize: throughput}")
    few, many, fixed = fields.values()
    assert not few | fixed
    assert "package.triton.max_batch_size" in many


def test_an_axis_that_the_objective_does_not_name_has_the_size_of_the_bench(space):
    assert space("{minimize: {p95_ms: {sequence: 8}}}")[1].sizes == {"batch": 2, "sequence": 8}
    assert space("{maximize: throughput}")[1].sizes == {"sequence": 16}


def test_a_stricter_bound_of_the_recipe_stays(space):
    assert space("{minimize: size, subject_to: {cosine: 0.9}}")[1].judged == {"validate.cosine": 0.995}
    assert space("{minimize: size, subject_to: {cosine: 0.999}}")[1].judged == {"validate.cosine": 0.999}
