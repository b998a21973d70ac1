"""Trials of architectures: the steps of a recipe on a tiny random checkpoint, each trial in a forked process."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tiny_architectures

from engine.errors import StepError, UserError

CPU_SECONDS = 300
"""A trial that computes for longer is ended: a tiny model needs about two seconds."""
HOPELESS = ("aten::histc",)
"""Operators that no exporter can write: those of mixtures of experts."""


@dataclass(frozen=True)
class Pair:
    """An architecture with the head of a task: the class of transformers that loads it, and the model's class."""

    model_type: str
    task: str
    loader: str
    architecture: str


@dataclass(frozen=True)
class Trial:
    """What became of a pair: "done", or the step that failed, and the fields of the error that a user reads.

    The step is "tiny" where no tiny checkpoint could be generated, or where the class reads no text. It is "original"
    where the original does not run on text.
    """

    pair: Pair
    ended: str
    error: dict[str, Any]
    seconds: float

    @property
    def slow(self) -> bool:
        """Whether the exporter that takes the time was tried, and failed."""
        return self.ended == "export" and ("dynamo" in str(self.error) or not self.error)


def pairs() -> list[Pair]:
    """Return all classes that transformers has for our tasks."""
    from transformers.models.auto import modeling_auto

    from engine import tasks

    every: list[Pair] = []
    for task in (task for task in tasks.every() if task.takes_only_texts):
        for loader in filter(None, (task.auto_class, task.encoder_class)):
            for model_type, name in getattr(modeling_auto, loader)._model_mapping._model_mapping.items():
                names = [name] if isinstance(name, str) else list(name)
                if loader == task.auto_class or names[0].endswith("EncoderModel"):
                    every.append(Pair(model_type, task.name, loader, names[0]))
    return every


def run(chosen: Iterable[Pair], *, workers: int = 1, known: Collection[Trial] = ()) -> Iterator[Trial]:
    """Yield the trials of pairs, as they end; `known` are earlier trials.

    Only the first trial of a model type that exports runs `reference` and `validate`: its other heads have the same
    body. The slow exporter is tried once for each model type.
    """
    _warm()
    waiting, running = list(chosen)[::-1], []
    validated = {trial.pair.model_type for trial in known if trial.ended in ("done", "reference", "validate")}
    slow = {trial.pair.model_type for trial in known if trial.slow}
    while waiting or running:
        while waiting and len(running) < workers:
            pair = waiting.pop()
            running.append(_Child(pair, brief=pair.model_type in validated, fast=pair.model_type in slow))
        time.sleep(0.05)
        for child in [child for child in running if not child.process.is_alive()]:
            running.remove(child)
            trial = child.trial()
            validated |= {trial.pair.model_type} if trial.ended == "done" else set()
            slow |= {trial.pair.model_type} if trial.slow else set()
            yield trial


class _Child:
    """One trial in a forked process, which has imported nothing of the model before."""

    def __init__(self, pair: Pair, *, brief: bool, fast: bool) -> None:
        self.pair, self.begun = pair, time.monotonic()
        number, name = tempfile.mkstemp(suffix=".json")
        os.close(number)
        self.file = Path(name)
        fork = multiprocessing.get_context("fork")
        self.process = fork.Process(target=_trial, args=(pair, self.file), kwargs={"brief": brief, "fast": fast})
        self.process.start()

    def trial(self) -> Trial:
        self.process.join()
        text = self.file.read_text()
        self.file.unlink()
        seconds = round(time.monotonic() - self.begun, 1)
        fields = json.loads(text) if text else {"ended": "tiny", "error": {}}
        if self.process.exitcode and fields["ended"] != "done":
            fields["error"] = {"what": f"the process ended with {self.process.exitcode}", "facts": [], "hint": ""}
        return Trial(self.pair, **fields, seconds=seconds)


def _warm() -> None:
    """Import what every trial needs, so that a forked process begins with it."""
    import onnxruntime  # noqa: F401
    import torch
    import transformers

    from engine.steps import export, reference, validate  # noqa: F401

    torch.set_num_threads(1)
    for name in ("AutoModel", "AutoConfig", "PreTrainedModel", "PreTrainedTokenizerFast"):
        getattr(transformers, name)


