"""The projects that are mutated: each small, built once, and copied for every mutation."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import models
import numpy as np
import onnx
import tiny_project
from mutations.actions_around import distribution
from mutations.workplace import Workplace

ROOT = Path(__file__).parent.parent.parent

BERT = tiny_project.RECIPE
SENTENCES = """\
name: sentences
model: {source: model}
validate: {samples: samples.jsonl, agreement: 0.1}
"""
ONNX = """\
name: net
model: {source: net/net.onnx}
profiles:
  - {batch: [1, 2, 4]}
bench: {shapes: [{batch: 2}]}
"""
TENSORS = """\
name: net
model: {source: net/net.onnx}
profiles:
  - {batch: [1, 2, 4]}
validate: {samples: samples.npz}
"""
PHOTOS = """\
name: photos
model: {source: net/net.onnx, labels: [cat, dog, bird]}
preprocess: {size: 8}
profiles: [{batch: [1, 2, 8]}]
validate: {samples: photos}
"""
SEVERAL = """\
name: net
model: {source: net/net.onnx}
target: {runtime: auto}
profiles: [{batch: [1, 2, 4]}]
validate: {cosine: 0.5, variation: 0.1, max_abs: 100}
bench: {shapes: [{batch: 2}], threads: 1}
"""
GPU = """\
name: net
model: {source: net/net.onnx}
target: {device: T4, runtime: tensorrt}
precision: fp16
profiles: [{batch: [1, 2, 4]}]
"""
AMPERE = """\
name: net
model: {source: net/net.onnx}
target: {device: A10, runtime: tensorrt}
profiles: [{batch: [1, 2, 4]}]
"""
BASE = """\
model: {source: net/net.onnx}
profiles: [{batch: [1, 2, 4]}]
validate: {cosine: 0.5, agreement: 0.1, max_abs: 100}
"""
MATRIX = """\
extends: base.yaml
name: net-${precision}-${package.triton.max_batch_size}
matrix:
  precision: [fp32, int8]
  package.triton.max_batch_size: [4, 2]
"""
STAMPED = """\
name: stamped
model: {source: net/net.onnx}
profiles: [{batch: [1, 2, 4]}]
steps: {stamp: {text: hello}}
"""
STEP = '''"""Stamps a text onto a model."""

from pathlib import Path
from typing import ClassVar

from engine.step import Step
from stamp_package import words


class Stamp(Step):
    """Stamps a text onto a model."""

    makes: ClassVar[str] = "stamped"
    after: ClassVar[str] = "shape-infer"
    tools: ClassVar[tuple[str, ...]] = ("onnx",)
    text: str
    often: int = 1

    def run(self, out: Path, *, model: Path):
        import onnx

        loaded = onnx.load(model / "model.onnx")
        loaded.doc_string = words.greeting(self.text, self.often)
        onnx.save(loaded, out / "model.onnx")
        return {"stamped": self.text}
'''
WORDS = '''"""The words of a stamp."""

from pathlib import Path

data = ("greeting.txt",)


def greeting(text, often):
    return " ".join([(Path(__file__).parent / "greeting.txt").read_text(), *[text] * often])
'''
SAMPLES = "".join(json.dumps({"text": text}) + "\n" for text in ("a good film", "the plot was bad", "where is it?"))


def make(name: str, folder: Path) -> Workplace:
    """Make a project, build it, and return it. Raises KeyError for a name that is none."""
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    place = Workplace(folder)
    _MAKERS[name](place)
    run = place.build()
    assert run.code in (0, 3), run.talk
    return place


def copy_of(source: Workplace, folder: Path) -> Workplace:
    """Return a copy of a built project in another place."""
    shutil.copytree(source.folder, folder, symlinks=True)
    environment = {name: value.replace(str(source.folder), str(folder)) for name, value in source.environment.items()}
    return Workplace(folder, environment)


def _bert(place: Workplace) -> None:
    shutil.copytree(tiny_project.built(), place.folder, copy_function=shutil.copy2, dirs_exist_ok=True)


def _sentences(place: Workplace) -> None:
    """A sentence model: its modules say how the vectors of words become one."""
    models.checkpoint(place.path("model"), "bert", task="feature-extraction")
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(modules)
    ]
    place.path("model/modules.json").write_text(json.dumps(listed))
    place.path("model/sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 16}))
    place.path("model/1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    place.path("model/1_Pooling/config.json").write_text(json.dumps(pooling))
    place.path("samples.jsonl").write_text(SAMPLES)
    place.path("r.yaml").write_text(SENTENCES)


def _net(place: Workplace, recipe: str) -> None:
    """A network of two linear layers whose weights lie in a file of their own."""
    import graphs

    place.path("net").mkdir()
    onnx.save(
        graphs.layers(), place.path("net/net.onnx"), save_as_external_data=True, location="net.data", size_threshold=64
    )
    place.path("r.yaml").write_text(recipe)


def _tensors(place: Workplace) -> None:
    _net(place, TENSORS)
    tensors(place.path("samples.npz"), seed=3)


def tensors(path: Path, *, seed: int) -> None:
    """Write samples of the network's input."""
    np.savez(path, x=np.random.default_rng(seed).standard_normal((4, 64)).astype("float32"))


