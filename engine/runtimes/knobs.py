"""Knobs: the fields of a recipe that change the speed, the size or the accuracy of a model, as each runtime says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from engine.runtimes.support import known_gpus

if TYPE_CHECKING:
    from engine.runtimes.recipes import RecipeView
    from engine.runtimes.support import Support

RUNTIME, PRECISION, WEIGHTS_ONLY = "target.runtime", "precision", "quantize.weights_only"
MAX_BATCH_SIZE = "package.triton.max_batch_size"
_BATCH = "batch"


@dataclasses.dataclass(frozen=True)
class Knob:
    """One field of a recipe, and the values that are worth a trial.

    Several knobs may have one field, such as the precisions of each runtime. Of these, the first one that applies to a
    point counts. A knob with one value offers no choice: a recipe for the points to which it applies has that value.
    """

    field: str
    """The path of the field in a recipe, as `--set` takes it, for example `quantize.weights_only`."""
    values: tuple[object, ...]
    """The values, as `--set` takes them. None leaves the field out. The first is the default."""
    when: Mapping[str, tuple[object, ...]] = dataclasses.field(default_factory=dict)
    """For which points the knob applies: other fields, and the values of each for which it does."""
    of: Literal["model", "load"] = "model"
    """What the knob changes: the model and the latency of its calls, or how a server works under load.

    Knobs of the load change no latency of a single call, so a search uses them only where it looks for throughput.
    """

    written: bool = False
    """Whether the recipe says the first value itself, so that a point with this value leaves the field as it is."""

    def applies(self, chosen: Mapping[str, object]) -> bool:
        """Tell whether the knob applies to values, by field, of all knobs before it."""
        return all(chosen.get(name) in values for name, values in self.when.items())


def point(knobs: Sequence[Knob], choose: Callable[[Knob], object]) -> dict[str, object]:
    """Return the point that has one of the values of each knob that applies, as far as the recipe does not say it.

    `choose` picks a value of a knob with several. A field in the `when` of a knob stands before this knob.
    """
    chosen: dict[str, object] = {}
    as_written = set()
    for knob in knobs:
        if knob.field not in chosen and knob.applies(chosen):
            value = chosen[knob.field] = knob.values[0] if len(knob.values) == 1 else choose(knob)
            as_written |= {knob.field} if knob.written and value == knob.values[0] else set()
    return {name: value for name, value in chosen.items() if name not in as_written}


def first(value: object, values: Sequence[object]) -> tuple[object, ...]:
    """Return `values` with `value` as the first, if it is one of them."""
    return (value, *(each for each in values if each != value)) if value in values else tuple(values)


def value_at(recipe: RecipeView, path: str) -> Any:
    """Return what a recipe says at the path of a field; None where it says nothing."""
    value: Any = recipe
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return None if value in ((), {}) else value


def weights_only(recipe: RecipeView) -> Knob:
    """Return the knob that gives int8 to the weights alone, for a runtime that can be told so."""
    return Knob(WEIGHTS_ONLY, first(value_at(recipe, WEIGHTS_ONLY), (None, True)), {PRECISION: ("int8",)})


def max_batch_size(recipe: RecipeView) -> tuple[Knob, ...]:
    """Return the knob of the most rows that Triton joins; no knob where the profiles allow one row or say nothing."""
    most = max((profile[_BATCH].max for profile in recipe.profiles if _BATCH in profile), default=1)
    return (Knob(MAX_BATCH_SIZE, (None, *powers_of_two(most - 1)[1:]), of="load"),) if most > 1 else ()


def tf32(runtime: Support, recipe: RecipeView) -> tuple[Knob, ...]:
    """Return the knob that keeps fp32 out of TF32, for a runtime and GPUs that would compute in TF32 otherwise."""
    has_tf32 = any("tf32" in gpu.dtypes for gpu in known_gpus(recipe.target))
    switch = has_tf32 and False in runtime.tf32_choices(recipe.target)
    return (Knob("tf32", first(recipe.tf32, (None, False)), {PRECISION: ("fp32",)}),) if switch else ()


def powers_of_two(most: int) -> tuple[int, ...]:
    """Return the powers of two from 1 to `most`."""
    return tuple(1 << bit for bit in range(most.bit_length()))
