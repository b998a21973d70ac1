"""What real engines of TensorRT-RTX, built here without a GPU, prove about their products."""

import engines
import plan_models
import pytest

from engine.errors import JudgementError
from engine.recipe.values import Bound
from engine.runtimes.tensorrt import api, builder, plan_proof
from engine.steps.trt_build import TrtBuild

TURING, AMPERE = 75, 86


@pytest.fixture
def prove(tmp_path):
    pytest.importorskip("tensorrt_rtx", reason="the extra `rtx` is not installed: Linux on x86_64 has it")
    api.use("tensorrt-rtx")

    def proven(model, precision, *sms):
        folder = tmp_path / "model" if not (tmp_path / "model").exists() else tmp_path / "other"
        plan_models.write(folder, model)
        fixed = tuple(
            8 if not size.dim_value else size.dim_value for size in model.graph.input[0].type.tensor_type.shape.dim
        )
        built = builder.build(engines.order(folder, profile={"x": fixed}, sms=sms))
        proof, unknown = plan_proof.prove(built.plan, precision, built.products)
        assert unknown == ""
        return proof

    return proven


def test_int8_convolutions_are_held_on_ampere_and_lost_on_turing(prove):
    kept = prove(plan_models.convolutions(int8=True), "int8", AMPERE)
    assert ([dict(each.products) for each in kept.profiles], kept.share) == ([{"int8": 2}], 1)
    lost = prove(plan_models.convolutions(int8=True), "int8", TURING)
    assert ([dict(each.products) for each in lost.profiles], lost.share) == ([{"fp16": 2}], 0)
    assert len(lost.lost) == 2
    assert all(each.endswith(": fp16") and each.startswith("Conv_") for each in lost.lost)


def test_the_engine_shows_which_products_compute_what_follows_them(prove):
    (half,) = prove(plan_models.feed_forward(int8=False), "fp16", AMPERE).profiles
    assert (dict(half.products), half.sms) == ({"fp16": 2}, (AMPERE,))
    assert half.fused["fp16"] >= 1
    (int8,) = prove(plan_models.feed_forward(int8=True), "int8", AMPERE).profiles
    assert (dict(int8.products), dict(int8.fused)) == ({"int8": 2}, {})


def test_a_softmax_in_fp32_does_not_break_attention_in_one_kernel(prove):
    proof = prove(plan_models.attention(), "fp16", TURING, AMPERE)
    (profile,) = proof.profiles
    assert (profile.sms, profile.attention, proof.share) == ((TURING, AMPERE), 1, 1)


@pytest.mark.parametrize("plan", [b"", b"an engine of another version"])
def test_an_engine_that_cannot_be_read_is_not_known(plan):
    assert plan_proof.prove(plan, "int8", {}) == (None, "it has no readable text")


def judged(kept, bound=None, **fields):
    proof = plan_proof.PlanProof(precision="int8", profiles=(), layers=4, kept=kept, lost=("Conv_1: fp16",))
    step = TrtBuild(runtime="tensorrt-rtx", devices=("T4",), sms=(75,), precision="int8", precision_share=bound)
    report = {"bytes": 1, "tensorrt": "1.7", "gpu": ("T4",), "profiles": 1, "network": {}, "engine": None}
    step.judge(TrtBuild.report(**report, **{"plan": proof, **fields}))


def test_a_precision_that_the_engine_does_not_hold_is_an_error():
    with pytest.raises(JudgementError, match="computes too little in int8") as raised:
        judged(1)
    assert "Conv_1: fp16" in raised.value.facts
    judged(2)
    with pytest.raises(JudgementError, match=r"below at_least 0\.9"):
        judged(3, Bound(at_least=0.9))


def test_what_is_not_known_is_no_error():
    judged(0, plan=None, plan_unknown="it has no readable text")
