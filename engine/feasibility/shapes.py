"""Shapes: checks the measured shapes against the profiles, and the sizes and values of both against the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.feasibility import proposals
from engine.recipe.schema import Recipe
from engine.recipe.values import Profile, Range
from engine.runtimes import axes, recipes, registry
from engine.runtimes.profiles import greatest
from engine.runtimes.profiles import usual as usual_profiles
from engine.text import lists, suggestions

if TYPE_CHECKING:
    from engine.errors import RecipeError
    from engine.feasibility.facts import Axes, ModelFacts
    from engine.recipe.load import LoadedRecipe

Path = tuple[str | int, ...]
_ENDS = ("min", "opt", "max")
_TYPES = ("int32", "int64")
"""The types that TensorRT takes for a shape tensor (NVIDIA, "Working with Dynamic Shapes")."""
_MOST_AXES = 1


def check(loaded: LoadedRecipe, facts: ModelFacts | None = None) -> None:
    """Raise RecipeError for a measured shape outside all profiles, if the model takes only shapes of profiles."""
    recipe = loaded.recipe
    allowed = recipe.profiles if facts is None else profiles(recipe, facts)
    if not registry.of(recipe).fixes_profiles(recipe.target) or not allowed:
        return
    for path, _, stated in _measured(recipe):
        named = stated if facts is None else axes.by_name(stated, facts.axes)
        if not any(_takes(profile, named) for profile in allowed):
            sizes = ", ".join(f"{axis} {size}" for axis, size in stated.items())
            hint = "widen a profile, or measure a shape inside one"
            raise loaded.error(f"no profile takes {sizes}", *path, hint=hint)


def _measured(recipe: Recipe) -> Iterator[tuple[Path, str | None, Mapping[str, int]]]:
    """Yield the place, the axis that samples give, and the sizes, of each shape of `bench` and of the objective."""
    for index, shape in enumerate(recipe.bench.shapes if recipe.bench else ()):
        yield ("bench", "shapes", index), shape.samples, shape.axes
    if recipe.tune is not None and (stated := recipe.tune.objective)[1]:
        figure, sizes = stated
        usual = {axis: int(extent.opt) for axis, extent in recipe.profiles[0].items()} if recipe.profiles else {}
        yield ("tune", "minimize" if recipe.tune.minimize else "maximize", figure), None, {**usual, **sizes}


def _takes(profile: Mapping[str, Range], sizes: Mapping[str, int]) -> bool:
    return all(axis not in profile or profile[axis].min <= size <= profile[axis].max for axis, size in sizes.items())


def check_model(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for profiles and measured shapes that do not fit the model's axes or its limit of tokens."""
    if facts.dynamic is None:
        return
    recipe = loaded.recipe
    if facts.dynamic and not profiles(recipe, facts):
        what = "the model has axes of any size, and no profile says which sizes are meant"
        hint = f"add {proposals.profiles(facts)}"
        raise loaded.error(what, "profiles", facts=_about(facts), hint=hint)
    for index, profile in enumerate(recipe.profiles):
        _check_axes(loaded, ("profiles", index), profile, facts)
    _check_values(loaded, facts)
    for path, samples, named in _measured(recipe):
        stated = {**({samples: 1} if samples else {}), **named}  # samples have lengths from 1 token on
        sizes = {key: Range(min=size, opt=size, max=size) for key, size in stated.items()}
        _check_axes(loaded, path, sizes, facts)
    check(loaded, facts)
    _served(loaded, facts)


