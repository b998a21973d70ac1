"""The parts of a measurement on a GPU: each is one build, one probe or one server, in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

import gpu_floor
import gpu_ways as ways
from gpu_floor import BERT, MINILM, SHAPES

from engine import api, gpus
from engine.text import canonical

Row = Mapping[str, Any]
PROBE = Path(__file__).with_name("gpu_probe.py")
PEAKS = "peaks"
_BATCH_KEYS = ("batch", "sequence")
_FP16 = ways.Way("onnxruntime", "fp16", "cuda")
BESIDE: Mapping[str, tuple[Mapping[str, str], ...]] = {
    "eager": (
        *({"runtime": "pytorch", "precision": each} for each in ("fp32", "tf32", "fp16", "bf16")),
        {"runtime": "onnxruntime"},
    ),
    **{
        f"{mode} {precision}": ({"runtime": "pytorch", "precision": precision, "compile": mode},)
        for precision in ("fp16", "fp32")
        for mode in ("default", "reduce-overhead")
    },
}
"""What is measured beside the fp16 package of ONNX Runtime; a compilation is a build apart, as it may fail or hang."""
_CLIENTS = "1,8,64"
_LARGEST = {"batch": [1, 8, 32], "sequence": [1, 128, 384]}
_SIZES = [{"batch": batch, "sequence": length} for length in (16, 32, 64, 128) for batch in (1, 8)]
SERVED: Mapping[str, tuple[str, list[dict[str, Any]]]] = {
    "ensemble": ("ensemble", [_LARGEST]),
    "one model": ("fused", [_LARGEST]),
    "one model, profiles of one size": ("fused", [*_SIZES, _LARGEST]),
}
"""How a package is served: its layout and its profiles. Only profiles of one size can have CUDA graphs on a server."""
TEXTS = ("A fine day.", "It rains, and nobody goes out before the evening comes with its wind from the sea.")


class NotRunError(Exception):
    """A part did not run, or failed; the text says why."""


@dataclass(frozen=True)
class Part:
    """A part of the measurement: its name, and the function that runs it within so many seconds and returns a row."""

    name: str
    run: Callable[[Path, float], Row]


def parts() -> Iterator[Part]:
    """Yield all parts, those that other parts or the verdicts need first."""
    yield Part(PEAKS, lambda folder, seconds: _probe(folder, seconds, PEAKS))
    for model in (MINILM, BERT):
        for beside in BESIDE:
            for shape in SHAPES:
                yield latencies(model, _FP16, shape, beside)
        for sequence in dict.fromkeys(length for _, length in SHAPES):
            yield Part(f"work: {model}, {sequence} tokens", partial(_work, model, sequence))
        for shape in SHAPES:
            yield Part(f"kernels: {model}, {_FP16.name}, {_by(shape)}", partial(_kernels, model, _FP16, shape))
    for kind in SERVED:
        yield Part(f"served: {MINILM}, {_FP16.name}, {kind}", partial(_served, kind))
    for model in (MINILM, BERT):
        for way in ways.WAYS:
            for shape in SHAPES if way != _FP16 else ():
                yield latencies(model, way, shape, "")


def latencies(model: str, way: ways.Way, shape: tuple[int, int], beside: str) -> Part:
    """Return the part that builds a way and measures it at one shape, beside PyTorch in fp32 or beside `beside`."""
    name = f"latencies: {model}, {way.name}, {_by(shape)}" + (f", beside {beside}" if beside else "")
    return Part(name, partial(_latencies, model, way, shape=shape, beside=beside))


def _by(shape: tuple[int, int]) -> str:
    return f"{shape[0]} x {shape[1]}"


def _probe(folder: Path, seconds: float, *words: str) -> Row:
    """Run a program of gpu_probe.py and return the line of JSON that it prints."""
    done = ways.run([sys.executable, str(PROBE), *words], folder, seconds)
    if done.returncode:
        raise NotRunError(last(done.stderr))
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _latencies(model: str, way: ways.Way, folder: Path, seconds: float, **at: Any) -> Row:
    variant, code = _built(model, way, folder, seconds, **at)
    report = next(step["report"] for step in variant["steps"] if step["job"] == "bench" and step["artifact"])
    return {
        "model": model,
        "way": way.name,
        "shape": at["shape"],
        "rows": variant["bench"],
        "unmeasured": [f"{each['runtime']}: {each['reason']}" for each in report.get("unmeasured", ())],
        "worst_cosine": ((variant["validation"] or {}).get("cosine") or {}).get("worst"),
        "within_bounds": code == 0,
        "size": variant["size"],
        "clocks": clocks(report),
    }


def _built(
    model: str, way: ways.Way, folder: Path, seconds: float, *, shape: tuple[int, int] = SHAPES[0], beside: str = ""
) -> tuple[Row, int]:
    """Build a way; return what `recipe show` tells, and the exit code: 4 where a bound is missed."""
    if (why := way.missing()) is not None:
        raise NotRunError(why)
    against = [rival for rival in BESIDE.get(beside, ways.EAGER[:1]) if rival.get("precision") != "tf32" or _has_tf32()]
    bench = {"shapes": [dict(zip(_BATCH_KEYS, shape, strict=True))], "against": against}
    name = recipe_name(model, way, shape, beside)
    done, variant = ways.built(folder, name, way.recipe(name, bench=bench, **_model(model, folder)), seconds=seconds)
    if not variant.get("bench"):
        raise NotRunError(last(done.stderr))
    return variant, done.returncode


def recipe_name(model: str, way: ways.Way, shape: tuple[int, int], beside: str) -> str:
    """Return the name of the recipe of a part, and of its file without its ending."""
    return "-".join((model, way.name, *map(str, shape), *beside.split())).lower()


def _has_tf32() -> bool:
    gpu = gpus.find(ways.device() or "")
    return gpu is None or "tf32" in gpu.dtypes


def _model(model: str, folder: Path) -> Row:
    """Return the section `model` of a recipe; none for MiniLM, which a package brings."""
    if model == MINILM:
        return {}
    if not (folder / model / "config.json").exists():
        save_bert(folder / model)
    return {"model": {"source": model, "task": "feature-extraction"}}


def save_bert(folder: Path, **config: int) -> None:
    """Write BERT of the size of BERT-base with random weights of a fixed seed, and the tokenizer of MiniLM."""
    import importlib.util

    import torch
    import transformers

    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig(**config), add_pooling_layer=False).eval()
    model.save_pretrained(folder.with_name(f"{folder.name}.new"), safe_serialization=True)
    spec = importlib.util.find_spec(ways.MODEL)
    package = Path(str(spec.submodule_search_locations[0])) / "model"
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        if (package / name).exists():
            (folder.with_name(f"{folder.name}.new") / name).write_bytes((package / name).read_bytes())
    folder.with_name(f"{folder.name}.new").rename(folder)


def _work(model: str, sequence: int, folder: Path, seconds: float) -> Row:
    variant, _ = _built(model, _FP16, folder, seconds, beside="eager")
    with TemporaryDirectory() as scratch:
        counted = gpu_floor.work(_artifact(folder, variant, "export"), sequence, Path(scratch))
    return {"model": model, "sequence": sequence, **counted._asdict()}


def _kernels(model: str, way: ways.Way, shape: tuple[int, int], folder: Path, seconds: float) -> Row:
    variant, _ = _built(model, way, folder, seconds, shape=shape, beside="eager")
    path = folder / f"{recipe_name(model, way, shape, 'eager')}.yaml"
    [planned] = api.session(path, cache=folder / "cache").variants
    step = next(job.step for job in planned.jobs if job.name == "bench")
    built = str(_artifact(folder, variant, "validate"))
    execution = json.dumps(canonical.encode(step.execution))
    counts = _probe(folder, seconds, "kernels", built, execution, *map(str, shape))
    return {"model": model, "way": way.name, "shape": shape, **counts}


def _artifact(folder: Path, variant: Row, job: str) -> Path:
    return folder / "cache" / "artifacts" / next(step["artifact"] for step in variant["steps"] if step["job"] == job)


def _served(kind: str, folder: Path, seconds: float) -> Row:
    """Serve MiniLM on a Triton with a GPU, if there is one here, and put a load on it by several numbers of clients."""
    if (why := _FP16.missing()) is not None:
        raise NotRunError(why)
    layout, profiles = SERVED[kind]
    name = "-".join(("minilm", "served", *kind.replace(",", "").split()))
    recipe = json.loads(_FP16.recipe(name, profiles=profiles, package={"triton": {"layout": layout}}))
    del recipe["bench"]
    ways.prepare(folder, name, json.dumps(recipe))
    line = [sys.executable, "-m", "engine", "serve", f"{name}.yaml", "--json"]
    with subprocess.Popen(line, cwd=folder, env=ways.environment(), stdout=subprocess.PIPE, text=True) as server:
        overdue = Timer(seconds, server.kill)
        overdue.start()
        try:
            ready = next((each for each in map(_event, server.stdout) if each.get("event") == "serve"), {})
            if ready.get("state") != "ready":
                error = ready.get("error") or {"what": f"no server was ready within {seconds:g} s"}
                raise NotRunError("; ".join((error["what"], *error.get("facts", ()))))
            texts = [word for text in TEXTS for word in ("--text", text)]
            put = ways.command(
                folder, "loadtest", ready["grpc"], *texts, "--concurrency", _CLIENTS, "--json", seconds=seconds
            )
            if put.returncode:
                raise NotRunError(last(put.stderr))
            return {"kind": kind, "server": ready["server"], "loads": list(map(_event, put.stdout.splitlines()))}
        finally:
            overdue.cancel()
            server.terminate()  # as Ctrl-C, which a program in the background ignores


def _event(line: str) -> Row:
    return dict(json.loads(line)) if line.startswith("{") else {}


def clocks(report: Row) -> str:
    """Return the clocks of the GPU in a report of bench, as text."""
    gpu = report.get("gpu") or {}
    if not gpu.get("sm_mhz"):
        return "not known"
    least, greatest = gpu["sm_mhz"]
    return f"{least} MHz throughout" if gpu.get("steady") else f"{least} to {greatest} MHz"


def last(text: str) -> str:
    """Return why a command failed, from what it printed: the line below that of the failed job, else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    failed = [number for number, line in enumerate(lines) if line.startswith("failed ")]
    return lines[failed[0] + 1] if failed and failed[0] + 1 < len(lines) else "; ".join(lines[-1:])
