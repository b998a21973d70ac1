"""Building: our packages by `recipe build`, and the peers' models by scripts in the peers' own environments."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import program

from frontier.contenders import Contender
from frontier.subjects import SUBJECTS, Subject

SCRIPTS = Path(__file__).resolve().parent / "peers"
PLAIN, EAGER, SCRIPTED = "plain ONNX Runtime fp32", "PyTorch fp32", "TorchScript fp32"
OURS = "recipe, runtime: {}"
_SHOWN = 300
_SEED = 15


@dataclass(frozen=True)
class Peer:
    """A peer's model: the script that makes it, the option that names its interpreter, and how to install the peer."""

    name: str
    family: str
    script: str
    option: str
    install: str
    arguments: tuple[str, ...] = ()
    limits: frozenset[str] = frozenset()
    """The kinds of subjects (text, tensors) or their names that the peer is for; empty for all."""


_OLIVE = "olive-ai requests torch transformers onnxscript datasets onnxruntime==1.31.1"
_OPTIMUM = "'optimum-onnx[onnxruntime]' onnxruntime==1.31.1 torch"
_INTEL = "'optimum-intel[openvino]' torch datasets 'huggingface-hub<2'"
_TEXT = frozenset({"text"})
PEERS = (
    Peer("Olive, dynamic int8", "olive", "olive_int8.py", "olive_python", _OLIVE, ("dynamic",)),
    Peer("Olive, static int8", "olive", "olive_int8.py", "olive_python", _OLIVE, ("static",), _TEXT),
    Peer(
        "Optimum, avx512_vnni int8", "optimum", "optimum_int8.py", "optimum_python", _OPTIMUM, ("avx512_vnni",), _TEXT
    ),
    Peer("Optimum, avx2 int8", "optimum", "optimum_int8.py", "optimum_python", _OPTIMUM, ("avx2",), _TEXT),
    Peer("Optimum Intel, OpenVINO int8", "optimum-intel", "optimum_intel_int8.py", "intel_python", _INTEL, (), _TEXT),
    Peer("OpenVINO, NNCF default", "openvino", "openvino_int8.py", "", "'.[openvino]'", ("default",)),
    Peer(
        "OpenVINO, tuned by hand",
        "openvino",
        "openvino_int8.py",
        "",
        "'.[openvino]'",
        ("tuned",),
        frozenset({"minilm"}),
    ),
    Peer("ONNX Runtime, quantize_dynamic", "onnxruntime", "onnxruntime_int8.py", "", "'.[cpu]'", ("dynamic",)),
    Peer("ONNX Runtime, quantize_static", "onnxruntime", "onnxruntime_int8.py", "", "'.[cpu]'", ("static",)),
)


