"""Moves modules of a copy of the program, as a tool for refactoring does: files, imports, and texts that name them."""

from __future__ import annotations

import ast
import re
from pathlib import Path


def move(root: Path, old: str, new: str) -> None:
    """Give a module or package below `root` another dotted name, and let all that names it follow."""
    before, after = (root.joinpath(*name.split(".")) for name in (old, new))
    suffix = "" if before.is_dir() else ".py"
    after.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{before}{suffix}").rename(f"{after}{suffix}")
    for path in sorted(root.rglob("*.py")):
        text = path.read_text("utf-8")
        followed = _followed(text, old, new)
        if followed != text:
            path.write_text(followed, "utf-8")


def rename_step(root: Path, old: str, new: str) -> None:
    """Give the file of a step another name, and let the steps that name it follow."""
    steps = root / "engine" / "steps"
    (steps / f"{old}.py").rename(steps / f"{new}.py")
    names = [f'"{name.replace("_", "-")}"' for name in (old, new)]
    for path in sorted((root / "engine").rglob("*.py")):
        path.write_text(path.read_text("utf-8").replace(*names), "utf-8")


def _followed(text: str, old: str, new: str) -> str:
    lines = text.split("\n")
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in sorted(imports, key=lambda node: -node.lineno):
        followed = _of_import(node, old, new)
        if followed is not None:
            indent = " " * node.col_offset
            lines[node.lineno - 1 : node.end_lineno] = [indent + ast.unparse(each) for each in followed]
    return re.sub(rf"([\"']){re.escape(old)}((?:\.\w+)*)\1", rf"\1{new}\2\1", "\n".join(lines))


def _of_import(node: ast.Import | ast.ImportFrom, old: str, new: str) -> list[ast.stmt] | None:
    """Return what stands for an import after the move; None where it does not meet what moves."""
    if isinstance(node, ast.Import):
        assert not any(_is_in(alias.name, old) for alias in node.names), "write `from package import module`"
        return None
    if node.level:  # from beside itself, which moves with it
        return None
    base = node.module or ""
    if _is_in(base, old):
        return [ast.ImportFrom(new + base[len(old) :], node.names, 0)]
    moved = [alias for alias in node.names if f"{base}.{alias.name}" == old]
    if not moved:
        return None
    package, _, name = new.rpartition(".")
    stays = [alias for alias in node.names if alias not in moved]
    imports: list[ast.stmt] = [ast.ImportFrom(base, stays, 0)] if stays else []
    return [*imports, ast.ImportFrom(package, [ast.alias(name, alias.asname or alias.name) for alias in moved], 0)]


def _is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")
