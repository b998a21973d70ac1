"""What does not count of the modules that a step imports: a list for people, `outside.py STEP [ROOM]`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import edited_code

from engine.builder.code import digests, reading, sources
from engine.builder.code.closure import CodeNode
from engine.step import Step

RECIPES = ("minilm_t4.yaml", "minilm_cpu.yaml")


def outside(step: Step) -> Iterator[str]:
    """Yield a line for each module of which something does not count: its name, the reason, and the names."""
    closure = digests.reached(step)
    named = {name for node in closure.nodes for name in reading.refers(node.module, node.number)}
    for module in sorted(closure.modules):
        source = sources.of(module)
        if source is None:
            continue
        if source.is_unshaping:
            yield f"{module}: all, declared"
            continue
        names: dict[str, list[str]] = {}
        for number, node in enumerate(source.statements):
            if CodeNode(module, number) in closure.nodes or isinstance(node, ast.Import | ast.ImportFrom | ast.Expr):
                continue
            name = getattr(node, "name", None) or sources.assigned(node) or ast.unparse(node)
            declared = sources.is_unshaping(module, (name,))
            worded = "only in messages or hooks" if (module, name) in named else "not reached"
            reason = "declared" if declared else worded
            names.setdefault(reason, []).append(name)
        for reason in sorted(names):
            yield f"{module}: {reason}: {', '.join(names[reason])}"


if __name__ == "__main__":
    room = sys.argv[2] if len(sys.argv) > 2 else ""
    print("\n".join(line for line in outside(edited_code.steps(*RECIPES)[sys.argv[1]]) if line.startswith(room)))