class Building:
    """The folder with all models of one subject. What is there is not built again, except by `recipe build`."""

    def __init__(self, folder: Path, subject: Subject, again: Sequence[str], isa: str | None = None) -> None:
        """`isa` is the `target.isa` of our recipes; None for recipes without it."""
        self.folder, self.again, self.isa = folder, again, isa
        self._project = folder / "project"
        program.project(self._project)
        self.subject = self._with_weights(subject) if subject.random else subject
        (folder / "models").mkdir(exist_ok=True)
        self.exported: Path | None = None

    def _with_weights(self, subject: Subject) -> Subject:
        """Write the model with random weights, and return the subject with the model's folder as its source."""
        out = self._project / "weights"
        if not out.is_dir():
            out.mkdir()
            tokenizer = str(SUBJECTS["minilm"].path)
            given = {"out": str(out), "seed": _SEED, "config": subject.random, "tokenizer": tokenizer}
            request = self.folder / "random.json"
            request.write_text(json.dumps({**given, "sizes": dict(subject.sizes_of_config or {})}))
            subprocess.run([sys.executable, str(SCRIPTS / "random_model.py"), str(request)], check=True)
        return replace(subject, source=str(out))

    def ours(self, runtime: str, *, fixed: Sequence[str], samples: Path, calibration: Path | None) -> Contender:
        """Build the subject with `recipe build` up to the validated model, and return that model."""
        from engine import api
        from engine.runtimes.execution import Execution

        name = OURS.format(runtime)
        recipe = self._project / "recipes" / f"{self.subject.name}-{runtime}.yaml"
        text = self.subject.recipe(
            recipe.stem, runtime, fixed=fixed, samples=samples, calibration=calibration, isa=self.isa
        )
        recipe.write_text(text)
        command = [*program.command(), "build", str(recipe), "--to", "validate", "--json"]
        done = subprocess.run(command, cwd=self._project, env=program.environment(), capture_output=True, check=False)
        ends = [event for event in program.events(done.stdout) if event["event"] == "end"]
        paths = {event["job"]: event["path"] for event in ends if "path" in event}
        if "export" in paths:
            self.exported = Path(paths["export"]) / "model.onnx"
        elif self.subject.path.suffix == ".onnx":
            self.exported = self.subject.path  # no job exports what is ONNX already
        if done.returncode or "validate" not in paths:
            errors = [event["error"] for event in program.events(done.stdout) if event.get("error")]
            why = in_words(errors[-1]) if errors else done.stderr.decode("utf-8", "replace")[-_SHOWN:]
            absent = f"exit {done.returncode}: {' '.join(why.split())}"[:_SHOWN]
            return Contender(name, "ours", "ours", absent=absent)
        (variant,) = api.plan([recipe])
        execution = Execution.for_recipe(variant.loaded.recipe).model_dump(mode="json")
        return Contender(name, "ours", "ours", paths["validate"], options={"execution": execution})

    def plain(self) -> Contender:
        """Return the exported fp32 model, which ONNX Runtime runs with its defaults."""
        if self.exported is None:
            return Contender(PLAIN, "onnx", "fp32", absent="the model was not exported")
        return Contender(PLAIN, "onnx", "fp32", str(self.exported))

    def eager(self) -> Contender:
        """Return the original model in PyTorch."""
        options = {"class": self.subject.auto, "output": self.subject.output}
        return Contender(EAGER, "torch", "torch", str(self.subject.path), options=options)

    def scripted(self) -> Contender:
        """Trace the original model in PyTorch and freeze it."""
        peer = Peer(SCRIPTED, "torch", "torchscript.py", "", "torch transformers")
        auto, output = self.subject.auto, self.subject.output
        options = {"inputs": ["input_ids", "attention_mask"], "output": output}
        return replace(self._by(peer, Path(sys.executable), {"auto": auto, "output": output}), options=options)

    def peer(self, peer: Peer, python: Path | None, calibration: Path) -> Contender:
        """Have a peer build its int8 model, or say why there is none."""
        if python is None:
            option = peer.option.replace("_", "-")
            return Contender(
                peer.name, "onnx", peer.family, absent=f"not installed: pip install {peer.install}, then --{option}"
            )
        return self._by(peer, python, {"calibration": str(calibration)})

    def _by(self, peer: Peer, python: Path, more: Mapping[str, str]) -> Contender:
        folder = self.folder / "models" / "".join(letter if letter.isalnum() else "_" for letter in peer.name)
        answer = folder / "contender.json"
        if answer.is_file() and peer.name not in self.again:
            return Contender.read(answer)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        request = {
            "checkpoint": str(self.subject.path),
            "exported": str(self.exported) if self.exported else None,
            "out": str(folder),
            "task": self.subject.task or "feature-extraction",
            "kind": "tensors" if self.subject.images else "text",
            **more,
        }
        (folder / "request.json").write_text(json.dumps(request))
        command = [str(python), str(SCRIPTS / peer.script), str(folder / "request.json"), *peer.arguments]
        with (folder / "log.txt").open("wb") as log:
            done = subprocess.run(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, check=False)
        if done.returncode or not (folder / "answer.json").is_file():
            lines = (folder / "log.txt").read_text("utf-8", "replace").strip().splitlines()
            why = f"failed: {lines[-1] if lines else done.returncode}"
            return Contender(peer.name, "onnx", peer.family, absent=why[:_SHOWN])
        reply = json.loads((folder / "answer.json").read_text())
        contender = Contender(peer.name, reply["kind"], peer.family, reply["path"], reply["versions"])
        contender.write(answer)
        return contender


def in_words(error: object) -> str:
    """Return an error of a build's events as a sentence: what, the facts, the hint."""
    if not isinstance(error, Mapping):
        return str(error)
    return "; ".join(map(str, (error.get("what", ""), *error.get("facts", ()))))
