"""Even channels: what normalizations give, smoothed into the weights that it is multiplied by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.accuracy import equivalence
from engine.kit.inputs import token_rows
from engine.kit.onnx import onnx_files
from engine.kit.quantization import activation_ranges, smoothing
from engine.kit.quantization.activation_ranges import Seen
from engine.kit.quantization.dynamic import readings
from engine.kit.quantization.dynamic.readings import Reading
from engine.kit.quantization.trials import Trials

if TYPE_CHECKING:
    import numpy as np
    import onnx

_ALPHAS = (0.5, 0.65, 0.8)
"""What `smoothing.factors` is tried with. Beyond, a channel that random tokens do not show pays for the others."""
_WORTH = 0.5
"""The share of the error that may be left for smoothing to be worth another node."""
_LENGTHS = (8, 32)
"""Tokens of the random rows: what suits only one of the lengths loses."""
_COLUMNS = 512
"""Outputs of a weight that errors are measured on."""
_STEPS = 255


def smooth(model: onnx.ModelProto, normal: Sequence[Reading], scratch: Path) -> dict[str, bool]:
    """Smooth those of the tensors that gain by it; return whether, for each tensor that could be looked at.

    How large a channel becomes behind a normalization is a matter of the model and little of its inputs: random
    tokens, seeded, show it as well as texts do. Models that take anything but tokens are left as they are, and so is
    a weight that something else reads too, which would have to be stored twice.
    """
    from onnx import helper, numpy_helper

    users = Counter(name for node in onnx_files.nodes(model) for name in node.input)
    chosen = [each for each in normal if all(users[name] == 1 for name in each.weights)]
    if not chosen or not token_rows.are_tokens(onnx_files.inputs(model)):
        return {}
    seen = _seen(model, chosen, scratch)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    before = {}
    for reading in chosen if seen else ():
        name = reading.source
        factors = _factors(seen[name], [numpy_helper.to_array(stored[weight]) for weight in reading.weights])
        if factors is None:
            continue
        for weight in reading.weights:
            values = numpy_helper.to_array(stored[weight]) * factors[:, None]
            stored[weight].CopyFrom(numpy_helper.from_array(values, weight))
        model.graph.initializer.append(numpy_helper.from_array(1 / factors, f"{name}_factors"))
        before[name] = [helper.make_node("Mul", [name, f"{name}_factors"], [f"{name}_smoothed"], f"{name}_Mul")]
    readings.insert(model, [each for each in chosen if each.source in before], before, {})
    return {name: name in before for name in seen}


def _seen(model: onnx.ModelProto, chosen: Sequence[Reading], scratch: Path) -> dict[str, tuple[Seen, Seen]]:
    """Return what random tokens show of each tensor, at one length and at another; nothing where it takes none."""
    copy = type(model)()
    copy.CopyFrom(model)  # saving takes its weights out
    with TemporaryDirectory(dir=scratch) as folder:
        try:
            drawn = zip(*(equivalence.trials(model, length=length) for length in _LENGTHS), strict=True)
            inputs = [made for both in drawn for _, made in both]  # `observe` keeps even and odd ones apart
            tried = Trials.of(copy, Path(folder) / "model")
            return activation_ranges.observe(tried, [each.source for each in chosen], inputs)
        except StepError as error:
            print(f"it could not be tried on random tokens: {' '.join(str(error).split())[:300]}")
            return {}


def _factors(seen: tuple[Seen, Seen], weights: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return what the channels are divided by with the least error, or None where that gains too little."""
    import numpy as np

    weight = np.concatenate(weights, axis=1)
    some = weight[:, :: -(-weight.shape[1] // _COLUMNS)]
    errors = dict.fromkeys((None, *_ALPHAS), 0.0)
    for known, unknown in (seen, seen[::-1]):
        for alpha in errors:
            factors = None if alpha is None else smoothing.factors(known.largest, weight, alpha)
            errors[alpha] += _error(unknown.rows, factors, some)
    best = min(_ALPHAS, key=lambda alpha: errors[alpha])
    if errors[best] > _WORTH * errors[None]:
        return None
    return smoothing.factors(np.maximum(seen[0].largest, seen[1].largest), weight, best)


def _error(rows: np.ndarray, factors: np.ndarray | None, weight: np.ndarray) -> float:
    """Return the mean square error that one scale for all rows makes of their products with a weight."""
    import numpy as np

    given, grown = (rows, weight) if factors is None else (rows / factors, weight * factors[:, None])
    least, largest = min(float(given.min()), 0.0), max(float(given.max()), 0.0)
    step = (largest - least) / _STEPS or 1.0
    return float(np.square((np.rint(given / step) * step - given) @ grown).mean())
