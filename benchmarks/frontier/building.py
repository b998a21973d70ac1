"""Building: our packages by `recipe build`, and the peers' models by scripts in the peers' own environments."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import recipe_program as program

from frontier import environments
from frontier.contenders import Contender
from frontier.subjects import SUBJECTS, Subject

SCRIPTS = Path(__file__).resolve().parent / "peers"
PLAIN, EAGER, SCRIPTED = "plain ONNX Runtime fp32", "PyTorch fp32", "TorchScript fp32"
COMPILED = "torch.compile fp32"
OURS = "recipe, runtime: {}"
_SHOWN = 300
_SEED = 15


@dataclass(frozen=True)
class Peer:
    """A peer's model: the script that makes it, and the environment in which it runs; empty for this one."""

    name: str
    family: str
    script: str
    environment: str
    arguments: tuple[str, ...] = ()
    limits: frozenset[str] = frozenset()
    """The kinds of subjects (text, tensors) or their names that the peer is for; empty for all."""


_TEXT = frozenset({"text"})
_ST = "sentence_transformers_model.py"
PEERS = (
    Peer("Olive, dynamic int8", "olive", "olive_model.py", "olive", ("dynamic",)),
    Peer("Olive, static int8", "olive", "olive_model.py", "olive", ("static",), _TEXT),
    Peer("Optimum, avx512_vnni int8", "optimum", "optimum_model.py", "optimum", ("avx512_vnni",), _TEXT),
    Peer("Optimum, avx2 int8", "optimum", "optimum_model.py", "optimum", ("avx2",), _TEXT),
    Peer("Optimum Intel, OpenVINO int8", "optimum-intel", "optimum_intel_model.py", "optimum-intel", (), _TEXT),
    Peer("sentence-transformers, ONNX int8", "optimum", _ST, "optimum", ("onnx", "int8"), _TEXT),
    Peer("sentence-transformers, OpenVINO int8", "optimum-intel", _ST, "optimum-intel", ("openvino", "int8"), _TEXT),
    Peer("TorchScript, dynamic int8", "torch.ao", "torchscript.py", "", ("int8",), _TEXT),
    Peer("OpenVINO, NNCF default", "openvino", "openvino_int8.py", "", ("default",)),
    Peer("OpenVINO, tuned by hand", "openvino", "openvino_int8.py", "", ("tuned",), frozenset({"minilm"})),
    Peer("ONNX Runtime, quantize_dynamic", "onnxruntime", "onnxruntime_int8.py", "", ("dynamic",)),
    Peer("ONNX Runtime, quantize_static", "onnxruntime", "onnxruntime_int8.py", "", ("static",)),
)
"""The peers' int8 models."""
FP32_PEERS = (
    Peer(SCRIPTED, "torch", "torchscript.py", "", ("fp32",)),
    Peer("Optimum, O2", "optimum", "optimum_model.py", "optimum", ("O2",)),
    Peer("Optimum, O3", "optimum", "optimum_model.py", "optimum", ("O3",)),
    Peer("Olive, fusion", "olive", "olive_model.py", "olive", ("fp32",)),
    Peer("sentence-transformers, PyTorch", "torch", _ST, "optimum-intel", ("torch", "fp32")),
    Peer("sentence-transformers, ONNX", "optimum", _ST, "optimum", ("onnx", "fp32")),
    Peer("sentence-transformers, OpenVINO", "optimum-intel", _ST, "optimum-intel", ("openvino", "fp32")),
)
"""The peers' models that compute in fp32, for texts."""


