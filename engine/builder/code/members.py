"""Members: the statements in the body of a class that count only if somebody uses them."""

from __future__ import annotations

import ast

from engine.builder.code import catalogue, data, following, sources
from engine.builder.code.bindings import Scope
from engine.builder.code.parts import Use

_PLACING = frozenset({"makes", "after", "gates"})
"""The attributes of a step's class that decide the step's place in the plan.

The attributes `makes` and `after` decide a step's inputs, and each input has a row of its own in the key; `gates` only
decides when the job starts.
"""
BUILDERS = frozenset({
    "for_recipe", "judge", "model_facts", "hardware", "tools_used", "facts_used", "code_used", "inputs_used", "options",
    "sources", "step_name", "inputs", "required_inputs", "tools", "facts", "variables", "judged", "section", "delivers",
    "time_limit", "as_candidate",
})  # fmt: skip
"""The hooks and declarations of a step that only the builder uses.

The builder writes their results into other rows of the key, or judges and shows a report by them.
"""


def use(node: ast.AST, scope: Scope) -> tuple[str, Use] | None:
    """Return the name of a member of a class that counts only if somebody uses it, and who may; None for others."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        decorators = [following.meaning(each, scope) for each in node.decorator_list]
        if any(each is None or each.dotted not in catalogue.METHOD_DECORATORS for each in decorators):
            return None
        if node.name in BUILDERS:
            return node.name, Use.BUILDER
        return (node.name, Use.OWN) if node.name.startswith("_") and not node.name.startswith("__") else None
    name = sources.assigned(node)
    if name in _PLACING:
        return name, Use.PLACE
    return (name, Use.BUILDER) if name in BUILDERS else None


def is_declaration(node: ast.AST, within: ast.AST) -> bool:
    """Say whether a statement only declares data files, or that code shapes no output."""
    name = sources.assigned(node) if isinstance(within, ast.Module | ast.ClassDef) else None
    if name == data.NAME:
        return bool(data.names_of(node, within))
    return name == sources.SHAPES and not sources.is_option(node, within)
