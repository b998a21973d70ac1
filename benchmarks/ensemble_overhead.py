"""The cost of an ensemble: a package over gRPC, a chain of models that does nothing, and FastAPI, in turns.

    python benchmarks/ensemble_overhead.py

The chain that does nothing has the package's models with the same inputs, outputs, types and sizes. All of its models
run on the Python backend, as the stand-in for the ONNX Runtime backend does, and return arrays that exist already. The
chain's time is Triton's part. Our part is the package's time without Triton's part and without the work itself.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import served
import timing
from served import Package

from engine import server as serving
from engine.client.client import Client

IDENTITY = '''
import json

import numpy as np
import triton_python_backend_utils as triton


class TritonPythonModel:
    """Returns the same arrays for every request; they are made when the model is loaded."""

    def initialize(self, args):
        config = json.loads(args["model_config"])
        tokens = int(config["parameters"]["tokens"]["string_value"])
        self.arrays = {}
        for output in config["output"]:
            dims = [tokens if int(size) == -1 else int(size) for size in output["dims"]]
            dtype = triton.triton_string_to_numpy(output["data_type"])
            value = b"label" if dtype == np.object_ else 1
            self.arrays[output["name"]] = np.full([1, *dims], value, dtype)

    def execute(self, requests):
        answers = []
        for request in requests:
            [tensor.as_numpy() for tensor in request.inputs()]
            tensors = [triton.Tensor(name, array) for name, array in self.arrays.items()]
            answers.append(triton.InferenceResponse(tensors))
        return answers
'''
HERE, OURS, NOTHING = "the package's own work, in this process", "the package over gRPC", "a chain that does nothing"
BY_HAND, FASTAPI = "the same by hand, in this process", "FastAPI"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, help="a package that is already built (default: build minilm_cpu.yaml)")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=40, help="calls per contender and round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        package = (
            served.package(options.package) if options.package else served.build(Path(folder) / "project", threads=1)
        )
        rounds, about = measure(
            package, Path(folder), tokens=options.tokens, rounds=options.rounds, calls=options.calls
        )
    print(report(rounds, about, options.tokens))


def measure(
    package: Package, folder: Path, *, tokens: int, rounds: int, calls: int, fastapi: bool = True
) -> tuple[dict[str, list[float]], Mapping[str, Any]]:
    """Return each contender's median seconds of each round, and a description of the server."""
    texts = package.texts(tokens)
    repository = folder / "repository"
    shutil.copytree(package.folder, repository)
    add_identity(package, repository, tokens)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving.start(repository))
        contenders: dict[str, Callable[[str], object]] = {HERE: package.in_process(threads=1)}
        contenders[OURS] = stack.enter_context(over_grpc(server.grpc, package.entry))
        contenders[NOTHING] = stack.enter_context(over_grpc(server.grpc, "identity_entry"))
        if fastapi:
            contenders[BY_HAND] = package.by_hand(threads=1)
            contenders[FASTAPI] = stack.enter_context(
                over_http(stack.enter_context(served.fastapi(package, threads=1)))
            )
        agree(contenders, texts)
        return in_turns(contenders, texts, rounds=rounds, calls=calls), {"version": server.version, **_about(server)}


def add_identity(package: Package, repository: Path, tokens: int) -> None:
    """Add the chain that does nothing: a copy of each of the package's models, under another name."""
    entry = served.config_of(package.folder / package.entry)
    parts = [step.model_name for step in entry.ensemble_scheduling.step]
    for name in (*parts, package.entry):
        config = served.config_of(package.folder / name)
        last = name == package.entry
        config.name = "identity_entry" if last else f"identity_{name}"
        folder = repository / config.name / "1"
        folder.mkdir(parents=True)
        if last:
            for step in config.ensemble_scheduling.step:
                step.model_name = f"identity_{step.model_name}"
            (folder / "ensemble.txt").write_text("nothing\n")
        else:
            config.backend, config.platform = "python", ""
            config.ClearField("optimization")
            config.ClearField("default_model_filename")
            config.parameters["tokens"].string_value = str(tokens)
            (folder / "model.py").write_text(IDENTITY)
        (folder.parent / "config.pbtxt").write_text(served.text_format.MessageToString(config))


@contextlib.contextmanager
def over_grpc(address: str, model: str) -> Iterator[Callable[[str], np.ndarray]]:
    """Yield a function that sends a text to a model over gRPC and returns the model's first output."""
    with Client(f"grpc://{address}") as client:
        metadata = client.choose(model)
        first = metadata.outputs[0].name
        yield lambda text: client.infer(metadata, {"TEXT": np.array([[text.encode()]], dtype=object)})[first]