def _trial(pair: Pair, file: Path, *, brief: bool, fast: bool) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))

    def keep(trial: Trial) -> None:
        file.write_text(json.dumps({"ended": trial.ended, "error": trial.error}))

    with tempfile.TemporaryDirectory() as folder, _silent():
        keep(here(pair, Path(folder), brief=brief, fast=fast, keep=keep))
    os._exit(0)


def here(
    pair: Pair, folder: Path, *, brief: bool, fast: bool, keep: Callable[[Trial], object] = lambda _: None
) -> Trial:
    """Try a pair in this process; `keep` gets the trial before each step, in case that the process ends in the step."""
    ended, error, begun = "tiny", {}, time.monotonic()
    try:
        for step in _steps(pair, folder, brief=brief, fast=fast):
            ended = step
            keep(Trial(pair, ended, {}, 0))
    except UserError as failure:
        error = failure.fields()
    except BaseException as failure:  # noqa: BLE001 - a bare error of a library is what the trial looks for
        last = traceback.extract_tb(failure.__traceback__)[-1]
        facts = [f"{Path(last.filename).name}:{last.lineno}"]
        error = {"what": f"{type(failure).__name__}: {failure}", "facts": facts, "hint": "", "bare": True}
    return Trial(pair, ended, error, round(time.monotonic() - begun, 1))


def _steps(pair: Pair, folder: Path, *, brief: bool, fast: bool) -> Iterator[str]:
    """Run the steps of a recipe in fp32; yield the name of each step before it runs, and "done" at last."""
    import transformers

    from engine.kit.checkpoints import checkpoint as checkpoints
    from engine.kit.reference import probes, torch_models
    from engine.steps.export import Export
    from engine.steps.reference import Reference
    from engine.steps.validate import Validate

    architecture = getattr(transformers, pair.architecture)
    inputs = inspect.signature(architecture.forward).parameters
    if "input_ids" not in inputs:
        raise StepError(f"it reads no text: it takes {next((name for name in inputs if name != 'self'), 'nothing')}")
    checkpoint = tiny_architectures.checkpoint(folder / "checkpoint", pair.loader, pair.model_type)
    yield "load"
    module = torch_models.load(checkpoint, pair.task)
    yield "original"
    torch_models.call(module, next(probes.probes(module, checkpoints.max_sequence(checkpoint)))[1])
    yield "export"
    with _second_exporter(allowed=not fast):
        Export(task=pair.task).run(folder / "exported", checkpoint=checkpoint)
    if brief:
        yield "done"
        return
    yield "reference"
    Reference(task=pair.task).run(folder / "reference", checkpoint=checkpoint)
    yield "validate"
    step, paths = Validate(task=pair.task), {name: folder / name for name in ("reference", "checkpoint")}
    step.judge(step.run(folder / "validated", compiled=folder / "exported", **paths))
    yield "done"


@contextlib.contextmanager
def _second_exporter(*, allowed: bool) -> Iterator[None]:
    """Leave the second exporter out where it is not allowed, or where no exporter has the operator."""
    from engine.steps.export import Export

    real, problems = Export._try, []

    def attempt(self: Any, exporter: str, *arguments: Any) -> str | None:
        if problems and (not allowed or any(name in problems[0] for name in HOPELESS)):
            return "not tried: it failed for another head of the same model, or the operator is not part of ONNX"
        problems.extend([real(self, exporter, *arguments)])
        return problems[-1]

    Export._try = attempt
    try:
        yield
    finally:
        Export._try = real


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Send what libraries print, also from C++, to nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(null, stream)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def read(path: Path) -> list[Trial]:
    """Return the trials that a file of JSON lines holds."""
    lines = path.read_text().splitlines() if path.exists() else []
    fields = [json.loads(line) for line in lines]
    return [Trial(Pair(**each.pop("pair")), **each) for each in fields]


def resume(path: Path, *, workers: int, tasks: Collection[str] = ()) -> None:
    """Try the pairs that a file does not list yet, task by task, and add their trials to the file."""
    known = read(path)
    tried = {trial.pair for trial in known}
    chosen = [pair for pair in pairs() if pair not in tried and (not tasks or pair.task in tasks)]
    with path.open("a") as file:
        for trial in run(chosen, workers=workers, known=known):
            file.write(json.dumps(asdict(trial)) + "\n")
            file.flush()


if __name__ == "__main__":
    resume(Path(sys.argv[1]), workers=int(sys.argv[2]), tasks=sys.argv[3:])
