"""Image samples: a folder of image files, one image file, or a .jsonl file whose lines name image files."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.checkpoints import weights
from engine.kit.inputs import drawn_images, samples, tensor_samples
from engine.kit.inputs.cases import LABEL
from engine.system import regular
from engine.text import image_names

if TYPE_CHECKING:
    from engine.kit.onnx.onnx_files import Input

IMAGE, TEXTS = "image", "texts"
"""The names of the fields of a line that name an image file, and the texts that a zero-shot classifier chooses from."""
FORMS = 'each line is {"image": PATH}, optionally with "label" and, for zero-shot classification, "texts": [...]'
_FIELDS = frozenset({IMAGE, TEXTS, LABEL})
_MADE = ((224, 224), (300, 200), (160, 240), (97, 131), (640, 480), (256, 256), (33, 48), (384, 384))
"""Width and height of each built-in image."""


@dataclass(frozen=True)
class SampleImage:
    """One image file, with the expected class by its number or name, and the texts that it is compared with."""

    name: str
    path: Path | None = None
    label: int | str | None = None
    texts: tuple[str, ...] = ()
    shown: str = ""
    """The file's name from the samples' folder, as reports show it."""
    made: bytes = b""
    """The file's content where it is built in."""

    def content(self) -> bytes:
        """Return the bytes of the image file. Raises StepError where it cannot be read."""
        if self.path is None:
            return self.made
        try:
            return regular.read(self.path)
        except OSError as error:
            raise StepError(f"the image of {self.name} cannot be read", [f"{self.path}: {error.strerror}"]) from error

    def refuse_unreadable(self) -> None:
        """Raise StepError where Pillow, if it is installed, cannot read the header of the image file."""
        try:
            from PIL import Image
        except ImportError:
            return
        try:
            Image.open(io.BytesIO(self.content()) if self.path is None else self.path).close()
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise self.unfit(error) from error

    def unfit(self, error: Exception) -> StepError:
        """Return the error for a file that cannot become a model's input; `error` says why."""
        if self.path is not None:
            weights.refuse_pointer(self.path)
        return StepError(f"the image of {self.name} cannot be used", [self.shown, str(error).removeprefix("IMAGE: ")])


def are_images(path: Path) -> bool:
    """Whether samples are image files, by the name of the path or the first line of a `.jsonl` file."""
    if path.is_dir() or path.suffix != ".jsonl":
        return path.is_dir() or image_names.is_image(path.name)
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
    return b'"image"' in first and IMAGE in samples.fields_of(path, 1, first.decode("utf-8-sig", "replace"))


def read(path: Path, texts: Sequence[str] = ()) -> list[SampleImage]:
    """Return the images of samples; `texts` are compared with each image whose line names no texts.

    In a folder, the name of a folder around an image is the name of its class. Raises StepError for samples that name
    no image, or name one that is not there.
    """
    if path.suffix == ".jsonl" and path.is_file():
        return [_of_line(path, *line, tuple(texts)) for line in samples.lines(path)]
    names = listing(path)[0] if path.is_dir() else [path.name]
    folder = path if path.is_dir() else path.parent
    return [
        SampleImage(name, folder / name, next(iter(name.split("/")[:-1]), None), tuple(texts), name) for name in names
    ]


def listing(folder: Path) -> tuple[list[str], list[Path]]:
    """Return the names of the image files in a folder and in the folders of classes in it, sorted, and these folders.

    Raises StepError where there is no image, and where images lie deeper.
    """
    names: list[str] = []
    folders = [folder]
    try:
        for top in folders:  # grows meanwhile by the folders in `folder`
            for path in top.iterdir():
                if path.name.startswith("."):
                    continue
                if image_names.is_image(path.name):
                    names.append(path.relative_to(folder).as_posix())
                elif path.is_dir():
                    _refuse_deep(folder, path)
                    folders.append(path)
    except OSError as error:
        raise StepError(f"the folder {folder} cannot be read", [str(error.strerror)]) from error
    if not names:
        raise StepError(f"there is no image file in {folder}", [f"image files: {', '.join(image_names.SUFFIXES)}"])
    strange = [name for name in names if not name.isprintable()]
    if strange:
        raise StepError(f"the name of an image file in {folder} is no printable text: {strange[0]!r}", hint="rename it")
    return sorted(names), sorted(folders)


