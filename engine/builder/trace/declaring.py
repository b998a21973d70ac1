"""Gaps: reads that no row of a key covers, each with a hint that says how a step declares it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from engine.builder.code import modules
from engine.builder.trace.reads import Kind, Read
from engine.events import Gap

FACTS: Mapping[str, str] = {"the number of CPUs": "cpu.count"}
"""The fact that stands for a property of the machine."""


def gap(read: Read, module: str, name: str) -> Gap:
    """Return a read that no row covers as a gap; `module` is the step's module, `name` the read's portable name."""
    ours = modules.is_ours(module)
    hint = "this is an error in recipe itself: please report it" if ours else _hint(read, module, name)
    return Gap(read.kind.value, name, _line(read.at, module), hint)


def _line(at: str, module: str) -> str:
    """Return a line of the step's code relative to the folder that holds the step's package."""
    around = os.path.dirname(_package(module))
    return os.path.relpath(at, around) if around and at.startswith(around + os.sep) else at


def _package(module: str) -> str:
    """Return the folder of a module's top-level package, or the file of a module without a package."""
    file = modules.file_of(modules.package_of(module))
    if file is None:
        return ""
    return str(file.parent if file.name == "__init__.py" else file)


def _hint(read: Read, module: str, name: str) -> str:
    match read.kind:
        case Kind.FILE | Kind.FOLDER:
            return _hint_for_path(read, module)
        case Kind.PACKAGE:
            return f'declare it in the step: tools = ("{name.removeprefix("metadata of ")}",)'
        case Kind.VARIABLE:
            return f'declare it in the step: variables = ("{name}",)'
        case Kind.MACHINE:
            fact = FACTS.get(name)
            return f'declare it in the step: facts = ("{fact}",)' if fact else "make it an option of the step"
        case Kind.PROGRAM:
            return "declare a fact whose value is the program's version and whose paths name the program"
        case Kind.NETWORK:
            return "let a field of the type Source name what is fetched"


def _hint_for_path(read: Read, module: str) -> str:
    package = _package(module)
    folder = package if os.path.isdir(package) else os.path.dirname(package)
    code = read.at.rpartition(":")[0] or package
    if not read.name.startswith(folder + os.sep):
        return "let a field of the type Source name it"
    if read.name.endswith(".py") and read.kind is Kind.FILE:
        inside = os.path.relpath(read.name, os.path.dirname(package) if os.path.isdir(package) else folder)
        name = inside.removesuffix(".py").removesuffix("/__init__").replace(os.sep, ".")
        return f'return "{name}" from the step\'s method code_used'
    where = os.path.relpath(read.name, os.path.dirname(code))
    return f'declare it in {os.path.basename(code)}: data = ("{where}{"/" if read.kind is Kind.FOLDER else ""}",)'