def _photos(place: Workplace) -> None:
    """A network of images, and images of two classes."""
    import image_files

    place.path("net").mkdir()
    onnx.save(image_files.network(), place.path("net/net.onnx"))
    for label in ("cat", "dog"):
        image_files.write_photos(place.path(f"photos/{label}"), 2, seed=len(label) + ord(label[0]))
    place.path("r.yaml").write_text(PHOTOS)


def _matrix(place: Workplace) -> None:
    _net(place, MATRIX)
    place.path("base.yaml").write_text(BASE)


def _stamped(place: Workplace) -> None:
    import graphs

    place.path("net").mkdir()
    onnx.save(graphs.layers(), place.path("net/net.onnx"))
    place.path("r.yaml").write_text(STAMPED)
    site = place.path("site")
    distribution(site, "stamp-package", "1.0")
    (site / "stamp_package-1.0.dist-info" / "entry_points.txt").write_text(
        "[recipe.steps]\nstamp = stamp_package.step:Stamp\n"
    )
    package = site / "stamp_package"
    package.mkdir()
    for name, text in (("__init__.py", ""), ("step.py", STEP), ("words.py", WORDS), ("greeting.txt", "dear")):
        (package / name).write_text(text)
    place.put_first(site)


def _source(place: Workplace) -> None:
    """A network, built by a copy of the program's own source tree."""
    _bert(place)
    shutil.copytree(ROOT / "engine", place.path("src/engine"))
    inherited = place.environment.get("PYTHONPATH", "").split(os.pathsep)
    place.environment["PYTHONPATH"] = os.pathsep.join(
        [str(place.path("src")), *(entry for entry in inherited if entry and not (Path(entry) / "engine").is_dir())]
    )


def _with_task(place: Workplace) -> None:
    """Write the same project, with the task in the recipe."""
    _source(place)
    place.path("r.yaml").write_text(BERT.replace("source: model", "source: model, task: text-classification"))


_MAKERS: Mapping[str, Callable[[Workplace], None]] = {
    "bert": _bert,
    "sentences": _sentences,
    "net": lambda place: _net(place, ONNX),
    "several": lambda place: _net(place, SEVERAL),
    "gpu": lambda place: _net(place, GPU),
    "ampere": lambda place: _net(place, AMPERE),
    "tensors": _tensors,
    "photos": _photos,
    "matrix": _matrix,
    "stamped": _stamped,
    "source": _source,
    "task in recipe": _with_task,
}
"""What each project holds, by its name in the tables."""
