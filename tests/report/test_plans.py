"""The proof of an engine as lines, with the warning about engines for Turing and newer GPUs."""

from engine.report import plans
from engine.runtimes.tensorrt.plan_proof import PlanProfile, PlanProof
from engine.runtimes.tensorrt.report import EngineReport


def report(plan=None, unknown=""):
    fields = {"bytes": 1, "tensorrt": "1.7", "gpu": ("T4",), "profiles": 1, "network": {}, "engine": None}
    return EngineReport(**fields, plan=plan, plan_unknown=unknown)


def proof(*sms, lost=()):
    profile = PlanProfile(sms=sms, products={"fp16": 2, "int8": 22}, fused={"fp16": 2}, attention=6, others=44)
    return PlanProof(precision="int8", profiles=(profile,), layers=34, kept=34 - len(lost), lost=lost)


def test_the_lines_say_types_fused_products_attention_and_what_suits_turing_alone():
    head, profile, kept = plans.lines(report(proof(86)))
    assert "TensorRT-RTX" in head
    assert profile == (
        "  sm_86, profile 0: products: 2 fp16, 22 int8, 2 of them with a fused epilogue, 6 attention kernels,"
        " 44 other kernels"
    )
    assert kept == "  int8 as in the graph: 34 of 34 products"
    assert plans.lines(report(proof(86, lost=("a: fp16",))))[-1].endswith("33 of 34 products; not: a: fp16")
    assert any("warning" in line for line in plans.lines(report(proof(75, 86))))
    assert not any("warning" in line for sms in ((75,), (86, 89)) for line in plans.lines(report(proof(*sms))))
    assert plans.lines(report(unknown="no text")) == ["the kernels of the engine are not known: no text"]
    assert plans.lines(report()) == []
