"""What is known of an engine, as lines: sparse weights, and what the text of a TensorRT-RTX engine proves."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from engine.text import lists

if TYPE_CHECKING:
    from engine.runtimes.tensorrt.plan_proof import PlanProfile, PlanProof
    from engine.runtimes.tensorrt.report import EngineReport

HEAD = "the engine's own text (of TensorRT-RTX; it tells nothing about native TensorRT):"
"""The line above what the text of an engine proves."""
_UNKNOWN = "the kernels of the engine are not known: "
_TURING = 75
_NAMED = 3
"""The largest number of layers in one line."""


def lines(report: EngineReport) -> list[str]:
    """Return what is known of an engine as lines; an engine of TensorRT has no readable text."""
    lines = [report.tf32] if report.tf32 else []
    if report.sparse is not None:
        sparse, every = report.sparse
        effect = "" if sparse else ", so `sparse_weights` has no effect"  # on dense weights
        lines.append(f"{sparse} of {every} weights have the pattern 2:4{effect}")
    if report.plan is not None:
        return [*lines, HEAD, *proof(report.plan), *_warnings(report.plan)]
    return [*lines, f"{_UNKNOWN}{report.plan_unknown}"] if report.plan_unknown else lines


def in_table(table: str) -> list[str]:
    """Return the lines of a table about what the text of its engine proves; none for a table without such an engine."""
    above, _, below = table.partition(f"{HEAD}\n")
    unknown = [f"  {line}" for line in above.splitlines() if line.startswith(_UNKNOWN)]
    return unknown or list(takewhile(lambda line: line.startswith("  "), below.splitlines()))


def proof(plan: PlanProof) -> list[str]:
    """Return a line for each profile, and a line about the products that the graph has in the recipe's precision."""
    rows = []
    for number, each in enumerate(plan.profiles):
        targets = " ".join(f"sm_{sm}" for sm in each.sms)
        rows.append(f"  {targets}, profile {number}: {_kernels(each)}")
    if not plan.layers:
        return rows
    lost = ", ".join(plan.lost[:_NAMED])
    but = f"; not: {lost}" if lost else ""
    return [*rows, f"  {plan.precision} as in the graph: {plan.kept} of {plan.layers} products{but}"]


def _warnings(plan: PlanProof) -> list[str]:
    """Return a warning where one engine is for Turing and for newer GPUs.

    Source: NVIDIA's support matrix of TensorRT-RTX, which advises an engine of its own for Turing; and the texts of
    engines for MiniLM in fp16, where the newer GPUs lose half of their fused products to Turing's structure.
    """
    if not any(_TURING in each.sms and len(each.sms) > 1 for each in plan.profiles):
        return []
    warning = "  warning: one engine for Turing (sm_75) and newer GPUs has the kernels that suit Turing"
    return [f"{warning}; build one for the Turing GPUs, and one for the others"]


def _kernels(profile: PlanProfile) -> str:
    products = f"products: {lists.counts(profile.products)}" if profile.products else "no products"
    fused = sum(profile.fused.values())
    attention = f", {profile.attention} attention kernels" if profile.attention else ""
    return f"{products}, {fused} of them with a fused epilogue{attention}, {profile.others} other kernels"
