"""`recipe bisect` on models with planted layers: it finds exactly these, and the recipe that it writes is built."""

import importlib.util
import json
import math
import re

import documents
import planted_layers
import pytest
from quick_program import quick

INT4 = "precision: int4\nvalidate: {samples: samples.npz, cosine: 0.85, agreement: 0.1}\n"
INT8 = "precision: int8\nvalidate: {samples: samples.npz, cosine: 0.85, agreement: 0.1}\n"
ALONE = f"quantize: {{weights_only: true}}\n{INT8}"
CALIBRATED = f"calibrate: {{samples: calibration.npz}}\n{INT8}"
OPENVINO = f"target: {{device: cpu, runtime: openvino}}\n{CALIBRATED}"
QDQ = f"target: {{device: T4, runtime: tensorrt}}\n{CALIBRATED}".replace("0.85, agreement: 0.1", "0.95")
FP16 = (
    "target: {device: T4, runtime: onnxruntime, provider: cuda}\nprecision: fp16\n"
    "validate: {samples: samples.npz, cosine: 0.99998, agreement: 0.1}\n"
)
ON_WHOLE = "tests/commands/test_bisect.py finds two planted layers in int4"


def found(program, *words):
    """Return what `recipe bisect --json` answers, and what it says meanwhile."""
    done = program("bisect", "net.yaml", "--json", *words, expect=0)
    return json.loads(done.stdout), done.stderr


def names(layers):
    return [planted_layers.name(layer) for layer in layers]


@pytest.mark.slow
def test_two_planted_layers_are_found_and_the_written_recipe_is_already_built(tmp_path):
    planted_layers.write(tmp_path, [5, 17], fields=INT4)
    program = quick(tmp_path)
    done = program("bisect", "net.yaml", "--write", "kept.yaml", expect=0)
    [block] = documents.run_by(__file__)
    [(command, shown)] = block.transcript()
    assert command == "recipe bisect net.yaml --write kept.yaml"
    if importlib.util.find_spec("polygraphy") is None:  # then layers are tried in the order of the graph
        shown = shown.replace("5 builds", "14 builds")
    assert documents.difference(shown, done.stdout) == ""
    assert [row.split()[0] for row in done.stdout.splitlines()[2:]] == names([5, 17])
    text = (tmp_path / "kept.yaml").read_text()
    assert text.startswith("# The layers that `recipe bisect` has found")
    assert "# A model with planted layers." in text
    assert f"keep_in: {{fp32: [{', '.join(names([5, 17]))}]}}" in text
    assert set(program.states("kept.yaml", "--to", "validate").values()) == {"cached"}


@pytest.mark.whole(ON_WHOLE)
def test_a_search_is_repeated_from_the_store_and_its_answer_needs_no_other(tmp_path):
    planted_layers.write(tmp_path, [5, 17], fields=INT4)
    program = quick(tmp_path)
    answer, said = found(program, "--write", "kept.yaml")
    for layer in answer["layers"]:
        missed = layer["missed"]
        assert missed["measure"] == "cosine"
        assert missed["value"] < missed["mean"] < missed["bound"] == 0.85
        assert layer["without"].startswith(f"cosine {missed['value']:.6g} is below at_least 0.85")
    again, repeated = found(program)
    assert [layer["missed"] for layer in again["layers"]] == [layer["missed"] for layer in answer["layers"]]
    builds = [line for line in said.splitlines() if " found, " in line]
    assert [line for line in repeated.splitlines() if " found, " in line] == builds
    assert len(builds) == answer["builds"]
    passing = program("bisect", "kept.yaml", "--write", "kept.yaml", expect=0)
    assert passing.stdout == "net: the accuracy is within the bounds already\n"
    assert "nothing to write: no further layer needs to be kept" in passing.stderr


@pytest.mark.whole(ON_WHOLE)
def test_layers_that_the_recipe_keeps_already_stay_kept_and_are_no_candidates(tmp_path):
    own, more = names([5, 17])
    planted_layers.write(tmp_path, [5, 17], fields=f"{INT4}quantize: {{keep_in: {{fp32: [{own}]}}}}\n")
    program = quick(tmp_path)
    done = program("bisect", "net.yaml", "--write", "kept.yaml", expect=0)
    assert done.stdout.startswith("net in int4: 1 more layer must stay in fp32 (")
    assert (
        f"{planted_layers.LAYERS - 1} layers kept, and what the recipe keeps already: within the bounds" in done.stderr
    )
    assert f"keep_in: {{fp32: [{own}, {more}]}}" in (tmp_path / "kept.yaml").read_text()
    answer, _ = found(program)
    assert (answer["kept_already"], [layer["name"] for layer in answer["layers"]]) == ([own], [more])


@pytest.mark.whole(ON_WHOLE)
def test_a_model_of_which_more_than_a_third_is_needed_is_told_that_its_precision_does_not_fit(tmp_path):
    planted_layers.write(tmp_path, range(1, 13), fields=ALONE.replace("0.85", "0.95"))
    done = quick(tmp_path)("bisect", "net.yaml", expect=4)
    assert "this precision does not fit this model: at least 9 of 24 layers must stay in fp32" in done.stderr
    assert " 8 found, " in done.stderr


