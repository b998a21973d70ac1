"""The steps of a model that generates text: one graph with a past, or an encoder and a decoder."""

from __future__ import annotations

import json
import shutil

import generators
import pytest

from engine.errors import JudgementError, StepError
from engine.kit.bench.interleaving import Budget
from engine.kit.inputs import cases
from engine.kit.onnx import graphs, onnx_files
from engine.kit.quantization.report import QuantizeReport
from engine.recipe.schema import BenchSection, ModelSection, Recipe, RivalSection, Shape
from engine.recipe.values import Bound
from engine.runtimes.execution import Execution
from engine.step import Source
from engine.steps.bench import LATENCIES, Bench
from engine.steps.export import Export
from engine.steps.fuse import Fuse
from engine.steps.quantize import Quantize
from engine.steps.race import Contestant, Race
from engine.steps.reference import Reference
from engine.steps.shape_infer import ShapeInfer
from engine.steps.validate import Validate


class Quick(Bench):
    """The real step, in less time."""

    budget = Budget(seconds=0.3, warm_up=0.1, rounds=5)


class QuickRace(Race):
    """The real step, in less time."""

    budget = Quick.budget


@pytest.fixture(scope="module", params=["opt", "bart"])
def built(request, tmp_path_factory):
    """What every step makes of a family, and what it tells: do not write into it."""
    folder = tmp_path_factory.mktemp(request.param)
    generators.checkpoint(folder / "checkpoint", request.param)
    reports = {"export": Export().run(folder / "exported", checkpoint=folder / "checkpoint")}
    reports["reference"] = Reference().run(folder / "reference", checkpoint=folder / "checkpoint")
    reports["shape-infer"] = ShapeInfer().run(folder / "shaped", exported=folder / "exported")
    reports["fuse"] = Fuse().run(folder / "fused", shaped=folder / "shaped")
    # 7 bits: on a CPU without VNNI the sums of 8-bit products saturate.
    reports["quantize"] = Quantize(reduce_range=True).run(folder / "quantized", fused=folder / "fused")
    return request.param, folder, reports


def per_graph(report):
    """Return the report of each graph; of an only one under "."."""
    return getattr(report, "graphs", None) or {".": report}


def validated(folder, model, out):
    return Validate().run(out, compiled=model, reference=folder / "reference", checkpoint=folder / "checkpoint")


def test_every_step_works_on_every_graph(built):
    family, folder, reports = built
    expected = {"opt": {"."}, "bart": {"encoder", "decoder"}}[family]
    for name in ("export", "shape-infer", "fuse", "quantize"):
        assert set(per_graph(reports[name])) == expected
    for name in ("exported", "shaped", "fused", "quantized"):
        assert set(graphs.folders(folder / name)) == expected
    assert all(report.inferred[1] == 1.0 for report in per_graph(reports["shape-infer"]).values())
    assert all(report.quantized["MatMul"] > 8 for report in per_graph(reports["quantize"]).values())


def test_what_has_a_past_is_not_fused_and_says_so(built):
    _, _, reports = built
    for name, report in per_graph(reports["fuse"]).items():
        if name == "encoder":
            assert report.fused["Attention"] == 2
        else:
            assert report.fused == {}
            assert "it has a past" in report.unfused


def test_both_precisions_are_validated_with_masks_of_every_kind(built, tmp_path):
    _, folder, _ = built
    exact, lowered = (validated(folder, folder / name, tmp_path / name) for name in ("fused", "quantized"))
    for report in (exact, lowered):
        assert set(report.kinds) == {"sample", "right-padded", "left-padded", "holed", "batched", "blank-row"}
    assert exact.cosine.worst > 0.99999
    assert exact.agreement.share == 1
    assert exact.agreement.choices > 300, "a token is a choice"
    assert 0.99 < lowered.cosine.worst < exact.cosine.worst
    assert graphs.folders(tmp_path / "quantized") == graphs.folders(folder / "quantized")


def test_weights_alone_in_int4_are_validated_and_counted(built, tmp_path):
    _, folder, _ = built
    report = Quantize(way="int4 weights").run(tmp_path / "int4", fused=folder / "fused")
    assert QuantizeReport.from_json(json.loads(json.dumps(report.to_json()))) == report
    assert all(each.quantized["MatMul"] > 8 for each in per_graph(report).values())
    measured = validated(folder, tmp_path / "int4", tmp_path / "out")
    assert 0.85 < measured.cosine.worst < 0.999
    assert measured.in_batch.worst > 0.99999, "a row's scales do not depend on other rows"
    assert any(name.endswith(" with int4 weights") for name in measured.work.shares)
    judge = {"cosine": Bound(at_least=0.85), "agreement": Bound(at_least=0), "precision": "int4"}
    Validate(weights_only=True, **judge).judge(measured)
    with pytest.raises(JudgementError, match="Too little of the model computes in int4"):
        Validate(**judge).judge(measured)


