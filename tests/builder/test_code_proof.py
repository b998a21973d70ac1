"""For each step, every statement in its reach counts, and every other statement of the same modules does not."""

import ast
import random
from pathlib import Path

import pytest
from edited_code import EditedCode, steps
from outside import RECIPES, outside

from engine.builder.code import data, digests, sources
from engine.builder.code.closure import CodeNode

SAMPLE = 3
"""So many reached statements of each step are tried by default; `--whole` tries all."""
OUTSIDE = Path(__file__).parent / "code_outside.txt"
STEPS = ("trt-build", "export", "fuse", "quantize", "package", "validate", "bench", "shape-infer", "reference")
_ROOM = "engine.runtimes.tensorrt"
_DEFAULT = ("trt-build",)
"""The step that is tried without `--whole`."""


def pytest_generate_tests(metafunc):
    if "step" in metafunc.fixturenames:
        metafunc.parametrize("step", STEPS if metafunc.config.getoption("whole") else _DEFAULT)


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    return EditedCode(tmp_path_factory.mktemp("proof"))


@pytest.fixture(scope="module")
def all_steps():
    return steps(*RECIPES)


class _Others(ast.NodeTransformer):
    """Gives other values to the constants of a statement, except to docstrings."""

    def visit_Constant(self, node):
        if isinstance(node.value, str) and node.value:
            return ast.Constant(node.value + "x")
        if type(node.value) is int:
            return ast.Constant(node.value + 1)
        return node

    def visit_Expr(self, node):
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_JoinedStr(self, node):
        return ast.JoinedStr([*node.values, ast.Constant("x")])


def _with(source, others):
    """Return the text of a module in which other statements stand in the places of statements, by number."""
    lines = source.text.decode().splitlines(keepends=True)
    for number in sorted(others, reverse=True):
        before = source.statements[number]
        first = min([before.lineno, *(each.lineno for each in getattr(before, "decorator_list", ()))])
        lines[first - 1 : before.end_lineno] = [ast.unparse(ast.fix_missing_locations(others[number])) + "\n"]
    return "".join(lines)


def _probed(node):
    """Return a statement that does one thing more; None for a statement where that is not simple."""
    probe = ast.parse("open(0)").body
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return ast.parse(ast.unparse(node)).body[0], probe
    if isinstance(node, ast.Assign):
        return ast.Assign(node.targets, ast.parse(f"({ast.unparse(node.value)}, 0)", mode="eval").body), None
    return None, None


def test_no_statement_outside_the_reach_of_a_step_counts(step, edited, all_steps):
    chosen = all_steps[step]
    with edited.read_here():
        closure = digests.reached(chosen)
        texts, count = {}, 0
        every = [source for source in map(sources.of, closure.modules) if source is not None]
        copied = {file for source in every for file in data.declared(source.tree, source.path).files}
        for source in every:
            if source.path in copied:
                continue  # the step copies the file into a package: all of its text counts
            others = {
                number: _Others().visit(ast.parse(ast.unparse(node)).body[0])
                for number, node in enumerate(source.statements)
                if isinstance(node, ast.FunctionDef | ast.Assign)
                and CodeNode(source.module, number) not in closure.nodes
                and sources.assigned(node) not in {"data", sources.SHAPES, "__all__"}
            }
            count += len(others)
            texts[source.module] = _with(source, others)
    assert count > 20
    assert edited.digest_with(chosen, texts) == edited.digest(chosen)


def test_each_statement_in_the_reach_of_a_step_counts(step, edited, all_steps, request):
    chosen = all_steps[step]
    with edited.read_here():
        closure = digests.reached(chosen)
        nodes = sorted((node for node in closure.nodes if node.number is not None), key=str)
        trials = []
        for place in nodes:
            source = sources.of(place.module)
            other, probe = _probed(source.statements[place.number])
            if (
                other is None
                or source.is_unshaping
                or sources.is_unshaping(place.module, (getattr(other, "name", ""),))
            ):
                continue
            if probe is not None:
                start = 1 if ast.get_docstring(other) is not None else 0
                other.body[start:start] = probe
            trials.append((place, _with(source, {place.number: other})))
    assert len(trials) > 20
    if not request.config.getoption("whole"):
        trials = random.Random(13).sample(trials, SAMPLE)
    before = edited.digest(chosen)
    silent = [str(place) for place, text in trials if edited.digest_with(chosen, {place.module: text}) == before]
    assert silent == []


def test_the_list_of_what_does_not_count_for_an_engine_is_reviewed(all_steps):
    lines = [line for line in outside(all_steps["trt-build"]) if line.startswith(_ROOM)]
    assert len(lines) > 8
    assert lines == OUTSIDE.read_text("utf-8").splitlines(), (
        f"see what is new, then write the list anew: tests/support/outside.py trt-build {_ROOM} > {OUTSIDE.name}"
    )


def test_exactly_these_modules_and_classes_are_declared_to_shape_no_output():
    modules, classes = set(), set()
    for path in sorted(Path(sources.__file__).parents[2].rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for within in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))):
            if any(sources.assigned(node) == sources.SHAPES for node in within.body):
                name = getattr(within, "name", None)
                modules.add(path.stem) if name is None else classes.add(name)
    assert modules == {
        "alternatives", "exportable", "failures", "inspector", "log", "memory", "progress", "reasons", "size_search",
        "tokenizer_trouble",
    }  # fmt: skip
    assert classes == {"ExportReport", "FuseReport", "GraphReport", "ReferenceReport", "ShapeReport"}
