"""What the text of a TensorRT-RTX engine proves, as lines: products by type, fused products, attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.text import lists

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.runtimes.tensorrt.plan_proof import PlanProfile, PlanProof
    from engine.runtimes.tensorrt.report import EngineReport

_NAMED = 3
"""The largest number of layers in one line."""


def lines(report: EngineReport) -> list[str]:
    """Return the proof of an engine as lines; no lines for an engine of TensorRT, which has no readable text."""
    if report.plan is not None:
        return ["the engine's own text (of TensorRT-RTX; it tells nothing about native TensorRT):", *proof(report.plan)]
    return [f"the kernels of the engine are not known: {report.plan_unknown}"] if report.plan_unknown else []


def proof(plan: PlanProof) -> list[str]:
    """Return a line for each profile, and a line about the products that the graph has in the recipe's precision."""
    rows = [f"  {_targets(each)}, profile {number}: {_kernels(each)}" for number, each in enumerate(plan.profiles)]
    if not plan.layers:
        return rows
    lost = ", ".join(plan.lost[:_NAMED])
    but = f"; not: {lost}" if lost else ""
    return [*rows, f"  {plan.precision} as in the graph: {plan.held} of {plan.layers} products{but}"]


def _targets(profile: PlanProfile) -> str:
    return " ".join(f"sm_{sm}" for sm in profile.sms)


def _kernels(profile: PlanProfile) -> str:
    products = _counted(profile.products, "no products")
    fused = sum(profile.fused.values())
    attention = f", {profile.attention} attention kernels" if profile.attention else ""
    return f"{products}, {fused} of them with a fused epilogue{attention}, {profile.others} other kernels"


def _counted(products: Mapping[str, int], none: str) -> str:
    return f"products: {lists.counts(products)}" if products else none
