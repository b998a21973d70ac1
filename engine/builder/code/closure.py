"""The import closure of a step: every module that its code can import, and the digest of all of them."""

# The closure covers this program and the Python package of the step; all other packages are tools. It begins at the
# step's module and at the modules that `Step.code_used` names, and follows each import statement at any depth. It has
# the `__init__.py` of each package on the way and the data files that modules declare. No judgement of what the code
# does is part of it. A worker that loads a module outside the closure fails its job (engine/builder/trace/coverage.py).

from __future__ import annotations

import ast
import gc
import importlib.util
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from engine import digest
from engine.builder.code import normal_form
from engine.builder.code.normal_form import Import, NormalForm
from engine.digest import Digest
from engine.errors import StepError
from engine.system import regular

if TYPE_CHECKING:
    from engine.step import Step

WORKER = "engine.builder.zygote_loader"
"""The module that a worker's process begins with: its closure is part of the code of every step."""
_OURS = "engine"
_LATE = "__getattr__"
"""The function with which a module imports a name when it is first used."""
_NOTHING = NormalForm("", (), ())
_PROGRAM = Path(__file__).parents[2]


@dataclass(frozen=True)
class Module:
    """A module: the digest of its code and data, and where its imports lead."""

    name: str
    digest: Digest
    form: NormalForm = _NOTHING
    before: Mapping[Path, os.stat_result] = field(default_factory=dict)
    """The module's file and its data, each with its `os.stat` result from before it was read."""


@dataclass(frozen=True)
class Code:
    """The digest of some code, and the files that were read to compute the digest."""

    digest: Digest
    modules: frozenset[str]
    before: Mapping[Path, os.stat_result]
    """The files of the modules, their data files and the folders that they declare as data, each with its `os.stat`
    result from before it was read."""

    @property
    def watched(self) -> tuple[Path, ...]:
        """What may change the code: its files, and the folders of its modules, in which a new module may appear.

        The folders of this program are left out: a no-op build watches all of them.
        """
        folders = dict.fromkeys(path.parent for path in self.before if not path.is_relative_to(_PROGRAM))
        return (*self.before, *folders)


def of_step(step: Step) -> Code:
    """Return the code that a step with its options runs, with the code of the worker.

    Raises StepError for declared data that is missing, and OSError.
    """
    from engine.step import Step

    kind = step.work_class()
    classes = (each.__module__ for each in kind.__mro__ if issubclass(each, Step))
    return of(kind.__qualname__, (*classes, *step.code_used(), WORKER))


@cache
def of(name: str, roots: tuple[str, ...]) -> Code:
    """Return the code that begins at the modules `roots`; `name` tells classes of one module apart."""
    with _uncollected():
        reached = [_read(each) for each in sorted(closure(roots))]
    rows = [("class", name), *((each.name, each.digest) for each in reached)]
    before = {path: row for each in reached for path, row in each.before.items()}
    return Code(digest.of_rows(rows), frozenset(each.name for each in reached), before)


def closure(roots: Iterable[str]) -> set[str]:
    """Return the names of all modules that the modules `roots` can import, of this program and of their packages."""
    packages = {_OURS, *map(_package_of, roots)}
    reached: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo += filter(None, [name.rpartition(".")[0]])  # Python imports the package around a module first
            todo += [_target(each) for each in _read(name).form.imports if _package_of(each.module) in packages]
    return reached


def forget() -> None:
    """Forget all modules, so that their files are read again."""
    for function in (of, _read, _target, _spec):
        function.cache_clear()
    _seen.clear()
    importlib.invalidate_caches()


def forget_changed() -> None:
    """Forget all modules if a file of one, or the names in its folder, have changed since it was read.

    A process may live for days. Each build in it calls this function before it looks at code.
    """
    if any(_state(path) != state for path, state in _seen.items()):
        forget()


_seen: dict[Path, tuple[int, ...]] = {}
"""The files and folders of all modules that were read, each with its state from before it was read."""


def _state(path: Path) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError:
        return ()
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mtime_ns,)
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@cache
def _read(name: str) -> Module:
    """Read a module. A module that is compiled, or that Python cannot parse, counts by its bytes."""
    spec = _spec(name)
    if spec is None or not spec.has_location or spec.origin is None:
        return Module(name, digest.of_rows([("missing" if spec is None else "folder", "")]))
    path = Path(spec.origin)
    _seen.update({each: _state(each) for each in (path.parent, path)})
    content, status = regular.read_with_status(path)
    before = {path: status}
    try:
        tree = ast.parse(content)
        form = normal_form.of(tree, name if path.name == "__init__.py" else name.rpartition(".")[0])
    except (SyntaxError, ValueError, RecursionError):
        return Module(name, digest.of_bytes(content), before=before)
    rows = [("code", form.text)]
    if _DECLARES.search(content):
        data, read = _data_rows(tree, path)
        rows += data
        before |= read
        _seen.update({each: _state(each) for each in read})
    return Module(name, digest.of_rows(rows), form, before)


