"""Reads a recipe file of limited size."""

from __future__ import annotations

import codecs
import io
import os
from pathlib import Path

from engine.errors import RecipeError
from engine.recipe import near_files
from engine.system.regular import NotRegularError, open_file
from engine.text import sizes
from engine.text.display import reason_of
from engine.text.places import Position, Text

MAX_BYTES = sizes.MIB
"""The largest recipe file in bytes: 1 MiB. Hand-written recipes have a few KiB."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WEIGHTS = "a file of weights", "`recipe new FOLDER` writes a recipe for the model whose folder has this file"
_ENGINE = "an engine", "a recipe says how an engine is built: `recipe new MODEL --device T4` writes one"
_OTHERS = {
    ".onnx": ("an ONNX model", "`recipe new {name}` writes a recipe for it"),
    ".safetensors": _WEIGHTS,
    ".bin": _WEIGHTS,
    ".pt": _WEIGHTS,
    ".pth": _WEIGHTS,
    ".plan": _ENGINE,
    ".engine": _ENGINE,
    ".trt": _ENGINE,
    ".pbtxt": ("a configuration of Triton", "`recipe new MODEL --from-pbtxt FILE` takes its settings over"),
}
"""What a file with such a suffix is instead of a recipe, and what its user may mean."""


def read(path: Path, name: str) -> Text:
    """Read a recipe file of at most 1 MiB in UTF-8, without a byte order mark at the start.

    Raises RecipeError where the file is too large, unreadable, or no regular file. A named pipe is an error, too,
    because a read from a pipe would wait for a writer.
    """
    return _decoded(_bytes_of(path, name), name)


def _bytes_of(path: Path, name: str) -> bytes:
    try:
        with io.BufferedReader(open_file(path)) as file:
            if path.suffix.lower() in _OTHERS:
                what, hint = _OTHERS[path.suffix.lower()]
                raise _whole_file(name, f"{name} is {what}; a recipe is a YAML file", hint.format(name=name))
            data = file.read(MAX_BYTES + 1)
            size = max(os.fstat(file.fileno()).st_size, len(data))
    except NotRegularError as error:
        raise _whole_file(
            name, f"{name} is {error.kind}; a recipe is a YAML file", near_files.in_folder(path)
        ) from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, name, error) from None
    if size > MAX_BYTES:
        what = f"the file has {size:,} bytes; a recipe has at most {MAX_BYTES:,}"
        raise _whole_file(name, what, hint="is this a recipe? Data belongs into a file that the recipe names")
    return data


def _decoded(data: bytes, name: str) -> Text:
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if b"\0" in data and not data.startswith(_UTF16):
            raise _whole_file(name, f"{name} is a binary file; a recipe is a YAML file") from None
        raise not_utf8(data, name, error, kind="file", hint="save it as UTF-8") from None
    return Text(name, content.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"))


def not_utf8(data: bytes, name: str, error: UnicodeDecodeError, *, kind: str, hint: str) -> RecipeError:
    """Return the error for a file whose bytes are not UTF-8, at the place of the first wrong byte."""
    what = f"the {kind} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
    return RecipeError(what, Text(name, data[: error.start].decode("utf-8")).position(error.start), hint=hint)


def _unreadable(path: Path, name: str, error: OSError | ValueError) -> RecipeError:
    if isinstance(error, FileNotFoundError):
        return _whole_file(name, f"there is no file {name}", hint=near_files.of_recipe(path))
    return _whole_file(name, f"{name} cannot be read: {reason_of(error)}")


def _whole_file(name: str, what: str, hint: str = "") -> RecipeError:
    return RecipeError(what, Position(Text(name, ""), 1, 1), hint=hint)