def named(path: Path) -> dict[str, Path]:
    """Return the image files that the lines of a `.jsonl` file name, by their names there; {} for samples of texts."""
    return {each.shown: each.path for each in read(path) if each.path is not None} if are_images(path) else {}


def built_in(texts: Sequence[str] = (), *, seed: int = 0) -> list[SampleImage]:
    """Return images that need no files, for a model without samples; another seed gives others."""
    return [
        SampleImage(f"built-in {number}", texts=tuple(texts), shown=f"{width} x {height} pixels", made=content)
        for number, (width, height) in enumerate(_MADE, 1)
        for content in [drawn_images.png(height, width, seed=seed * len(_MADE) + number)]
    ]


def not_taken(specs: Mapping[str, Input]) -> StepError:
    """Return the error for samples of images where the model takes no images, or nothing says how they are prepared."""
    return StepError(
        "the samples are images, and nothing says how an image becomes the model's input",
        [f"it takes {tensor_samples.describe(spec)}" for spec in specs.values()],
        "say it with preprocess: {size: ...} in the recipe; or give samples as texts (.jsonl) or as tensors (.npz)",
    )


def _refuse_deep(folder: Path, path: Path) -> None:
    if path.parent != folder:
        raise StepError(
            f"{path.relative_to(folder)} lies too deep in the samples {folder.name}",
            hint="images lie in the folder itself, or in a folder in it that has the name of their class",
        )


def _of_line(path: Path, number: int, line: str, texts: tuple[str, ...]) -> SampleImage:
    """Return the image that a line of a `.jsonl` file names. Raises StepError."""
    where, fields = f"{path.name}:{number}", samples.fields_of(path, number, line)
    name, own = fields.get(IMAGE), fields.get(TEXTS, [])
    unknown = sorted(set(fields) - _FIELDS)
    if unknown or not isinstance(name, str) or not name.isprintable() or not name:
        facts = [f"unknown: {', '.join(unknown)}"] if unknown else [f"it has: {', '.join(fields) or 'nothing'}"]
        raise StepError(f"{where} names no usable image", [*facts, line[:80]], FORMS)
    if not isinstance(own, list) or not all(isinstance(text, str) and text for text in own):
        raise StepError(f"{where} has texts that are no list of texts", [line[:80]], FORMS)
    posix = PurePosixPath(name)
    if posix.is_absolute() or ".." in posix.parts:
        hint = f"put {path.name} into the folder of the images, or into one above it"
        raise StepError(f"{where} names an image outside of the folder of {path.name}", [name], hint)
    image = path.parent / posix
    if not image.is_file():
        raise StepError(f"{where} names an image that is not there", [str(image)])
    return SampleImage(where, image, samples.label(where, fields), tuple(own) or texts, posix.as_posix())


def label_of(image: SampleImage, classes: Mapping[str, int]) -> int | None:
    """Return the number of an image's class, by its number, by its name, or by its text among those of the image.

    A folder that is called like no class gives no label. Raises StepError for such a name in a line.
    """
    label = image.label
    if not isinstance(label, str):
        return label
    if label in image.texts:
        return image.texts.index(label)
    if label in classes:
        return classes[label]
    if image.name == image.shown:  # a folder around the image
        return int(label) if label.isdecimal() else None
    raise StepError(
        f"the label {label!r} of {image.name} is none of the model's classes",
        [f"the classes: {', '.join(image.texts or classes) or 'none'}"],
        "give labels by their numbers",
    )
