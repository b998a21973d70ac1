"""Texts in, answers out, in one process: the work of a package whose layout is `fused`."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

Tensors = dict[str, Any]
Request = tuple[Callable[[], Tensors], list[str], Callable[[], bool]]
"""What returns the tensors of a request, the names of the outputs that it wants, and what tells if it was cancelled."""


class Work:
    """Runs the parts of a package one after the other, as the ensemble of the package would.

    Settings: `steps`, the parts in their order, each with `takes` and `gives` (name in the part -> name in the package)
    and `folder`, where its files lie (null for the model itself); `session`, the settings of session.py; `most`, the
    most rows of a batch (0 where the model takes no batches); `max_text_bytes`, as the tokenizer has it; and
    `warm_up`, the texts of a first request.

    Requests that Triton joined and whose tensors have equal shapes run through the model as one batch. What no client
    requests is not computed.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        import numpy as np

        self.steps = settings["steps"]
        self.most, self.max_text_bytes = settings["most"], settings["max_text_bytes"]
        self.session = _module(folder / "session.py").ModelSession(folder, settings["session"])
        self.works = [each["folder"] and _work(folder / each["folder"]) for each in self.steps]
        self.model = self.works.index(None)
        self.wants = lru_cache(partial(_wants, self.steps))
        texts = np.array([[text.encode() for text in settings["warm_up"]]], dtype=object)
        warm_up = (lambda: {"TEXT": texts}, list(self.steps[-1]["gives"].values()), lambda: False)
        for _ in self.together([warm_up]):
            pass  # an answer may be an error: a model that fills a mask refuses a text without one

    def together(self, requests: list[Request]) -> Iterator[tuple[int, Callable[[], Tensors], bool]]:
        """Answer requests: yield the place of each in the list when its answer is there, in the order of the answers.

        With the place comes a function that returns the outputs, or raises what is wrong with this request, and whether
        other requests still wait for the model. A request that was cancelled while it waited is not computed: it has no
        outputs.
        """
        runs = [_Run(read, outputs, self.steps, self.wants(tuple(outputs))) for read, outputs, _ in requests]
        places = {id(run): place for place, run in enumerate(runs)}
        for number in range(self.model):
            self._through(number, runs)
        groups = [[run for run in runs if not run.needs(self.model)], *self._groups(runs)]
        for group in groups:
            waited_for = [run for run in group if not requests[places[id(run)]][2]()]
            needing = [run for run in waited_for if run.needs(self.model)]
            if needing:
                self._through_model(needing)
            for number in range(self.model + 1, len(self.works)):
                self._through(number, waited_for)
            for run in group:
                yield places[id(run)], run.result if run in waited_for else dict, group is not groups[-1]

    def _through(self, number: int, runs: list[_Run]) -> None:
        """Do the work of one part for all requests that need it."""
        for run in runs:
            if run.needs(number):
                run.add(number, partial(self.works[number], run.taken(number)))

    def _groups(self, runs: list[_Run]) -> list[list[_Run]]:
        """Return the requests that need the model, in groups that it can run as one batch: with equal shapes."""
        groups: dict[Any, list[_Run]] = {}
        for place, run in enumerate(runs):
            if run.needs(self.model):
                shapes = tuple(array.shape[1:] for array in run.taken(self.model).values())
                groups.setdefault(shapes if self.most else place, []).append(run)
        return list(groups.values())

    def _through_model(self, runs: list[_Run]) -> None:
        """Run the model once for all requests of a group."""
        try:
            self._batch(self.model, runs)
        except Exception:  # noqa: BLE001 - the request that causes the error gets it, and no other
            for run in runs:
                run.add(self.model, partial(self._called, run.taken(self.model), run.wants[self.model]))

    def _batch(self, number: int, runs: list[_Run]) -> None:
        import numpy as np

        given = [run.taken(number) for run in runs]
        if len(given) > 1:
            joined = {name: np.concatenate([tensors[name] for tensors in given]) for name in given[0]}
        else:
            joined = given[0]
        names = sorted({name for run in runs for name in run.wants[number]})
        outputs = self._called(joined, names)
        rows = [len(next(iter(tensors.values()))) for tensors in given]
        if self.most and any(len(output) != sum(rows) for output in outputs.values()):
            raise ValueError(f"an output has other rows than the batch of {sum(rows)}")
        ends = np.cumsum(rows)
        for run, count, end in zip(runs, rows, ends, strict=True):
            own = outputs if len(runs) == 1 else {name: array[end - count : end] for name, array in outputs.items()}
            run.add(number, partial(dict, own))

    def _called(self, given: Tensors, names: list[str]) -> Tensors:
        """Return outputs of the model; a text of many windows is a batch that is run in parts."""
        import numpy as np

        rows = len(next(iter(given.values())))
        if not self.most or rows <= self.most:
            return dict(self.session(given, names))
        starts = range(0, rows, self.most)
        parts = [
            self.session({name: array[start : start + self.most] for name, array in given.items()}, names)
            for start in starts
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in names}


class _Run:
    """A request on its way: the tensors that are known so far, or the error that ended the request."""

    def __init__(
        self, read: Callable[[], Tensors], outputs: list[str], steps: list[dict[str, Any]], wants: list[list[str]]
    ) -> None:
        self.error: Exception | None = None
        self.wants = wants
        """For each step, the names of the tensors that somebody needs from it, as the step calls them."""
        self._outputs, self._steps = outputs, steps
        self._known: Tensors = {}
        try:
            self._known = read()
        except Exception as error:  # noqa: BLE001 - it is the answer to this request
            self.error = error

    def needs(self, number: int) -> bool:
        """Return whether a step has work for this request."""
        return self.error is None and bool(self.wants[number])

    def taken(self, number: int) -> Tensors:
        """Return the inputs of a step."""
        return {own: self._known[name] for own, name in self._steps[number]["takes"].items()}

    def add(self, number: int, made: Callable[[], Tensors]) -> None:
        """Call a function and keep the tensors that it returns, as the outputs of a step, or keep its error."""
        try:
            gives = self._steps[number]["gives"]
            self._known.update({gives[own]: array for own, array in made().items() if own in gives})
        except Exception as error:  # noqa: BLE001 - it is the answer to this request
            self.error = error

    def result(self) -> Tensors:
        """Return the requested outputs, or raise the error that ended the request."""
        if self.error is not None:
            raise self.error
        return {name: self._known[name] for name in self._outputs}


def _wants(steps: list[dict[str, Any]], outputs: tuple[str, ...]) -> list[list[str]]:
    """Return for each step the names of its outputs that clients or later steps need; none for a step to skip."""
    needed = set(outputs)
    wants: list[list[str]] = []
    for step in reversed(steps):
        wants.insert(0, [own for own, name in step["gives"].items() if name in needed])
        needed |= set(step["takes"].values()) if wants[0] else set()
    return wants


def _work(folder: Path) -> Callable[[Tensors], Tensors]:
    """Return the work of a part, with what the part hands on as it came."""
    settings = json.loads((folder / "settings.json").read_text("utf-8"))
    work, again = _module(folder / settings["work"]).Work(folder, settings), settings.get("again", [])
    return lambda given: {**{name: given[name] for name in again}, **work(given)}


def _module(path: Path) -> Any:
    """Return the module in a file; by its path, so that no installed package of that name can take its place."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
