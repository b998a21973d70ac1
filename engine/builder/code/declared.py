"""Declared code: the check of modules and classes that declare `shapes_output = False`."""

# The check finds plain mistakes: a file that is written, an argument or another module that is changed. Whether the
# results of the code reach an output is what a reader of the declaration must judge.

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.builder.code import following, sources, trees
from engine.builder.code.bindings import Scope
from engine.builder.code.following import Origin
from engine.builder.code.sources import ModuleSource
from engine.errors import StepError

_WRITING = frozenset({
    "chmod", "hardlink_to", "mkdir", "rename", "rmdir", "save", "save_model", "savez", "symlink_to", "tofile",
    "touch", "unlink", "write_bytes", "write_text", "writelines",
})  # fmt: skip
"""Methods that change files."""
_SYSTEM = ("os.", "shutil.", "subprocess.", "tempfile.", "ctypes.", "signal.", "json.dump", "pickle.dump")
_READING = (
    "json.dumps",
    "pickle.dumps",
    "os.path.",
    "os.environ.get",
    "os.getenv",
    "os.getpid",
    "os.cpu_count",
    "os.fspath",
    "os.sched_getaffinity",
)
_READ_MODES = frozenset({"r", "rb", "rt"})


def refuse_changes(source: ModuleSource) -> None:
    """Raise StepError for code that declares that it shapes no output, and yet changes something."""
    if sources.SHAPES.encode() not in source.text:
        return
    classes = (node for node in source.statements if isinstance(node, ast.ClassDef))
    declared = [node for node in classes if sources.is_unshaping(source.module, (node.name,))]
    for each in [source.tree] if source.is_unshaping else declared:
        for function in trees.walk(each):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for line, what in _changes(function, source.scope.function(function)):
                    raise StepError(
                        f"{source.module} declares that it shapes no output, but it changes something",
                        [f"line {line}: {what}"],
                        f"take the line into code without `{sources.SHAPES} = False`, or take the declaration out",
                    )


def _changes(function: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Iterator[tuple[int, str]]:
    arguments = function.args
    taken = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} - {"self", "cls"}
    for node in trees.walk(function):
        if isinstance(node, ast.Call) and _writes(node, scope):
            yield node.lineno, ast.unparse(node)
        targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
        targets = [node.target] if isinstance(node, ast.AugAssign) else targets
        for target in targets:
            base = target
            while isinstance(base, ast.Attribute | ast.Subscript):
                base = base.value
            if base is not target and isinstance(base, ast.Name) and (base.id in taken or scope.here.get(base.id)):
                yield node.lineno, ast.unparse(node)


def _writes(node: ast.Call, scope: Scope) -> bool:
    if isinstance(node.func, ast.Attribute) and node.func.attr in _WRITING:
        return True
    target = following.meaning(node.func, scope)
    if target is None:
        return False
    if target.kind is Origin.LIBRARY:
        return target.dotted.startswith(_SYSTEM) and not target.dotted.startswith(_READING)
    if target.kind is Origin.BUILTIN and target.words == ("open",):
        modes = [*node.args[1:2], *(each.value for each in node.keywords if each.arg == "mode")]
        return any(not isinstance(each, ast.Constant) or each.value not in _READ_MODES for each in modes)
    return False
