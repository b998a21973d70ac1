"""Activation ranges: a tensor's values on samples, and the smoothing and scale with the least error on the samples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.quantization import low_bits
from engine.kit.quantization.low_bits import Kind
from engine.kit.quantization.trials import Trials
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np

_ROWS = 384
"""Upper limit of the number of rows of a tensor that are stored for each half of the samples.

A quarter of the stored rows of a tensor are the rows with the largest values.
"""
_BUDGET = 512 << 20
"""Upper limit of the memory for the stored rows of all tensors, in bytes.

A model with more or wider tensors stores fewer rows per tensor.
"""
_COLUMNS = 2048
"""Upper limit of the number of a weight's output channels on which rounding errors are measured."""
MARGINS = (1.3, 1.0, 0.8, 0.6, 0.4)
"""The ranges of an activation that are tried, as shares of the activation's largest value on samples.

A range with a share below 1 clips the largest values; a range with a share above 1 leaves room for larger values.
"""
_FAINT_ROW = 0.1
"""The share of all products' mean square that is added to each row's mean square, so that tiny rows count less."""
_LEAST_ROWS = 32
"""Lower limit of the number of rows of a tensor that are stored, however large the model is."""
ALPHAS = (None, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""The smoothing strengths that are tried; a strength is the share of a channel's size that moves into the weights.

None stands for no smoothing.
"""
_LIMIT = 1e3
"""Upper limit of a smoothing factor; with larger factors, numbers in half precision would lose digits."""
_FAINT_WEIGHTS = 1e-5
"""Lower limit of a weight row's size in the smoothing formula, as a share of the largest row's size.

The number 0 has no logarithm.
"""
_LEAST = 1e-30
"""The size of the largest row that the smoothing formula assumes for a weight whose values are all 0."""


@dataclass(frozen=True)
class Observation:
    """A tensor's values on one half of the samples: the largest absolute value of each channel, and some rows."""

    largest: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True)
class Scaling:
    """The smoothing factors of a tensor's channels (None: no smoothing) and its scale (None: not quantized).

    `error` is the mean square error of the tensor's products as a share of their mean square. The error is averaged
    over rows that the scale was not fitted to.
    """

    factors: np.ndarray | None
    scale: np.ndarray | None
    error: float


def observe(
    trials: Trials,
    sources: Sequence[str],
    samples: Sequence[Mapping[str, np.ndarray]],
    *,
    channels_first: Collection[str] = (),
) -> dict[str, tuple[Observation, Observation]]:
    """Run the model on samples; return two observations of each tensor: on even-numbered and on odd-numbered samples.

    The channels of a tensor are its last axis, or the second where `channels_first` names it. The rows of a tensor at
    masked positions are left out. Only the tensors of one sample are in memory at a time,
    besides the stored rows.
    """
    import numpy as np

    model = trials.graph()
    values = surgery.values(model.graph)
    for name in sources:
        if not (values[name].is_graph_input() or values[name].is_graph_output()):
            model.graph.outputs.append(values[name])
    session = trials.session(model)
    watchers: dict[str, tuple[_Watcher, _Watcher]] = {}
    for number, sample in enumerate(samples):
        for name, tensor in chain(sample.items(), ort.outputs(session, sample)):
            if name not in sources:
                continue
            turned = np.moveaxis(tensor, 1, -1) if name in channels_first else tensor
            rows = _rows(turned, sample.get("attention_mask"))
            if name not in watchers:
                fit = _BUDGET // (2 * 4 * rows.shape[1] * len(sources))  # float32, on both halves of the samples
                count = max(_LEAST_ROWS, min(_ROWS, fit))
                half = (len(samples) + 1) // 2
                watchers[name] = (_Watcher(count, half), _Watcher(count, half))
            watchers[name][number % 2].add(rows)
    observed: dict[str, tuple[Observation, Observation]] = {}
    for name in list(watchers):  # `pop`, as an observation copies its rows
        observations = [watcher.observation() for watcher in watchers.pop(name) if watcher.spread]
        observed[name] = (observations[0], observations[-1])
    return observed


