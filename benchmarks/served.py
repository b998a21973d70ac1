"""Shared by the benchmarks of servers: a package, the same model behind FastAPI, and texts of an exact length."""

from __future__ import annotations

import contextlib
import http.client
import importlib.metadata
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import fastapi_server
import numpy as np
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

sys.path.append(str(Path(__file__).resolve().parent.parent))  # last: an installed program comes before the source tree

from engine.kit.inputs import exact_texts
from engine.kit.inputs.tokenizer import Tokenizer

THREADS = "intra_op_thread_count"
_LEVELS = {-1: "ORT_ENABLE_BASIC", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}
_PATIENCE = 60.0


@dataclass(frozen=True)
class Package:
    """A built package of a text model: its folder, the name of the model, and the name of the entry."""

    folder: Path
    name: str
    entry: str

    @property
    def model(self) -> Path:
        return self.folder / self.name / "1"

    @property
    def tokenizer(self) -> Path:
        return self.folder / f"{self.name}_tokenizer" / "1" / "tokenizer.json"

    @property
    def level(self) -> str:
        """The optimization level of the package's configuration, as a name of ONNX Runtime's GraphOptimizationLevel."""
        return _LEVELS.get(config_of(self.folder / self.name).optimization.graph.level, "ORT_ENABLE_ALL")

    def texts(self, tokens: int, rows: int = 8) -> list[str]:
        """Return texts of exactly `tokens` tokens."""
        import tokenizers

        backend = tokenizers.Tokenizer.from_file(str(self.tokenizer))
        backend.no_padding()
        return [text for [text] in exact_texts.draw(Tokenizer(backend, pad=0), rows=rows, tokens=tokens)]

    def by_hand(self, threads: int) -> fastapi_server.Model:
        """Return the model in this process, as the FastAPI server runs it."""
        return fastapi_server.Model(self.model, self.tokenizer, threads=threads, level=self.level)

    def in_process(self, threads: int) -> Callable[[str], np.ndarray]:
        """Return a function that does the ensemble's work in this process: the package's own code, and ONNX Runtime."""
        entry = config_of(self.folder / self.entry)
        session = self.by_hand(threads).session
        chain = []
        for step in entry.ensemble_scheduling.step:
            own = step.model_name == self.name
            outputs = list(step.output_map)
            work = partial(_run, session, outputs) if own else _work(self.folder / step.model_name / "1")
            chain.append((work, dict(step.input_map), dict(step.output_map)))
        last_output = entry.output[0].name

        def answer(text: str) -> np.ndarray:
            known = {"TEXT": np.array([[text.encode()]], dtype=object)}
            for work, takes, gives in chain:
                outputs = work({name: known[called] for name, called in takes.items()})
                known |= {called: outputs[name] for name, called in gives.items()}
            return known[last_output][0]

        return answer


def build(folder: Path, *, threads: int, instances: int = 1, layout: str = "ensemble") -> Package:
    """Build the package of the README's recipe. Its model is served by `instances` instances of `threads` threads.

    A package of another layout than `ensemble` has models of other names, so that one server can have both.
    """
    import program

    if not folder.exists():
        program.project(folder)
    fields = {
        "parameters": {THREADS: {"string_value": str(threads)}},
        "instance_group": [{"count": instances, "kind": "KIND_CPU"}],
    }
    options = [f"package.triton.{name}={json.dumps(value)}" for name, value in fields.items()]
    if layout != "ensemble":
        names = {"name": layout, "package.triton.name": layout, "package.triton.ensemble": f"{layout}_text"}
        options += [f"{field}={value}" for field, value in {**names, "package.triton.layout": layout}.items()]
    options.append(f"bench.threads={threads}")  # `layout: auto` measures with as many
    words = ["build", program.RECIPE, "--to", "package", *(word for each in options for word in ("--set", each))]
    done = subprocess.run(
        [*program.command(), *words, "--json"], cwd=folder, env=program.environment(), capture_output=True, check=False
    )
    if done.returncode:
        errors = [event["error"] for event in map(json.loads, done.stdout.splitlines()) if event.get("error")]
        sys.exit(f"{program.RECIPE} could not be built:\n{errors}\n{done.stderr.decode(errors='replace')[-2000:]}")
    [place] = next(event for event in program.events(done.stdout) if event["event"] == "build")["packages"].values()
    return package(folder / place)


def package(folder: Path) -> Package:
    """Return the package that lies in a folder."""
    configs = [config_of(each) for each in folder.iterdir() if each.is_dir()]
    entry = next(each.name for each in configs if "recipe_task" in each.parameters)
    model = next((each.name for each in configs if each.platform == "onnxruntime_onnx"), entry)
    return Package(folder, model, entry)


def joined(folder: Path, *packages: Package) -> Path:
    """Write one model repository with the models of several packages."""
    folder.mkdir()
    for each in packages:
        for model in filter(Path.is_dir, each.folder.iterdir()):
            shutil.copytree(model, folder / model.name)
    return folder


def config_of(folder: Path) -> Any:
    """Return the ModelConfig of a model's folder."""
    return text_format.Parse((folder / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())


def _run(session: Any, outputs: list[str], given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return dict(zip(outputs, session.run(outputs, given), strict=True))


def _work(folder: Path) -> Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """Return the function of a package's Python model, loaded as the server loads it."""
    settings = json.loads((folder / "settings.json").read_text())
    spec = importlib.util.spec_from_file_location(f"{folder.parent.name}_work", folder / settings["work"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    work, again = module.Work(folder, settings), settings.get("again", [])
    return lambda given: {**{name: given[name] for name in again}, **work(given)}


@contextlib.contextmanager
def fastapi(package: Package, *, threads: int) -> Iterator[str]:
    """Serve the package's model with FastAPI in one uvicorn process until the block ends; yield HOST:PORT."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "MODEL": str(package.model),
        "TOKENIZER": str(package.tokenizer),
        "THREADS": str(threads),
        "LEVEL": package.level,
    }
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(Path(__file__).parent), "fastapi_server:app"]
    command += ["--log-level", "warning", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, env={**os.environ, **settings, "TOKENIZERS_PARALLELISM": "false"})
    try:
        _wait(process, port)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def fastapi_described() -> str:
    """Return the version of FastAPI, and the event loop and HTTP parser of uvicorn."""
    extras = [name for name in ("uvloop", "httptools") if importlib.util.find_spec(name)]
    how = f"uvicorn with {' and '.join(extras)}" if extras else "uvicorn without uvloop and httptools"
    return f"FastAPI {importlib.metadata.version('fastapi')}, {how}"


def question(text: str) -> str:
    """Return the URL path of a request with a text to the FastAPI server."""
    return f"/predict?{urllib.parse.urlencode({'query': text})}"


@contextlib.contextmanager
def over_http(
    address: str, method: str, path: Callable[[str], str], body: Callable[[str], bytes | None]
) -> Iterator[Callable[[str], object]]:
    """Yield a function that sends a text over one open connection and returns the JSON of the response."""
    connection = http.client.HTTPConnection(address, timeout=_PATIENCE)

    def ask(text: str) -> object:
        connection.request(method, path(text), body(text))
        answer = connection.getresponse()
        content = json.loads(answer.read())
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{address} answers {answer.status}: {content}")
        return content

    try:
        yield ask
    finally:
        connection.close()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
            connection.request("GET", question("ready?"))
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        time.sleep(0.1)
    sys.exit(f"the FastAPI server did not become ready (exit {process.poll()})")
