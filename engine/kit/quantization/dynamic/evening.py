"""Evening out: what MatMuls read made fit for the one scale that ONNX Runtime's CPU kernels give a whole tensor."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import graphs
from engine.kit.quantization.dynamic import even_channels, even_rows, readings
from engine.kit.quantization.report import Evened

if TYPE_CHECKING:
    import onnx


def even(model: onnx.ModelProto, fit: Collection[str], scratch: Path) -> Evened:
    """Rewrite what the nodes called `fit` read, MatMul and Attention with stored weights; the model means the same.

    Dynamic quantization divides a tensor into 255 steps from its least value to its largest, so whatever is large
    somewhere costs exactness everywhere. What a normalization gives has rows of one size, and channels that differ by
    what the model learned: they are smoothed (`even_channels`). Everything else differs from token to token: it gets a
    scale per row (`even_rows`), which nothing has to be known for. So do normalized tensors that cannot be looked at,
    but in models that generate, which mostly see one row at a time. Attention cannot have such scales, since it adds
    its bias before they could be multiplied back; what attention gives needs none: it consists of means.

    Nodes have names of their own. The same model gives the same
    bytes.
    """
    found = readings.find(model, fit)
    looked_at = even_channels.smooth(model, [each for each in found if each.normal], scratch)
    mostly_one_row = graphs.has_past(model)
    by_row = [
        each
        for each in found
        if each.source not in looked_at
        and set(each.kinds) == {"MatMul"}
        and not each.mild
        and not (each.normal and mostly_one_row)
    ]
    even_rows.scale(model, by_row)
    smoothed = sum(looked_at.values())
    print(f"evened out before rounding: {smoothed} tensors smoothed, {len(by_row)} with a scale per row")
    return Evened(smoothed=smoothed, by_row=len(by_row))