class Building:
    """The folder with all models of one subject. What is there is not built again, except by `recipe build`."""

    def __init__(
        self,
        folder: Path,
        subject: Subject,
        again: Sequence[str],
        *,
        isa: str | None = None,
        environments: Path = environments.FOLDER,
        threads: int | None = None,
        choose: bool = False,
    ) -> None:
        """`isa` is the `target.isa` of our recipes; None for recipes without it. `environments` are those of peers.

        Our recipes state `threads`, if given. With `choose`, a build measures the runtimes of `auto` again.
        """
        self.folder, self.again, self.isa, self._environments = folder, again, isa, environments
        self._threads, self._choose = threads, choose
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

    def ours(self, runtime: str, *, precision: str = "int8", **fields: Any) -> Contender:
        """Build the subject with `recipe build` up to the validated model; `fields` are those of `Subject.recipe`."""
        recipe = self._project / "recipes" / f"{self.subject.name}-{precision}-{runtime}.yaml"
        fields |= {"precision": precision, "isa": self.isa, "threads": self._threads}
        recipe.write_text(self.subject.recipe(recipe.stem, runtime, **fields))
        ((_, contender),) = self.of_recipe(recipe, name=OURS.format(runtime))
        return contender

    def of_recipe(self, recipe: Path, name: str = "recipe {}") -> Iterator[tuple[str, Contender]]:
        """Build a recipe up to the validated models; yield the precision of each variant, and its model."""
        from engine import api
        from engine.runtimes.execution import Execution

        plan = api.plan([recipe])
        chooses = self._choose and any(each.loaded.recipe.target.runtime == "auto" for each in plan)
        again = ["--force", "measure-runtimes"] if chooses else []
        command = [*program.command(), "build", str(recipe), "--to", "validate", "--json", *again]
        done = subprocess.run(command, cwd=recipe.parent, env=program.environment(), capture_output=True, check=False)
        events = program.events(done.stdout)
        for variant in plan:
            of = variant.loaded.recipe
            called = name.format(of.name)
            ends = [event for event in events if event["event"] == "end" and event["recipe"] == of.name]
            paths = {event["job"]: event["path"] for event in ends if "path" in event}
            if "export" in paths:
                self.exported = Path(paths["export"]) / "model.onnx"
            elif self.subject.path.suffix == ".onnx":
                self.exported = self.subject.path  # no job exports what is ONNX already
            if "validate" in paths:
                execution = Execution.for_recipe(of).model_dump(mode="json")
                built = Contender(called, "ours", "ours", paths["validate"], options={"execution": execution})
            else:
                errors = [event["error"] for event in events if event.get("error")]
                why = in_words(errors[-1]) if errors else done.stderr.decode("utf-8", "replace")[-_SHOWN:]
                why = f"exit {done.returncode}: {' '.join(why.split())}"
                built = Contender(called, "ours", "ours", absent=why[:_SHOWN])
            yield of.precision, built

    def plain(self) -> Contender:
        """Return the exported fp32 model, which ONNX Runtime runs with its defaults."""
        return Contender(PLAIN, "onnx", "fp32", str(self.exported))

    def eager(self, *, compiled: bool = False) -> Contender:
        """Return the original model in PyTorch, as it is or compiled by inductor."""
        options = {"class": self.subject.auto, "output": self.subject.output, "compile": compiled}
        return Contender(COMPILED if compiled else EAGER, "torch", "torch", str(self.subject.path), options=options)

    def openvino(self) -> Contender:
        """Return the exported fp32 model in OpenVINO, which else computes in bf16 on CPUs that have it."""
        options = {"INFERENCE_PRECISION_HINT": "f32"}
        return Contender("OpenVINO, static shapes", "openvino", "openvino", str(self.exported), options=options)

    def peer(self, peer: Peer, calibration: Path | None = None) -> Contender:
        """Have a peer build its model, or say why there is none."""
        try:
            python = environments.python(peer.environment, self._environments) if peer.environment else None
        except environments.AbsentError as error:
            return Contender(peer.name, "onnx", peer.family, absent=str(error))
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
            "auto": self.subject.auto,
            "output": self.subject.output,
            "calibration": str(calibration),
        }
        (folder / "request.json").write_text(json.dumps(request))
        script = [str(SCRIPTS / peer.script), str(folder / "request.json"), *peer.arguments]
        with (folder / "log.txt").open("wb") as log:
            done = subprocess.run(
                [str(python or sys.executable), *script], cwd=folder, stdout=log, stderr=subprocess.STDOUT, check=False
            )
        if done.returncode or not (folder / "answer.json").is_file():
            lines = (folder / "log.txt").read_text("utf-8", "replace").strip().splitlines()
            why = f"failed: {lines[-1] if lines else done.returncode}"
            return Contender(peer.name, "onnx", peer.family, absent=why[:_SHOWN])
        reply = json.loads((folder / "answer.json").read_text())
        contender = Contender(peer.name, family=peer.family, python=str(python or ""), **reply)
        contender.write(answer)
        return contender


def in_words(error: object) -> str:
    """Return an error of a build's events as a sentence: what, the facts, the hint."""
    if not isinstance(error, Mapping):
        return str(error)
    return "; ".join(map(str, (error.get("what", ""), *error.get("facts", ()))))
