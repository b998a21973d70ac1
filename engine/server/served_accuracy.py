"""Served accuracy: requests made of the reference's cases, and how far a server's answers are from the original's."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from engine.client import requests as client_requests
from engine.client.rows import QueryInput, QueryRow
from engine.errors import JudgementError, StepError
from engine.kit.accuracy import agreement, comparison, outputs, thresholds
from engine.kit.accuracy.agreement import NO_CHOICES
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import cases
from engine.kit.inputs.cases import Case
from engine.kit.onnx import onnx_files
from engine.kit.triton import parts, repository, served, text
from engine.kit.triton.answers import by_task as answers
from engine.kit.triton.config import Signature
from engine.recipe.values import Bound
from engine.runtimes.triton_tensors import TEXT
from engine.server import measured

if TYPE_CHECKING:
    import numpy as np

    from engine.client.model_metadata import ModelMetadata
    from engine.kit.accuracy.gate import Bounded
    from engine.kit.triton.serving import Serving

    Tensors = Mapping[str, np.ndarray]

_MOST = 64
"""Upper limit of the requests: with more cases, every second, third, ... case is asked."""
_MOST_PROMPTS, _NEW_TOKENS = 8, 16
"""Upper limits of the requests to a model that generates text, and of the new tokens of each."""
_ALONE = frozenset({"sample", "random", "tensors"})
"""The kinds of cases that clients send; the others have masks that no tokenizer makes."""
_TOKENS = "input_ids"
_BETWEEN = " | "
"""What stands between the two texts of a case."""


@dataclass(frozen=True)
class ReferenceRequest:
    """A request to a served model; the outputs of `case` are what a client gets if the model is the original."""

    arrays: Tensors
    case: Case


@dataclass(frozen=True)
class ServedDistance:
    """How far answers of a server are from those that the original's outputs give.

    `cosine` is the worst of all answers, None without vectors; `agreement` the share of equal choices, None without
    choices; `max_abs` is the largest difference of two numbers.
    """

    requests: int
    cosine: float | None
    agreement: float | None
    max_abs: float

    def __str__(self) -> str:
        numbers = {"cosine, worst": self.cosine, "agreement": self.agreement, "max_abs": self.max_abs}
        shown = (f"{name} {value:.6g}" for name, value in numbers.items() if value is not None)
        return ", ".join([f"{self.requests} answers", *shown])

    def to_json(self) -> dict[str, object]:
        """Return the numbers as a dictionary for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class PackageParts:
    """A package, and what it was built from: the exported graph, the checkpoint, and how Triton serves the model."""

    folder: Path
    exported: Path
    checkpoint: Path
    serving: Serving


