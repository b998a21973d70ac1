"""The paths that a recipe names: relative to the recipe's own file, inside the project, resolved to URIs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from engine.errors import RecipeError
from engine.recipe import near_files, path_ways
from engine.recipe.node import Node, put
from engine.recipe.outline import dotted
from engine.recipe.overrides import SET
from engine.recipe.schema import TIMM_PREFIXES
from engine.text import image_names, suggestions
from engine.text.display import reason_of, shown, shown_path
from engine.text.places import Position

if TYPE_CHECKING:
    from engine.recipe.path_ways import Mark

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+-]+):(.*)")
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_FORMS = {
    "hf": (re.compile(rf"{_PART}(/{_PART})?"), "hf:REPO, as in hf:sentence-transformers/all-MiniLM-L6-v2"),
    "python": (re.compile(rf"[A-Za-z_][A-Za-z0-9_.]*(/{_PART})*"), "python:PACKAGE/path/inside/it"),
    "timm": (re.compile(_PART), "timm:NAME, as in timm:resnet18.a1_in1k"),
}
_MODEL_FORMS = ("hf", "python", "timm")
_HUB = "hf:"
_TIMM, _TIMM_ON_HUB = TIMM_PREFIXES
_HUB_NAME = r"(?:(?:https?:)?(?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/)?([A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?)/?"
"""OWNER/NAME, or the NAME of an old model, alone or behind the hub's address."""
_NO_MODEL_NAMES = (".onnx", ".bin", ".pt", ".pth", ".safetensors", ".gguf", ".yaml", ".yml", ".json")
_OF_THE_WEB = ("http", "https", "file", "s3")
"""Common URI schemes that no field accepts: the hint lists the field's schemes and offers no similar one."""
_SAMPLES = (".jsonl", ".npz")
_OF_CHECKPOINTS = (".bin", ".json", ".safetensors")
"""The ends of the names of files that lie in the directory of a checkpoint."""
_OF_OTHERS = (".pt", ".pth", ".ckpt", ".h5", ".keras", ".pb", ".tflite", ".mlmodel", ".engine", ".plan", ".trt")
"""The ends of the names of files in which other tools keep models."""
_LIBRARY = r".+\.(so(\.[0-9]+)*|dll)"


class Bounds:
    """The folders that a recipe's paths may lead into: its project, and the folders that the user allows."""

    def __init__(self, project: Path, allowed: tuple[Path, ...]) -> None:
        self.project = project
        self.allowed = allowed
        self.resolutions: dict[tuple[Any, Position, Path], str] = {}
        """(path as written, place in the text, folder that it is relative to) -> URI, which variants share."""
        self.way: dict[str, Mark] = {}
        """Every folder and link on the way to a path that was read or checked, with its mark from before."""

    def walk(self, path: Path) -> None:
        """Add the way to a path to `way`, before the path is used; marks that were read earlier stay."""
        for place, mark in path_ways.way_to(str(path)).items():
            self.way.setdefault(place, mark)

    def check(self, path: Path, at: Position) -> None:
        """Raise RecipeError where `path`, after its symbolic links are resolved, leads out of the allowed folders."""
        self.walk(path)
        real = Path(os.path.realpath(path))
        if not any(real.is_relative_to(os.path.realpath(folder)) for folder in (self.project, *self.allowed)):
            raise RecipeError(
                f"the path {shown_path(path)} leads out of the project",
                at,
                facts=[f"it is {shown_path(real)}", f"the project is {self.project}"],
                hint=f"if that is meant, allow it on the command line: --allow-path {shown_path(real.parent)}",
            )


class PathField(NamedTuple):
    """A field of a recipe that may name a file or a folder, and the kinds of files that the field accepts."""

    path: tuple[str, ...]
    """The keys that lead to the field; `*` stands for all keys of a mapping and all items of a list."""
    forms: Sequence[str] = ()
    """The schemes of URIs that the field accepts, for example `hf`; the field accepts paths, too."""
    kind: Literal["model", "samples", "texts", "library", "file"] = "model"
    many: bool = False
    """True if the field of the recipe holds a list of paths, false if the field holds a single path."""

    @property
    def name(self) -> str:
        """The name by which error messages call the field of the recipe."""
        return dotted(self.path) if "*" not in self.path else self.path[-1]

    def is_called(self, name: str) -> bool:
        """Tell whether the dotted path `name` matches `self.path`, which may contain `*`."""
        pattern = "[.]".join(".+" if segment == "*" else re.escape(segment) for segment in self.path)
        return re.fullmatch(pattern, name) is not None


