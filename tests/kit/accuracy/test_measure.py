"""Wrong models must not pass validation, and correct models must pass, however odd they are."""

import re
from dataclasses import replace

import numpy as np
import pytest
import wrong_mixed
import wrong_models

from engine.errors import JudgementError
from engine.kit.accuracy.report import AccuracyReport, PrecisionShares, Worst
from engine.kit.onnx import onnx_files
from engine.machine import cpu
from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.recipe.values import Bound
from engine.steps.reference import Reference
from engine.steps.validate import Validate


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    """Return a function that writes a model and its reference once, and returns their folder."""
    written = {}

    def of(name, net):
        if name not in written:
            folder = tmp_path_factory.mktemp("original")
            onnx_files.save(net.model(), folder / "model")
            samples = None
            if net.samples:
                samples = folder / "samples.npz"
                np.savez(samples, **net.arrays())
            Reference(onnx=True, profiles=net.profiles).run(
                folder / "reference", checkpoint=folder / "model", samples=samples
            )
            written[name] = folder
        return written[name]

    return of


def measured(folder, built, tmp_path):
    onnx_files.save(built, tmp_path / "built")
    return Validate().run(
        tmp_path / "out", compiled=tmp_path / "built", reference=folder / "reference", checkpoint=folder / "model"
    )


def test_the_tables_hold_enough_models():
    assert len(wrong_models.WRONG) >= 60
    assert len({(name, label) for name, label, _ in wrong_models.WRONG}) == len(wrong_models.WRONG)
    assert len(wrong_models.ODD) >= 40


@pytest.mark.parametrize(("name", "label", "end"), wrong_models.WRONG, ids=lambda each: each if len(each) < 40 else "")
def test_a_wrong_model_is_refused_and_the_case_is_named(name, label, end, originals, tmp_path):
    net = wrong_models.NETS[name]
    report = measured(originals(name, net), net.model(end), tmp_path)
    with pytest.raises(JudgementError) as caught:
        Validate().judge(report)
    assert any(word in str(caught.value) for word in ("sample ", "in 1", "in 2", "cases: ", "output ")), caught.value
    if label in wrong_models.LOSES_IN_INT8:
        with pytest.raises(JudgementError):
            Validate(precision="int8").judge(report)


@pytest.mark.parametrize(("name", "label", "end"), wrong_mixed.WRONG, ids=lambda each: each if len(each) < 40 else "")
def test_a_wrong_part_is_refused_beside_much_larger_numbers(name, label, end, originals, tmp_path):
    net = wrong_mixed.NETS[name]
    report = measured(originals(name, net), net.model(end), tmp_path)
    for precision in ("fp32", "int8"):
        with pytest.raises(JudgementError, match=r"sample |output "):
            Validate(precision=precision).judge(report)


def test_an_output_of_another_size_is_judged_and_both_sizes_are_named(originals, tmp_path):
    net = wrong_mixed.SELECTION
    end = next(end for _, label, end in wrong_mixed.WRONG if label == "fewer rows")
    report = measured(originals("selection", net), net.model(end), tmp_path)
    assert report.cosine is None
    with pytest.raises(JudgementError, match="another size") as caught:
        Validate(precision="int8").judge(report)
    assert re.search(r"row \d+ \(y: \[0, 4\] instead of \[1, 4\]\)", caught.value.facts[0])
    assert "a higher precision" in caught.value.hint


def test_a_note_says_what_the_cosine_leaves_out_and_the_rest_has_its_cosine(originals, tmp_path):
    net = wrong_models.NETS["tokens"]
    report = measured(originals("tokens", net), net.model(), tmp_path)
    assert "the cosine leaves out 1 blank row, without a token" in report.notes
    assert report.cosine is not None


ODD = {**wrong_models.ODD, **wrong_mixed.ODD}


@pytest.mark.parametrize("name", ODD)
def test_a_correct_model_passes_however_odd_it_is(name, originals, tmp_path):
    net = ODD[name]
    report = measured(originals(name, net), net.model(), tmp_path)
    Validate().judge(report)
    Validate(precision="int8", precision_share=Bound(at_least=0)).judge(report)


def with_work(shares):
    worst = Worst(1.0, 1.0, "row 1", "")
    report = AccuracyReport(
        cases=1, kinds={"sample": 1}, random=False, cosine=worst, max_abs=worst, relative=Worst(0.0, 0.0, "row 1", "")
    )
    return replace(report, work=PrecisionShares(shares, {}))


def test_a_precision_in_which_nothing_computes_is_refused_and_no_bound_of_zero_is_proposed():
    for shares in ({}, {"fp32": 1.0}, {"fp64": 1.0}):
        with pytest.raises(JudgementError, match="precision_share 0 is below") as caught:
            Validate(precision="int8").judge(with_work(shares))
        assert caught.value.hint == "build it in fp32"


def test_a_recipe_in_fp32_is_not_computed_in_bf16_where_its_runtime_may_do_so():
    step = Validate(lowers_fp32=True)
    with pytest.raises(JudgementError, match="in bf16, and the recipe asks for fp32") as caught:
        step.judge(with_work({"bf16": 0.4, "fp32": 0.6}))
    assert "precision: bf16" in caught.value.hint
    for kept, shares in (
        (step, {"fp32": 1.0}),
        (Validate(), {"bf16": 1.0}),  # the model's own number format
        (Validate(lowers_fp32=True, precision="bf16"), {"bf16": 1.0}),
        (Validate(lowers_fp32=True, precision="int8"), {"bf16": 0.4, "int8": 0.6}),
        (Validate(lowers_fp32=True, precision_share=Bound(at_least=0)), {"bf16": 1.0}),
    ):
        kept.judge(with_work(shares))


def test_a_bound_on_a_share_that_no_runtime_counted_is_refused():
    report = replace(with_work({}), work=None)
    Validate(precision="int8").judge(report)
    with pytest.raises(JudgementError, match="bounds precision_share, which could not be measured"):
        Validate(precision="int8", precision_share=Bound(at_least=0.5)).judge(report)


def test_a_model_that_is_too_far_says_what_share_computed_in_its_precision():
    report = replace(with_work({"fp32": 0.9, "int8": 0.1}), relative=Worst(2.0, 2.0, "row 1", ""))
    with pytest.raises(JudgementError) as caught:
        Validate(precision="int8").judge(report)
    assert "multiplications: 90.0% in fp32, 10.0% in int8" in caught.value.facts


@pytest.mark.parametrize(("has_full_range", "lacks_vnni"), [(True, True), (True, False), (False, True)])
def test_a_model_that_is_too_far_on_a_cpu_without_vnni_is_told_of_7_bits(monkeypatch, has_full_range, lacks_vnni):
    monkeypatch.setattr(cpu, "lacks_vnni", lambda: lacks_vnni)
    report = replace(with_work({"int8": 1.0}), relative=Worst(2.0, 2.0, "row 1", ""))
    with pytest.raises(JudgementError) as caught:
        Validate(precision="int8", has_full_range=has_full_range).judge(report)
    assert any("this CPU has no VNNI" in fact for fact in caught.value.facts) is (has_full_range and lacks_vnni)


def test_weights_have_all_8_bits_where_the_recipe_names_no_older_cpu():
    def judged(**target):
        recipe = Recipe(name="m", model=ModelSection(source="hf:a/b"), **target)
        return Validate.for_recipe(recipe).has_full_range

    assert judged(precision="int8")
    assert not judged(precision="int8", target=TargetSection(isa="avx2"))
    assert not judged(precision="fp32")
