"""The type stubs of TensorRT 10, mended so that mypy reads them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

VERSION = "10.13.0.35.1"
_ANYTHING = "(self, *arguments: typing.Any, **named: typing.Any) -> typing.Any:"
_PACKAGES = ("tensorrt", "tensorrt_bindings")


def stubs(folder: Path) -> Path:
    """Write the stubs below `folder` and return it; skip, saying why, where they cannot be had."""
    source = _installed() or _downloaded(folder / "downloaded")
    for package in _PACKAGES:
        (folder / package).mkdir()
        for path in sorted((source / package).glob("*.pyi")):
            (folder / package / path.name).write_text(_mended(path.read_text("utf-8")), "utf-8")
    return folder


def members(text: str) -> dict[str, set[str]]:
    """Return the names that each class of a stub file has, those of its bases included."""
    tree = ast.parse(text)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}

    def of(name: str) -> set[str]:
        names: set[str] = set()
        for node in classes[name].body if name in classes else ():
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
        for base in classes[name].bases if name in classes else ():
            names |= of(ast.unparse(base))
        return names

    return {name: of(name) for name in classes}


def _installed() -> Path | None:
    try:
        distribution = metadata.distribution("tensorrt-stubs")
    except metadata.PackageNotFoundError:
        return None
    return Path(str(distribution.locate_file("")))


def _downloaded(folder: Path) -> Path:
    """Fetch the stubs alone: what they depend on is TensorRT itself."""
    package = f"tensorrt-stubs=={VERSION}"
    words = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), package]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        pytest.skip(f"{package} is not installed and cannot be fetched: {done.stderr.strip().splitlines()[-1:]}")
    return folder


def _mended(text: str) -> str:
    """Give what the generator of the stubs wrote in bad Python any signature, and `bool` back its meaning."""
    lines = re.sub(r"(?<=[ \[|])bool\b(?!: )", "builtins.bool", text).split("\n")
    while True:
        try:
            ast.parse("\n".join(lines))
        except SyntaxError as error:
            number = (error.lineno or 1) - 1
            lines[number] = re.sub(r"^( *def \w+)\(.*$", rf"\1{_ANYTHING}", lines[number])
        else:
            break
    place = next(number for number, line in enumerate(lines) if line.startswith("from __future__")) + 1
    return "\n".join([*lines[:place], "import builtins", *lines[place:]])