_WARMUP = ("model_warmup", "*", "inputs", "*", "input_data_file")
PATH_FIELDS = (
    PathField(("model", "source"), _MODEL_FORMS),
    PathField(("model", "tokenizer"), ("hf", "python")),
    PathField(("validate", "samples"), ("python",), "samples"),
    PathField(("validate", "perplexity", "text"), kind="file"),
    PathField(("calibrate", "samples"), ("python",), "samples"),
    PathField(("bench", "samples"), ("python",), "texts"),
    PathField(("tensorrt", "plugins"), kind="library", many=True),
    PathField(("tensorrt", "timing_cache"), kind="file"),
    PathField(("package", "triton", *_WARMUP), kind="file"),
    PathField(("package", "triton", "models", "*", *_WARMUP), kind="file"),
)


def resolved(root: Node, bounds: Bounds, home: Path, *, must_exist: bool = True) -> Node:
    """Return the recipe with URIs `file:/absolute/path` instead of paths, without symbolic links.

    A path in a YAML file is relative to the folder of that YAML file. A path in an argument of the command line is
    relative to `home`, the folder of the recipe file. If a file that the recipe names is missing, RecipeError is raised
    unless `must_exist` is false.
    """
    for each, path, node in _named(root):
        folder = _folder_of(node, home)
        place = (node.value, node.at, folder)
        if place not in bounds.resolutions:
            bounds.resolutions[place] = _uri(each, node, bounds, folder, must_exist=must_exist)
        uri = bounds.resolutions[place]
        root = put(root, path, Node(uri, node.at, written=node.written))
    return root


def _named(root: Node) -> Iterator[tuple[PathField, tuple[str, ...], Node]]:
    """Yield each value of a recipe that names a file or a source, with the value's field and path in the recipe."""
    for each in PATH_FIELDS:
        pattern = (*each.path, "*") if each.many else each.path
        for path, node in _all(root, (), pattern):
            if isinstance(node.value, str):
                yield each, path, node


def _all(node: Node | None, above: tuple[str, ...], pattern: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield every value at `pattern`, a path that may contain `*`, with the value's own path."""
    if node is None:
        return
    if not pattern:
        yield above, node
        return
    head, rest = pattern[0], pattern[1:]
    for segment in _segments(node) if head == "*" else [head]:
        yield from _all(node.child(segment), (*above, segment), rest)


def _segments(node: Node) -> Sequence[str]:
    """Return the keys of a YAML mapping, or the indices of a YAML list, as texts."""
    if node.mapping is not None:
        return list(node.mapping)
    return [str(index) for index in range(len(node.items or ()))]


def _folder_of(node: Node, home: Path) -> Path:
    """Return the folder that a path is relative to: the folder of its YAML file; for a path of `--set`, `home`."""
    return home if node.at.file == SET else Path(node.at.file).parent


def portable_name(root: Node, uri: str, project: Path, home: Path) -> str | None:
    """Return a name of the source `uri` that is the same on every machine, or None for a source not in the recipe.

    It is a path from the project's root, or the absolute path by which a recipe names a file outside the project.
    """
    for _, _, node in _named(root):
        if node.value != uri:
            continue
        if not uri.startswith("file:"):
            return uri
        folder = os.path.relpath(os.path.realpath(_folder_of(node, home)), project)
        path = Path(os.path.normpath(os.path.join(folder, node.written)))
        return (path.relative_to(project) if path.is_relative_to(project) else path).as_posix()
    return None


def _uri(field: PathField, node: Node, bounds: Bounds, folder: Path, *, must_exist: bool) -> str:
    source = str(node.value)
    name = field.name

    def wrong(what: str, hint: str = "") -> RecipeError:
        return RecipeError(f"`{name}` {what}", node.at, hint=hint)

    if match := _SCHEME.fullmatch(source):
        return _remote(field, match[1], match[2], node.at)
    if not source.strip() or source.startswith("~"):
        raise wrong("is no path: ~ and empty text name no file", "write the path from the recipe's folder")
    path = folder / source
    bounds.check(path, node.at)
    if must_exist or os.path.exists(path):
        _check_kind(field, path, source, wrong)
    return f"file:{_absolute(path)}"


def _check_kind(field: PathField, path: Path, source: str, wrong: Callable[..., RecipeError]) -> None:
    """Raise RecipeError where no file or folder is at `path`, or `field` does not accept the kind of file at `path`."""
    try:
        path.stat()
    except FileNotFoundError:
        on_hub = _hub_hint(source) if field.kind == "model" else ""
        hint = "; ".join(filter(None, (near_files.of_source(source, path), on_hub)))
        raise wrong(f"names {shown_path(path)}, which is not there", hint) from None
    except OSError as error:
        raise wrong(f"names {shown_path(path)}, which cannot be read: {reason_of(error)}") from None
    of_samples = field.kind in ("samples", "texts")
    if of_samples and path.suffix in _SAMPLES and not path.is_file():
        raise wrong(f"names {shown_path(path)}, which is {'a directory' if path.is_dir() else 'no regular file'}")
    is_images = path.is_dir() or (path.is_file() and image_names.is_image(path.name))
    if of_samples and path.suffix not in _SAMPLES and not (is_images and field.kind == "samples"):
        raise wrong(
            f"names {shown_path(path)}, which is {'no file of texts' if is_images else 'no samples file'}",
            'samples are a .jsonl file, with a line such as {"text": "a text"} for each, or an .npz file'
            + ('; of images a folder, a file, or lines {"image": path}' if field.kind == "samples" else ""),
        )
    if field.kind == "library" and not (re.fullmatch(_LIBRARY, path.name) and path.is_file()):
        raise wrong(f"names {shown_path(path)}, which is no library", "a library of plugins is a file: libplugins.so")
    if field.kind == "file" and not path.is_file():
        raise wrong(f"names {shown_path(path)}, which is no file")
    if field.kind == "model" and not path.is_dir() and not path.is_file():
        raise wrong(f"names {shown_path(path)}, which is neither a file nor a directory")
    if field.path == ("model", "source") and path.is_dir() and path.suffix.lower() == ".onnx":
        raise wrong(
            f"names {shown_path(path)}, a directory that is called like a file", "rename it: .onnx means a file"
        )
    if field.path == ("model", "source") and path.is_file() and path.suffix != ".onnx":
        raise wrong(f"names the file {shown(path.name)}; a model is a directory or an .onnx file", _other_source(path))


def _other_source(path: Path) -> str:
    """Return the hint for a file that is no source of a model."""
    if path.suffix.lower() == ".onnx":
        return "rename it: the name of an ONNX file ends in .onnx"
    if path.suffix in _OF_CHECKPOINTS:
        return "name the directory around it"
    if path.suffix.lower() in _OF_OTHERS:
        return "export it to ONNX, or name a directory that save_pretrained() wrote"
    if path.suffix == ".gguf":
        return suggestions.FROM_GGUF
    return "name a directory with config.json and the weights, or an .onnx file"


def _absolute(path: Path) -> Path:
    # A file keeps its own name: `model.onnx` may be a link to a file without a suffix, with further files beside it.
    if path.is_dir() or path.name == "..":
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(path.parent), path.name)


