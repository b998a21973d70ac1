"""A real Triton server for tests: the pip-installed one, in the environment that RECIPE_TRITON_VENV names.

Without that it is kept in pytest's cache. Where the server cannot be had, `venv` raises `Unavailable` with the reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from tritonclient import grpc
from tritonclient.utils import np_to_triton_dtype

from engine import server as servers
from engine.errors import StepError
from engine.server import Server, pip_server
from engine.server.installation import Lacking
from engine.server.pip_server import Packaged


class Unavailable(Exception):  # noqa: N818 - a reason to skip, not an error
    """Why there is no server on this machine."""


def venv(cache: Path) -> Path:
    """Return the environment with the server, made on first use. Raises Unavailable."""
    folder = os.environ.get("RECIPE_TRITON_VENV")
    place = Path(folder) if folder else cache / f"triton-venv-{pip_server.PYTHON}"
    try:
        pip_server.refuse_platform()
        if not (place / pip_server.READY).is_file():
            pip_server.install(place)
    except (Lacking, StepError) as reason:
        raise Unavailable(str(reason)) from None
    return place


@contextlib.contextmanager
def serving(environment: Path, *packages: Path, further: Sequence[str] = ()) -> Iterator[Server]:
    """Serve the models of packages by the pip-installed server, until the block ends."""
    installation = Packaged("pip", pip_server.VERSION, "for tests", environment=environment)
    with contextlib.ExitStack() as stack:
        repository = packages[0]
        if len(packages) > 1:
            repository = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recipe-tests-models-")))
            for package in packages:
                shutil.copytree(package, repository, dirs_exist_ok=True)
        yield stack.enter_context(servers.start(repository, installation=installation, patience=60.0, further=further))


def texts(*rows: str) -> np.ndarray:
    """Return TEXT [len(rows), 1] of an entry that takes one text a row."""
    return np.array([[row.encode()] for row in rows], dtype=object)


def inputs(**arrays: np.ndarray) -> list[grpc.InferInput]:
    """Return arrays by the names of a model's inputs as gRPC sends them."""
    values = []
    for name, array in arrays.items():
        values.append(grpc.InferInput(name, array.shape, np_to_triton_dtype(array.dtype)))
        values[-1].set_data_from_numpy(array)
    return values


def infer(server: Server, model: str, **arrays: np.ndarray) -> dict[str, np.ndarray]:
    """Ask a model over gRPC, by a connection of its own; return its outputs by name."""
    with grpc.InferenceServerClient(server.grpc) as client:
        answer = client.infer(model, inputs(**arrays), client_timeout=60)
        return {output.name: answer.as_numpy(output.name) for output in answer.get_response().outputs}


def counts(server: Server, model: str) -> tuple[int, int]:
    """Return the numbers of requests that a model has answered and of its executions, once both rest.

    Triton counts an execution after its answers are sent: a client may have its answer before it is counted.
    """
    latest = None
    for _ in range(120):
        with urllib.request.urlopen(f"http://{server.http}/v2/models/{model}/stats", timeout=30) as answer:
            [stats] = json.load(answer)["model_stats"]
        before, latest = latest, (stats["inference_count"], stats["execution_count"])
        if latest == before:
            return latest
        time.sleep(0.5)
    raise AssertionError(f"the counts of {model} do not rest: {latest}")
