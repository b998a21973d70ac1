"""Image samples: a folder of image files, one image file, or a .jsonl file whose lines name image files."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from engine.errors import StepError
from engine.kit.checkpoints import weights
from engine.kit.inputs import drawn_images, samples
from engine.kit.inputs.cases import LABEL
from engine.system import regular
from engine.text import image_names

FORMS = 'each line is {"image": PATH}, optionally with "label" and, for zero-shot classification, "texts": [...]'
_FIELDS = frozenset({"image", "texts", LABEL})
_DRAWN = ((224, 224), (300, 200), (160, 240), (97, 131), (640, 480), (256, 256), (33, 48), (384, 384))
"""Height and width of drawn images."""


@dataclass(frozen=True)
class SampleImage:
    """One image file, with the expected class by its number or name, and the texts that it is compared with."""

    name: str
    texts: tuple[str, ...] = ()
    label: Any = None
    folder: str = ""
    """The name of the folder around the image, which is the class of an image without a label."""
    path: Path | None = None
    drawn: bytes = b""
    """The content of an image that is no file."""

    def content(self) -> bytes:
        """Return the bytes of the image file. Raises OSError."""
        return self.drawn if self.path is None else regular.read(self.path)

    def refuse_unreadable(self) -> None:
        """Raise StepError where Pillow cannot read the header of the file."""
        from PIL import Image

        try:
            Image.open(io.BytesIO(self.content())).close()
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise self.unfit(error) from error

    def unfit(self, error: Exception) -> StepError:
        """Return the error for a file that cannot become a model's input; `error` says why."""
        if self.path is not None:
            weights.refuse_pointer(self.path)
        return StepError(f"the image of {self.name} cannot be used", [f"{self.path}: {str(error).partition(' <')[0]}"])

    def number(self, classes: Mapping[str, int]) -> int | None:
        """Return the number of the image's class: of one of its texts, or else of one of the model's classes.

        A folder that is called like no class gives none. Raises StepError for a label that is no class.
        """
        known = {**classes, **{text: number for number, text in enumerate(self.texts)}}
        if self.label is None:
            return known.get(self.folder, int(self.folder) if self.folder.isdecimal() else None)
        number = known.get(str(self.label), self.label)
        if type(number) is int:
            return number
        what = f"the label {self.label!r} of {self.name} is none of the model's classes"
        raise StepError(what, [f"the classes: {', '.join(known) or 'none'}"], "give labels by their numbers")


def are_images(path: Path) -> bool:
    """Whether samples are image files, by the name of the path or the first line of a `.jsonl` file."""
    if path.is_dir() or path.suffix != ".jsonl":
        return path.is_dir() or image_names.is_image(path.name)
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
    return b'"image"' in first and "image" in samples.fields_of(path, 1, first.decode("utf-8-sig", "replace"))


def read(path: Path, texts: Sequence[str] = ()) -> list[SampleImage]:
    """Return the images of samples; `texts` are compared with each image whose line names no texts.

    Raises StepError for samples that name no image, or name one that is not there.
    """
    if path.suffix == ".jsonl" and path.is_file():
        return [_of_line(path, *line, tuple(texts)) for line in samples.lines(path)]
    if not path.is_dir():
        return [SampleImage(path.name, tuple(texts), path=path)]
    names, _ = listing(path)
    folders = ("/".join(name.split("/")[:-1]) for name in names)
    return [SampleImage(name, tuple(texts), None, own, path / name) for name, own in zip(names, folders, strict=True)]


def listing(folder: Path) -> tuple[list[str], list[Path]]:
    """Return the names of the image files in a folder and in the folders of classes in it, sorted, and these folders.

    Raises StepError where there is no image, and where images lie deeper.
    """
    names, folders = [], [folder]
    try:
        for top in folders:  # grows meanwhile by the folders in `folder`
            every = sorted(path for path in top.iterdir() if not path.name.startswith("."))
            names += [path.relative_to(folder).as_posix() for path in every if image_names.is_image(path.name)]
            folders += [path for path in every if not image_names.is_image(path.name) and path.is_dir()]
    except OSError as error:
        raise StepError(f"the folder {folder} cannot be read", [str(error.strerror)]) from error
    deep = [path for path in folders[1:] if path.parent != folder]
    if deep:
        hint = "images lie in the folder itself, or in a folder in it that has the name of their class"
        raise StepError(
            f"the folder {deep[0].relative_to(folder)} lies too deep in the samples {folder.name}", hint=hint
        )
    if not names:
        raise StepError(f"{folder} holds no image file", [f"image files: {', '.join(image_names.SUFFIXES)}"])
    for name in names:
        if not name.isprintable() or not (folder / name).is_file():
            fault = "is a link to nothing, or no file" if name.isprintable() else "has a name that is no printable text"
            raise StepError(f"an image in the samples {folder} {fault}", [repr(name)])
    return sorted(names), folders


def files(path: Path) -> tuple[dict[str, Path], list[Path]]:
    """Return the image files of a folder or those that lines name, by their names, and the folders that were read."""
    if path.is_dir():
        names, folders = listing(path)
        return {name: path / name for name in names}, folders
    if path.suffix != ".jsonl" or not path.is_file() or not are_images(path):
        return {}, []
    images = (image.path for image in read(path) if image.path is not None)
    return {each.relative_to(path.parent).as_posix(): each for each in images}, []


def drawn(texts: Sequence[str] = (), *, count: int = len(_DRAWN), seed: int = 0) -> list[SampleImage]:
    """Return images that need no files, for a model without samples; another seed gives others."""
    pictures = [
        drawn_images.png(*_DRAWN[number % len(_DRAWN)], seed=seed + number, is_grey=number % 4 == 1)
        for number in range(count)
    ]
    return [SampleImage(f"built-in {number}", tuple(texts), drawn=each) for number, each in enumerate(pictures, 1)]


def not_taken(*facts: str) -> StepError:
    """Return the error for samples of images where the model takes no images, or nothing says how they are prepared."""
    hint = "say it with preprocess: {size: ...} in the recipe; or give samples as texts (.jsonl) or as tensors (.npz)"
    facts = tuple(f"the model takes {fact}" for fact in facts)
    return StepError("the samples are images, and nothing says how they become the model's inputs", facts, hint)


def _of_line(path: Path, number: int, line: str, texts: tuple[str, ...]) -> SampleImage:
    """Return the image that a line of a `.jsonl` file names. Raises StepError."""
    where, fields = f"{path.name}:{number}", samples.fields_of(path, number, line)
    name, own = fields.get("image"), fields.get("texts", [])
    if not isinstance(name, str) or not name.isprintable() or not set(fields) <= _FIELDS:
        raise StepError(f"{where} names no usable image", [line[:80]], FORMS)
    if not isinstance(own, list) or not all(isinstance(text, str) and text for text in own):
        raise StepError(f"{where} has texts that are no list of texts", [line[:80]], FORMS)
    image = path.parent / name
    is_inside = not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts
    if not is_inside or not image.is_file():
        what = f"{where} names an image that is {'not there' if is_inside else 'elsewhere'}"
        raise StepError(what, [str(image)], f"images lie in the folder of {path.name}, or below it")
    return SampleImage(where, tuple(own) or texts, fields.get(LABEL), path=image)