@pytest.mark.whole(ON_WHOLE)
@pytest.mark.parametrize(
    ("fields", "planted"),
    [
        pytest.param(INT8, [7], id="dynamic int8, one"),
        pytest.param(INT8, [3, 12], id="dynamic int8, two"),
        pytest.param(INT8, [2, 6, 11, 16, 22], id="dynamic int8, five"),
        pytest.param(INT4, [20], id="int4, one"),
        pytest.param(INT4, [2, 6, 11, 16, 22], id="int4, five"),
        pytest.param(ALONE, [4, 19], id="int8 weights, two"),
        pytest.param(OPENVINO, [9], id="OpenVINO, one"),
        pytest.param(OPENVINO, [5, 17], id="OpenVINO, two"),
        pytest.param(OPENVINO, [2, 6, 11, 16, 22], id="OpenVINO, five"),
    ],
)
def test_exactly_the_planted_layers_are_found_in_few_builds(tmp_path, fields, planted):
    if "openvino" in fields and importlib.util.find_spec("nncf") is None:
        pytest.skip("the extra `openvino` is not installed")
    planted_layers.write(tmp_path, planted, fields=fields)
    program = quick(tmp_path)
    answer, _ = found(program, "--write", "kept.yaml")
    assert [layer["name"] for layer in answer["layers"]] == names(planted)
    builds = len(planted) * (math.ceil(math.log2(planted_layers.LAYERS)) + 2) + 3
    assert answer["builds"] <= builds
    assert answer["notes"] == []
    assert all(layer["faster_without"] for layer in answer["layers"])
    assert set(program.states("kept.yaml", "--to", "validate").values()) == {"cached"}


@pytest.mark.whole(ON_WHOLE)
def test_the_graph_for_a_gpu_that_is_not_here_is_judged_on_the_cpu(tmp_path):
    planted_layers.write(tmp_path, [5, 17], fields=QDQ, kind=planted_layers.with_surprises)
    answer, _ = found(quick(tmp_path))
    assert [layer["name"] for layer in answer["layers"]] == names([5, 17])
    assert answer["keeps_in"] == "fp16"
    [note] = answer["notes"]
    assert note.startswith("judged on the CPU, and not timed: this machine has no ")


@pytest.mark.whole(ON_WHOLE)
def test_layers_of_a_checkpoint_have_the_names_of_its_modules(tmp_path):
    fields = "precision: int8\nquantize: {weights_only: true}\nvalidate: {samples: samples.jsonl, cosine: 0.98}\n"
    planted_layers.write_bert(tmp_path, fields=fields)
    answer, _ = found(quick(tmp_path))
    assert [layer["name"] for layer in answer["layers"]] == planted_layers.PLANTED_IN_BERT


@pytest.mark.whole(ON_WHOLE)
def test_a_stricter_bound_than_the_choice_of_operators_in_fp16_has_finds_the_layers(tmp_path):
    planted_layers.write(tmp_path, [5, 17], fields=FP16, kind=planted_layers.with_cancellation)
    answer, _ = found(quick(tmp_path))
    assert [layer["name"] for layer in answer["layers"]] == names([5, 17])
    assert answer["keeps_in"] == "fp32"


@pytest.mark.whole(ON_WHOLE)
def test_an_answer_that_leaves_too_little_in_the_precision_is_an_error_with_its_layers(tmp_path):
    fields = INT8.replace("agreement: 0.1", "agreement: 0.1, precision_share: 0.95")
    planted_layers.write(tmp_path, [5, 17], fields=fields)
    done = quick(tmp_path)("bisect", "net.yaml", "--write", "kept.yaml", expect=4)
    assert "Too little of the model computes in int8" in done.stderr
    assert f"within the bounds with {', '.join(names([5, 17]))} kept" in done.stderr
    assert not (tmp_path / "kept.yaml").exists()


@pytest.mark.whole(ON_WHOLE)
def test_a_bound_that_even_all_kept_layers_miss_is_told_with_its_figures(tmp_path):
    planted_layers.write(tmp_path, [5], fields=QDQ.replace("0.95", "1.0"))
    done = quick(tmp_path)("bisect", "net.yaml", expect=4)
    assert re.search(r"no set of layers helps: even with all 24 kept, cosine 0.999\d+ is below at_least 1", done.stderr)
    assert "or, if this is close enough, loosen the bound" in done.stderr


@pytest.mark.parametrize(
    ("fields", "words", "message"),
    [
        ("", (), "a build in fp32 with onnxruntime keeps no layer in a higher precision"),
        ("matrix: {precision: [int8, int4]}\n", (), "a search is of one variant"),
        (
            "target: {device: cpu, runtime: auto}\nprecision: int8\n",
            (),
            "one runtime: --set target.runtime=onnxruntime",
        ),
        (INT8, ("--write", "elsewhere/kept.yaml"), "lies in another folder"),
        (
            "matrix: {precision: [int8, int4]}\n",
            ("--only", "precision=int8", "--write", "net.yaml"),
            "net.yaml has a matrix, and one variant is written",
        ),
    ],
)
def test_a_search_that_cannot_succeed_is_refused_before_anything_is_built(tmp_path, fields, words, message):
    planted_layers.write(tmp_path, [], fields=fields)
    done = quick(tmp_path)("bisect", "net.yaml", *words, expect=2)
    assert message in done.stderr
    assert not [path for path in (tmp_path / "cache" / "records").rglob("*") if path.is_file()]
