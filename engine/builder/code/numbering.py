"""Numbering: the digest of a closure, in which each statement has a number instead of the place of its module."""

# The numbers follow the order in which the text first refers to a statement. Two closures therefore have equal digests
# only if their statements are equal and refer to each other in the same way.

from __future__ import annotations

from collections.abc import Iterable

from engine import digest
from engine.builder.code import reading
from engine.builder.code.closure import Closure, CodeNode
from engine.digest import Digest


def digest_of(closure: Closure, roots: Iterable[CodeNode]) -> Digest:
    """Return the digest of a closure, which does not depend on the order of the nodes that it begins with."""
    rows: set[tuple[str, str]] = {("root", _text(closure, (root,))) for root in roots}
    for name in closure.modules:
        module = reading.read(name)
        if module.effects:
            rows.add(("import", _text(closure, [CodeNode(name, number) for number in module.effects])))
        if module.content:
            rows.add(("data", module.content))
    rows |= {("idle", each if isinstance(each, str) else _text(closure, (each,))) for each in closure.idle}
    return digest.of_rows(sorted(rows))


def _text(closure: Closure, roots: Iterable[CodeNode]) -> Digest:
    """Return the digest of nodes in their order, and of all nodes that they reach in the order of the references."""
    numbers = {node: number for number, node in enumerate(roots)}
    order = list(numbers)
    texts: list[str] = []
    for node in order:  # more nodes are added meanwhile
        texts.append("#")
        for part in closure.nodes[node].parts:
            if isinstance(part, str):
                texts.append(part)
                continue
            words, nodes = part
            texts.append(f"@{words!r}")
            for each in nodes:
                if each not in numbers:
                    numbers[each] = len(order)
                    order.append(each)
                texts.append(f"@{numbers[each]}")
    return digest.of_rows([("", "".join(texts))])