def test_the_perplexity_on_a_text_is_measured_with_the_past_beside_the_original(tmp_path):
    text, checkpoint = tmp_path / "corpus.txt", generators.checkpoint(tmp_path / "checkpoint", "gpt2")
    text.write_text("The dog slept in the little house; nobody knew who had built it. " * 9)
    Export().run(tmp_path / "exported", checkpoint=checkpoint)
    reference = Reference(text=Source(uri=f"file:{text}"), text_limit=150)
    reference.run(tmp_path / "reference", checkpoint=checkpoint, text=text)
    exact = validated(tmp_path, tmp_path / "exported", tmp_path / "fp32").perplexity
    assert exact.ratio == pytest.approx(1, abs=1e-5)
    assert (exact.tokens, exact.length, exact.stride) == (149, 48, 24)
    Quantize(way="int4 weights").run(tmp_path / "int4", fused=tmp_path / "exported")
    lowered = validated(tmp_path, tmp_path / "int4", tmp_path / "out").perplexity
    assert lowered.original == exact.original
    assert abs(lowered.ratio - 1) > 1e-4


def test_a_text_and_its_limit_are_in_the_key_and_its_bound_is_only_judged():
    section = {"perplexity": {"text": "file:/corpus.txt", "at_most": 1.1, "limit": 500}}
    recipe = Recipe(name="r", model=ModelSection(source="hf:a/b"), validate=section)
    step = Reference.for_recipe(recipe)
    assert step.sources() == {"text": Source(uri="file:/corpus.txt")}
    assert step.options()["text_limit"] == 500
    judging = Validate.for_recipe(recipe)
    assert judging.perplexity == Bound(at_most=1.1)
    assert "perplexity" not in judging.options()


def test_a_decoder_whose_past_is_mixed_up_is_withheld(built, tmp_path):
    """Its first answer is right: what it says later is not."""
    _, folder, _ = built
    shutil.copytree(folder / "fused", tmp_path / "mixed")
    decoder = tmp_path / "mixed" / graphs.folders(folder / "fused")[-1]
    model = onnx_files.load(decoder)
    first, second = (
        value.name for value in model.graph.input if value.name.endswith("key") and ".encoder" not in value.name
    )
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            if name == first:
                node.input[place] = second
    onnx_files.save(model, decoder)
    report = validated(folder, tmp_path / "mixed", tmp_path / "out")
    with pytest.raises(JudgementError, match="too far from the original"):
        Validate().judge(report)


def test_a_text_to_be_continued_is_cut_since_every_token_has_an_answer(tmp_path):
    """An answer behind an encoder is as long whatever the text: that is cut only where the model cuts it."""
    (tmp_path / "samples.jsonl").write_text(json.dumps({"text": "the dog slept " * 60}) + "\n")
    lengths = {}
    for family in ("gpt2", "t5"):
        generators.checkpoint(tmp_path / family, family, positions=128)
        Reference().run(tmp_path / f"of-{family}", checkpoint=tmp_path / family, samples=tmp_path / "samples.jsonl")
        [case] = [case for case in cases.load(tmp_path / f"of-{family}") if case.kind == "sample"]
        lengths[family] = case.inputs["input_ids"].shape[1], case.outputs["logits"].shape[1]
    assert lengths["gpt2"] == (64, 64)
    assert lengths["t5"][0] > 64
    assert lengths["t5"][1] == 13


def test_a_call_that_is_measured_is_a_whole_answer(built, tmp_path):
    _, folder, _ = built
    against = (RivalSection(runtime="pytorch"), RivalSection(runtime="onnxruntime"))
    shapes = ({"batch": 1, "sequence": 4}, {"batch": 3, "sequence": 9})
    step = Quick(name_of_ours="onnxruntime-int8", shapes=shapes, against=against, threads=1, new_tokens=6)
    inputs = {"validated": folder / "quantized", "exported": folder / "exported", "checkpoint": folder / "checkpoint"}
    report = step.run(tmp_path / "out", **inputs)
    assert [row.runtime for row in report.rows[:3]] == ["onnxruntime-int8", "pytorch-fp32", "onnxruntime-fp32"]
    for row in report.rows:
        assert row.new_tokens == 6
        assert row.tokens_per_s == pytest.approx(6 * row.shape["batch"] / row.p50_ms * 1e3, rel=1e-3)
    assert report.rows[0].ratio_to["pytorch-fp32"] > 1, "Python between the layers of so small a model"
    assert json.loads((tmp_path / "out" / LATENCIES).read_text())[0]["runtime"] == "onnxruntime-int8"


