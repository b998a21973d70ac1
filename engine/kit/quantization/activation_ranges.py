"""Activation ranges: what samples show of a tensor, and the smoothing and scale that keep its products exact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.quantization import low_bits, smoothing
from engine.kit.quantization.low_bits import Kind
from engine.kit.quantization.trials import Trials
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np

_ROWS = 384
"""Rows of a tensor that are kept of each half of the samples: a quarter those with the largest values."""
_BUDGET = 512 << 20
"""Bytes that all kept rows may take; of larger models there are fewer."""
_COLUMNS = 2048
"""Outputs of a weight that errors are measured on."""
MARGINS = (1.3, 1.0, 0.8, 0.6, 0.4)
"""Ranges that are tried, as shares of the largest value: below 1 clips, above 1 leaves room."""


@dataclass(frozen=True)
class Seen:
    """What one half of the samples shows of a tensor: each channel's largest absolute value, and some rows."""

    largest: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True)
class Scaling:
    """How a tensor is quantized: what its channels are divided by (None: 1) and its scale (None: it is not).

    `error` is the mean square error of its products as a share of their mean square, row by row, on rows that the
    scale was not made from.
    """

    factors: np.ndarray | None
    scale: np.ndarray | None
    error: float


def observe(
    trials: Trials, sources: Sequence[str], samples: Sequence[Mapping[str, np.ndarray]]
) -> dict[str, tuple[Seen, Seen]]:
    """Run the samples and return what each tensor looks like on the even and on the odd ones.

    Only positions that the attention mask shows count. One sample's tensors are in memory at a time, and the rows
    that are kept of them.
    """
    from onnx import helper

    model = trials.graph()
    given = {value.name for value in model.graph.output}
    fed = {value.name for value in model.graph.input}
    for name in sources:
        if name not in given | fed:
            model.graph.output.append(helper.make_empty_tensor_value_info(name))
    session = trials.session(model)
    watchers: dict[str, tuple[_Watcher, _Watcher]] = {}
    for number, sample in enumerate(samples):
        answers = {**sample, **ort.run(session, sample)}
        for name in sources:
            rows = _rows(answers[name], sample.get("attention_mask"))
            if name not in watchers:
                kept = _kept(rows.shape[1], len(sources))
                half = (len(samples) + 1) // 2
                watchers[name] = (_Watcher(kept, half), _Watcher(kept, half))
            watchers[name][number % 2].look(rows)
    halves = {name: [watcher.seen() for watcher in both if watcher.others] for name, both in watchers.items()}
    return {name: (seen[0], seen[-1]) for name, seen in halves.items()}


def choose(
    seen: tuple[Seen, Seen],
    weight: np.ndarray,
    kind: Kind,
    *,
    alphas: Sequence[float | None] = smoothing.ALPHAS,
    margins: Sequence[float] = MARGINS,
) -> Scaling:
    """Return the smoothing and the range with the least error of the product with `weight` [channels, output].

    Ranges are made from one half of the samples and errors measured on the other, and the other way round: what
    suits only the samples that it was made from loses. The best is then made from all of them.
    """
    import numpy as np

    weight = weight[:, :: -(-weight.shape[1] // _COLUMNS)].astype(np.float32)
    tried = margins if kind != "int4" else (1.0,)
    errors: dict[tuple[float | None, float], float] = {}
    for known, unknown in (seen, seen[::-1]):
        for (alpha, margin), error in _errors(known, unknown.rows, weight, kind, alphas=alphas, margins=tried):
            errors[alpha, margin] = errors.get((alpha, margin), 0.0) + error / 2
    alpha, margin = min(errors, key=lambda pair: errors[pair])
    largest = np.maximum(seen[0].largest, seen[1].largest)
    factors = None if alpha is None else smoothing.factors(largest, weight, alpha)
    scale = None if kind == "int4" else _scale(largest, factors, margin, kind)
    return Scaling(factors, scale, errors[alpha, margin])


def _errors(
    known: Seen,
    rows: np.ndarray,
    weight: np.ndarray,
    kind: Kind,
    *,
    alphas: Sequence[float | None],
    margins: Sequence[float],
) -> Iterator[tuple[tuple[float | None, float], float]]:
    truth = rows @ weight
    sizes = (truth**2).mean(axis=1)
    # Rows of large numbers would outweigh all others, and rows of next to nothing must not.
    sizes = sizes + max(0.1 * float(sizes.mean()), 1e-30)
    for alpha in alphas:
        factors = None if alpha is None else smoothing.factors(known.largest, weight, alpha)
        smoothed, grown = (rows, weight) if factors is None else (rows / factors, weight * factors[:, None])
        own = low_bits.spread(low_bits.weight_scales(grown, kind), kind)
        rounded = low_bits.there_and_back(grown, own, kind)
        for margin in margins:
            given = smoothed
            if kind != "int4":
                given = low_bits.there_and_back(smoothed, _scale(known.largest, factors, margin, kind), kind)
            error = ((given @ rounded - truth) ** 2).mean(axis=1) / sizes
            yield (alpha, margin), float(error.mean())


def _scale(largest: np.ndarray, factors: np.ndarray | None, margin: float, kind: Kind) -> np.ndarray:
    most = (largest if factors is None else largest / factors).max(initial=0)
    return low_bits.scales(most * margin, kind)


class _Watcher:
    """What is remembered of the rows that go by: the largest, and others evenly from all samples."""

    def __init__(self, kept: int, samples: int) -> None:
        self.top = kept // 4
        self.each = -(-(kept - self.top) // samples)
        self.sizes: list[np.ndarray] = []
        self.tops: list[np.ndarray] = []
        self.others: list[np.ndarray] = []

    def look(self, rows: np.ndarray) -> None:
        import numpy as np

        if not len(rows):
            return
        self.sizes = [np.max([np.abs(rows).max(axis=0), *self.sizes], axis=0)]
        places = np.unique(np.linspace(0, len(rows) - 1, self.each).astype(int))
        self.others.append(rows[places])
        rest = np.delete(rows, places, axis=0)
        pool = np.concatenate([*self.tops, rest])
        order = np.argsort(-np.abs(pool).max(axis=1), kind="stable")[: self.top]
        self.tops = [pool[order]]

    def seen(self) -> Seen:
        import numpy as np

        return Seen(np.max(self.sizes, axis=0), np.concatenate([*self.tops, *self.others]))


def _rows(tensor: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return a tensor as rows of channels, [rows, channels]; those of padding are left out."""
    import numpy as np

    if mask is not None and tensor.ndim > mask.ndim and tensor.shape[: mask.ndim] == mask.shape:
        tensor = tensor[mask.astype(bool)]
    return np.asarray(tensor.reshape(-1, tensor.shape[-1]), np.float32)


def _kept(channels: int, tensors: int) -> int:
    return max(32, min(_ROWS, _BUDGET // (2 * 4 * channels * tensors)))