@contextlib.contextmanager
def over_http(address: str) -> Iterator[Callable[[str], np.ndarray]]:
    """Yield a function that sends a text to the FastAPI server, over one connection that stays open."""
    with served.over_http(address, "GET", served.question, lambda _: None) as ask:
        yield lambda text: np.array(ask(text), np.float32)


def agree(contenders: Mapping[str, Callable[[str], Any]], texts: list[str]) -> None:
    """End the benchmark unless all contenders but the chain that does nothing return the same numbers."""
    for text in texts:
        expected = contenders[HERE](text)
        for name, ask in contenders.items():
            if name != NOTHING and not np.allclose(np.ravel(ask(text)), expected, atol=1e-4):
                sys.exit(f"{name} answers {text!r} otherwise than the model in this process")


def in_turns(
    contenders: Mapping[str, Callable[[str], object]], texts: list[str], *, rounds: int, calls: int
) -> dict[str, list[float]]:
    """Return each contender's median seconds of each round. The first round does not count.

    Contenders take turns call by call: A B C D, then B C D A, ... So each call finds the processor's caches as another
    contender left them. In a loop of one contender the caches would be warmer in process than in a server, and the
    difference would count as overhead.
    """
    names = list(contenders)
    medians: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-1, rounds):
        took: dict[str, list[float]] = {name: [] for name in names}
        for call in range(calls):
            first = call % len(names)
            for name in names[first:] + names[:first]:
                took[name].append(_seconds(contenders[name], texts[call % len(texts)]))
        if number >= 0:
            for name, seconds in took.items():
                medians[name].append(statistics.median(seconds))
    return medians


def overhead(rounds: Mapping[str, list[float]]) -> tuple[float, float]:
    """Return the package's overhead as a multiple of the idle chain's time, and as a multiple of FastAPI's overhead.

    Overhead is the time beyond the work itself. Both numbers are medians over rounds. The second number is NaN without
    FastAPI.
    """
    pairs = zip(rounds[OURS], rounds[HERE], rounds[NOTHING], strict=True)
    of_nothing = statistics.median((ours - here) / nothing for ours, here, nothing in pairs)
    if FASTAPI not in rounds:
        return of_nothing, float("nan")
    return of_nothing, beyond(rounds, OURS, HERE) / beyond(rounds, FASTAPI, BY_HAND)


def beyond(rounds: Mapping[str, list[float]], whole: str, work: str) -> float:
    """Return the median over rounds of a contender's seconds minus the seconds of the work alone."""
    return statistics.median(a - b for a, b in zip(rounds[whole], rounds[work], strict=True))


def report(rounds: Mapping[str, list[float]], about: Mapping[str, Any], tokens: int) -> str:
    """Return the table: each contender's p50, divided into Triton's part and our part."""
    middle = {name: statistics.median(values) for name, values in rounds.items()}
    ours, triton = beyond(rounds, OURS, HERE), middle[NOTHING]
    whose = {NOTHING: "all of it Triton's", OURS: f"{_ms(ours)}: {_ms(triton)} Triton's, {_ms(ours - triton)} ours"}
    if FASTAPI in rounds:
        whose[FASTAPI] = f"{_ms(beyond(rounds, FASTAPI, BY_HAND))}: FastAPI's"
    rows = [[name, timing.duration(seconds), whose.get(name, "")] for name, seconds in middle.items()]
    of_nothing, of_fastapi = overhead(rounds)
    ratios = [f"The overhead of the package is {of_nothing:.2f} x the time of the chain that does nothing"]
    ratios += [f"{of_fastapi:.2f} x the overhead of FastAPI"] if FASTAPI in rounds else []
    servers = [
        f"Triton {about['version']} {about['how']}",
        *([served.fastapi_described()] if FASTAPI in rounds else []),
    ]
    return "\n\n".join((
        timing.table([f"one text of {tokens} tokens, one thread", "p50", "beyond the work"], rows),
        f"{', '.join(ratios)}.",
        f"The times are medians of {len(rounds[OURS])} rounds in turns. {'; '.join(servers)}. {timing.machine()}.",
    ))  # fmt: skip


def _about(server: Any) -> dict[str, str]:
    aside = ", with a stand-in in Python for its ONNX Runtime backend" if server.stand_in else ""
    return {"how": f"({server.kind}{aside})"}


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def _seconds(call: Callable[[str], object], text: str) -> float:
    begin = time.perf_counter()
    call(text)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