def test_more_new_tokens_take_longer(built, tmp_path):
    _, folder, _ = built
    medians = []
    for new_tokens in (2, 24):
        step = Quick(shapes=({"batch": 1, "sequence": 8},), threads=1, new_tokens=new_tokens)
        report = step.run(tmp_path / str(new_tokens), validated=folder / "fused", exported=folder / "exported")
        medians.append(report.rows[0].p50_ms)
    assert medians[1] > 3 * medians[0]


@pytest.mark.parametrize("axes", [{"batch": 1}, {"batch": 1, "sequence": 4, "past_sequence": 2}])
def test_the_past_is_no_axis_that_a_shape_names(built, tmp_path, axes):
    _, folder, _ = built
    step = Quick(shapes=(axes,), new_tokens=2)
    with pytest.raises(StepError) as caught:
        step.run(tmp_path / "out", validated=folder / "fused", exported=folder / "exported")
    assert caught.value.hint.endswith(("says {batch: 1, sequence: 4}", "sequence: 1}"))


@pytest.mark.parametrize(
    ("model", "generate", "counted"),
    [
        ({"source": "hf:a/b"}, {}, None),
        ({"source": "hf:a/b", "task": "text-generation"}, {"max_new_tokens": 5}, 5),
        ({"source": "hf:a/b", "task": "fill-mask"}, {}, None),
        ({"source": "model.onnx"}, {}, None),
    ],
)
def test_how_much_is_generated_counts_where_the_recipe_says_it(model, generate, counted):
    section = BenchSection(shapes=(Shape(axes={"batch": 1}),))
    step = Bench.for_recipe(Recipe(name="r", model=ModelSection(**model), generate=generate, bench=section))
    assert step.new_tokens == counted


@pytest.mark.whole("test_weights_above_the_limit_go_to_one_data_file_and_still_answer_right")
def test_weights_above_the_limit_lie_beside_each_graph_through_every_step(tmp_path, monkeypatch):
    monkeypatch.setattr(Export, "inline_limit", 20_000)
    generators.checkpoint(tmp_path / "checkpoint", "bart")
    Export().run(tmp_path / "exported", checkpoint=tmp_path / "checkpoint")
    for name in ("encoder", "decoder"):
        files = sorted(path.name for path in (tmp_path / "exported" / name).iterdir())
        assert files == ["model.onnx", "model.onnx.data"]
    Reference().run(tmp_path / "reference", checkpoint=tmp_path / "checkpoint")
    ShapeInfer().run(tmp_path / "shaped", exported=tmp_path / "exported")
    Fuse().run(tmp_path / "fused", shaped=tmp_path / "shaped")
    Quantize(reduce_range=True).run(tmp_path / "quantized", fused=tmp_path / "fused")
    Validate().judge(validated(tmp_path, tmp_path / "fused", tmp_path / "exact"))
    assert validated(tmp_path, tmp_path / "quantized", tmp_path / "lowered").cosine.worst > 0.9


@pytest.mark.sample(1)
def test_a_second_export_writes_the_same_bytes(built, tmp_path):
    _, folder, _ = built
    Export().run(tmp_path / "again", checkpoint=folder / "checkpoint")
    for name in graphs.folders(folder / "exported"):
        first, second = (place / name / "model.onnx" for place in (folder / "exported", tmp_path / "again"))
        assert first.read_bytes() == second.read_bytes()


def test_a_race_of_generating_models_times_whole_answers(built, tmp_path):
    _, folder, _ = built
    axes = {"batch": 2, "sequence": 4}
    short, long = (Contestant(execution=Execution(), axes=axes, threads=1, new_tokens=new) for new in (2, 24))
    step = QuickRace(contestants=(short, long))
    models = {"model_0": folder / "fused", "model_1": folder / "fused"}
    first, second = step.run(tmp_path / "out", exported=folder / "exported", **models).rows
    assert (first.rows, second.rows) == (2, 2)
    assert second.p50_ms > 3 * first.p50_ms
