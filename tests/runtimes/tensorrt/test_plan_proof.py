"""What real engines of TensorRT-RTX, built here without a GPU, prove about their products."""

import engines
import plan_models
import pytest

from engine.errors import JudgementError
from engine.recipe.values import Bound
from engine.runtimes.tensorrt import api, builder, plan_proof
from engine.runtimes.tensorrt.plan_proof import UnreadablePlanError
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


TEXT = """header {
  version = 5
  accelerators={sm75 sm86 }
}
descriptors {
  tensor={ alignment=2 dims={ 1 } name="x" offset=0 type=int8 }
  sub_tensor={ base="w" dims={ 1 } name="w^deref" offset=0 type=half }
}
main {
 label bb1:
  fully_connected={ name="a/MatMul" output={"y" } input={"x" "w^deref" } relu=false layers="[ONNX Layer: a/MatMul]
[ONNX Layer: a/scale]" }
  function={ name=__myl_Add input_args={ "y" } layers="" }
}
"""
FUSED = """header {
  version = 4
  accelerators={*}
}
descriptors {
}
main {
  add={ name="b" output={"z" } input={"y" "x" } layers="" }
}
"""


def plan(*texts, version=0x1EDAA1):
    parts = (text.encode() for text in texts)
    heads = ((b"NLYM" + version.to_bytes(4, "little") + len(part).to_bytes(8, "little"), part) for part in parts)
    return b"\x00vtrt NLYM is no part" + b"".join(head + part + b"\x00\x01" for head, part in heads)


def test_a_part_has_its_gpus_its_operations_and_the_types_of_its_tensors():
    (part,) = plan_proof.plan_parts(plan(TEXT))
    assert part.sms == (75, 86)
    assert part.types == {"x": "int8", "w^deref": "half"}
    product, kernel = part.operations
    assert (product.kind, product.name, product.inputs) == ("fully_connected", "a/MatMul", ("x", "w^deref"))
    assert product.layers == ("a/MatMul", "a/scale")
    assert (kernel.kind, kernel.name, kernel.inputs) == ("function", "__myl_Add", ("y",))


def test_the_text_of_a_fused_product_belongs_to_the_part_before_it():
    first, second = plan_proof.plan_parts(plan(TEXT, FUSED, FUSED, TEXT))
    assert ([len(each.fusions) for each in (first, second)], first.fusions[0].operations[0].kind) == ([2, 0], "add")


@pytest.mark.parametrize(
    ("bytes_", "reason"),
    [
        (b"", "no readable text"),
        (plan(), "no readable text"),
        (plan(TEXT, version=0x1EDAA2), "has the version 0x1edaa2"),
        (plan(TEXT.replace("version = 5", "version = 6")), "has the version 6"),
        (plan(TEXT.replace("sm75 sm86", "turing")), "is for turing"),
        (plan(FUSED), "before every profile"),
        (plan(TEXT)[:-200], "has the version"),
    ],
)
def test_text_of_another_form_is_not_read(bytes_, reason):
    with pytest.raises(UnreadablePlanError, match=reason):
        plan_proof.plan_parts(bytes_)