def choose(
    halves: tuple[Observation, Observation],
    weight: np.ndarray,
    kind: Kind,
    *,
    alphas: Sequence[float | None] = ALPHAS,
    margins: Sequence[float] = MARGINS,
) -> Scaling:
    """Return the smoothing and the range with the least error of the product with `weight` [channels, output].

    Each range is fitted to one half of the samples and its error is measured on the other half, and vice versa, so a
    range that suits only the samples that it was fitted to has a large error. The smoothing and the range with the
    least error are then fitted to all samples.
    """
    import numpy as np

    weight = weight[:, :: -(-weight.shape[1] // _COLUMNS)].astype(np.float32)
    tried = margins if kind != "int4" else (1.0,)
    errors: dict[tuple[float | None, float], float] = {}
    for fitted, unseen in (halves, halves[::-1]):
        for (alpha, margin), error in _errors(fitted, unseen.rows, weight, kind, alphas=alphas, margins=tried):
            errors[alpha, margin] = errors.get((alpha, margin), 0.0) + error / 2
    alpha, margin = min(errors, key=lambda pair: errors[pair])
    largest = np.maximum(halves[0].largest, halves[1].largest)
    factors = None if alpha is None else smoothing_factors(largest, weight, alpha)
    scale = None if kind == "int4" else _scale(largest, factors, margin, kind)
    return Scaling(factors, scale, errors[alpha, margin])


def _errors(
    fitted: Observation,
    rows: np.ndarray,
    weight: np.ndarray,
    kind: Kind,
    *,
    alphas: Sequence[float | None],
    margins: Sequence[float],
) -> Iterator[tuple[tuple[float | None, float], float]]:
    """Yield the error of each pair of a smoothing strength and a margin (the range as a share of the largest value).

    The smoothing factors and the scale are fitted to the observation `fitted`; the error is measured on `rows`.
    """
    truth = rows @ weight
    sizes = (truth**2).mean(axis=1)
    # Errors count relative to their row, or rows of large numbers would outweigh all others.
    sizes = sizes + max(_FAINT_ROW * float(sizes.mean()), 1e-30)
    for alpha in alphas:
        factors = None if alpha is None else smoothing_factors(fitted.largest, weight, alpha)
        smoothed, grown = (rows, weight) if factors is None else (rows / factors, weight * factors[:, None])
        own = low_bits.spread(low_bits.weight_scales(grown, kind), kind)
        rounded = low_bits.there_and_back(grown, own, kind)
        for margin in margins:
            quantized = smoothed
            if kind != "int4":
                quantized = low_bits.there_and_back(smoothed, _scale(fitted.largest, factors, margin, kind), kind)
            error = ((quantized @ rounded - truth) ** 2).mean(axis=1) / sizes
            yield (alpha, margin), float(error.mean())


def _scale(largest: np.ndarray, factors: np.ndarray | None, margin: float, kind: Kind) -> np.ndarray:
    most = (largest if factors is None else largest / factors).max(initial=0)
    return low_bits.scales(most * margin, kind)


class _Watcher:
    """Collects rows of a tensor sample by sample: the largest rows, and rows spread evenly over all samples."""

    def __init__(self, rows: int, samples: int) -> None:
        self.top = rows // 4
        self.per_sample = -(-(rows - self.top) // samples)
        self.sizes: list[np.ndarray] = []
        self.tops: list[np.ndarray] = []
        self.spread: list[np.ndarray] = []

    def add(self, rows: np.ndarray) -> None:
        """Store some rows of the tensor on one sample, and the largest absolute value of each channel."""
        import numpy as np

        if not len(rows):
            return
        self.sizes = [np.max([np.abs(rows).max(axis=0), *self.sizes], axis=0)]
        places = np.unique(np.linspace(0, len(rows) - 1, self.per_sample).astype(int))
        self.spread.append(rows[places])
        rest = np.delete(rows, places, axis=0)
        pool = np.concatenate([*self.tops, rest])
        order = np.argsort(-np.abs(pool).max(axis=1), kind="stable")[: self.top]
        self.tops = [pool[order]]

    def observation(self) -> Observation:
        """Return the largest absolute value of each channel, and the stored rows."""
        import numpy as np

        return Observation(np.max(self.sizes, axis=0), np.concatenate([*self.tops, *self.spread]))


def _rows(tensor: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return a tensor in the shape [rows, channels], without the rows of padding."""
    import numpy as np

    if mask is not None and tensor.ndim > mask.ndim and tensor.shape[: mask.ndim] == mask.shape:
        tensor = tensor[mask.astype(bool)]
    return np.asarray(tensor.reshape(-1, tensor.shape[-1]), np.float32)


def smoothing_factors(largest: np.ndarray, weight: np.ndarray, alpha: float) -> np.ndarray:
    """Return the divisor of each channel of an activation, float32 [channels]; their geometric mean is 1.

    `largest` is the largest absolute value of each channel on samples, `weight` is [channels, output], `alpha` is the
    strength. The formula of the divisors is equation 4 of SmoothQuant (Xiao et al. 2023). A channel whose largest
    absolute value is below the median of all channels gets the median as its size in the formula. If the size were
    smaller, smoothing would fit the channel closely to its values on the samples, and a larger value on another input
    would be clipped.
    """
    import numpy as np

    sizes = np.maximum(largest, np.median(largest)).astype(np.float64)
    sizes = np.where(sizes > 0, sizes, max(float(sizes.max(initial=0)), 1.0))
    rows = np.abs(weight).max(axis=1).astype(np.float64)
    rows = np.maximum(rows, _FAINT_WEIGHTS * max(float(rows.max(initial=0)), _LEAST))
    logs = alpha * np.log(sizes) - (1 - alpha) * np.log(rows)
    return np.asarray(np.clip(np.exp(logs - logs.mean()), 1 / _LIMIT, _LIMIT), np.float32)