def _remote(field: PathField, scheme: str, rest: str, at: Position) -> str:
    name = field.name
    if scheme not in field.forms:
        hint = _hub_hint(f"{scheme}:{rest}") if "hf" in field.forms else ""
        hint = f"write the path: /{shown(rest.lstrip('/'))}" if scheme == "file" else hint
        raise RecipeError(f"`{name}` cannot be read from {scheme}:", at, hint=hint or _schemes(field, scheme))
    form, example = _FORMS[scheme]
    if not form.fullmatch(rest) or ".." in rest.split("/"):
        source, sign, revision = rest.partition("@")
        pinned = (
            f"`source: {scheme}:{source}` and `revision: {shown(revision)}`" if sign and form.fullmatch(source) else ""
        )
        raise RecipeError(f"`{name}` is no {scheme}: source: {shown(rest)!r}", at, hint=f"write {pinned or example}")
    return f"{scheme}:{rest}"


def _schemes(field: PathField, scheme: str) -> str:
    """Return the hint for an unknown scheme: a similar scheme, or all schemes that the field accepts."""
    near = suggestions.nearest(scheme, field.forms) if scheme.lower() not in _OF_THE_WEB else []
    if near:
        return suggestions.did_you_mean(f"`{near[0]}`")
    allowed = ", ".join(f"{form}:" for form in field.forms)
    return f"a path, or one of {allowed}" if allowed else "name a path"


def _hub_hint(source: str) -> str:
    """Return how a recipe names the model of the hub that `source` may mean; "" where `source` looks like no model."""
    plain, sign, revision = source.partition("@")
    name = re.fullmatch(_HUB_NAME, plain)
    if name is None or name[1].endswith(_NO_MODEL_NAMES):
        return ""
    pinned = f" with `revision: {shown(revision)}`" if sign else ""
    return f"a model of the Hugging Face hub is `hf:{shown(name[1])}`{pinned}"


def hub_name(source: str) -> str:
    """Return the name of a source on the hub: `timm:NAME` is the repository `hf:timm/NAME`."""
    return source.replace(_TIMM, _TIMM_ON_HUB, 1) if source.startswith(_TIMM) else source


def is_on_hub(source: str) -> bool:
    """Tell whether a source is a repository on the hub."""
    return hub_name(source).startswith(_HUB)
