"""The colour of a module is a digest of all code that the module reaches through imports; file paths do not count."""

# A module's colour is a digest of its own text and of the colours of the modules that it leads to. A change therefore
# shows in the colour of every module that reaches the changed one. In a circle of imports no module can be first, so
# all colours of the circle are refined together until a round distinguishes no further modules (colour refinement:
# B. Weisfeiler, A. Leman, "The reduction of a graph to canonical form", 1968).

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from engine import digest
from engine.builder.code import reading
from engine.builder.code.reading import Module

_colours: dict[str, str] = {}


def of(module: str) -> str:
    """Return the colour of a module, a digest of all code that it reaches.

    Raises StepError if a data file that the code declares is missing.
    """
    if module not in _colours:
        for circle in _circles(module):
            _colours.update(_refined(circle))
    return _colours[module]


def reached(module: str) -> list[str]:
    """Return the names of a module and of all modules that it imports directly or through other modules, each once."""
    modules = {module: None}
    todo = [module]
    while todo:
        fresh = [each for each in neighbours(reading.read(todo.pop())) if each not in modules]
        modules.update(dict.fromkeys(fresh))
        todo += fresh
    return list(modules)


def forget() -> None:
    """Forget the colours (digests) of all modules, so that the next call computes the colours again."""
    _colours.clear()


def neighbours(module: Module) -> Iterator[str]:
    """Yield the modules that a module's code uses or imports; a name may come more than once."""
    yield from module.leads
    yield from (name for name, _ in module.reaches if name is not None)


def _refined(circle: Iterable[str]) -> Mapping[str, str]:
    """Return the colours (digests) of the modules in a circle of imports.

    The colour (digest) of every module outside the circle that a module of the circle imports must be known already.
    """
    parts = {name: reading.read(name) for name in circle}
    colours = {name: digest.of_rows([("text", part.text)]) for name, part in parts.items()}
    while True:
        known = {**_colours, **colours}
        finer = {name: _colour(part, known) for name, part in parts.items()}
        settled = len(set(finer.values())) == len(set(colours.values()))
        colours = finer
        if settled:
            # Each colour gets all colours of the circle, so that equal colours mean equal circles.
            others = [("beside", colour) for colour in sorted(colours.values())]
            return {name: digest.of_rows([("own", colour), *others]) for name, colour in colours.items()}


def _colour(part: Module, known: Mapping[str, str]) -> digest.Digest:
    reaches = {
        ("" if name is None else known[name], words)
        for name, words in part.reaches
        if words or (name is not None and not reading.read(name).is_empty)
    }
    leads = [("leads", known[name]) for name in part.leads]
    return digest.of_rows([("text", part.text), *leads, *sorted(reaches)])


def _circles(start: str) -> Iterator[list[str]]:
    """Yield the modules that `start` reaches in groups: modules that import each other form one group.

    Each group of modules comes after all groups whose modules it imports.

    The groups leave out each module whose colour (the digest of all code that the module reaches) is known already. The
    algorithm is Tarjan's for strongly connected components, without recursion ("Depth-first search and linear graph
    algorithms", 1972).
    """
    index: dict[str, int] = {start: 0}
    lowest: dict[str, int] = {start: 0}
    stack: list[str] = [start]
    open_ones: set[str] = {start}
    path = [(start, iter(list(neighbours(reading.read(start)))))]
    while path:
        name, rest = path[-1]
        following = next(rest, None)
        if following is None:
            path.pop()
            if path:
                lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[name])
            if lowest[name] == index[name]:
                cut = stack.index(name)
                circle, stack[cut:] = stack[cut:], []
                open_ones.difference_update(circle)
                yield circle
        elif following in _colours:
            continue
        elif following not in index:
            index[following] = lowest[following] = len(index)
            stack.append(following)
            open_ones.add(following)
            path.append((following, iter(list(neighbours(reading.read(following))))))
        elif following in open_ones:
            lowest[name] = min(lowest[name], index[following])
