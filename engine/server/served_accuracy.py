"""Served accuracy: requests made of the reference's cases, and how far a server's answers are from the original's."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zlib import crc32

from engine.client import requests as client_requests
from engine.client.rows import QueryInput, QueryRow
from engine.errors import JudgementError, StepError
from engine.kit.accuracy import comparison, outputs, thresholds
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
from engine.server import measured_server

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
            ReferenceRequest(measured_server.tensors(model, case.inputs), case) for case in every if _rows(case) <= rows
        ]
    else:
        requests = list(_of_texts(model, every, package))
    if not requests:
        raise StepError("no case of the validation can be asked", ["the package cuts each text, or takes fewer rows"])
    return requests


def distance(requests: Sequence[ReferenceRequest], responses: Sequence[Tensors]) -> ServedDistance:
    """Return the distance. Raises JudgementError for what is not finite, StepError without any expected output."""
    expected = [replace(request.case, outputs=_coded(request.case.outputs)) for request in requests]
    usual = outputs.usual(expected, pooling=None)
    cosines, errors, choices = [], [0.0], NO_CHOICES
    for case, response in zip(expected, map(_coded, responses), strict=True):
        names = case.outputs.keys() & response.keys()
        if not names:
            raise StepError(f"the answer to {case.name} has none of {', '.join(case.outputs)}")
        for name in names:
            array = response[name].reshape(case.outputs[name].shape)
            each = comparison.of_output(name, case, array, pooling=None, usual=usual[name])
            if each is None:
                raise JudgementError("an answer of the server is not finite", [f"{name} of {case.name}"])
            is_float = array.dtype.kind == "f"
            choices += each.choices if not is_float or name in outputs.LOGITS else NO_CHOICES
            cosines += [each.cosine] if is_float and each.cosine is not None else []
            errors += [each.max_abs] if is_float else []
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
            ("max_abs", least.max_abs, bounds.max_abs),
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
    """Yield a request for each case whose text the package does not cut; the tokens tell where two texts part."""
    import numpy as np

    from engine.kit.triton.served.tokenizer import Work

    folder = repository.tokenizer_of(package.folder, package.serving.model_name).parent
    settings = json.loads((folder / parts.SETTINGS).read_text("utf-8"))
    tokenizer = Work(folder, {**settings, "buckets": []})
    answer_of = _answers(package)
    texts_a_row = model.inputs[0].shape[-1]
    for case in every:
        for row in _possible_rows(case.text):
            given = {TEXT: np.array([[each.encode() for each in row]], dtype=object)}
            tokens = tokenizer(given) if texts_a_row in (-1, len(row)) else {}
            if tokens and np.array_equal(tokens[_TOKENS], case.inputs[_TOKENS]):
                outputs_of_row = answer_of({**tokens, **given, **case.inputs}, case)
                yield ReferenceRequest(given, replace(case, outputs=outputs_of_row))
                break


def _possible_rows(shown: str) -> Iterator[list[str]]:
    """Yield the one or two texts that a case may have, by its text in reports."""
    yield [shown]
    pieces = shown.split(_BETWEEN)
    yield from ([_BETWEEN.join(pieces[:at]), _BETWEEN.join(pieces[at:])] for at in range(1, len(pieces)))


def _answers(package: PackageParts) -> Callable[[Tensors, Case], dict[str, Any]]:
    """Return a function of a row's tensors and its case that makes the answer of the original's outputs."""
    graph, serving = onnx_files.load_graph(package.exported), package.serving
    signature = Signature(onnx_files.inputs(graph), onnx_files.outputs(graph))
    task = checkpoints.task(package.checkpoint, serving.task)
    tokenizer = text.load(serving.model_copy(update={"largest": {}}), signature, package.checkpoint, task)
    whole = serving.postprocess
    answer = answers.of_package(serving, signature, package.checkpoint, task, tokenizer) if whole else None
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


def _coded(answer: Tensors) -> dict[str, np.ndarray]:
    """Return an answer with a number for each text; of what is ranked by scores, only the best one."""
    import numpy as np

    is_ranked = "scores" in answer and "offsets" not in answer
    coded = {}
    for name, array in answer.items():
        kept = array[..., :1] if is_ranked and array.dtype.kind != "f" else array
        texts = kept.dtype.kind == "O"
        coded[name] = np.array([crc32(each) for each in kept.ravel()]).reshape(kept.shape) if texts else kept
    return coded
