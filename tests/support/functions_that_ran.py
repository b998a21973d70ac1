"""In which files the functions lie that run inside each job of a recipe: each job runs here, in its own process."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from engine.builder import worker
from engine.builder.trace import hook
from engine.builder.worker_task import WorkerTask

ENGINE = os.path.join(str(Path(__file__).resolve().parents[2]), "engine", "")
_SECONDS = 900
_OF_FUNCTIONS = inspect.CO_OPTIMIZED
"""A flag that the code of a module or of a class lacks."""
_PRELOADED = ("engine.step", "numpy", "onnx", "onnx_ir", "onnxruntime")
"""What is imported once, as zygotes do: Python runs slowly while it notes what runs."""


def of_session(session) -> dict[tuple[str, str], set[str]]:
    """Run the jobs of an `engine.api.Session`; return the files of the functions that ran, by variant and job.

    Nothing is built before: each job gets the outputs of the jobs that ran earlier. A job that needs hardware is left
    out, and so are the jobs after it.
    """
    with tempfile.TemporaryDirectory(prefix="recipe-tests-ran-") as folder:
        tasks: dict[tuple[str, str], WorkerTask] = {}
        for variant in session.variants:
            for job in variant.jobs:
                makers = {name: tasks.get((variant.name, maker)) for name, maker in job.needs.items()}
                if job.step.hardware() is None and None not in makers.values():
                    sources = {name: session.lookup.source(each) for name, each in job.traits.sources.items()}
                    inputs = {name: str(source.location) for name, source in sources.items()}
                    inputs |= {name: maker.out for name, maker in makers.items()}
                    tasks[variant.name, job.name] = _task(job, inputs, Path(folder, str(len(tasks))))
        done = subprocess.run(
            [sys.executable, __file__], input=json.dumps([*map(asdict, tasks.values())]), capture_output=True,
            text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return {name: _read(Path(task.log)) for name, task in tasks.items()}


def _task(job, inputs: Mapping[str, str], place: Path) -> WorkerTask:
    place.mkdir()
    out, log = str(place / "out"), str(place / "log")
    return WorkerTask(job.traits.work, job.name, job.traits.options, inputs, out, log, flushes=False)


def _read(log: Path) -> set[str]:
    files = set(log.with_name("functions").read_text("utf-8").splitlines())
    assert files, log.read_text("utf-8")
    return files


def _run(tasks: Sequence[Mapping]) -> None:
    """Run each task in a fork of this process, as a zygote does."""
    hook.install()
    for module in _PRELOADED:
        importlib.import_module(module)
    for task in tasks:
        pid = os.fork()
        if pid == 0:
            _run_one(WorkerTask(**task))
        _, status = os.waitpid(pid, 0)
        if status:
            sys.exit(f"{task['name']}: {os.waitstatus_to_exitcode(status)}\n{Path(task['log']).read_text('utf-8')}")


def _run_one(task: WorkerTask) -> None:
    """Run a task and end the process; the name of a file is written when one of its functions is first called."""
    notes = os.open(Path(task.log).with_name("functions"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    noted: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        file = code.co_filename
        if event != "call" or file in noted or not file.startswith(ENGINE):
            return
        if code.co_flags & _OF_FUNCTIONS and not code.co_name.startswith("<"):
            noted.add(file)
            os.write(notes, f"{file}\n".encode())

    threading.setprofile(note)
    sys.setprofile(note)
    answer = worker.serve(task, os.getpid())
    sys.setprofile(None)
    os._exit(0 if answer is not None and answer.error is None else 1)


if __name__ == "__main__":
    _run(json.load(sys.stdin))