@cache
def _target(each: Import) -> str:
    """Return the module that an import brings.

    A module may import a name when it is first used, by `__getattr__`. Its import under `if TYPE_CHECKING:` says where
    the name comes from.
    """
    if not each.name:
        return each.module
    inner = f"{each.module}.{each.name}"
    if _spec(inner) is not None:
        return inner
    form = _read(each.module).form
    late = (other.module for other in form.typing_imports if other.name == each.name and _LATE in form.text)
    return next(late, each.module)


@cache
def _spec(module: str) -> ModuleSpec | None:
    """Find a module or package without importing it; None where there is none of this name."""
    around_it, _, name = module.rpartition(".")
    folders = None
    try:
        if not around_it:
            return importlib.util.find_spec(module)
        outer = _spec(around_it)
        places = outer.submodule_search_locations if outer is not None else None
        folders = None if places is None else list(places)
        return PathFinder.find_spec(module, folders) if folders is not None else None
    except (ImportError, ValueError):
        return None
    except KeyError:  # a folder without `__init__.py`, whose package is not imported
        spec = ModuleSpec(module, None, is_package=True)
        spec.submodule_search_locations = [
            path for each in folders or () if os.path.isdir(path := os.path.join(each, name))
        ]
        return spec


def _package_of(module: str) -> str:
    return module.partition(".")[0]


@contextmanager
def _uncollected() -> Iterator[None]:
    """Context manager: Python does not look for garbage, of which parsed code makes none; this saves a third."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_DATA = "data"
"""The variable that declares data files: `data = ("words.txt", "served/")`."""
_DECLARES = re.compile(rb"\b%b\s*[:=]" % _DATA.encode())
"""A pattern that is found in the source code of every module that declares data, and in that of some other modules."""
_COMPILED = "__pycache__"


def _names_of(node: ast.AST, within: ast.AST) -> tuple[str, ...]:
    """Return the files and folders that a statement in a module or class declares, () for other statements.

    In a class, a declaration counts only without an annotation or with `ClassVar`: a field called `data` is an option
    of the step.
    """
    match within, node:
        case ast.Module() | ast.ClassDef(), ast.Assign(targets=[ast.Name(id=name)], value=value) if name == _DATA:
            return _texts(value)
        case ast.Module(), ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name == _DATA:
            return _texts(value)
        case ast.ClassDef(), ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=ast.expr() as value):
            return _texts(value) if name == _DATA and "ClassVar" in ast.unparse(kind) else ()
    return ()


def _data_rows(tree: ast.Module, module: Path) -> tuple[list[tuple[str, str]], dict[Path, os.stat_result]]:
    """Return the rows of the data that a module declares, and the `os.stat` results from before it was read.

    Names are relative to the module's folder. A declared folder stands for all files below the folder.

    Each row is a pair of the file's name and the digest of its content; the folder of the module is not in the row.
    Raises StepError if a declared file is missing, or if the value of `data` is not made of literal texts.
    """
    rows: list[tuple[str, str]] = []
    before: dict[Path, os.stat_result] = {}
    try:
        names = list(_declared(tree))
    except ValueError as error:
        what = f"the data that {module} declares is not written as literal texts"
        raise StepError(what, [str(error)], f"write `{_DATA}` as a tuple of plain texts") from None
    for number, name in enumerate(names):
        place = Path(os.path.normpath(module.parent / name))
        if place.is_dir():
            before[place] = os.stat(place)
            for path in sorted(path for path in place.rglob("*") if _COMPILED not in path.parts):
                content = "missing"  # a link to nothing, which code can list
                if path.exists():
                    before[path] = os.stat(path)
                    content = "folder" if path.is_dir() else digest.of_file(path)
                rows.append((f"{number}/{path.relative_to(place).as_posix()}", content))
        elif place.is_file():
            before[place] = os.stat(place)
            rows.append((f"{number}/{place.name}", digest.of_file(place)))
        else:
            raise StepError(
                f"{module} declares the data {name!r}, and it is not there",
                [f"looked for: {place}"],
                f"`{_DATA}` names files and folders relative to the module's own folder",
            )
    return rows, before


def _declared(tree: ast.Module) -> Iterator[str]:
    for within in ast.walk(tree):
        for node in within.body if isinstance(within, ast.Module | ast.ClassDef) else ():
            yield from _names_of(node, within)


def _texts(value: ast.expr) -> tuple[str, ...]:
    """Return the literal texts in a syntax tree node for a text, tuple or list; () for any other node.

    Raises ValueError for a tuple or list that mixes texts with other values.
    """
    items = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    texts = [each.value for each in items if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if len(texts) < len(items) and (texts or any(isinstance(each, ast.Starred) for each in items)):
        raise ValueError(f"line {value.lineno}: {ast.unparse(value)}")
    return tuple(texts) if len(texts) == len(items) else ()