def requests_of(
    model: ModelMetadata, reference: Path, package: PackageParts, *, outside: Sequence[str] = ()
) -> list[ReferenceRequest]:
    """Return the requests to a model of a package that the cases of the reference give.

    A model that takes texts is asked the texts of the cases. The package's own code for answers makes the expected
    answers, from the original's outputs; a text that the package cuts is left out, and so are the cases in `outside`.
    Nothing is expected of a model that generates text. Raises StepError where no case is left.
    """
    fitting = [case for case in cases.load(reference) if case.kind in _ALONE and case.name not in outside]
    every = fitting[:: -(-len(fitting) // _MOST) or 1]
    if model.generates:
        requests = [_of_prompt(model, case) for case in every[:_MOST_PROMPTS]]
    elif model.input(TEXT) is None:
        rows = model.max_batch_size or math.inf
        requests = [
            ReferenceRequest(measured.arrays(model, case.inputs, Path()), case) for case in every if _rows(case) <= rows
        ]
    else:
        requests = list(_of_texts(model, every, package))
    if not requests:
        raise StepError("no case of the validation can be asked", ["the package cuts each text, or takes fewer rows"])
    return requests


def distance(requests: Sequence[ReferenceRequest], responses: Sequence[Tensors]) -> ServedDistance:
    """Return how far responses are from the expected answers.

    Raises JudgementError for numbers that are not finite, StepError for an answer without any expected output.
    """
    import numpy as np

    expected = [replace(each.case, outputs=_numbers(each.case.outputs)) for each in requests]
    usual = outputs.usual(expected, pooling=None)
    cosines, errors, choices = [], [0.0], NO_CHOICES
    for request, case, response in zip(requests, expected, responses, strict=True):
        if not case.outputs.keys() & response.keys():
            raise StepError(f"the answer to {case.name} has none of {', '.join(case.outputs)}")
        for name in case.outputs.keys() & response.keys():
            array = np.asarray(response[name]).reshape(case.outputs[name].shape)
            measured_distance = comparison.of_output(name, case, array, pooling=None, usual=usual[name])
            if measured_distance is None:
                raise JudgementError("an answer of the server is not finite", [f"{name} of {case.name}"])
            cosines += [] if measured_distance.cosine is None else [measured_distance.cosine]
            errors.append(measured_distance.max_abs)
            choices += measured_distance.choices
        choices += _of_texts_and_numbers(request.case.outputs, response)
    share = 1 - (choices.changed - choices.near_ties) / choices.count if choices.count else None
    return ServedDistance(len(requests), min(cosines, default=None), share, max(errors))


def judge(measured_distance: ServedDistance, bounds: Bounded) -> None:
    """Compare the distance with the bounds of the recipe, or the default ones. Raises JudgementError."""
    default, least = thresholds.DEFAULTS[bounds.precision], measured_distance
    share = thresholds.allowed_changes(default.agreement, least.requests)
    misses = [
        miss
        for name, value, bound in (
            ("cosine", least.cosine, bounds.cosine or Bound(at_least=default.cosine)),
            ("agreement", least.agreement, bounds.agreement or Bound(at_least=share)),
        )
        if value is not None
        for miss in thresholds.missed(name, value, bound)
    ]
    if misses:
        raise JudgementError("the server's answers are too far from the original's", [str(each) for each in misses])


def _rows(case: Case) -> int:
    return max((len(array) for array in case.inputs.values() if array.ndim), default=1)


def _of_prompt(model: ModelMetadata, case: Case) -> ReferenceRequest:
    query = QueryInput((QueryRow((case.text,), label=case.name),))
    [request] = client_requests.build(model, query, max_new_tokens=_NEW_TOKENS)
    return ReferenceRequest(request.arrays, replace(case, outputs={}))


def _of_texts(model: ModelMetadata, every: Sequence[Case], package: PackageParts) -> Iterator[ReferenceRequest]:
    """Yield a request for each case with a text that the package does not cut."""
    import numpy as np

    from engine.kit.triton.served.tokenizer import Work

    folder = repository.tokenizer_of(package.folder, package.serving.model_name).parent
    settings = json.loads((folder / parts.SETTINGS).read_text("utf-8"))
    tokenizer = Work(folder, {**settings, "buckets": []})
    answer_of = _answers(package)
    texts_a_row = model.inputs[0].shape[-1]
    for case in every:
        row = case.text.split(_BETWEEN, texts_a_row - 1)
        given = {TEXT: np.array([[each.encode() for each in row]], dtype=object)}
        tokens = tokenizer(given)
        if np.array_equal(tokens[_TOKENS], case.inputs[_TOKENS]):
            yield ReferenceRequest(given, replace(case, outputs=answer_of({**tokens, **given, **case.inputs}, case)))


def _answers(package: PackageParts) -> Callable[[Tensors, Case], dict[str, Any]]:
    """Return a function of a row's tensors and its case that makes the answer of the original's outputs."""
    graph, serving = onnx_files.load_graph(package.exported), package.serving
    signature = Signature(onnx_files.inputs(graph), onnx_files.outputs(graph))
    task = checkpoints.task(package.checkpoint, serving.task)
    tokenizer = text.load(serving.model_copy(update={"largest": {}}), signature, package.checkpoint, task)
    answer = answers.of(task, signature, package.checkpoint, tokenizer) if serving.postprocess else None
    if answer is None or answer.work is None:
        return lambda _, case: dict(case.outputs)
    files = {answer.work: answer.files.get(answer.work) or served.code(answer.work), **answer.files}
    with TemporaryDirectory() as place:
        for name, content in files.items():
            (Path(place) / name).write_bytes(content)
        spec = importlib.util.spec_from_file_location(Path(answer.work).stem, Path(place) / answer.work)
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)  # type: ignore[union-attr]
        work = module.Work(Path(place), dict(answer.settings))
    names, gives = answer.names, answer.outputs

    def answer_of(tensors: Tensors, case: Case) -> dict[str, Any]:
        given = {**tensors, **{names.get(name, name): array for name, array in case.outputs.items()}}
        given |= work(given)
        return {name: given[name] for name in gives}

    return answer_of


def _numbers(answer: Tensors) -> dict[str, np.ndarray]:
    return {name: array for name, array in answer.items() if array.dtype.kind == "f"}


def _of_texts_and_numbers(expected: Tensors, response: Tensors) -> agreement.Choices:
    """Return the choices among texts and integers; of a ranking by scores, only the best one is a choice."""
    import numpy as np

    ranked = "scores" in expected and "offsets" not in expected
    count = changed = 0
    for name, array in expected.items():
        if array.dtype.kind == "f" or name not in response:
            continue
        first, second = array, np.asarray(response[name]).reshape(array.shape)
        if ranked:
            first, second = first[..., :1], second[..., :1]
        count += 1
        changed += not np.array_equal(first, second)
    return agreement.Choices(count, changed)