def _served(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for a shape that the measured server would refuse, or whose texts it would truncate."""
    recipe = loaded.recipe
    if recipe.bench is None or not recipes.served(recipe):
        return
    limits = greatest(profiles(recipe, facts))
    if recipe.package.triton.max_batch_size:
        limits["batch"] = recipe.package.triton.max_batch_size
    for index, shape in enumerate(recipe.bench.shapes):
        for axis, size in axes.by_name(shape.axes, facts.axes).items():
            if size > limits.get(axis, size):
                what = f"{axis} {size} through a server, and the package takes at most {limits[axis]}"
                hint = "widen a profile (and package.triton.max_batch_size), or use via: [in-process]"
                raise loaded.error(what, "bench", "shapes", index, axis, hint=hint)


def profiles(recipe: Recipe | LoadedRecipe, facts: ModelFacts) -> tuple[Profile, ...]:
    """Return the profiles of a recipe by the names of axes.

    A recipe without profiles gets the usual profile of a text or image model.

    The usual profile takes 1 to 8 inputs at once, each of 1 to 512 tokens, or of fewer tokens where the model's limit
    is lower. An ONNX file has no usual profile, because its axes may mean anything.
    """
    own = recipe.profiles if isinstance(recipe, Recipe) else recipe.recipe.profiles
    return tuple(axes.by_name(profile, facts.axes) for profile in own) or usual(facts)


def usual(facts: ModelFacts) -> tuple[Profile, ...]:
    """Return the usual profile for a model, used by a recipe without profiles; empty for an ONNX file."""
    return () if facts.kind == "onnx" else usual_profiles(facts.dynamic or (), facts.max_sequence)


def _check_axes(loaded: LoadedRecipe, path: Path, sizes: Mapping[str, Range], facts: ModelFacts) -> None:
    """Raise RecipeError for sizes of axes that the model lacks or fixes, for too many tokens, and for missing sizes.

    `path` leads to the sizes in the recipe. A key of `sizes` is the name of an axis, or an input's axis: `x[2]`.
    """
    named: dict[str, Range] = {}
    following: dict[str, Range] = {}
    for key, axis, extents in axes.located(sizes, facts.axes):
        at = (*path, axes.input_of(key) or key)
        if axis is None:
            raise _no_axis(loaded, path, key, sizes, facts)
        if isinstance(axis, int):
            if _ends(extents) != [axis] * len(_ENDS):
                what = f"the model fixes the axis {key} at {axis}, and the recipe says {_shown(_ends(extents))}"
                raise loaded.error(what, *at, facts=_shapes(facts), hint=_proposal(path, sizes, facts))
            continue
        stated = following if axis in axes.follow(facts.axes) else named
        if stated.setdefault(axis, extents) != extents:
            what = f"{key} is the model's axis `{axis}`, and the recipe gives that axis two different sizes"
            raise loaded.error(what, *at, facts=_shapes(facts), hint=_proposal(path, sizes, facts))
        longest = facts.max_sequence
        if axis == "sequence" and longest is not None and extents.max > longest:
            what = f"{extents.max} tokens are more than the model has positions for: {longest}"
            raise loaded.error(what, *at, hint=f"at most {longest} is possible")
    missing = [axis for axis in facts.dynamic or () if axis not in named]
    if missing:
        what = f"the model's axis `{missing[0]}` may have any size, and nothing here says which"
        raise loaded.error(what, *path, facts=_about(facts), hint=_proposal(path, sizes, facts))
    _check_following(loaded, path, sizes, facts, named=named, following=following)


def _about(facts: ModelFacts) -> list[str]:
    """Return what an error says about the model's axes."""
    dynamic = facts.dynamic
    return [f"its axes of any size: {', '.join(dynamic)}" if dynamic else "all of its axes have a fixed size"]


def _check_following(
    loaded: LoadedRecipe,
    path: Path,
    sizes: Mapping[str, Range],
    facts: ModelFacts,
    *,
    named: Mapping[str, Range],
    following: Mapping[str, Range],
) -> None:
    """Raise RecipeError where an axis such as `past + 1` is given a size that does not follow from the other axes."""
    ends = [{axis: int(getattr(extents, end)) for axis, extents in named.items()} for end in _ENDS]
    for axis, extents in following.items():
        expected = [axes.extent(axis, end) for end in ends]
        if _ends(extents) != expected:
            what = f"the axis `{axis}` follows from other axes: {_shown(expected)}; the recipe says "
            shown = _shown(_ends(extents))
            raise loaded.error(what + shown, *path, facts=_shapes(facts), hint=_proposal(path, sizes, facts))


def _no_axis(loaded: LoadedRecipe, path: Path, key: str, sizes: Mapping[str, Range], facts: ModelFacts) -> RecipeError:
    """Return the error for a key that is no axis of the model."""
    name = axes.input_of(key)
    if name is None:
        hint = suggestions.hint(key, facts.dynamic or ())
        return loaded.error(f"the model has no axis `{key}`", *path, key, facts=_about(facts), hint=hint)
    if name not in facts.axes:
        hint = suggestions.hint(name, facts.axes)
        return loaded.error(f"the model has no input `{name}`", *path, name, facts=_shapes(facts), hint=hint)
    count = sum(axes.input_of(each) == name for each in sizes)
    what = f"the input `{name}` has {len(facts.axes[name])} axes, and the recipe gives sizes for {count}"
    return loaded.error(what, *path, name, facts=_shapes(facts), hint=_proposal(path, sizes, facts))


def _proposal(path: Path, sizes: Mapping[str, Range], facts: ModelFacts) -> str:
    """Return the hint with a whole profile, or a whole shape of `bench`, that keeps the sizes which fit the model."""
    kept = axes.by_name(sizes, facts.axes)
    proposal = proposals.profiles(facts, kept) if path[0] == "profiles" else proposals.shape(facts, kept)
    return f"write {proposal}" if facts.dynamic else f"leave {path[0]} out: every axis of the model has a fixed size"


def _ends(extents: Range) -> list[int]:
    return [int(getattr(extents, end)) for end in _ENDS]


def _shown(sizes: Sequence[int | None]) -> str:
    return ", ".join("no whole number" if size is None else str(size) for size in dict.fromkeys(sizes))


def _shapes(facts: ModelFacts) -> list[str]:
    return [f"{name}: {lists.extents(shape)}" for name, shape in facts.axes.items()]


def _check_values(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for values of an input that the model lacks, or that cannot be a shape tensor in TensorRT.

    A shape tensor has whole numbers and at most one axis, whose size the model fixes.
    """
    for number, values in enumerate(loaded.recipe.shape_values):
        for name, stated in values.items():
            at = ("profiles", number, name)
            if name not in facts.axes:
                hint = suggestions.hint(name, facts.axes)
                raise loaded.error(f"the model has no input `{name}`", *at, facts=_inputs(facts), hint=hint)
            shape = facts.axes[name]
            if why := _no_shape_tensor(shape, facts.types.get(name)):
                what = f"a profile states the values of `{name}`, {why}"
                hint = "a profile states values of whole numbers, without axes or with one axis of a fixed size"
                raise loaded.error(what, *at, facts=_inputs(facts), hint=hint)
            count = int(shape[0]) if shape else 1
            if len(stated.opt) != count:
                what = (
                    f"the input `{name}` has {lists.counted(count, 'value')}, and the recipe states {len(stated.opt)}"
                )
                raise loaded.error(what, *at, facts=_inputs(facts))


def _no_shape_tensor(shape: Axes, dtype: str | None) -> str:
    """Return why an input cannot be a shape tensor; "" where it can."""
    if dtype is not None and dtype not in _TYPES:
        return f"which is {dtype}"
    if len(shape) > _MOST_AXES:
        return f"which has {len(shape)} axes"
    return "" if all(isinstance(size, int) for size in shape) else "which may have any number of values"


def _inputs(facts: ModelFacts) -> list[str]:
    return [f"{name}: {facts.types.get(name, '')}{lists.extents(shape)}" for name, shape in facts.axes.items()]
